//! Runs the traced process under Valgrind and feeds the caches with its trace.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::caches::{BACKGROUND, Caches, SharedLine};
use crate::code::Code;
use crate::markers::{Mark, mark_at};
use crate::stacks::Stacks;
use crate::trace::{Access, AccessKind, Event, parse};
use crate::turns::Turns;

/// Lines that are told one by one.
const LINES_TOLD: usize = 30;
/// Libraries and stacks are farther from the program's code than this.
const PROGRAM_BYTES_MAX: u64 = 32 << 20;

/// What sessions that insert in turn take from each other, for each row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sharing {
    /// Sessions, each on a processor of its own.
    pub sessions: usize,
    /// Rows that were counted.
    pub rows: u64,
    /// Instructions a row.
    pub instructions_per_row: f64,
    /// How often a line that another cache had was written, a row.
    pub owner_changes_per_row: f64,
    /// How often a line that another session had written was read, a row.
    pub fetches_per_row: f64,
    /// Read-modify-writes of lines that more than one session writes, a row.
    pub shared_modifies_per_row: f64,
    /// How often the line that moves most does so, a row: rows pass it one after the other.
    pub busiest_line_per_row: f64,
    /// Code that moves lines, what moves most first.
    pub places: Vec<Place>,
    /// The lines that move most.
    pub lines: Vec<Line>,
}

/// A line that moves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// How many sessions wrote it.
    pub writers: u32,
    /// How often it moved, a row.
    pub moves_per_row: f64,
    /// Code that moved it, what moved it most first.
    pub code: Vec<String>,
}

/// Code that moves lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Place {
    /// Function, file and line.
    pub name: String,
    /// As [`Sharing::owner_changes_per_row`].
    pub owner_changes_per_row: f64,
    /// As [`Sharing::fetches_per_row`].
    pub fetches_per_row: f64,
}

/// Counts for `turns`, inserted by `program` (this one) in `folder`.
///
/// # Errors
/// Valgrind is missing or fails, or the traced process does.
pub fn count(program: &Path, turns: &Turns, folder: &Path) -> Result<Sharing> {
    // The allocator of the C library gives threads heaps of their own, eight for each processor that it sees.
    let mut child = Command::new("valgrind")
        .env("MALLOC_ARENA_MAX", "1024")
        .args(["--tool=lackey", "--trace-mem=yes", "--quiet", "--max-threads=512"])
        .arg(program)
        .args(["insert", "--key", &turns.key.to_string(), "--folder"])
        .arg(folder)
        .args(turns.is_durable().then_some("--durable"))
        .args(["--sessions", &turns.sessions.to_string()])
        .args(["--warm-rows", &turns.warm_rows.to_string(), "--rows", &turns.rows.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("valgrind, which traces memory accesses, cannot be started: install it")?;
    let outcome = read_trace(&mut child, program, turns);
    let status = child.wait()?;
    let sharing = outcome?;
    ensure!(status.success(), "the traced process ended with {status}");
    Ok(sharing)
}

fn read_trace(child: &mut Child, program: &Path, turns: &Turns) -> Result<Sharing> {
    let stdout = child.stdout.take().context("stdout is piped")?;
    let mut stdin = child.stdin.take().context("stdin is piped")?;
    let stderr = child.stderr.take().context("stderr is piped")?;
    let (tell, told) = std::sync::mpsc::channel();
    let started = std::thread::spawn(move || -> Result<()> {
        let mut line = String::new();
        let mut stdout = BufReader::new(stdout);
        stdout.read_line(&mut line)?;
        let start = serde_json::from_str::<Start>(&line)
            .with_context(|| format!("the traced process began with {line:?}"))?;
        tell.send(start)?;
        stdin.write_all(b"\n")?;
        std::io::copy(&mut stdout, &mut std::io::sink())?;
        Ok(())
    });
    let mut reader = Reader::default();
    let mut trace = BufReader::with_capacity(1 << 20, stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        if trace.by_ref().take(4096).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if reader.start.is_none() {
            reader.start = told.try_recv().ok();
        }
        match parse(line.trim_ascii_end()) {
            Some(event) => reader.event(event),
            None => reader.message(&line),
        }
    }
    let started = started.join().map_err(|_| anyhow!("the reader of the output panicked"))?;
    let Some(start) = &reader.start else {
        started.context(reader.messages.clone())?;
        bail!("the traced process did not say where its markers are: {}", reader.messages)
    };
    ensure!(
        start.stacks.sessions() == turns.sessions,
        "{} stacks of {} sessions were found",
        start.stacks.sessions(),
        turns.sessions
    );
    let code = Code::load(program, "onrush_sharing5turns6insert", start.code)?;
    let expected = turns.rows as u64 * turns.sessions as u64;
    ensure!(
        reader.rows == expected,
        "{} rows of {expected} were traced: {}",
        reader.rows,
        reader.messages
    );
    Ok(reader.sharing(turns.sessions, &code))
}

/// Where things lie in the traced process; the first line that it prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    /// The first marker.
    pub(crate) markers: u64,
    /// The function [`insert`](crate::turns::insert).
    pub(crate) code: u64,
    pub(crate) stacks: Stacks,
}

/// Follows a trace.
#[derive(Debug)]
struct Reader {
    start: Option<Start>,
    caches: Caches,
    /// Whose turn it is.
    turn: usize,
    /// Who runs: the one whose turn it is, or a thread of the engine while that one waits.
    processor: usize,
    code: u64,
    /// The last event, if it was a load.
    load: Option<Access>,
    is_counted: bool,
    rows: u64,
    instructions: u64,
    messages: String,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            start: None,
            caches: Caches::default(),
            turn: BACKGROUND,
            processor: BACKGROUND,
            code: 0,
            load: None,
            is_counted: false,
            rows: 0,
            instructions: 0,
            messages: String::new(),
        }
    }
}

