//! The process that is traced: sessions insert rows in turn, one row each, on a thread each.
//!
//! Taking turns makes of any machine one with a processor for each session, all equally fast: between two
//! rows of a session each of the others has one.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use anyhow::{Context, Result, ensure};
use onrush::{CommitToken, Database, Durability, Options, Session, Table};
use onrush_measure::classic_table::{CLASSIC_TABLE, classic_table};
use onrush_types::KeyStrategy;

use crate::count::Start;
use crate::markers;
use crate::stacks::Stacks;

/// Rows that each session inserts at first, in one batch, so that it has leaves of its own where its keys allow.
const FIRST_ROWS: usize = 100;

/// What is inserted, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// How keys are made.
    pub key: KeyStrategy,
    /// Whether commits are durable.
    pub durability: Durability,
    /// Sessions, and processors.
    pub sessions: usize,
    /// Rows of each session before it counts.
    pub warm_rows: usize,
    /// Rows of each session that count.
    pub rows: usize,
}

/// Inserts in turn, into a database in `folder`. Prints where the markers are, then waits for a line.
pub fn insert(turns: &Turns, folder: &Path) -> Result<()> {
    let options = Options {
        durability: turns.durability,
        leaf_memory_bytes: 64 << 20,
        prefault_leaf_memory: false,
        processors: Some(turns.sessions),
        // Under Valgrind all is slow, the clock is not: nothing is to wait for the log or to become due.
        delayed_window_ms: 3_600_000,
        delayed_window_bytes: 64 << 20,
        // So slow a call would be timed each time, not once in hundreds.
        record_times: false,
        checkpoint_seconds: 3600,
        ..Options::default()
    };
    let database = Database::create(folder, options)?;
    let table = database.create_table(classic_table(CLASSIC_TABLE, turns.key)?)?;
    let baton = Arc::new(Baton::default());
    let (tell, told) = std::sync::mpsc::channel();
    let threads: Vec<_> = (0..turns.sessions)
        .map(|number| {
            let (session, table) = (database.session()?, table.clone());
            let (baton, turns, tell) = (Arc::clone(&baton), *turns, tell.clone());
            let run = move || {
                tell.send(Stacks::address_of_mine()).context("nobody asks for stacks")?;
                take_turns(number, session, &table, &baton, &turns)
            };
            Ok(std::thread::Builder::new().spawn(run)?)
        })
        .collect::<Result<_>>()?;
    let start = Start {
        markers: markers::base(),
        code: insert as *const () as u64,
        stacks: Stacks::of(&told.iter().take(turns.sessions).collect::<Vec<_>>())?,
    };
    println!("{}", serde_json::to_string(&start)?);
    std::io::stdout().flush()?;
    let read = std::io::stdin().read(&mut [0])?;
    ensure!(read == 1, "nobody reads the trace");

    let handles = threads.iter().map(|thread| thread.thread().clone()).collect();
    baton.threads.set(handles).ok().context("the baton is new")?;
    threads.iter().for_each(|thread| thread.thread().unpark());
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("a session panicked"))??;
    }
    Ok(())
}

/// Whose turn it is. On lines of its own, which the engine's data cannot share.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Baton {
    threads: OnceLock<Vec<Thread>>,
    turn: AtomicUsize,
}

impl Baton {
    fn wait_for(&self, session: usize) {
        while self.threads.get().is_none() || self.turn.load(Acquire) != session {
            std::thread::park();
        }
    }

    fn pass_on(&self, session: usize) {
        let threads = self.threads.get().map_or(&[][..], Vec::as_slice);
        let next = (session + 1) % threads.len().max(1);
        self.turn.store(next, Release);
        if let Some(thread) = threads.get(next) {
            thread.unpark();
        }
    }
}

fn take_turns(
    number: usize,
    mut session: Session,
    table: &Table,
    baton: &Baton,
    turns: &Turns,
) -> Result<()> {
    baton.wait_for(number);
    markers::begin(number);
    let first_rows = session.insert_many(table, std::iter::repeat_n(&[][..], FIRST_ROWS));
    markers::end(number);
    baton.pass_on(number);
    let (mut outcome, mut last_commit) = (first_rows.map(drop), None);
    for turn in 0..turns.warm_rows + turns.rows {
        baton.wait_for(number);
        if number == 0 && turn == turns.warm_rows {
            markers::count_from_here();
        }
        markers::begin(number);
        let inserted = insert_one(&mut session, table, turns.durability, &mut last_commit);
        markers::end(number);
        outcome = outcome.and(inserted);
        baton.pass_on(number);
    }
    Ok(outcome?)
}

/// Inserts a row. A durable session then lets the others insert theirs before it waits, as sessions that share
/// a sync do: it waits at the begin of its next turn.
fn insert_one(
    session: &mut Session,
    table: &Table,
    durability: Durability,
    last_commit: &mut Option<CommitToken>,
) -> onrush::Result<()> {
    if durability != Durability::Durable {
        return session.insert(table, &[]);
    }
    if let Some(commit) = last_commit.take() {
        commit.wait()?;
    }
    *last_commit = Some(session.insert_token(table, &[])?);
    Ok(())
}

impl Turns {
    /// Whether commits wait for a sync.
    pub(crate) fn is_durable(&self) -> bool {
        self.durability == Durability::Durable
    }
}
