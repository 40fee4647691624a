//! A round: a server on a disk that records, and clients that send one statement after the other, in an order that
//! follows from the seed.
//!
//! A statement is sent when all others have ended or wait for their commits to become durable. Who waits may be left
//! waiting while others go on: nothing is written for it until the round says so. In the middle of a checkpoint
//! others may run theirs, and while the log is being written ([`slow_log`]).
//!
//! Invariant: everything follows from the plan. The server has threads, but only one of them has something to do.

mod slow_log;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use onrush::Database;
use onrush_server::Server;
use onrush_sim::gate::{Gate, GatedDisk, Visitor};
use onrush_sim::{Call, CrashDisk, Fault, FaultError, Random, Repeat, Unsynced};

use crate::answers;
use crate::generate::{Claims, Names, Sight, Source};
use crate::history::{Checked, History, Mark};
use crate::kinds::{Kind, Kinds};
use crate::look;
use crate::model::{Prediction, Transaction, World};
use crate::state::{Change, State};
use crate::statement::{Statement, Way};
use crate::wire::{Answer, Client};
use onrush_oracle::violation;

/// A statement that is not heard of for so long waits for its commit. Less, and a machine that is busy with other
/// work would take a slow one for one that waits.
const SILENCE: Duration = Duration::from_secs(1);

/// A statement that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a round does.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Everything follows from it.
    pub seed: u64,
    /// What clients may do.
    pub kinds: Kinds,
    /// A call of the disk fails.
    pub fault: Option<Fault>,
    /// The disk confirms syncs and does not do them.
    pub is_lying: bool,
}

impl Plan {
    /// A round on a disk that does what it says.
    pub fn new(seed: u64, kinds: Kinds) -> Plan {
        Plan { seed, kinds, fault: None, is_lying: false }
    }
}

/// Which call of the disk fails in a round: by its seed.
pub fn failing_call(seed: u64) -> Fault {
    let mut random = Random::for_part(seed, 4);
    let call = [Call::Write, Call::Sync, Call::AnyChange, Call::Allocate][random.below(4) as usize];
    let error = [FaultError::Device, FaultError::Full][random.below(2) as usize];
    let repeat = [Repeat::Once, Repeat::ForEver][random.below(2) as usize];
    let unsynced = [Unsynced::Kept, Unsynced::Lost][random.below(2) as usize];
    // Log and checkpoints do some eighty calls in a round; few of them make space.
    let most = if call == Call::Allocate { 4 } else { 60 };
    Fault { call, nth: 1 + random.below(most), error, repeat, unsynced }
}

/// From which call on a disk takes no changes any more in a round: by its seed.
pub fn last_change(seed: u64) -> Fault {
    let nth = 1 + Random::for_part(seed, 4).below(80);
    let (call, error) = (Call::AnyChange, FaultError::ReadOnly);
    Fault { call, nth, error, repeat: Repeat::ForEver, unsynced: Unsynced::Kept }
}

/// What a round leaves.
pub struct Ended {
    /// As it was.
    pub plan: Plan,
    /// All that was done on it.
    pub disk: CrashDisk,
    /// From this boundary on there was a server.
    pub begun_at: usize,
    /// What was sent and acknowledged.
    pub history: History,
    /// Statements that were refused as not possible there.
    pub refused: u64,
    /// Statements in all.
    pub statements: u64,
    /// Those in the middle of checkpoints.
    pub visits: u64,
    /// Those while the log was being written.
    pub overtaken: u64,
    /// Those that were left waiting for their commits while others went on.
    pub left_waiting: u64,
}

struct Seat {
    client: Client,
    source: Source,
    open: Option<Transaction>,
    is_durable: bool,
    in_flight: Option<Pending>,
    left: u64,
}

/// A statement whose answer has not come.
struct Pending {
    statement: Statement,
    prediction: Prediction,
    mark: usize,
    rests_on: usize,
    is_taken: bool,
}

