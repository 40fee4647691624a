//! Several instances of a target side by side, each in a process of its own: the program itself,
//! started as `onrush-lab instance`, told over its standard input what to do.
//!
//! One line of JSON is an order, one line the answer. A process whose input ends cleans up and
//! goes; so none is left when the lab is killed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use crate::error::LabError;
use onrush_measure::FolderError;
use onrush_measure::load::rows_of;
use onrush_measure::machine::keep_to_processor;
use onrush_measure::progress::{Observer, Quiet};
use onrush_measure::result::Percentiles;
use onrush_measure::verify::Verification;
use serde::{Deserialize, Serialize};

use super::record::{Snapshot, WaitRecord};
use super::{Instance, LoadFigures, LoadOrder, Target, find};
use crate::study::{Setting, Settings};

/// What a process is asked.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    Prepare { target: String, settings: Settings, folder: PathBuf, processor: Option<usize> },
    Load(LoadOrder),
    Settle,
    Statistics,
    Verify,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Done,
    Loaded(LoadFigures),
    Statistics(Snapshot),
    Verified(Option<Verification>),
    Failed(String),
}

/// The other side: does what it is told until its input ends.
///
/// # Errors
/// Its input or output is broken.
pub fn serve(input: impl BufRead, mut output: impl Write) -> std::io::Result<()> {
    let mut instance = None;
    for line in input.lines() {
        let answer = match serde_json::from_str(&line?) {
            Ok(order) => obey(order, &mut instance).unwrap_or_else(Answer::Failed),
            Err(error) => Answer::Failed(format!("the order makes no sense: {error}")),
        };
        serde_json::to_writer(&mut output, &answer)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

fn obey(order: Order, instance: &mut Option<Box<dyn Instance>>) -> Result<Answer, String> {
    let told = |error: LabError| error.to_string();
    if let Order::Prepare { target, settings, folder, processor } = order {
        if let Some(processor) = processor {
            keep_to_processor(processor).map_err(|error| error.to_string())?;
        }
        *instance = Some(find(&target)?.prepare(&settings, &folder).map_err(told)?);
        return Ok(Answer::Done);
    }
    let Some(instance) = instance else { return Err("nothing was prepared".to_owned()) };
    match order {
        Order::Load(order) => instance.load(order, &Quiet).map(Answer::Loaded),
        Order::Settle => instance.settle().map(|()| Answer::Done),
        Order::Statistics => instance.statistics().map(Answer::Statistics),
        Order::Verify => instance.verify(&Quiet).map(Answer::Verified),
        Order::Prepare { .. } => Ok(Answer::Done),
    }
    .map_err(told)
}

/// Processes that share sessions and rows.
pub(crate) struct Instances {
    processes: Vec<Process>,
    target: String,
}

struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    sessions: u64,
}

/// Why a case with several instances cannot be run; None if it can.
pub(crate) fn impossible(settings: &Settings) -> Option<String> {
    let (instances, sessions) =
        (settings.number(Setting::Instances), settings.number(Setting::Sessions));
    if instances > 1 && settings.is_check() {
        return Some("a check is measured on one instance".into());
    }
    (instances > sessions).then(|| {
        format!("{instances} instances need at least as many sessions, and there are {sessions}")
    })
}

impl Instances {
    /// Starts the processes, each with a database below `folder`.
    pub(crate) fn prepare(
        target: &dyn Target,
        settings: &Settings,
        folder: &Path,
    ) -> Result<Instances, LabError> {
        let count = settings.size(Setting::Instances);
        let mut all = Instances { processes: Vec::new(), target: target.name().to_owned() };
        for number in 0..count {
            let sessions = rows_of(settings.number(Setting::Sessions), count, number);
            let rows = rows_of(settings.rows(), count, number);
            let own = settings
                .clone()
                .with(Setting::Instances, 1)
                .with(Setting::Sessions, sessions)
                .with(Setting::RowsPerSession, 0)
                .with(Setting::Rows, rows)
                .with(Setting::Pinning, pinning_inside(settings));
            let own_folder = folder.join(format!("instance-{number}"));
            std::fs::create_dir_all(&own_folder)
                .map_err(|error| FolderError::new("create folder", &own_folder, error))?;
            let mut process = Process::start(sessions).map_err(|error| all.failed(&error))?;
            let is_pinned = settings.is(Setting::Pinning, "instance");
            let order = Order::Prepare {
                target: all.target.clone(),
                settings: own,
                folder: own_folder,
                processor: is_pinned.then_some(number),
            };
            process.ask(&order).map_err(|what| all.failed(&what))?;
            all.processes.push(process);
        }
        all.answers()?;
        Ok(all)
    }

    fn failed(&self, what: &dyn std::fmt::Display) -> LabError {
        LabError::Target { target: self.target.clone(), what: what.to_string() }
    }

    fn ask_all(&mut self, order: impl Fn(usize, usize) -> Order) -> Result<(), LabError> {
        let count = self.processes.len();
        for number in 0..count {
            let asked = self.processes[number].ask(&order(number, count));
            asked.map_err(|what| self.failed(&what))?;
        }
        Ok(())
    }

    fn answers(&mut self) -> Result<Vec<Answer>, LabError> {
        let all: Result<Vec<_>, String> = self.processes.iter_mut().map(Process::answer).collect();
        all.map_err(|what| self.failed(&what))
    }
}

/// Inside an instance that is tied to a processor there is nothing left to tie.
fn pinning_inside(settings: &Settings) -> &'static str {
    if settings.is(Setting::Pinning, "session") { "session" } else { "none" }
}

