//! Kill -9: a server in a process of its own on a real disk, which is killed while clients work.
//!
//! Here threads, sockets and the system's calls are real, and nothing follows from a seed but what clients say. So
//! each client has names of its own, and an account of its own: what is there of its names after the kill is its last
//! acknowledged state, or that with what was in flight. Then the next server goes on from there.
//!
//! Invariant: clients of one round share nothing but the server.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use onrush_sim::Random;

use crate::answers;
use crate::generate::{Claims, Names, Sight, Source};
use crate::history::{Checked, nearest};
use crate::kinds::Kinds;
use crate::look;
use crate::model::{Transaction, World};
use crate::state::State;
use crate::summary::Summary;
use crate::wire::{Answer, Client};
use onrush_oracle::{History, violation};

/// Their numbers have one digit.
const CLIENTS: usize = 4;
/// A server that does not listen by then does not start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Statements after which a server is killed, at most.
const STATEMENTS_MAX: u64 = 60;
/// After one in so many kills the server checks its database.
const CHECK_ONE_IN: u64 = 20;
/// One in so many servers is killed while it starts.
const KILLED_AT_START_ONE_IN: u64 = 8;

/// How servers are started.
#[derive(Clone, Debug)]
pub struct Killing {
    /// The program.
    pub program: PathBuf,
    /// What comes before the folder of the database and the path of its socket.
    pub arguments: Vec<String>,
    /// What comes between them.
    pub between: Vec<String>,
    /// What clients may do.
    pub kinds: Kinds,
    /// Of what clients say.
    pub seed: u64,
}

/// A client's account, from one server to the next.
struct Account {
    world: World,
    /// What there may be after the kill: one state, and those after what was in flight.
    possible: History<State>,
    said: Vec<String>,
}

/// A process that is killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself; that is found out by whoever asks it something.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Killing {
    /// Kills servers, one after the other, on one database.
    ///
    /// # Errors
    /// The first violation, with what the client had said.
    pub fn run(
        &self,
        kills: u64,
        until: Option<Instant>,
        summary: &mut Summary,
        tell: impl Fn(&Summary),
    ) -> Checked<()> {
        let folder = match tempfile::tempdir() {
            Ok(folder) => folder,
            Err(error) => violation!("no folder: {error}"),
        };
        let new = || World::new(State::default());
        let account = |_| Account { world: new(), possible: new().history, said: Vec::new() };
        let mut accounts: Vec<Account> = (0..CLIENTS).map(account).collect();
        let mut random = Random::for_part(self.seed, 5);
        let mut told = Instant::now();
        for round in 0..=kills {
            if random.chance(1, KILLED_AT_START_ONE_IN) {
                let starting = self.start(folder.path())?;
                std::thread::sleep(Duration::from_micros(random.below(60_000)));
                drop(starting);
                summary.kills += 1;
            }
            let server = self.start(folder.path())?;
            let checks = random.chance(1, CHECK_ONE_IN);
            compare(folder.path(), &mut accounts, checks)?;
            summary.checks += u64::from(checks);
            if round == kills || until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            let target = 1 + random.below(STATEMENTS_MAX);
            self.work(folder.path(), server, &mut accounts, (round, target), summary)?;
            summary.kills += 1;
            if told.elapsed() > Duration::from_secs(10) {
                told = Instant::now();
                tell(summary);
            }
        }
        Ok(())
    }

    fn start(&self, folder: &Path) -> Checked<Killed> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(folder.join("database")).args(&self.between);
        command.arg(folder.join("socket")).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(child) => Ok(Killed(child)),
            Err(error) => violation!("{}: {error}", self.program.display()),
        }
    }

    /// Clients work until so many statements are done; then the server is killed.
    fn work(
        &self,
        folder: &Path,
        server: Killed,
        accounts: &mut [Account],
        (round, target): (u64, u64),
        summary: &mut Summary,
    ) -> Checked<()> {
        let mut clients = Vec::new();
        for _ in 0..accounts.len() {
            clients.push(begin(folder)?);
        }
        let (done, statements) = mpsc::channel();
        let outcomes: Vec<Checked<()>> = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for (number, (account, client)) in accounts.iter_mut().zip(clients).enumerate() {
                let names = Names::of(number);
                let source = Source::new(self.seed + round, number, self.kinds, names);
                let done = done.clone();
                threads.push(scope.spawn(move || account.work(client, source, &done)));
            }
            drop(done);
            // Fewer where all clients ended before: each found something that must not be.
            let before = statements.iter().take(target as usize).count() as u64;
            drop(server);
            let joined = |thread: ScopedJoinHandle<'_, Checked<()>>| match thread.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            let outcomes = threads.into_iter().map(joined).collect();
            summary.statements += before + statements.iter().count() as u64;
            outcomes
        });
        outcomes.into_iter().collect::<Checked<Vec<()>>>().map(drop)
    }
}