struct Round {
    plan: Plan,
    disk: CrashDisk,
    gate: Gate,
    database: Database,
    server: Server,
    seats: Vec<Seat>,
    world: World,
    marks: Vec<Mark>,
    random: Random,
    /// The disk has failed: no more statements.
    has_failed: bool,
    in_checkpoint: bool,
    /// The log is being written, and waits for the round to let it go on.
    held_log: Option<slow_log::HeldLog>,
    refused: u64,
    visits: u64,
    overtaken: u64,
    left_waiting: u64,
}

/// Who comes to the gate arrives at the round, and waits to go on. Both dropped, it goes on for good.
type Visitors = (Receiver<()>, SyncSender<()>);

/// What runs behind the gate, and the round's end of it.
fn stops_at_the_gate() -> (Visitor, Visitors) {
    let (arrived, arrivals): (SyncSender<()>, Receiver<()>) = sync_channel(0);
    let (go_on, gone_on): (SyncSender<()>, Receiver<()>) = sync_channel(0);
    let visitor = move || {
        if arrived.send(()).is_ok() {
            // It is let go on, or for good.
            let _ = gone_on.recv();
        }
    };
    (Box::new(visitor), (arrivals, go_on))
}

/// Runs the statements of a plan.
///
/// # Errors
/// An answer is not what it must be; what was sent until then is told.
pub fn run(plan: Plan) -> Checked<Ended> {
    let mut round = Round::begin(plan)?;
    let outcome = round.statements();
    if let Err(violation) = outcome {
        let marks: Vec<String> = round.marks.iter().map(Mark::to_string).collect();
        violation!("{}\n  sent so far:\n    {}", violation.0, marks.join("\n    "));
    }
    Ok(round.end())
}

impl Round {
    fn begin(plan: Plan) -> Checked<Round> {
        let (disk, gate) = (CrashDisk::new(), Gate::new());
        let gated = Arc::new(GatedDisk::of_all(disk.clone(), gate.clone()));
        let database = match Database::create_on(gated, look::folder(), look::options()) {
            Ok(database) => database,
            Err(error) => violation!("create: {error}"),
        };
        let server = match Server::start(database.clone(), look::server_options()) {
            Ok(server) => server,
            Err(error) => violation!("the server does not start: {error}"),
        };
        let mut random = Random::for_part(plan.seed, 1);
        let mut seats = Vec::new();
        let count = 2 + random.below(3) as usize;
        for number in 0..count {
            let mut client = match server.client().and_then(Client::begin) {
                Ok(client) => client,
                Err(error) => violation!("no client gets in: {error}"),
            };
            let is_durable = !plan.kinds.has(Kind::Delayed) || random.chance(3, 4);
            if !is_durable && client.ask("SET synchronous_commit = off").is_err() {
                violation!("a client cannot be made delayed");
            }
            // The round goes on with one statement at a time, so nobody would end who is waited for for long.
            let told =
                "SET default_transaction_isolation = 'repeatable read'; SET lock_timeout = '1ms'";
            if client.ask(told).is_err() {
                violation!("a client cannot be told how to wait");
            }
            let source = Source::new(plan.seed, number, plan.kinds, Names::shared());
            let left = 5 + random.below(26);
            seats.push(Seat { client, source, open: None, is_durable, in_flight: None, left });
        }
        let world = World::new(State::default());
        Ok(Round {
            plan,
            disk,
            gate,
            database,
            server,
            seats,
            world,
            marks: Vec::new(),
            random,
            has_failed: false,
            in_checkpoint: false,
            held_log: None,
            refused: 0,
            visits: 0,
            overtaken: 0,
            left_waiting: 0,
        })
    }

