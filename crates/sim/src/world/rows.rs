//! Calls that change or read one row.

use onrush::{Direction, Durability, Error, ScanOptions, Value};

use super::tables::encode;
use super::{Failed, World};
use crate::plan::Keys;
use onrush_oracle::Checked;
use onrush_oracle::violation;
use onrush_oracle::{Effect, State};

impl World {
    pub(super) fn insert(&mut self, token: bool) -> Checked<()> {
        match self.some_table() {
            Some(table) => self.insert_into(table, token),
            None => Ok(()),
        }
    }

    /// Inserts a new row; with a token nobody waits.
    pub(super) fn insert_into(&mut self, table: usize, token: bool) -> Checked<()> {
        let session = self.some_session();
        self.insert_by(session, table, token)
    }

    pub(super) fn insert_by(&mut self, session: usize, table: usize, token: bool) -> Checked<()> {
        let values = self.new_row(table);
        let handle = self.tables[table].handle.clone();
        let begun_at = self.timestamp();
        let caller = &mut self.sessions[session];
        let outcome = if token {
            caller.insert_token(&handle, &values).map(|token| Some(token.lsn().0))
        } else {
            caller.insert(&handle, &values).map(|()| None)
        };
        let generated = self.tables[table].is_generated();
        let values = if generated { self.with_key_of(session, table, values)? } else { values };
        let (key, value) = encode(&handle, &values)?;
        let place = self.place(table, &key);
        let taken = !generated && self.has(&place);
        let effect = || Effect::Put { table: place.0.clone(), key: key.clone(), value };
        match outcome {
            Ok(_) if taken => violation!("insert: the key {key:02x?} was taken, and no error"),
            Ok(end) => {
                let waited = end.is_none();
                let end = end.or_else(|| self.sessions[session].last_commit_lsn().map(|end| end.0));
                let waited = waited && self.tables[table].plan.front_of.is_none();
                let commits = self.note_commit(begun_at, vec![effect()], end)?;
                if generated {
                    self.hand_out(place)?;
                }
                if waited { self.note_answer(session, commits) } else { Ok(()) }
            }
            Err(Error::DuplicateKey { .. }) if taken => {
                self.note_rests_on(session, &place);
                Ok(())
            }
            Err(error) => {
                if self.failed("insert", &error)? == Failed::Unknown {
                    self.note_commit(begun_at, vec![effect()], None)?;
                }
                Ok(())
            }
        }
    }