impl Account {
    /// Says one thing after the other until the server is gone.
    fn work(&mut self, mut client: Client, mut source: Source, done: &Sender<()>) -> Checked<()> {
        let mut open: Option<Transaction> = None;
        self.said.clear();
        loop {
            let statement = source.draw(&Sight {
                world: &self.world,
                open: open.as_ref(),
                claims: Claims::default(),
                in_checkpoint: false,
            });
            let prediction = self.world.predict(open.as_ref(), &statement);
            self.said.push(statement.text());
            let answer = match client.send(&statement.request()).and_then(|()| client.wait()) {
                Ok(answer) => answer,
                Err(_) => Answer { is_over: true, ..Answer::default() },
            };
            if answer.is_over {
                self.possible = self.world.after(&open, &statement, &prediction);
                return Ok(());
            }
            if let Some(said) = self.said.last_mut() {
                *said = format!("{said} => {}", answers::shown(&answer));
            }
            if answers::is_refusal(&prediction, &answer, false) {
                self.world.refuse(&mut open, &statement);
            } else if let Some(wrong) = answers::wrong(&statement, &prediction, &answer) {
                violation!("{wrong}\n    {}", self.said.join("\n    "));
            } else {
                self.world.take(&mut open, &statement, &prediction);
            }
            // Who counts outlives all who report.
            let _ = done.send(());
        }
    }
}

fn begin(folder: &Path) -> Checked<Client> {
    let begun = Instant::now();
    let try_it =
        || -> io::Result<Client> { Client::begin(UnixStream::connect(folder.join("socket"))?) };
    loop {
        match try_it() {
            Ok(client) => return Ok(client),
            Err(error) if begun.elapsed() > PATIENCE => {
                violation!("the server does not start: {error}")
            }
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// What is there is what each client has been told, of what is its own.
fn compare(folder: &Path, accounts: &mut [Account], checks: bool) -> Checked<()> {
    let mut client = begin(folder)?;
    let lines = look::see(&mut client)?;
    for (number, account) in accounts.iter_mut().enumerate() {
        let is_its = |line: &&String| owner(line) == Some(number);
        let found: Vec<String> = lines.iter().filter(is_its).cloned().collect();
        let (found, bounds) = (Arc::new(found), (0, account.possible.len()));
        let Some(at) = account.possible.prefix_of(&found, bounds) else {
            violation!(
                "after a kill client {number} finds what it must not (- missing, + too much)\n    {}\n  \
                 it had said\n    {}",
                nearest(&account.possible, bounds, &found).1,
                account.said.join("\n    ")
            );
        };
        account.world = World::new(account.possible.state_after(at));
        account.possible = account.world.history.clone();
    }
    if checks {
        match client.ask("CALL onrush.check(dop => 1)") {
            Ok(answer) if answer.error.is_none() && !answer.is_over => {}
            Ok(answer) => violation!("check: {}", answers::shown(&answer)),
            Err(error) => violation!("check: {error}"),
        }
    }
    Ok(())
}

/// The client whose name a line is about: all of its names end with its number.
fn owner(line: &str) -> Option<usize> {
    let name = line.split_whitespace().nth(1)?.trim_end_matches(':');
    name.chars().last()?.to_digit(10).map(|digit| digit as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart_by_the_numbers_of_clients() {
        let lines = [
            "role r2",
            "schema s2",
            "row s2.p2 1|a",
            "comment public.m2 : x",
            "grant public.p2 SELECT to r2",
        ];
        assert!(lines.iter().all(|line| owner(line) == Some(2)));
    }
}
