//! A server's process: started with a folder of its own, and gone when the lab is.
//!
//! Invariants
//! 1. No server outlives the lab: not an error, since dropping ends it; not an interruption, since
//!    [`end_all`] is called then; not a killed lab, since the system ends it together with the
//!    thread that started it. That thread must therefore live as long as the server is needed.
//! 2. Everything that it writes is below the folder that it was given.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::Refusal;
use super::programs::{User, out_of_reach};

/// Longest time to wait until a server answers, or has ended.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest time to wait until a server has ended that was told to end at once.
const PATIENCE_AT_ONCE: Duration = Duration::from_secs(5);
/// Longest time between a broken connection and the end of its server.
const PATIENCE_AFTER_ERRORS: Duration = Duration::from_secs(1);
/// How often it is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Lines of its messages that errors quote.
const LINES_QUOTED: usize = 5;

/// The servers that run, each with the signal that ends it at once.
static RUNNING: Mutex<Vec<(Pid, Signal)>> = Mutex::new(Vec::new());

fn running() -> MutexGuard<'static, Vec<(Pid, Signal)>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every server at once and waits for that: for a process that is about to end because it was
/// interrupted. Their data is lost, as it is to be.
pub(crate) fn end_all() {
    let all = std::mem::take(&mut *running());
    for (id, signal) in &all {
        // One that ended already cannot be ended.
        let _ = kill_process(*id, *signal);
    }
    let until = Instant::now() + PATIENCE_AT_ONCE;
    while Instant::now() < until && all.iter().any(|(id, _)| is_there(*id)) {
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Neither ended nor only waiting to be asked how.
fn is_there(id: Pid) -> bool {
    stat_of(id.as_raw_nonzero().get()).is_some_and(|stat| stat.state != 'Z')
}

/// How a server is started and ended.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) user: Option<User>,
    /// Its folder; its messages go to `server.log` there.
    pub(super) folder: PathBuf,
    /// Ends it in good order.
    pub(super) end: Signal,
    /// Ends it at once, with all its processes.
    pub(super) end_at_once: Signal,
}

impl Recipe {
    fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    fn command(&self, program: &Path, arguments: &[String]) -> std::io::Result<Command> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .process_group(0); // an interruption from the keyboard is the lab's to handle
        if let Some(user) = &self.user {
            command.uid(user.id).gid(user.group);
        }
        let signal = self.end_at_once;
        // SAFETY: between fork and exec only calls that are safe in a signal handler are allowed;
        // this is one system call, with a value as its argument, and takes no lock and no memory.
        unsafe {
            command.pre_exec(move || {
                Ok(rustix::process::set_parent_process_death_signal(Some(signal))?)
            });
        }
        Ok(command)
    }

    /// Makes the folder, for the user that the server runs as.
    pub(super) fn make_folder(&self) -> Result<(), Refusal> {
        let told = |error| format!("cannot make folder {}: {error}", self.folder.display());
        fs::create_dir_all(&self.folder).map_err(told)?;
        if let Some(user) = &self.user {
            if let Some(reason) = out_of_reach(&self.folder, user) {
                return Err(reason.into());
            }
            std::os::unix::fs::chown(&self.folder, Some(user.id), Some(user.group))
                .map_err(told)?;
        }
        Ok(())
    }

    /// Runs a program of the server's to its end.
    pub(super) fn run(&self, program: &Path, arguments: &[String]) -> Result<(), Refusal> {
        let failed = |what: String| format!("{} failed: {what}", program.display());
        let status = self
            .command(program, arguments)
            .and_then(|mut command| command.status())
            .map_err(|error| failed(error.to_string()))?;
        match status.success() {
            true => Ok(()),
            false => Err(failed(format!("{status}{}", self.quoted())).into()),
        }
    }

    /// Its last messages that tell of an error, or of anything, to stand behind an error.
    fn quoted(&self) -> String {
        let text = fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let tells = |line: &str| {
            let line = line.to_lowercase();
            ["error", "fatal", "panic", "no space"].iter().any(|word| line.contains(word))
        };
        if lines.iter().any(|line| tells(line)) {
            lines.retain(|line| tells(line));
        }
        let last = &lines[lines.len().saturating_sub(LINES_QUOTED)..];
        if last.is_empty() { String::new() } else { format!("; it said: {}", last.join(" / ")) }
    }
}

/// A server that runs.
#[derive(Debug)]
pub(super) struct Process {
    recipe: Recipe,
    child: Child,
    id: Pid,
}