    pub(super) fn with_key_of(
        &self,
        session: usize,
        table: usize,
        mut values: Vec<Value<'static>>,
    ) -> Checked<Vec<Value<'static>>> {
        let (key, _) = self.sessions[session].last_row();
        values[0] = match self.key_values(table, key) {
            Ok(mut decoded) => decoded.swap_remove(0),
            // Nothing was encoded: no key could be had.
            Err(_) => Value::Int64(i64::MIN),
        };
        Ok(values)
    }

    pub(super) fn has(&self, place: &(String, Vec<u8>)) -> bool {
        let table = self.history.now().table(&place.0);
        table.is_some_and(|table| table.rows.contains_key(&place.1))
    }

    /// An insert whose key is taken.
    pub(super) fn insert_taken(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        let Some(key) = self.some_key(table) else { return Ok(()) };
        let session = self.some_session();
        self.insert_taken_by(session, table, &key)
    }

    pub(super) fn insert_taken_by(
        &mut self,
        session: usize,
        table: usize,
        key: &[u8],
    ) -> Checked<()> {
        let mut values = self.key_values(table, key)?;
        values.extend(self.other_columns(table));
        let handle = self.tables[table].handle.clone();
        match self.sessions[session].insert(&handle, &values) {
            Err(Error::DuplicateKey { .. }) => {
                let place = self.place(table, key);
                self.note_rests_on(session, &place);
                Ok(())
            }
            Ok(()) => violation!("insert: the key {key:02x?} was taken, and no error"),
            Err(error) => self.failed("insert of a taken key", &error).map(|_| ()),
        }
    }

    pub(super) fn upsert(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        let session = self.some_session();
        let existing = if self.random.chance(2, 3) || self.tables[table].is_generated() {
            self.some_key(table)
        } else {
            None
        };
        let values = match existing {
            Some(key) => {
                let mut values = self.key_values(table, &key)?;
                values.extend(self.other_columns(table));
                values
            }
            None if self.tables[table].is_generated() => return Ok(()),
            None => self.new_row(table),
        };
        let handle = self.tables[table].handle.clone();
        let (key, value) = encode(&handle, &values)?;
        let place = self.place(table, &key);
        let begun_at = self.timestamp();
        let outcome = self.sessions[session].upsert(&handle, &values);
        let effects = vec![Effect::Put { table: place.0, key, value }];
        self.finish_change("upsert", session, begun_at, effects, outcome)
    }

    pub(super) fn update(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        let Some(key) = self.some_key(table) else { return Ok(()) };
        let session = self.some_session();
        let name = self.tables[table].name().to_owned();
        let Some(old) = self.history.now().table(&name).and_then(|t| t.rows.get(&key)).cloned()
        else {
            return Ok(());
        };
        let mut values = self.values_of(table, &key, &old)?;
        let mut assignments: Vec<(&str, Value<'static>)> = Vec::new();
        let at = self.payload_at(table)?;
        values[at] = self.payload(table);
        assignments.push(("payload", values[at].clone()));
        let moves = matches!(self.tables[table].plan.keys, Keys::Ascending | Keys::Random);
        if moves && self.random.chance(1, 6) {
            values[0] = self.new_row(table).swap_remove(0);
            assignments.push(("id", values[0].clone()));
        }
        let handle = self.tables[table].handle.clone();
        let (new_key, value) = encode(&handle, &values)?;
        let new_place = self.place(table, &new_key);
        let taken = new_key != key && self.has(&new_place);
        let begun_at = self.timestamp();
        let old_key = self.key_values(table, &key)?;
        let outcome = self.sessions[session].update(&handle, &old_key, &assignments);
        let mut effects = Vec::new();
        if new_key != key {
            effects.push(Effect::Remove { table: name.clone(), key });
        }
        effects.push(Effect::Put { table: name, key: new_key, value });
        match outcome {
            Ok(false) => violation!("update: no such row"),
            Ok(true) if taken => violation!("update: the new key was taken, and no error"),
            Err(Error::DuplicateKey { .. }) if taken => Ok(()),
            Ok(true) => self.finish_change("update", session, begun_at, effects, Ok(())),
            Err(error) => self.finish_change("update", session, begun_at, effects, Err(error)),
        }
    }

    pub(super) fn delete(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        let Some(key) = self.some_key(table) else { return Ok(()) };
        self.delete_row(table, key)
    }

    /// Deletes rows that lie together, so that leaves become empty.
    pub(super) fn delete_run(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        let Some(first) = self.some_key(table) else { return Ok(()) };
        let count = 1 + self.random.below(40) as usize;
        let Some(known) = self.history.now().table(self.tables[table].name()) else {
            return Ok(());
        };
        let keys: Vec<Vec<u8>> =
            known.rows.range(first..).take(count).map(|row| row.0.clone()).collect();
        for key in keys {
            if self.stopped.is_some() || !self.has(&self.place(table, &key)) {
                break;
            }
            self.delete_row(table, key)?;
        }
        Ok(())
    }

    fn delete_row(&mut self, table: usize, key: Vec<u8>) -> Checked<()> {
        let session = self.some_session();
        self.delete_by(session, table, key)
    }

    pub(super) fn delete_by(&mut self, session: usize, table: usize, key: Vec<u8>) -> Checked<()> {
        let handle = self.tables[table].handle.clone();
        let values = self.key_values(table, &key)?;
        let begun_at = self.timestamp();
        let outcome = match self.sessions[session].delete(&handle, &values) {
            Ok(false) => violation!("delete: no such row, key {key:02x?}"),
            Ok(true) => Ok(()),
            Err(error) => Err(error),
        };
        let effects = vec![Effect::Remove { table: self.tables[table].name().to_owned(), key }];
        self.finish_change("delete", session, begun_at, effects, outcome)
    }

    /// A delete of a row that was deleted before, or never was.
    pub(super) fn delete_missing(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        let session = self.some_session();
        let name = self.tables[table].name().to_owned();
        let mut gone: Vec<Vec<u8>> = self
            .history
            .changed
            .iter()
            .filter(|(place, _)| place.0 == name && !self.has(place))
            .map(|(place, _)| place.1.clone())
            .collect();
        gone.sort();
        if gone.is_empty() {
            return Ok(());
        }
        let key = gone.swap_remove(self.random.below(gone.len() as u64) as usize);
        self.delete_missing_by(session, table, &key)
    }

    pub(super) fn delete_missing_by(
        &mut self,
        session: usize,
        table: usize,
        key: &[u8],
    ) -> Checked<()> {
        let handle = self.tables[table].handle.clone();
        let values = self.key_values(table, key)?;
        match self.sessions[session].delete(&handle, &values) {
            Ok(false) => {
                let place = self.place(table, key);
                self.note_rests_on(session, &place);
                Ok(())
            }
            Ok(true) => violation!("delete: the key {key:02x?} was not there, and no error"),
            Err(error) => self.failed("delete of a missing row", &error).map(|_| ()),
        }
    }

    /// What is left to do after a call that changes rows.
    pub(super) fn finish_change(
        &mut self,
        what: &str,
        session: usize,
        begun_at: usize,
        effects: Vec<Effect>,
        outcome: onrush::Result<()>,
    ) -> Checked<()> {
        match outcome {
            Ok(()) => {
                let end = self.sessions[session].last_commit_lsn().map(|end| end.0);
                let unlogged = self.history.now().is_unlogged(&effects);
                let commits = self.note_commit(begun_at, effects, end)?;
                if unlogged { Ok(()) } else { self.note_answer(session, commits) }
            }
            Err(error) => {
                if self.failed(what, &error)? == Failed::Unknown {
                    self.note_commit(begun_at, effects, None)?;
                }
                Ok(())
            }
        }
    }

    pub(super) fn get(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        let Some(key) = self.some_key(table) else { return Ok(()) };
        let session = self.some_session();
        let handle = self.tables[table].handle.clone();
        let values = self.key_values(table, &key)?;
        let found = match self.sessions[session].get(&handle, &values) {
            Ok(Some(row)) => row,
            Ok(None) => violation!("get: no row with key {key:02x?}"),
            Err(error) => return self.failed("get", &error).map(|_| ()),
        };
        let expected = self.history.now().table(handle.name()).and_then(|t| t.rows.get(&key));
        let expected = expected.map(|value| self.values_of(table, &key, value)).transpose()?;
        if expected != Some(found) {
            violation!("get: another row at key {key:02x?}");
        }
        Ok(())
    }

    pub(super) fn scan(&mut self) -> Checked<()> {
        let session = self.some_session();
        let snapshot = match self.sessions[session].snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) => return self.failed("snapshot", &error).map(|_| ()),
        };
        let state = self.history.now().clone();
        self.compare_snapshot(&snapshot, &state)
    }

    /// Opens a snapshot, or looks at one opened before: it must not have changed.
    pub(super) fn snapshot_scan(&mut self) -> Checked<()> {
        if self.snapshots.len() < 3 && self.random.chance(1, 2) {
            let session = self.some_session();
            match self.sessions[session].snapshot() {
                Ok(snapshot) => self.snapshots.push((snapshot, self.history.now().clone())),
                Err(error) => return self.failed("snapshot", &error).map(|_| ()),
            }
            return Ok(());
        }
        let Some((snapshot, state)) = self.snapshots.pop() else { return Ok(()) };
        self.compare_snapshot(&snapshot, &state)?;
        if self.random.chance(1, 2) {
            self.snapshots.push((snapshot, state));
        }
        Ok(())
    }

    fn compare_snapshot(&mut self, snapshot: &onrush::Snapshot, state: &State) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        let handle = self.tables[table].handle.clone();
        let Some(expected) = state.table(handle.name()) else { return Ok(()) };
        let backward = self.random.chance(1, 2);
        let direction = if backward { Direction::Backward } else { Direction::Forward };
        let options = ScanOptions { direction, ..ScanOptions::default() };
        let mut found = Vec::new();
        let scanned = snapshot.scan(&handle, &options).and_then(|scan| {
            scan.visit_raw(|key, value| found.push((key.to_vec(), value.to_vec())))
        });
        if let Err(error) = scanned {
            return self.failed("scan", &error).map(|_| ());
        }
        if backward {
            found.reverse();
        }
        let same = found.len() == expected.rows.len()
            && found
                .iter()
                .zip(&expected.rows)
                .all(|((key, value), (own, row))| key == own && value.as_slice() == &**row);
        if !same {
            let (there, wanted) = (found.len(), expected.rows.len());
            let seen: std::collections::BTreeSet<_> = found.iter().map(|(key, _)| key).collect();
            let missing: Vec<_> =
                expected.rows.keys().filter(|key| !seen.contains(key)).take(3).collect();
            let extra: Vec<_> =
                seen.iter().filter(|key| !expected.rows.contains_key(**key)).take(3).collect();
            violation!(
                "snapshot of {}: {there} rows, expected {wanted}; missing {missing:02x?}, \
                 too many {extra:02x?}",
                handle.name()
            );
        }
        Ok(())
    }

    pub(super) fn barrier(&mut self) -> Checked<()> {
        match self.database()?.barrier() {
            Ok(()) => {
                let (timestamp, commits) = (self.timestamp(), self.history.len());
                self.history.acknowledge(timestamp, commits);
                Ok(())
            }
            Err(error) => self.failed("barrier", &error).map(|_| ()),
        }
    }

    pub(super) fn write_log(&mut self) -> Checked<()> {
        match self.database()?.write_log() {
            Ok(()) => Ok(()),
            Err(error) => self.failed("write log", &error).map(|_| ()),
        }
    }
}

/// Whether a session waits until its commits are durable.
pub(super) fn waits(session: &onrush::Session) -> bool {
    session.durability() == Durability::Durable
}
