//! Sequences at work: where each of them stands, for all clients.
//!
//! A sequence is a table of the engine, marked as one in its definition, with one row: the mark. Its numbers are given
//! from memory; when they have reached the mark, a higher one is committed, durably, in a session of its own
//! ([`position`]). So values are given once, whatever becomes of the transactions that ask, and after a crash the
//! sequence goes on at the mark. What each client was given is kept with the client ([`client`]).
//!
//! Who alters a sequence has its table locked: nobody raises the mark meanwhile, so nobody is given a value once what
//! was free before it is taken away ([`Sequences::take_over`]).
//!
//! Invariants
//! 1. Nobody waits for the disk or for another transaction with `inner` locked; with `moving` locked they do.
//! 2. Numbers are of one generation of a definition. Who has another one reads the row.

mod client;
mod functions;
mod identity;
mod position;
mod store;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use onrush::{Database, SequenceDefinition, Session, Table, Transaction};
use parking_lot::{Mutex, MutexGuard};
use tokio::task::block_in_place;

pub(crate) use client::{ClientSequences, as_caller};
pub(crate) use functions::{
    Row as SequenceRow, check_is_sequence, functions, next_named, next_of, refused, source_named,
};
pub(crate) use identity::{Identity, ValueSource};
pub(crate) use position::Position;
pub(crate) use store::{
    Altered, alter, create, dependents, drop_owned, move_owned, owned_by, rename, uses,
};

use crate::access::Access;
use crate::error::{Result, SqlError, state};
use crate::execute::Patience;
use crate::kept::durable_session;
use crate::schemas;
use position::{Asked, KEY, Numbers, Taken};

/// How often somebody who waits for who moves a mark looks whether the statement must be given up.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// See the module.
pub(crate) struct Sequences {
    pub(crate) database: Database,
    pub(crate) access: Arc<Access>,
    /// By the numbers of their tables. Those of dropped ones stay.
    standings: Mutex<HashMap<u32, Arc<Standing>>>,
    /// Tables that defaults name by their numbers, as they were when they were looked for.
    known: Mutex<HashMap<u32, Table>>,
}

/// One sequence.
#[derive(Default)]
struct Standing {
    inner: Mutex<Inner>,
    /// Held by who moves the mark, on disk and then in memory.
    moving: Mutex<()>,
}

#[derive(Default)]
struct Inner {
    /// None before anybody has asked.
    numbers: Option<Numbers>,
    /// Rises when somebody takes away what is free, so that a mark on its way lets nothing be given.
    taken_away: u64,
}

impl Inner {
    /// The numbers of this generation; anything else is forgotten, unless it is newer.
    fn of(&mut self, sequence: &SequenceDefinition) -> Option<&mut Numbers> {
        self.numbers.as_mut().filter(|numbers| numbers.generation == sequence.generation)
    }
}

impl Sequences {
    pub(crate) fn new(database: &Database, access: &Arc<Access>) -> Sequences {
        let (database, access) = (database.clone(), Arc::clone(access));
        Sequences { database, access, standings: Mutex::default(), known: Mutex::default() }
    }

    /// The table with a number, if it was looked for before and is still that one.
    fn known(&self, number: u32) -> Option<Table> {
        self.known.lock().get(&number).filter(|table| table.is_current()).cloned()
    }

    fn keep(&self, table: &Table) {
        self.known.lock().insert(table.id(), table.clone());
    }

    fn standing(&self, table: &Table) -> Arc<Standing> {
        Arc::clone(self.standings.lock().entry(table.id()).or_default())
    }

    /// As many values as a session takes at a time.
    ///
    /// # Errors
    /// The end of the sequence; a table that was altered; what a commit may meet.
    fn next(
        &self,
        table: &Table,
        sequence: &SequenceDefinition,
        patience: &Patience,
    ) -> Result<Taken> {
        let standing = self.standing(table);
        let ask = || standing.inner.lock().of(sequence).map(|numbers| numbers.take(sequence));
        let mut asked = ask();
        loop {
            match asked {
                Some(Asked::Given(taken)) => return Ok(taken),
                Some(Asked::AtEnd) => return Err(at_end(table, sequence)),
                Some(Asked::NeedsMark) | None => {}
            }
            // Who waits must not keep others of this thread waiting.
            asked = block_in_place(|| {
                let _moving = move_lock(&standing, patience)?;
                let again = ask();
                if let Some(Asked::NeedsMark) | None = again {
                    self.raise(&standing, table, sequence, patience)?;
                    return Ok::<_, SqlError>(ask());
                }
                Ok(again)
            })?;
        }
    }

