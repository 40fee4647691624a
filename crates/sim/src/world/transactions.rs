//! Several rows as one transaction, and several transactions at the same time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use onrush::{CheckpointStage, CommitToken, Error, Savepoint, Session, Table, Transaction, Value};

use super::tables::{LiveTable, encode};
use super::{Failed, Place, World};
use crate::random::Random;
use onrush_oracle::Checked;
use onrush_oracle::violation;
use onrush_oracle::{Effect, History, State};

/// Rows that are changed all over a table.
const SCATTERED_ROWS: usize = 24;

/// A transaction and what it must see.
struct Open<'s> {
    number: usize,
    transaction: Transaction<'s>,
    model: Modelled,
    /// Where it can go back to, and how it was then.
    savepoints: Vec<(Savepoint, Modelled)>,
    /// What it has ever written, taken back or not: in the leaves already, if it is a large one.
    touched: BTreeSet<Place>,
    /// It was told of a conflict: it cannot be committed any more.
    is_lost: bool,
}

type Modelled = onrush_oracle::Transaction<State>;

/// How a transaction ended.
struct Ended {
    begun_at: usize,
    model: Modelled,
    is_lost: bool,
    /// Others were open, and a large one keeps everybody else off the rows that it has written; or others
    /// have changed what it had written, too.
    may_conflict: bool,
    outcome: Result<Option<CommitToken>, Error>,
}

impl<'s> Open<'s> {
    fn new(number: usize, transaction: Transaction<'s>, history: &History) -> Open<'s> {
        let (model, savepoints) = (Modelled::begin(history), Vec::new());
        let touched = BTreeSet::new();
        Open { number, transaction, model, savepoints, touched, is_lost: false }
    }

    fn sees(&self, place: &Place) -> Option<Arc<[u8]>> {
        self.model.view().table(&place.0)?.rows.get(&place.1).cloned()
    }
}

impl World {
    /// Begins up to `most` transactions in as many sessions, does things in turn, ends them.
    pub(super) fn transactions(&mut self, most: usize) -> Checked<()> {
        if self.tables.is_empty() {
            return Ok(());
        }
        let mut sessions = std::mem::take(&mut self.sessions);
        let shift = self.random.below(sessions.len() as u64) as usize;
        sessions.rotate_left(shift);
        let ended = self.interleave(&mut sessions, most);
        self.sessions = sessions;
        ended?;
        Ok(())
    }

    fn interleave(&mut self, sessions: &mut [Session], most: usize) -> Checked<()> {
        let mut open = Vec::new();
        let mut sessions: Vec<(usize, &mut Session)> =
            sessions.iter_mut().enumerate().take(most).collect();
        let mut waits = Vec::new();
        for (number, session) in sessions.drain(..) {
            waits.push(super::rows::waits(session));
            match session.begin() {
                Ok(transaction) => open.push(Open::new(number, transaction, &self.history)),
                Err(error) => return self.failed("begin", &error).map(|_| ()),
            }
        }
        let steps = 1 + self.random.below(10);
        for _ in 0..steps {
            let which = self.random.below(open.len() as u64) as usize;
            let is_contended = open.len() > 1;
            if !self.step(&mut open[which], is_contended)? {
                return Ok(());
            }
        }
        while !open.is_empty() && self.stopped.is_none() {
            let which = self.random.below(open.len() as u64) as usize;
            let one = open.swap_remove(which);
            let wait = waits[one.number];
            let is_contended = !open.is_empty();
            self.end(one, wait, is_contended)?;
        }
        Ok(())
    }

