//! The run: round after round, each a process that is closed or killed, and then verified.

use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use onrush_sim::Random;

use super::samples::{self, Sample, Told};
use super::settings::{SESSIONS, Settings};
use super::verify::{Ending, Oracle, Seen};

/// What was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) length: Duration,
    pub(crate) seed: u64,
    pub(crate) folder: PathBuf,
    pub(crate) max_bytes: u64,
}

/// What the run was like.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) samples: Vec<Sample>,
    pub(crate) rounds: u64,
    pub(crate) kills: u64,
    pub(crate) seen: Seen,
    /// Sums over all rounds of what processes told.
    pub(crate) told: Told,
    pub(crate) seconds: f64,
    /// What has ended it early: something lost, wrong, or failed.
    pub(crate) failure: Option<String>,
    /// The size that has ended it early, if the folder took more than it may.
    pub(crate) too_large_bytes: Option<u64>,
}

/// Longer than this no process needs to close; it may be stopped for a while by others.
const CLOSE_SECONDS_MAX: u64 = 900;

/// Runs rounds until the time is over or something is wrong. `after` sees the run after each round.
pub(crate) fn run(request: &Request, mut after: impl FnMut(&Run) -> Result<()>) -> Result<Run> {
    let settings = Settings::of(request.max_bytes);
    let mut rounds = Rounds {
        request,
        oracle: Oracle::new(request.seed, settings.limits(SESSIONS), SESSIONS),
        settings,
        random: Random::new(request.seed),
        began: Instant::now(),
        run: Run::default(),
    };
    while rounds.began.elapsed() < request.length {
        let outcome = rounds.one();
        rounds.run.seen = rounds.oracle.seen;
        rounds.run.seconds = rounds.began.elapsed().as_secs_f64();
        rounds.run.failure = outcome.err().map(|error| format!("{error:#}"));
        after(&rounds.run)?;
        if rounds.run.failure.is_some() || rounds.run.too_large_bytes.is_some() {
            break;
        }
    }
    Ok(rounds.run)
}

struct Rounds<'r> {
    request: &'r Request,
    settings: Settings,
    oracle: Oracle,
    random: Random,
    began: Instant,
    run: Run,
}

