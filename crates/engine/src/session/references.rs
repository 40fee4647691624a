//! What a transaction's changes mean for foreign keys, and the look at them.
//!
//! 1. Every change of a row is noted that makes a reference, or takes a referenced key away.
//! 2. Behind a statement, or when the transaction commits, references are *settled*: the actions of foreign keys
//!    change the rows that reference keys which are gone, and the transaction is refused where a key is missing.
//! 3. The commit *secures* them: it locks the keys, looks once more at what others have committed, and holds the
//!    locks until its own changes are committed. So of one who references a key and one who removes it, the later
//!    to lock sees the other's change.
//!
//! UNIQUE constraints that are deferrable go the same way: `taken_keys.rs`.
//!
//! Invariant: every reference that a transaction has made, and every key that it has removed, is looked at under a
//! lock that it holds until its outcome is known. A large transaction looks when its changes go to the leaves.

use std::collections::BTreeMap;
use std::sync::Arc;

use onrush_log::Lsn;
use onrush_types::{Deferral, ForeignKey, ReferentialAction, Value};

use super::entries::RowBytes;
use super::reference_side::{Side, referencing_rows};
use super::snapshot::{OwnChanges, Snapshot};
use super::taken_keys::TakenKey;
use super::transaction::Transaction;
use crate::catalog::{HeldReferences, Reference, ReferenceLock, Referenced, Table, Wanted};
use crate::error::{Error, KeyInWords, Result};
use crate::fault::{Fault, planted};
use crate::tree::View;

/// What a transaction has to look at.
#[derive(Default)]
pub(super) struct References {
    noted: Vec<Noted>,
    /// The same of UNIQUE constraints that are deferrable.
    pub(super) taken: Vec<TakenKey>,
    /// How many of those are settled, or put off to the commit.
    pub(super) taken_looked_at: usize,
    savepoints: Vec<Remembered>,
    next: u64,
    /// For notes below it was done what foreign keys say of referencing rows.
    acted_below: u64,
    held: Option<HeldReferences>,
    asked: Asked,
}

/// Which constraints are asked to put their look off, or not, against their definitions.
#[derive(Default, Clone)]
struct Asked {
    /// By table and name.
    deferred: BTreeMap<(u32, String), bool>,
    /// The same of all others.
    are_all_deferred: Option<bool>,
}

/// A savepoint.
struct Remembered {
    savepoint: u64,
    /// The first note behind it.
    first: u64,
    asked: Asked,
}

/// A change that foreign keys are about.
#[derive(Clone)]
struct Noted {
    number: u64,
    /// Whether it was found right behind its statement.
    is_settled: bool,
    /// The referencing table, and the foreign key.
    table: u32,
    foreign_key: Arc<str>,
    change: Change,
}

#[derive(Clone)]
enum Change {
    /// The row of this key references another key; none where no row can have that.
    Made { row_key: Vec<u8>, key: Option<Vec<u8>> },
    /// A referenced key is gone, or was replaced by another one, under which the row is now.
    Gone { key: Vec<u8>, by: Option<Vec<u8>> },
}

/// Of referencing tables, by their numbers: as long as the transaction changes nothing.
type Snapshots = BTreeMap<u32, Snapshot>;

impl Noted {
    fn is_of(&self, foreign_key: &ForeignKey) -> bool {
        *self.foreign_key == *foreign_key.name
    }
}

impl References {
    pub(super) fn next_number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// Whether the look at a constraint is put off to the commit.
    pub(super) fn is_deferred(&self, table: u32, name: &str, deferral: Deferral) -> bool {
        match deferral {
            Deferral::NotDeferrable => false,
            deferral => {
                let Asked { deferred, are_all_deferred } = &self.asked;
                let asked = deferred.get(&(table, name.to_owned())).copied();
                let asked = asked.or(*are_all_deferred);
                asked.unwrap_or(deferral == Deferral::InitiallyDeferred)
            }
        }
    }

    pub(super) fn has_savepoint_behind(&self, number: u64) -> bool {
        self.savepoints.iter().any(|remembered| remembered.first > number)
    }
}