impl Reader {
    /// Nothing counts before it is known where things lie.
    fn event(&mut self, event: Event) {
        let Some(program) = self.start.as_ref().map(|start| start.code) else { return };
        match event {
            Event::Instruction(code) => {
                if let Some(load) = self.load.take() {
                    self.access(load);
                }
                // What a function of the system does counts as done by whoever has called it.
                if code.abs_diff(program) < PROGRAM_BYTES_MAX {
                    self.code = code;
                }
                self.instructions += u64::from(self.is_counted && self.processor != BACKGROUND);
            }
            // An atomic read-modify-write is traced as a load and a store by one instruction, and brings the line once.
            Event::Access(access) if access.kind == AccessKind::Load => self.load = Some(access),
            Event::Access(access) => {
                let before = self.load.take();
                let is_modify = before.is_some_and(|load| load.address == access.address);
                match before {
                    Some(load) if !is_modify => self.access(load),
                    _ => {}
                }
                let kind = if is_modify { AccessKind::Modify } else { access.kind };
                self.access(Access { kind, ..access });
            }
        }
    }

    fn access(&mut self, access: Access) {
        let Some(start) = &self.start else { return };
        let mark = mark_at(start.markers, access.address);
        match mark.filter(|_| access.kind == AccessKind::Store) {
            Some(Mark::Begin(session)) => (self.turn, self.processor) = (session, session),
            Some(Mark::End(_)) => {
                self.rows += u64::from(self.is_counted);
                (self.turn, self.processor) = (BACKGROUND, BACKGROUND);
            }
            Some(Mark::Count) => self.is_counted = true,
            None => match start.stacks.is_sessions(access.address) {
                Some(true) => self.processor = self.turn,
                Some(false) => self.processor = BACKGROUND,
                None => self.caches.access(self.processor, self.code, access, self.is_counted),
            },
        }
    }

    fn message(&mut self, line: &[u8]) {
        if self.messages.len() < 4096 {
            self.messages.push_str(&String::from_utf8_lossy(line));
        }
    }

    fn sharing(&self, sessions: usize, code: &Code) -> Sharing {
        let lines = self.caches.shared_lines();
        let per_row = |sum: u64| sum as f64 / self.rows as f64;
        let of = |value: fn(&SharedLine) -> u64| per_row(lines.iter().map(value).sum());
        let busiest = lines.first().map(|line| line.counts.moves());
        Sharing {
            sessions,
            rows: self.rows,
            instructions_per_row: per_row(self.instructions),
            owner_changes_per_row: of(|line| line.counts.owner_changes),
            fetches_per_row: of(|line| line.counts.fetches),
            shared_modifies_per_row: of(
                |line| if line.writers > 1 { line.counts.modifies } else { 0 },
            ),
            busiest_line_per_row: per_row(busiest.unwrap_or(0)),
            places: places(&lines, code, per_row),
            lines: lines.iter().take(LINES_TOLD).map(|line| told(line, code, per_row)).collect(),
        }
    }
}

fn places(lines: &[SharedLine], code: &Code, per_row: impl Fn(u64) -> f64) -> Vec<Place> {
    let mut by_name: HashMap<String, (u64, u64)> = HashMap::new();
    let mut names = HashMap::new();
    for (address, counts) in lines.iter().flat_map(|line| &line.places) {
        let name: &String = names.entry(*address).or_insert_with(|| code.name(*address));
        let sum = by_name.entry(name.clone()).or_default();
        *sum = (sum.0 + counts.owner_changes, sum.1 + counts.fetches);
    }
    let mut places: Vec<_> =
        by_name.into_iter().filter(|(_, (changes, fetches))| changes + fetches > 0).collect();
    places.sort_by(|(name, a), (other, b)| {
        (b.0 + b.1).cmp(&(a.0 + a.1)).then_with(|| name.cmp(other))
    });
    let place = |(name, (changes, fetches))| Place {
        name,
        owner_changes_per_row: per_row(changes),
        fetches_per_row: per_row(fetches),
    };
    places.into_iter().map(place).collect()
}

fn told(line: &SharedLine, code: &Code, per_row: impl Fn(u64) -> f64) -> Line {
    let mut names: Vec<String> =
        line.places.iter().map(|(address, _)| code.name(*address)).collect();
    names.dedup();
    Line { writers: line.writers, moves_per_row: per_row(line.counts.moves()), code: names }
}