    /// Makes a higher mark durable; `moving` is held.
    fn raise(
        &self,
        standing: &Standing,
        table: &Table,
        sequence: &SequenceDefinition,
        patience: &Patience,
    ) -> Result<()> {
        let mut session = self.session(patience)?;
        let (known, taken_away) = {
            let mut inner = standing.inner.lock();
            (inner.of(sequence).copied(), inner.taken_away)
        };
        let is_known = known.is_some();
        let numbers = match known {
            Some(numbers) => numbers,
            None => Numbers::at(read(&mut session, table)?, sequence.generation),
        };
        let Some(next) = numbers.next_mark(sequence) else {
            // It is told by who asks.
            standing.inner.lock().numbers = Some(numbers);
            return Ok(());
        };
        session.upsert(table, &next.0.row())?;
        let mut inner = standing.inner.lock();
        if !is_known {
            inner.numbers = Some(numbers);
        }
        let is_free = inner.taken_away == taken_away;
        if let Some(numbers) = inner.of(sequence).filter(|_| is_free) {
            numbers.go_on_to(next);
        }
        Ok(())
    }

    /// `setval`: the sequence goes on from this value, for everyone and at once.
    ///
    /// # Errors
    /// A table that was altered; what a commit may meet.
    fn set(
        &self,
        table: &Table,
        sequence: &SequenceDefinition,
        position: Position,
        patience: &Patience,
    ) -> Result<()> {
        let standing = self.standing(table);
        block_in_place(|| {
            let _moving = move_lock(&standing, patience)?;
            self.session(patience)?.upsert(table, &position.row())?;
            let mut inner = standing.inner.lock();
            inner.taken_away += 1;
            inner.numbers = Some(Numbers::at(position, sequence.generation));
            Ok(())
        })
    }

    /// Where the sequence stands, as everyone sees it.
    pub(crate) fn position(
        &self,
        table: &Table,
        sequence: &SequenceDefinition,
    ) -> Result<Position> {
        let standing = self.standing(table);
        let known = standing.inner.lock().of(sequence).map(|numbers| numbers.position);
        match known {
            Some(position) => Ok(position),
            None => read(&mut self.database.session()?, table),
        }
    }

    /// The transaction has locked the sequence: from here on nobody else is given a value, until it is over. Where
    /// the sequence stands.
    pub(crate) fn take_over(
        &self,
        transaction: &mut Transaction<'_>,
        table: &Table,
        sequence: &SequenceDefinition,
    ) -> Result<Position> {
        let standing = self.standing(table);
        let known = {
            let mut inner = standing.inner.lock();
            inner.taken_away += 1;
            inner.of(sequence).map(|numbers| {
                numbers.stop();
                numbers.position
            })
        };
        if let Some(position) = known {
            return Ok(position);
        }
        let row = transaction.newest_snapshot().get(table, &[KEY])?;
        row.as_ref().and_then(Position::of_row).ok_or_else(|| without_row(table))
    }

    fn session(&self, patience: &Patience) -> Result<Session> {
        let mut session = durable_session(&self.database)?;
        session.set_waiting(Some(Arc::new(patience.clone())));
        Ok(session)
    }
}

fn read(session: &mut Session, table: &Table) -> Result<Position> {
    match session.get(table, &[KEY])? {
        Some(row) => Position::of_row(&row).ok_or_else(|| without_row(table)),
        // Of one that is not logged, after a crash.
        None => match table.definition().sequence() {
            Some(sequence) => Ok(Position::before(sequence.start)),
            None => Err(without_row(table)),
        },
    }
}

fn without_row(table: &Table) -> SqlError {
    SqlError::new(state::DATA_CORRUPTED, format!("the sequence {} has no row", table.name()))
}

fn move_lock<'s>(standing: &'s Standing, patience: &Patience) -> Result<MutexGuard<'s, ()>> {
    loop {
        if let Some(moving) = standing.moving.try_lock_for(LOOK_AGAIN) {
            return Ok(moving);
        }
        patience.check()?;
    }
}

fn at_end(table: &Table, sequence: &SequenceDefinition) -> SqlError {
    let (what, end) = match sequence.increment > 0 {
        true => ("maximum", sequence.greatest),
        false => ("minimum", sequence.least),
    };
    let name = schemas::own_name(table.name());
    let message = format!("nextval: reached {what} value of sequence \"{name}\" ({end})");
    SqlError::new(state::SEQUENCE_LIMIT, message)
}