impl Process {
    /// Starts it, and waits until `answers` says so.
    pub(super) fn start(
        recipe: &Recipe,
        mut answers: impl FnMut() -> bool,
    ) -> Result<Process, Refusal> {
        let told = |error| format!("cannot start {}: {error}", recipe.program.display());
        let mut command = recipe.command(&recipe.program, &recipe.arguments).map_err(told)?;
        let child = command.spawn().map_err(told)?;
        let id = Pid::from_child(&child);
        running().push((id, recipe.end_at_once));
        let mut process = Process { recipe: recipe.clone(), child, id };
        let until = Instant::now() + PATIENCE;
        while !answers() {
            if let Some(end) = process.ended() {
                return Err(format!("it could not be started: {end}").into());
            }
            if Instant::now() > until {
                let quoted = recipe.quoted();
                let seconds = PATIENCE.as_secs();
                return Err(format!("it did not answer within {seconds} seconds{quoted}").into());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(process)
    }

    /// How it ended, if it did, and its last messages.
    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(format!("the server ended, {status}{}", self.recipe.quoted()))
    }

    /// The same, with some patience: connections break a moment before their server has ended.
    pub(super) fn ends(&mut self) -> Option<String> {
        self.wait(PATIENCE_AFTER_ERRORS);
        self.ended()
    }

    /// Ends it in good order.
    pub(super) fn stop(mut self) -> Result<(), Refusal> {
        if let Some(end) = self.ended() {
            return Err(end.into());
        }
        kill_process(self.id, self.recipe.end)?;
        match self.wait(PATIENCE) {
            true => Ok(()),
            false => Err(format!(
                "it did not end within {} seconds of being told to, and was killed",
                PATIENCE.as_secs()
            )
            .into()),
        }
    }

    fn wait(&mut self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < until => std::thread::sleep(LOOK_EVERY),
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return true,
            }
        }
    }

    /// Processor time that it and the processes it started have used so far.
    pub(super) fn cpu_time(&self) -> Duration {
        let own = self.id.as_raw_nonzero().get();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let ticks: u64 = ids
            .filter_map(|id| stat_of(id).filter(|stat| id == own || stat.parent == own))
            .map(|stat| stat.ticks)
            .sum();
        let ticks_per_s = rustix::param::clock_ticks_per_second().max(1);
        Duration::from_secs_f64(ticks as f64 / ticks_per_s as f64)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended().is_none() {
            // It may end by itself in this moment, which is as good.
            let _ = kill_process(self.id, self.recipe.end_at_once);
            if !self.wait(PATIENCE_AT_ONCE) {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
        running().retain(|(id, _)| *id != self.id);
    }
}

/// What the system tells of a process.
struct Stat {
    state: char,
    parent: i32,
    /// Its processor time, and that of processes it started that have ended.
    ticks: u64,
}

fn stat_of(id: i32) -> Option<Stat> {
    stat_in(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

fn stat_in(text: &str) -> Option<Stat> {
    let (_, after_name) = text.rsplit_once(')')?; // names may hold blanks and parentheses
    let words: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = words.get(11..15)?.iter().filter_map(|word| word.parse::<u64>().ok()).sum();
    Some(Stat { state: words[0].chars().next()?, parent: words[1].parse().ok()?, ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(folder: &Path, script: &str) -> Recipe {
        Recipe {
            program: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            user: None,
            folder: folder.to_owned(),
            end: Signal::TERM,
            end_at_once: Signal::KILL,
        }
    }

    #[test]
    fn a_program_that_fails_is_told_with_its_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let recipe = recipe(folder.path(), "echo no space >&2; exit 3");
        let error = Process::start(&recipe, || false).unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("no space"), "{error}");
        let error = recipe.run(Path::new("/bin/false"), &[]).unwrap_err().to_string();
        assert!(error.contains("/bin/false") && error.contains("exit status: 1"), "{error}");
    }

    #[test]
    fn a_server_that_is_dropped_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let process = Process::start(&recipe(folder.path(), "exec sleep 600"), || true).unwrap();
        let id = process.id;
        assert!(is_there(id));
        drop(process);
        assert!(!is_there(id));
        assert!(running().iter().all(|(other, _)| *other != id));
    }

    #[test]
    fn a_server_that_died_says_how_when_it_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let recipe = recipe(folder.path(), "exec sleep 600");
        let mut process = Process::start(&recipe, || true).unwrap();
        kill_process(process.id, Signal::KILL).unwrap();
        process.wait(PATIENCE);
        let told = process.stop().unwrap_err().to_string();
        assert!(told.contains("the server ended, signal: 9"), "{told}");
    }

    #[test]
    fn processor_time_is_read_past_names_with_blanks_and_parentheses() {
        let text = "7 (a) b (c) S 4 7 7 0 -1 4194560 1 2 3 4 50 6 700 8 20 0 1 0 5\n";
        let stat = stat_in(text).unwrap();
        assert_eq!((stat.state, stat.parent, stat.ticks), ('S', 4, 50 + 6 + 700 + 8));
    }
}