    /// One call inside a transaction. False when the engine failed it.
    fn step(&mut self, open: &mut Open<'_>, is_contended: bool) -> Checked<bool> {
        if open.is_lost {
            return Ok(true);
        }
        if let Some(large) = &mut self.savepoint_random
            && large.chance(1, 5)
        {
            let goes_back = large.chance(1, 2);
            return self.savepoint(open, goes_back);
        }
        let table = match self.some_table() {
            Some(table) => table,
            None => return Ok(true),
        };
        let handle = self.tables[table].handle.clone();
        let name = handle.name().to_owned();
        let known = self.known_key(open, table);
        let generated = self.tables[table].is_generated();
        let kind = self.random.below(8);
        let values = match (known, kind) {
            // A row that it may or may not see.
            (Some(key), 0..=5) => {
                let mut values = self.key_values(table, &key)?;
                values.extend(self.other_columns(table));
                values
            }
            _ if generated => return Ok(true),
            _ => self.new_row(table),
        };
        let (key, value) = encode(&handle, &values)?;
        let place = (name, key);
        let seen = open.sees(&place);
        let keys = self.key_values(table, &place.1)?;
        let answer = match kind {
            0 | 1 if seen.is_some() => open.transaction.delete(&handle, &keys),
            2 | 3 => {
                let payload = values[self.payload_at(table)?].clone();
                open.transaction.update(&handle, &keys, &[("payload", payload)])
            }
            4 => open.transaction.upsert(&handle, &values).map(|()| true),
            5 => return self.read_in(open, table, &place, seen, &keys),
            _ => open.transaction.insert(&handle, &values).map(|()| true),
        };
        open.touched.insert(place.clone());
        let (table_name, key) = place.clone();
        let put = |value| Effect::Put { table: place.0, key: place.1, value };
        match (kind, answer, seen) {
            (0 | 1, Ok(true), Some(_)) => {
                open.model.delete(Effect::Remove { table: table_name, key });
            }
            (2 | 3, Ok(false), None) => {}
            (2 | 3, Ok(true), Some(old)) => {
                let mut updated = self.values_of(table, &key, &old)?;
                let at = self.payload_at(table)?;
                updated[at] = values[at].clone();
                open.model.update(put(encode(&handle, &updated)?.1));
            }
            (4, Ok(true), _) => open.model.upsert(put(value)),
            (0 | 1 | 6 | 7, Ok(true), None) => open.model.insert(put(value)),
            (0 | 1 | 6 | 7, Err(Error::DuplicateKey { .. }), Some(_)) => {}
            (_, Err(Error::Conflict { .. }), _) if is_contended || self.is_overtaken(open) => {
                open.is_lost = true;
            }
            (_, Err(Error::DuplicateKey { .. }), None) if self.is_overtaken(open) => {
                open.is_lost = true;
            }
            (_, Err(error), _) => {
                self.failed("a call in a transaction", &error)?;
                return Ok(false);
            }
            (_, Ok(answer), seen) => violation!(
                "call {kind} in a transaction: answer {answer}, and the row was there: {}",
                seen.is_some()
            ),
        }
        Ok(true)
    }

    /// Whether another one has committed a change of what it has written.
    fn is_overtaken(&self, open: &Open<'_>) -> bool {
        open.touched.iter().any(|place| self.history.changed.is_since(place, open.model.since()))
    }

    /// Sets a savepoint, or goes back to one.
    fn savepoint(&mut self, open: &mut Open<'_>, goes_back: bool) -> Checked<bool> {
        if !goes_back || open.savepoints.is_empty() {
            open.savepoints.push((open.transaction.savepoint(), open.model.clone()));
            return Ok(true);
        }
        let at = self.random.below(open.savepoints.len() as u64) as usize;
        open.savepoints.truncate(at + 1);
        let (savepoint, model) = &open.savepoints[at];
        open.model = model.clone();
        match open.transaction.rollback_to(*savepoint) {
            Ok(()) => Ok(true),
            Err(error) => self.failed("going back to a savepoint", &error).map(|_| false),
        }
    }

    fn known_key(&mut self, open: &Open<'_>, table: usize) -> Option<Vec<u8>> {
        let written = open.model.places().len() as u64;
        if written > 0 && self.random.chance(1, 3) {
            let at = self.random.below(written) as usize;
            let (name, key) = open.model.places().nth(at)?;
            if name == self.tables[table].name() {
                return Some(key.clone());
            }
        }
        self.some_key(table)
    }