impl Instance for Instances {
    fn load(&mut self, order: LoadOrder, observer: &dyn Observer) -> Result<LoadFigures, LabError> {
        observer.begin(order.step, Some(order.rows));
        let started = Instant::now();
        let share = |number, count| LoadOrder { rows: rows_of(order.rows, count, number), ..order };
        let asked = self.ask_all(|number, count| Order::Load(share(number, count)));
        let answers = asked.and_then(|()| self.answers());
        observer.end();
        let mut all = LoadFigures {
            rows: 0,
            commits: 0,
            elapsed: started.elapsed(),
            cpu: std::time::Duration::ZERO,
            commit_latency_us: Percentiles::default(),
        };
        for answer in answers? {
            let Answer::Loaded(one) = answer else { continue };
            all.rows += one.rows;
            all.commits += one.commits;
            all.cpu += one.cpu;
            all.commit_latency_us = worst(all.commit_latency_us, one.commit_latency_us);
        }
        Ok(all)
    }

    fn settle(&mut self) -> Result<(), LabError> {
        self.ask_all(|_, _| Order::Settle)?;
        self.answers().map(|_| ())
    }

    fn statistics(&mut self) -> Result<Snapshot, LabError> {
        self.ask_all(|_, _| Order::Statistics)?;
        let mut sum = Snapshot::default();
        for answer in self.answers()? {
            if let Answer::Statistics(one) = answer {
                sum.add(one);
            }
        }
        Ok(sum)
    }

    fn verify(&mut self, _observer: &dyn Observer) -> Result<Option<Verification>, LabError> {
        self.ask_all(|_, _| Order::Verify)?;
        let verdicts = self.answers()?.into_iter().filter_map(|answer| match answer {
            Answer::Verified(verdict) => verdict,
            _ => None,
        });
        Ok(verdicts.reduce(|mut all, one| {
            all.passed &= one.passed;
            all.rows_acknowledged += one.rows_acknowledged;
            all.rows_found += one.rows_found;
            all.is_exact &= one.is_exact;
            all.elapsed_s = all.elapsed_s.max(one.elapsed_s);
            all.faults.extend(one.faults);
            all
        }))
    }
}

/// Of several instances the slowest tells what a client may meet.
fn worst(left: Percentiles, right: Percentiles) -> Percentiles {
    Percentiles {
        p50: left.p50.max(right.p50),
        p99: left.p99.max(right.p99),
        p999: left.p999.max(right.p999),
        max: left.max.max(right.max),
        samples: left.samples + right.samples,
    }
}

impl Snapshot {
    fn add(&mut self, other: Snapshot) {
        for wait in other.waits {
            let same = |mine: &&mut WaitRecord| mine.group == wait.group && mine.name == wait.name;
            match self.waits.iter_mut().find(same) {
                None => self.waits.push(wait),
                Some(mine) => mine.add(&wait),
            }
        }
        for phase in other.phases {
            match self.phases.iter_mut().find(|mine| mine.name == phase.name) {
                None => self.phases.push(phase),
                Some(mine) => {
                    mine.count += phase.count;
                    mine.seconds += phase.seconds;
                }
            }
        }
        for counter in other.counters {
            match self.counters.iter_mut().find(|mine| mine.name == counter.name) {
                None => self.counters.push(counter),
                Some(mine) => mine.value += counter.value,
            }
        }
    }
}

impl Process {
    fn start(sessions: u64) -> std::io::Result<Process> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["instance"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let broken = || std::io::Error::other("its input or output is missing");
        let input = Some(child.stdin.take().ok_or_else(broken)?);
        let output = BufReader::new(child.stdout.take().ok_or_else(broken)?);
        Ok(Process { child, input, output, sessions })
    }

    fn ask(&mut self, order: &Order) -> Result<(), String> {
        let died = |error: &dyn std::fmt::Display| format!("an instance died: {error}");
        let mut line = serde_json::to_string(order).map_err(|error| died(&error))?;
        line.push('\n');
        let input = self.input.as_mut().ok_or("an instance was told to end")?;
        let written = input.write_all(line.as_bytes()).and_then(|()| input.flush());
        written.map_err(|error| died(&error))
    }

    fn answer(&mut self) -> Result<Answer, String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) | Err(_) => Err(format!("an instance of {} sessions died", self.sessions)),
            Ok(_) => match serde_json::from_str(&line).map_err(|error| error.to_string())? {
                Answer::Failed(what) => Err(what),
                answer => Ok(answer),
            },
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None; // its input ends: it cleans up and goes
        // It is gone, or it never was: either way there is nothing left to do.
        let _ = self.child.wait();
    }
}