impl Rounds<'_> {
    fn one(&mut self) -> Result<()> {
        self.run.rounds += 1;
        let left = self.request.length.saturating_sub(self.began.elapsed());
        let whole = self.request.length.as_millis() as u64;
        // Half of the rounds are short, for many ends; half are long, for what grows slowly.
        let planned = match self.random.below(2) {
            0 => whole / 200 + self.random.below(whole / 50 + 1),
            _ => whole / 20 + self.random.below(whole / 20 + 1),
        };
        let is_last = Duration::from_millis(planned) >= left;
        let planned = Duration::from_millis(planned).min(left);
        let ending = match self.random.below(3) {
            0 => Ending::Closed,
            _ if is_last => Ending::Closed,
            _ => Ending::Killed,
        };
        let round = self.run.rounds;
        self.session_of(planned, ending).with_context(|| format!("round {round}"))?;
        self.run.kills += u64::from(ending == Ending::Killed);
        let folder = &self.request.folder;
        self.oracle
            .verify(folder, &self.settings.options, ending)
            .with_context(|| format!("after round {round}, {ending:?}"))?;
        self.say(ending, planned);
        Ok(())
    }

    /// One process, from its start to its end.
    fn session_of(&mut self, planned: Duration, ending: Ending) -> Result<()> {
        let tell_ms = (self.request.length.as_millis() as u64 / 1200).clamp(20, 1000);
        let mut process = self.start(planned, tell_ms)?;
        let told = Arc::new(Mutex::new(Told::default()));
        let output = process.0.stdout.take().context("the process's output")?;
        let teller = std::thread::spawn({
            let told = Arc::clone(&told);
            move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if let Ok(numbers) = serde_json::from_str(&line) {
                        *told.lock().unwrap_or_else(|poison| poison.into_inner()) = numbers;
                    }
                }
            }
        });
        let now = || *told.lock().unwrap_or_else(|poison| poison.into_inner());
        let began = Instant::now();
        while began.elapsed() < planned && self.run.too_large_bytes.is_none() {
            if let Some(status) = process.0.try_wait()? {
                bail!("the process has ended by itself: {status}; what it said is above");
            }
            let seconds = planned.as_secs_f64();
            self.look(&process, (seconds, began.elapsed().as_secs_f64() / seconds), now())?;
            std::thread::sleep(Duration::from_millis(tell_ms));
        }
        if ending == Ending::Killed {
            process.0.kill()?;
        }
        drop(process.0.stdin.take());
        let status = process.wait()?;
        ensure!(ending == Ending::Killed || status.success(), "the process ended with {status}");
        let _ = teller.join();
        self.add_up(now());
        Ok(())
    }

    fn start(&self, planned: Duration, tell_ms: u64) -> Result<Process> {
        let folder = &self.request.folder;
        for session in 0..SESSIONS {
            match std::fs::remove_file(super::account::path(folder, session)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        let next: Vec<String> = self.oracle.next.iter().map(u64::to_string).collect();
        let chore_ms = (planned.as_millis() as u64 / 10).max(10);
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("work").arg(folder);
        command.args(["--seed", &self.request.seed.to_string(), "--next", &next.join(",")]);
        command.args(["--max-bytes", &self.request.max_bytes.to_string()]);
        command.args(["--chore-ms", &chore_ms.to_string(), "--tell-ms", &tell_ms.to_string()]);
        if self.run.rounds % 3 == 1 {
            command.arg("--with-backup");
        }
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        Ok(Process(child))
    }

    fn look(
        &mut self,
        process: &Process,
        (round_seconds, part): (f64, f64),
        told: Told,
    ) -> Result<()> {
        let database = self.request.folder.join("database");
        let Some(sample) = samples::look(process.0.id(), &database)? else { return Ok(()) };
        let bytes = sample.data_bytes + sample.log_bytes;
        self.run.too_large_bytes = (bytes > self.request.max_bytes).then_some(bytes);
        let at = self.began.elapsed().as_secs_f64();
        self.run.samples.push(Sample {
            at,
            round: self.run.rounds,
            round_seconds,
            part,
            told,
            ..sample
        });
        Ok(())
    }

    fn add_up(&mut self, told: Told) {
        let all = &mut self.run.told;
        all.inserted += told.inserted;
        all.updated += told.updated;
        all.deleted += told.deleted;
        all.read += told.read;
        all.checkpoints += told.checkpoints;
        all.checks += told.checks;
        all.backups += told.backups;
        (all.leaves, all.slots, all.live_rows) = (told.leaves, told.slots, told.live_rows);
    }

    fn say(&self, ending: Ending, planned: Duration) {
        let left = self.request.length.saturating_sub(self.began.elapsed());
        let last = self.run.samples.last().copied().unwrap_or_default();
        let line = format!(
            "round {:>4}  {:>6.1} s, {}  {} live rows, {} leaves, {:.0} MiB of memory, {:.0} MiB of data, \
             {} descriptors  {}:{:02}:{:02} left",
            self.run.rounds,
            planned.as_secs_f64(),
            if ending == Ending::Killed { "killed" } else { "closed" },
            self.oracle.live_rows(),
            last.told.leaves,
            last.resident_bytes as f64 / f64::from(1 << 20),
            last.data_bytes as f64 / f64::from(1 << 20),
            last.descriptors,
            left.as_secs() / 3600,
            left.as_secs() / 60 % 60,
            left.as_secs() % 60,
        );
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K{line}");
        } else {
            eprintln!("{line}");
        }
    }
}

/// A process that does not outlive its round, whatever happens here.
struct Process(Child);

impl Process {
    fn wait(&mut self) -> Result<ExitStatus> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            let waited = began.elapsed().as_secs();
            ensure!(waited < CLOSE_SECONDS_MAX, "the process did not end within {waited} s");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, but on an error.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes the folder of a run, which must be new or empty.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let is_empty = std::fs::read_dir(folder)?.next().is_none();
    ensure!(is_empty, "{} is not empty; choose a new folder, or remove it first", folder.display());
    Ok(())
}