impl Transaction<'_> {
    /// Notes what a change of a row means for the foreign keys of its table, and for those that reference it.
    pub(super) fn note_references(
        &mut self,
        table: &Table,
        before: Option<RowBytes<'_>>,
        after: Option<RowBytes<'_>>,
    ) -> Result<()> {
        if table.entry.has_foreign_keys() {
            for side in self.sides_of(table.id())?.iter() {
                self.note_made(side, before, after)?;
            }
        }
        for child in table.definition().referenced_by() {
            for side in self.sides_of(*child)?.iter().filter(|side| side.is_to(table)) {
                self.note_gone(side, before, after)?;
            }
        }
        Ok(())
    }

    fn note_made(
        &mut self,
        side: &Side,
        before: Option<RowBytes<'_>>,
        after: Option<RowBytes<'_>>,
    ) -> Result<()> {
        let Some(row) = after else { return Ok(()) };
        let schema = side.child.schema();
        let key = match side.reference.of_row(schema, row)? {
            Referenced::Nothing => return Ok(()),
            Referenced::Mixed => return Err(side.mixed()),
            Referenced::Key(key) => key,
        };
        if let Some(before) = before
            && before.0 == row.0
            && let Referenced::Key(known) = side.reference.of_row(schema, before)?
            && known == key
        {
            return Ok(());
        }
        self.note(side, Change::Made { row_key: row.0.to_vec(), key });
        Ok(())
    }

    fn note_gone(
        &mut self,
        side: &Side,
        before: Option<RowBytes<'_>>,
        after: Option<RowBytes<'_>>,
    ) -> Result<()> {
        let schema = side.parent.schema();
        let key = |row: Option<RowBytes<'_>>| match row {
            Some(row) => side.reference.key_of(schema, row),
            None => Ok(None),
        };
        let (Some(key), by) = (key(before)?, key(after)?) else { return Ok(()) };
        if by.as_ref() != Some(&key) {
            self.note(side, Change::Gone { key, by });
        }
        Ok(())
    }

    fn note(&mut self, side: &Side, change: Change) {
        let references = &mut self.references;
        let number = references.next_number();
        let (table, foreign_key) = (side.child.id(), Arc::clone(&side.name));
        references.noted.push(Noted { number, is_settled: false, table, foreign_key, change });
    }

    /// Does what foreign keys say of the changes made so far, and refuses those that they forbid, but for foreign keys
    /// whose look is put off to the commit. To be called behind a statement; the commit looks at all of them.
    ///
    /// # Errors
    /// [`ReferenceMissing`](Error::ReferenceMissing), [`StillReferenced`](Error::StillReferenced): then the
    /// transaction is to be rolled back, to a savepoint before the statement or as a whole.
    pub fn settle_references(&mut self) -> Result<()> {
        if self.references.noted.iter().all(|noted| noted.is_settled) {
            return self.settle_taken_keys();
        }
        self.act()?;
        let mut newest = Snapshots::new();
        for at in 0..self.references.noted.len() {
            let noted = self.references.noted[at].clone();
            if noted.is_settled {
                continue;
            }
            if let Some(side) = self.side_of(&noted)?
                && !self.references.is_deferred(
                    noted.table,
                    &noted.foreign_key,
                    side.foreign_key.deferral,
                )
            {
                self.look_at(&side, &noted, &mut newest)?;
                self.references.noted[at].is_settled = true;
            }
        }
        self.settle_taken_keys()
    }

    /// Puts the look at foreign keys off to the commit, or not, from now on: those of these tables, by their numbers,
    /// and of these names, or all that can be put off. Settles those that are not put off any more.
    ///
    /// # Errors
    /// As [`settle_references`](Self::settle_references).
    pub fn defer_references(
        &mut self,
        which: Option<&[(u32, String)]>,
        is_deferred: bool,
    ) -> Result<()> {
        let Asked { deferred, are_all_deferred } = &mut self.references.asked;
        match which {
            None => {
                deferred.clear();
                *are_all_deferred = Some(is_deferred);
            }
            Some(which) => deferred.extend(which.iter().map(|key| (key.clone(), is_deferred))),
        }
        self.references.taken_looked_at = 0;
        self.settle_references()
    }

    /// Does what foreign keys say of rows that reference keys which are gone, until nothing is left to do.
    fn act(&mut self) -> Result<()> {
        loop {
            let References { noted, next, acted_below, .. } = &mut self.references;
            let is_new = |noted: &&Noted| noted.number >= *acted_below;
            let gone: Vec<Noted> = noted.iter().filter(is_new).cloned().collect();
            *acted_below = *next;
            if gone.is_empty() {
                return Ok(());
            }
            // All rows are found before any is changed: a key that one row gives up another may have got.
            let (mut seen, mut newest) = (Snapshots::new(), Snapshots::new());
            let mut to_do = Vec::new();
            for noted in &gone {
                let Change::Gone { key, by } = &noted.change else { continue };
                let Some(side) = self.side_of(noted)? else { continue };
                let action = match by {
                    None => side.foreign_key.on_delete,
                    Some(_) => side.foreign_key.on_update,
                };
                match action {
                    ReferentialAction::NoAction => {}
                    ReferentialAction::Restrict => {
                        let snapshot = self.newest_of(&side, &mut newest);
                        if !referencing_rows(snapshot, &side, key, Some(1))?.is_empty() {
                            return Err(side.still_referenced(key));
                        }
                    }
                    action => {
                        let snapshot = self.seen_of(&side, &mut seen);
                        let rows = referencing_rows(snapshot, &side, key, None)?;
                        to_do.push((side, action, by.clone(), rows));
                    }
                }
            }
            for (side, action, by, rows) in to_do {
                self.act_on(&side, action, by.as_deref(), rows)?;
            }
        }
    }

    fn act_on(
        &mut self,
        side: &Side,
        action: ReferentialAction,
        by: Option<&[u8]>,
        rows: Vec<Vec<u8>>,
    ) -> Result<()> {
        let definition = side.child.definition();
        let positions = side.foreign_key.positions(definition)?;
        let assignments: Vec<(usize, Value<'static>)> = match (action, by) {
            (ReferentialAction::Cascade, None) => Vec::new(),
            (ReferentialAction::Cascade, Some(key)) => {
                let values = side.reference.values_of(definition, key)?;
                values.ok_or_else(|| side.cannot_hold(key))?
            }
            (ReferentialAction::SetNull, _) => {
                positions.iter().map(|position| (*position, Value::Null)).collect()
            }
            (_, _) => positions.iter().map(|position| (*position, Value::Default)).collect(),
        };
        for key in rows {
            match assignments.is_empty() {
                true => {
                    let values = side.child.schema().decode_key(&key)?;
                    self.delete_row(&side.child, &values)?;
                }
                false => {
                    self.update_resolved(&side.child, &key, &assignments)?;
                }
            }
        }
        Ok(())
    }

    /// Refuses the transaction where the change is forbidden by what it sees, or by what is committed.
    fn look_at(&mut self, side: &Side, noted: &Noted, newest: &mut Snapshots) -> Result<()> {
        match &noted.change {
            Change::Made { row_key, key } => {
                let is_missing = self.references_now(side, row_key, key.as_deref())?
                    && !self.has_key(side, key.as_deref())?;
                if is_missing { Err(self.reference_missing(side, row_key)) } else { Ok(()) }
            }
            Change::Gone { key, .. } => match self.is_referenced(side, key, newest)? {
                true => Err(side.still_referenced(key)),
                false => Ok(()),
            },
        }
    }

    /// Whether a key that the transaction has taken away is gone still, and a row references it.
    fn is_referenced(&mut self, side: &Side, key: &[u8], newest: &mut Snapshots) -> Result<bool> {
        if self.has_key(side, Some(key))? {
            return Ok(false);
        }
        let snapshot = self.newest_of(side, newest);
        Ok(!referencing_rows(snapshot, side, key, Some(1))?.is_empty())
    }

    /// Whether a row that the transaction has written is there still, and references the key still.
    fn references_now(&mut self, side: &Side, row_key: &[u8], key: Option<&[u8]>) -> Result<bool> {
        let (look, row) = match self.writes.get(&(side.child.entry.object()?, row_key.to_vec())) {
            Some(write) => (write.value.is_some(), write.value.clone().unwrap_or_default()),
            None => self.seen(&side.child, row_key).map(|(look, row)| (look.is_there, row))?,
        };
        if !look {
            return Ok(false);
        }
        let row = self.whole(&side.child, row)?;
        match side.reference.of_row(side.child.schema(), (row_key, &row))? {
            Referenced::Key(now) => Ok(now.as_deref() == key),
            Referenced::Nothing | Referenced::Mixed => Ok(false),
        }
    }

    /// Whether a key is there: by the transaction's own changes, else as it was committed last.
    fn has_key(&mut self, side: &Side, key: Option<&[u8]>) -> Result<bool> {
        let Some(key) = key else { return Ok(false) };
        let keys = &side.reference.keys;
        if let Some(write) = self.writes.get(&(keys.object()?, key.to_vec())) {
            return Ok(write.value.is_some());
        }
        let own = self.large.as_ref().map(|large| large.view());
        let view = own.as_ref().map_or(View::Newest, |own| own.over(Lsn::MAX));
        let keys = self.handle(Arc::clone(keys));
        let look = self.session.look_by(&keys, key, view)?;
        self.session.rest_on(look.lsn)?;
        Ok(look.is_there)
    }

    /// The primary keys that changes reference which were not looked at yet, with their tables.
    pub(super) fn referenced_keys(&mut self) -> Result<Vec<(Table, Vec<u8>)>> {
        let made = self.references.noted.iter().filter(|noted| {
            !noted.is_settled && matches!(noted.change, Change::Made { key: Some(_), .. })
        });
        let made: Vec<Noted> = made.cloned().collect();
        let mut keys = Vec::new();
        for noted in made {
            let side = self.side_of(&noted)?;
            let side = side.filter(|side| side.reference.keys.id == side.parent.id());
            if let (Some(side), Change::Made { key: Some(key), .. }) = (side, noted.change) {
                keys.push((side.parent.clone(), key));
            }
        }
        Ok(keys)
    }

    /// Takes the locks of all keys that are noted, and looks at them once more. At the commit nothing may be missing;
    /// before, what is not settled stays noted.
    pub(super) fn secure_references(&mut self, at_commit: bool) -> Result<()> {
        if self.references.noted.is_empty() && self.references.taken.is_empty() {
            return Ok(());
        }
        if at_commit {
            self.act()?;
        }
        let noted = self.references.noted.clone();
        let mut sides = Vec::with_capacity(noted.len());
        let mut wanted = Wanted::new();
        for noted in noted {
            let Some(side) = self.side_of(&noted)? else { continue };
            let wants = match &noted.change {
                Change::Made { row_key, key } => {
                    let is_made = self.references_now(&side, row_key, key.as_deref())?;
                    let key = key.as_deref().filter(|_| is_made);
                    key.map(|key| (side.stripe(key), ReferenceLock::Shared))
                }
                Change::Gone { key, .. } => Some((side.stripe(key), ReferenceLock::Exclusive)),
            };
            if let Some((stripe, lock)) = wants {
                let known = wanted.entry(stripe).or_insert(lock);
                *known = lock.max(*known);
            }
            sides.push((side, noted, wants.map(|(stripe, _)| stripe)));
        }
        let taken = self.references.taken.iter();
        wanted.extend(taken.map(|taken| (taken.stripe, ReferenceLock::Exclusive)));
        if !planted(Fault::ReferencesNotLocked)
            && let Some(stripe) = self.lock_references(&wanted)?
        {
            let mut wanting = sides.iter().filter(|(_, _, own)| *own == Some(stripe));
            let mut taken = self.references.taken.iter().filter(|taken| taken.stripe == stripe);
            let taken = taken.next().and_then(|taken| self.as_seen(taken.table()));
            let table = match wanting.next() {
                Some((side, ..)) => side.parent.name().to_owned(),
                None => taken.map_or_else(String::new, |table| table.name().to_owned()),
            };
            return Err(Error::Conflict { table, key: KeyInWords(Vec::new()) });
        }
        // What the transaction does not meet by itself is no conflict.
        sides.sort_by_key(|(_, noted, _)| noted.is_settled);
        // Seen behind the locks.
        let mut newest = Snapshots::new();
        let mut left = Vec::new();
        for (side, noted, _) in sides {
            match self.look_at(&side, &noted, &mut newest) {
                // What was right behind its statement others have changed since.
                Err(
                    Error::ReferenceMissing { table, key, .. }
                    | Error::StillReferenced { table, key, .. },
                ) if noted.is_settled => {
                    return Err(Error::Conflict { table: table.into(), key });
                }
                Err(Error::ReferenceMissing { .. } | Error::StillReferenced { .. })
                    if !at_commit =>
                {
                    left.push(noted);
                }
                // Who goes back to a savepoint behind it may take away what it is met by.
                Ok(()) if self.references.has_savepoint_behind(noted.number) => left.push(noted),
                outcome => outcome?,
            }
        }
        self.references.noted = left;
        self.references.taken = self.secure_taken_keys(at_commit)?;
        Ok(())
    }

    /// The lock that another transaction does not give back, if there is one.
    fn lock_references(&mut self, wanted: &Wanted) -> Result<Option<usize>> {
        let worker = &mut self.session.worker;
        worker.release();
        let locks = &worker.engine.catalog.reference_locks;
        let held = self.references.held.get_or_insert_with(|| HeldReferences::none(locks));
        held.take(&worker.waiter(), wanted)
    }

    /// Others may look at what this transaction has referenced or removed: it has an outcome.
    pub(super) fn release_references(&mut self) {
        self.references = References::default();
    }

    /// What has been noted so far a savepoint comes behind.
    pub(super) fn set_references_savepoint(&mut self, savepoint: u64) {
        let References { savepoints, next, asked, .. } = &mut self.references;
        savepoints.push(Remembered { savepoint, first: *next, asked: asked.clone() });
    }

    /// Forgets what was noted since the savepoint, which stays.
    pub(super) fn roll_references_back_to(&mut self, savepoint: u64) {
        let References { savepoints, noted, taken, taken_looked_at, acted_below, asked, .. } =
            &mut self.references;
        let is_it = |remembered: &Remembered| remembered.savepoint == savepoint;
        let Some(at) = savepoints.iter().position(is_it) else { return };
        savepoints.truncate(at + 1);
        let first = savepoints[at].first;
        *asked = savepoints[at].asked.clone();
        noted.retain(|noted| noted.number < first);
        // What it was met by, and what was done for it, may have been taken back.
        noted.iter_mut().for_each(|noted| noted.is_settled = false);
        taken.retain(|taken| taken.number < first);
        taken.iter_mut().for_each(|taken| taken.is_settled = false);
        *taken_looked_at = 0;
        *acted_below = 0;
    }

    /// Forgets the savepoint and all later ones.
    pub(super) fn release_references_savepoint(&mut self, savepoint: u64) {
        let savepoints = &mut self.references.savepoints;
        let at = savepoints.iter().position(|remembered| remembered.savepoint == savepoint);
        savepoints.truncate(at.unwrap_or(savepoints.len()));
    }

    fn side(&self, child: &Table, foreign_key: &ForeignKey) -> Result<Side> {
        let gone = || Error::TableChanged { name: child.name().to_owned() };
        let parent = match foreign_key.referenced_table == child.id() {
            true => Arc::clone(&child.entry),
            false => self.as_seen(foreign_key.referenced_table).ok_or_else(gone)?,
        };
        let find = |id| self.as_seen(id);
        let reference = Reference::new(child.definition(), foreign_key, &parent, find)?;
        let (foreign_key, parent) = (foreign_key.clone(), self.handle(parent));
        let name = foreign_key.name.as_str().into();
        Ok(Side { child: child.clone(), parent, name, foreign_key, reference })
    }

    /// The foreign keys of the table of a number, as the transaction sees it.
    fn sides_of(&mut self, child: u32) -> Result<Arc<[Arc<Side>]>> {
        let version = self.engine().catalog.version();
        let knows_all = self.definitions.is_none();
        if knows_all && let Some(sides) = self.session.sides.of(version, child) {
            return Ok(sides);
        }
        let Some(entry) = self.as_seen(child) else { return Ok(Arc::new([])) };
        let table = self.handle(entry);
        let foreign_keys = table.definition().foreign_keys().iter();
        let sides = foreign_keys.map(|key| self.side(&table, key).map(Arc::new));
        let sides: Arc<[Arc<Side>]> = sides.collect::<Result<_>>()?;
        if knows_all {
            self.session.sides.keep(child, Arc::clone(&sides));
        }
        Ok(sides)
    }

    /// The foreign key of a change, if it is there still.
    fn side_of(&mut self, noted: &Noted) -> Result<Option<Arc<Side>>> {
        let sides = self.sides_of(noted.table)?;
        Ok(sides.iter().find(|side| noted.is_of(&side.foreign_key)).cloned())
    }

    /// The referencing table as the transaction sees it.
    fn seen_of<'s>(&mut self, side: &Side, seen: &'s mut Snapshots) -> &'s Snapshot {
        self.has_read = true;
        seen.entry(side.child.id())
            .or_insert_with(|| self.view().with_own(self.own_changes_of(side.child.id())))
    }

    /// The referencing table as it was committed last, with the transaction's own changes.
    fn newest_of<'s>(&self, side: &Side, newest: &'s mut Snapshots) -> &'s Snapshot {
        let table = side.child.id();
        newest
            .entry(table)
            .or_insert_with(|| self.newest_committed().with_own(self.own_changes_of(table)))
    }

    fn own_changes_of(&self, table: u32) -> OwnChanges {
        let is_of_table = |of: &Table| of.id() == table || of.entry.is_index_of(table);
        let own = self.writes.iter().filter(|(_, write)| is_of_table(&write.table));
        own.map(|(row, write)| (row.clone(), write.value.clone())).collect()
    }

    fn reference_missing(&self, side: &Side, row_key: &[u8]) -> Error {
        let row = self
            .writes
            .iter()
            .find(|((_, key), write)| key == row_key && write.table.id() == side.child.id());
        let row = row.and_then(|(_, write)| write.value.clone());
        let key = row.and_then(|row| side.key_of_row(row_key, &row));
        Error::ReferenceMissing {
            table: side.child.name().into(),
            constraint: side.foreign_key.name.as_str().into(),
            key: key.unwrap_or_else(|| side.child.describe_key(row_key)),
            referenced: side.parent.name().into(),
        }
    }
}