    fn read_in(
        &mut self,
        open: &mut Open<'_>,
        table: usize,
        place: &Place,
        seen: Option<Arc<[u8]>>,
        keys: &[Value<'_>],
    ) -> Checked<bool> {
        let handle = self.tables[table].handle.clone();
        match open.transaction.get(&handle, keys) {
            Ok(row) => {
                let seen = seen.map(|value| self.values_of(table, &place.1, &value)).transpose()?;
                if row != seen {
                    violation!("get in a transaction: another row at {:02x?}", place.1);
                }
                Ok(true)
            }
            Err(error) => self.failed("get in a transaction", &error).map(|_| false),
        }
    }

    fn end(&mut self, open: Open<'_>, waits: bool, is_contended: bool) -> Checked<()> {
        let may_conflict = is_contended || self.is_overtaken(&open);
        let Open { transaction, model, is_lost, .. } = open;
        let begun_at = self.timestamp();
        let outcome = match self.random.below(6) {
            0 => {
                transaction.rollback();
                return Ok(());
            }
            1 => self.visited(|| transaction.commit_token().map(Some))?,
            _ => self.visited(|| transaction.commit().map(|()| None))?,
        };
        let ended = Ended { begun_at, model, is_lost, may_conflict, outcome };
        self.settle(ended, waits)
    }

    /// Commits, and takes checkpoints while the commit waits for a leaf: it has placed a part of its
    /// intents by then, and nobody knows yet what becomes of them.
    fn visited<T>(&mut self, commit: impl FnOnce() -> T) -> Checked<T> {
        if !self.plan.visited_commits || self.in_visit || self.failures_expected {
            return Ok(commit());
        }
        let database = self.database()?.clone();
        let mut random = Random::new(self.random.next_number());
        let failed = Arc::new(Mutex::new(None));
        let failure = Arc::clone(&failed);
        self.gate.open_for_reads(Box::new(move || {
            // A commit that needs log space may be in one already.
            let is_free = database.statistics().checkpoint.stage == CheckpointStage::None;
            if is_free
                && random.chance(1, 3)
                && let Err(error) = database.checkpoint()
            {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        }));
        let outcome = commit();
        self.gate.close();
        match failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The commit itself is at a range, which a checkpoint of the same thread cannot wait for.
            Some(Error::LeafMemoryTooSmall { .. }) => Ok(outcome),
            Some(error) => violation!("a checkpoint in the middle of a commit: {error}"),
            None => Ok(outcome),
        }
    }

    /// One transaction that makes rows all over a table short ones.
    pub(super) fn scatter(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        let handle = self.tables[table].handle.clone();
        let mut sessions = std::mem::take(&mut self.sessions);
        let number = self.random.below(sessions.len() as u64) as usize;
        let wait = super::rows::waits(&sessions[number]);
        let ended = match sessions[number].begin() {
            Ok(transaction) => {
                let open = Open::new(number, transaction, &self.history);
                self.shorten(open, table, &handle).and_then(|open| self.end(open, wait, false))
            }
            Err(error) => self.failed("begin", &error).map(|_| ()),
        };
        self.sessions = sessions;
        ended
    }

    fn shorten<'s>(
        &mut self,
        mut open: Open<'s>,
        table: usize,
        handle: &Table,
    ) -> Checked<Open<'s>> {
        for _ in 0..SCATTERED_ROWS {
            let Some(key) = self.some_key(table) else { break };
            let mut values = self.key_values(table, &key)?;
            values.extend(self.other_columns(table));
            let at = self.payload_at(table)?;
            values[at] = vec![3; self.random.below(60) as usize].into();
            let (key, value) = encode(handle, &values)?;
            if let Err(error) = open.transaction.upsert(handle, &values) {
                self.failed("upsert in a transaction", &error)?;
                break;
            }
            open.model.upsert(Effect::Put { table: handle.name().to_owned(), key, value });
        }
        Ok(open)
    }

    fn settle(&mut self, ended: Ended, waits: bool) -> Checked<()> {
        let Ended { begun_at, model, is_lost, may_conflict, outcome } = ended;
        let overtaken = model.is_overtaken(&self.history);
        let effects: Vec<Effect> = model.into_changes();
        match outcome {
            Ok(_) if is_lost => violation!("a transaction was told of a conflict, and committed"),
            Err(Error::Conflict { .. } | Error::DuplicateKey { .. }) if is_lost => Ok(()),
            Err(Error::Conflict { .. }) if may_conflict => Ok(()),
            Ok(_) if overtaken => violation!("a transaction was overtaken, and no conflict"),
            Ok(_) if effects.is_empty() => Ok(()),
            Ok(token) => {
                let end = token.as_ref().map(|token| token.lsn().0);
                let waits = waits && !self.history.now().is_unlogged(&effects);
                let commits = self.note_commit(begun_at, effects, end)?;
                if waits && token.is_none() {
                    let timestamp = self.timestamp();
                    self.history.acknowledge(timestamp, commits);
                }
                Ok(())
            }
            Err(Error::Conflict { .. } | Error::DuplicateKey { .. }) if overtaken => Ok(()),
            Err(error) => {
                if self.failed("commit", &error)? == Failed::Unknown {
                    self.note_commit(begun_at, effects, None)?;
                }
                Ok(())
            }
        }
    }