    fn statements(&mut self) -> Checked<()> {
        if let Some(fault) = self.plan.fault {
            self.disk.inject(fault);
        }
        if self.plan.is_lying {
            self.disk.lie_about_syncs();
        }
        while !self.has_failed {
            let ready = |seat: &&usize| {
                let seat = &self.seats[**seat];
                seat.in_flight.is_none() && seat.left > 0
            };
            let all: Vec<usize> = (0..self.seats.len()).collect();
            let ready: Vec<usize> = all.iter().filter(ready).copied().collect();
            let in_flight = self.in_flight();
            if ready.is_empty() && in_flight.is_empty() {
                return Ok(());
            }
            if ready.is_empty() || (!in_flight.is_empty() && self.random.chance(1, 3)) {
                match self.is_log_slow() {
                    true => self.write_log_slowly()?,
                    false => self.write_log(),
                }
                self.take_answers()?;
                continue;
            }
            let seat = ready[self.random.below(ready.len() as u64) as usize];
            self.step(seat)?;
            self.take_answers()?;
        }
        self.write_log();
        self.seats.iter_mut().for_each(|seat| seat.in_flight = None);
        Ok(())
    }

    fn in_flight(&self) -> Vec<usize> {
        let mut seats: Vec<(usize, usize)> = Vec::new();
        for (number, seat) in self.seats.iter().enumerate() {
            seats.extend(seat.in_flight.as_ref().map(|pending| (pending.mark, number)));
        }
        seats.sort_unstable();
        seats.into_iter().map(|(_, seat)| seat).collect()
    }

    fn write_log(&self) {
        // A log that has failed says so to those who wait for it.
        let _ = self.database.write_log();
    }

    /// Those whose commits have become durable get their answers, in the order in which they were sent.
    fn take_answers(&mut self) -> Checked<()> {
        let in_flight = self.in_flight();
        let waiting = self.database.awaited_commits();
        let ended = in_flight.len().saturating_sub(waiting);
        for seat in in_flight.into_iter().take(ended) {
            let answer = self.wait(seat)?;
            self.answered(seat, &answer)?;
        }
        Ok(())
    }

    /// The answer of a statement whose commit is durable. One that had not come to its wait when the log was
    /// written, as on a slow machine, needs it to be written once more.
    fn wait(&mut self, seat: usize) -> Checked<Answer> {
        let (begun, mut written) = (Instant::now(), Instant::now());
        loop {
            if let Some(answer) = self.poll(seat)? {
                return Ok(answer);
            }
            if written.elapsed() > SILENCE {
                self.write_log();
                written = Instant::now();
            }
            if begun.elapsed() > PATIENCE {
                violation!("client {seat} gets no answer");
            }
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    /// One statement of one client, until it has ended or waits for its commit.
    fn step(&mut self, number: usize) -> Checked<()> {
        let mut claims = Claims::default();
        for (other, seat) in self.seats.iter().enumerate() {
            if let Some(open) = seat.open.as_ref().filter(|_| other != number) {
                claims.add(self.world.now(), open);
            }
        }
        let mut others = self.seats.iter().enumerate().filter(|(other, _)| *other != number);
        let others_are_open = others.any(|(_, seat)| seat.open.is_some());
        let in_checkpoint = self.in_checkpoint || self.held_log.is_some();
        let world = &self.world;
        let seat = &mut self.seats[number];
        seat.left -= 1;
        let statement = {
            let sight = Sight { world, open: seat.open.as_ref(), claims, in_checkpoint };
            seat.source.draw(&sight)
        };
        world.look(&mut seat.open, &statement);
        let mut prediction = world.predict(seat.open.as_ref(), &statement);
        prediction.may_wait = others_are_open;
        let kind = match statement {
            Statement::Get { .. } | Statement::Read { .. } => Kind::Reads,
            _ => Kind::Hearsay,
        };
        let rests_on = match seat.is_durable && self.plan.kinds.has(kind) {
            true => world.rests_on(seat.open.as_ref(), &statement, &prediction),
            false => 0,
        };
        let mark = self.marks.len();
        self.marks.push(Mark {
            client: number,
            text: statement.text(),
            sent_at: self.disk.operation_count(),
            answered_at: None,
            answer: "no answer".into(),
            rests_on: 0,
            made: 0,
        });
        let awaited = self.database.awaited_commits();
        let takes_visitors =
            statement == Statement::Checkpoint && self.plan.kinds.has(Kind::Visits);
        // Before the checkpoint can begin.
        let visitors = takes_visitors.then(|| {
            let (visitor, visitors) = stops_at_the_gate();
            self.gate.open(visitor);
            visitors
        });
        let sent = seat.client.send(&statement.request());
        let is_taken = false;
        seat.in_flight = Some(Pending { statement, prediction, mark, rests_on, is_taken });
        if sent.is_err() {
            return self.answered(number, &Answer { is_over: true, ..Answer::default() });
        }
        match visitors {
            Some((arrivals, go)) => self.checkpoint(number, (arrivals, go)),
            None => self.follow(number, awaited),
        }
    }

    /// Waits until the statement has ended or waits; then it may be left waiting.
    fn follow(&mut self, number: usize, awaited: usize) -> Checked<()> {
        let begun = Instant::now();
        loop {
            if let Some(answer) = self.poll(number)? {
                return self.answered(number, &answer);
            }
            let waiting = self.database.awaited_commits();
            // A definition that waits by itself makes durable what others await: then it may be the only one.
            let is_alone = waiting > 0 && begun.elapsed() > SILENCE;
            if waiting > awaited || is_alone {
                let may_be_left =
                    self.may_be_left(number) && self.in_flight().len() < self.seats.len();
                let is_left = self.held_log.is_some() || self.random.chance(1, 2);
                if may_be_left && is_left {
                    self.take(number);
                    self.left_waiting += 1;
                    return Ok(());
                }
                self.let_log_go_on();
                match may_be_left && self.is_log_slow() {
                    true => {
                        self.take(number);
                        self.write_log_slowly()?;
                    }
                    false => self.write_log(),
                }
                let answer = self.wait(number)?;
                return self.answered(number, &answer);
            }
            if begun.elapsed() > PATIENCE {
                violation!("client {number} gets no answer");
            }
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    fn poll(&mut self, number: usize) -> Checked<Option<Answer>> {
        match self.seats[number].client.poll() {
            Ok(answer) => Ok(answer),
            Err(error) => violation!("client {number}: {error}"),
        }
    }

    /// What it has done is certain before its answer comes.
    fn may_be_left(&self, number: usize) -> bool {
        let Some(pending) = &self.seats[number].in_flight else { return false };
        let is_certain = pending.prediction.errors.is_empty() && !pending.prediction.may_conflict;
        let is_of_rows = match &pending.statement {
            Statement::Insert { way, .. } => *way != Way::Copy || self.plan.fault.is_none(),
            Statement::Update { .. } | Statement::UpdateWhere { .. } => true,
            Statement::Delete { .. } | Statement::DeleteWhere { .. } => true,
            Statement::Commit => self.seats[number].open.as_ref().is_some_and(|open| {
                let rows =
                    |change: &Change| matches!(change, Change::Put { .. } | Change::Delete { .. });
                open.changes.iter().all(rows)
            }),
            _ => false,
        };
        is_certain && is_of_rows && self.plan.fault.is_none()
    }

    /// A checkpoint, in the middle of which others run statements.
    fn checkpoint(&mut self, number: usize, (arrivals, go): Visitors) -> Checked<()> {
        self.in_checkpoint = true;
        let outcome = self.visits(number, &arrivals, &go);
        self.in_checkpoint = false;
        drop((arrivals, go));
        self.gate.close();
        outcome
    }

    fn visits(
        &mut self,
        number: usize,
        arrivals: &Receiver<()>,
        go: &SyncSender<()>,
    ) -> Checked<()> {
        let begun = Instant::now();
        loop {
            if arrivals.recv_timeout(Duration::from_micros(20)).is_ok() {
                let outcome = self.visit(number);
                let _ = go.send(());
                outcome?;
                continue;
            }
            if let Some(answer) = self.poll(number)? {
                return self.answered(number, &answer);
            }
            if begun.elapsed() > PATIENCE {
                violation!("a checkpoint does not end");
            }
        }
    }

    fn visit(&mut self, number: usize) -> Checked<()> {
        while self.random.chance(1, 2) && !self.database.is_evicting() && !self.has_failed {
            let mut ready: Vec<usize> =
                (0..self.seats.len()).filter(|other| *other != number).collect();
            ready
                .retain(|seat| self.seats[*seat].in_flight.is_none() && self.seats[*seat].left > 0);
            if ready.is_empty() {
                return Ok(());
            }
            let seat = ready[self.random.below(ready.len() as u64) as usize];
            self.visits += 1;
            self.step(seat)?;
            // What belongs together comes together more often than not.
            while self.may_go_on(seat) && self.random.chance(3, 4) {
                self.visits += 1;
                self.step(seat)?;
            }
            // The checkpoint's own client has not waited for a commit.
            if self.in_flight().len() > 1 && self.random.chance(1, 2) {
                self.write_log();
            }
        }
        Ok(())
    }

    fn may_go_on(&self, number: usize) -> bool {
        let seat = &self.seats[number];
        seat.source.has_plans() && seat.in_flight.is_none() && seat.left > 0 && !self.has_failed
    }

    fn take(&mut self, number: usize) {
        let seat = &mut self.seats[number];
        let Some(pending) = &mut seat.in_flight else { return };
        if !pending.is_taken {
            self.world.take(&mut seat.open, &pending.statement, &pending.prediction);
            pending.is_taken = true;
        }
        self.marks[pending.mark].made = self.world.newest();
    }

    /// Compares the answer with what was predicted.
    fn answered(&mut self, number: usize, answer: &Answer) -> Checked<()> {
        let Some(pending) = self.seats[number].in_flight.take() else { return Ok(()) };
        let Pending { statement, prediction, mark, rests_on, is_taken } = &pending;
        self.marks[*mark].answer = answers::shown(answer);
        if self.plan.fault.is_some() && answers::has_failed(answer) {
            self.unknown(number, &pending);
            return Ok(());
        }
        self.marks[*mark].answered_at = Some(self.disk.operation_count());
        if !is_taken && answers::is_refusal(prediction, answer, self.plan.fault.is_some()) {
            self.refused += 1;
            self.world.refuse(&mut self.seats[number].open, statement);
            self.marks[*mark].made = self.world.newest();
            return Ok(());
        }
        if let Some(difference) = answers::wrong(statement, prediction, answer) {
            violation!("client {number}: {}: {difference}", statement.text());
        }
        let before = if *is_taken { self.marks[*mark].made } else { self.world.newest() };
        let made = match is_taken {
            true => self.marks[*mark].made,
            false => {
                let seat = &mut self.seats[number];
                self.world.take(&mut seat.open, statement, prediction);
                self.world.newest()
            }
        };
        self.marks[*mark].made = made;
        let own = if *is_taken || made > before { made } else { 0 };
        let is_durable = self.seats[number].is_durable;
        self.marks[*mark].rests_on = if is_durable { own.max(*rests_on) } else { 0 };
        Ok(())
    }

    /// The disk has failed under a statement: it has happened, or it has not.
    fn unknown(&mut self, number: usize, pending: &Pending) {
        let seat = &mut self.seats[number];
        self.world.take(&mut seat.open, &pending.statement, &pending.prediction);
        self.marks[pending.mark].made = self.world.newest();
        self.has_failed = true;
    }

    fn end(self) -> Ended {
        let Round { plan, disk, database, server, seats, world, marks, .. } = self;
        drop(seats);
        drop(server);
        drop(database);
        // The database was there, and a server listened, before the first statement.
        let begun_at = marks.first().map_or(disk.operation_count(), |mark| mark.sent_at);
        let statements = marks.len() as u64;
        let history = History { commits: world.history, marks };
        Ended {
            plan,
            disk,
            begun_at,
            history,
            refused: self.refused,
            statements,
            visits: self.visits,
            overtaken: self.overtaken,
            left_waiting: self.left_waiting,
        }
    }
}