    /// Several rows in one call.
    pub(super) fn insert_many(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        if self.tables[table].is_generated() {
            return Ok(());
        }
        let session = self.some_session();
        let handle = self.tables[table].handle.clone();
        let mut rows: Vec<Vec<Value<'static>>> = Vec::new();
        for _ in 0..1 + self.random.below(6) {
            rows.push(self.new_row(table));
        }
        let mut effects = Vec::new();
        let mut taken = None;
        for row in &rows {
            let (key, value) = encode(&handle, row)?;
            let place = self.place(table, &key);
            let twice = effects
                .iter()
                .any(|effect| matches!(effect, Effect::Put { key: other, .. } if *other == key));
            if twice || self.has(&place) {
                taken = Some(place.clone());
            }
            effects.push(Effect::Put { table: place.0, key, value });
        }
        let begun_at = self.timestamp();
        let rows: Vec<&[Value<'_>]> = rows.iter().map(Vec::as_slice).collect();
        let outcome = self.sessions[session].insert_many(&handle, rows);
        match (outcome, taken) {
            (Ok(()), Some(_)) => violation!("insert many: a key was taken, and no error"),
            (Err(Error::DuplicateKey { .. }), Some(_)) => Ok(()),
            (outcome, _) => self.finish_change("insert many", session, begun_at, effects, outcome),
        }
    }

    /// Rows of the front into the table behind it, as one transaction.
    pub(super) fn move_rows(&mut self) -> Checked<()> {
        let behind = |table: &LiveTable| table.plan.front_of.clone();
        let front = self.tables.iter().find_map(|table| Some((table, behind(table)?)));
        let Some((front, behind)) = front else { return Ok(()) };
        let target = self.tables.iter().find(|table| table.plan.name == behind);
        let Some(target) = target else { return Ok(()) };
        let (from, to) = (front.handle.clone(), target.handle.clone());
        // Of a move that fails, and may have happened, nobody says how many rows it took.
        let rows_max = if self.failures_expected { 1 } else { 1 + self.random.below(20) };
        let rows: Vec<(Vec<u8>, Arc<[u8]>)> =
            self.history.now().table(from.name()).map_or_else(Vec::new, |table| {
                let first = table.rows.iter().take(rows_max as usize);
                first.map(|(key, value)| (key.clone(), Arc::clone(value))).collect()
            });
        let taken: Vec<bool> =
            rows.iter().map(|(key, _)| self.has(&(to.name().to_owned(), key.clone()))).collect();
        let session = self.some_session();
        let begun_at = self.timestamp();
        let moved = match self.sessions[session].move_rows(&from, &to, rows_max) {
            Ok(moved) => moved as usize,
            Err(Error::DuplicateKey { .. }) if taken.contains(&true) => return Ok(()),
            Err(error) => {
                if self.failed("move", &error)? == Failed::Unknown {
                    self.moved(&from, &to, &rows, begun_at, None)?;
                }
                return Ok(());
            }
        };
        if moved > rows.len() || (moved == 0) != rows.is_empty() {
            violation!("move: {moved} rows of {} that were there", rows.len());
        }
        if taken[..moved].contains(&true) {
            violation!("move: a key was taken, and no error");
        }
        if moved == 0 {
            return Ok(());
        }
        let end = self.sessions[session].last_commit_lsn().map(|end| end.0);
        let commits = self.moved(&from, &to, &rows[..moved], begun_at, end)?;
        self.note_answer(session, commits)
    }

    fn moved(
        &mut self,
        from: &Table,
        to: &Table,
        rows: &[(Vec<u8>, Arc<[u8]>)],
        begun_at: usize,
        end: Option<u64>,
    ) -> Checked<usize> {
        let effects = rows.iter().flat_map(|(key, value)| {
            let (from, to) = (from.name().to_owned(), to.name().to_owned());
            let gone = Effect::Remove { table: from, key: key.clone() };
            [gone, Effect::Put { table: to, key: key.clone(), value: Arc::clone(value) }]
        });
        self.note_commit(begun_at, effects.collect(), end)
    }
}
