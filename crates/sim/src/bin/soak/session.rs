//! One session of the process: does what its model says, compares what it reads with it, and keeps
//! the account.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail, ensure};
use onrush::{Direction, Durability, Row, ScanOptions, Session, Table, Value};
use onrush_oracle::Expected as _;

use super::model::{Deed, Live, Model};
use super::tables::{self, Kind};
use super::worker::{Own, Shared};

/// Rows that a scan reads at most.
const SCANNED: u64 = 100;

/// See the module.
pub(crate) struct Worker<'s> {
    shared: &'s Shared,
    number: usize,
    session: Session,
    own: Own,
}

impl<'s> Worker<'s> {
    pub(crate) fn new(shared: &'s Shared, number: usize, own: Own) -> Result<Worker<'s>> {
        Ok(Worker { shared, number, session: shared.database.session()?, own })
    }

    /// Half of the sessions are durable, but for every fourth operation; the others delay, but for
    /// every sixty-fourth.
    fn is_durable(&self, operation: u64) -> bool {
        match self.number % 2 {
            0 => !operation.is_multiple_of(4),
            _ => operation.is_multiple_of(64),
        }
    }

    pub(crate) fn run(&mut self) -> Result<()> {
        let account = &self.shared.accounts[self.number];
        let mut operation = account.acknowledged();
        while !self.shared.is_ending.load(Ordering::Relaxed) {
            operation += 1;
            let deed = self.own.model.deed(self.shared.seed, operation, self.shared.limits);
            let durable = self.is_durable(operation) || deed == Deed::Truncate;
            let durability = if durable { Durability::Durable } else { Durability::Delayed };
            self.session.set_durability(durability);
            account.intends(operation)?;
            let keys = self.perform(deed, operation);
            let keys = keys.with_context(|| {
                format!("session {}, operation {operation}, {deed:?}", self.number)
            })?;
            let changes = Model::changes(deed, operation);
            account.acknowledges(operation, durable && !changes.is_empty())?;
            self.follow(deed, keys);
            changes.iter().for_each(|change| self.own.model.apply(change));
            self.shared.live_rows[self.number].store(self.own.model.count(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn id(&self) -> u64 {
        self.number as u64
    }

    fn table(&self, kind: Kind) -> &'s Table {
        &self.shared.tables[kind as usize]
    }

    /// The row at this place, and the values of its key.
    fn at(&self, kind: Kind, place: usize) -> (Live, Vec<Value<'static>>) {
        let live = self.own.model.rows(kind)[place];
        let key = self.own.keys[kind as usize][place];
        (live, tables::key_values(kind, self.id(), live.number, key))
    }

    /// Does it; returns the keys of the rows that it added, by table.
    fn perform(&mut self, deed: Deed, operation: u64) -> Result<Vec<(Kind, tables::Key)>> {
        let first = operation * super::model::PER_OPERATION;
        let new = |row: u64| Live { number: first + row, version: operation };
        let id = self.id();
        match deed {
            Deed::Insert(kind) => {
                let row = tables::values(kind, id, new(0));
                let key = self.session.insert_returning_key(self.table(kind), &row)?;
                Ok(vec![(kind, tables::generated_key(kind, &key[0])?)])
            }
            Deed::Batch(kind, rows) => {
                let rows: Vec<_> =
                    (0..rows).map(|row| tables::values(kind, id, new(row))).collect();
                self.session.insert_many(self.table(kind), rows.iter().map(Vec::as_slice))?;
                // Rows of scratch are never asked for by key; the other tables' keys are chosen.
                Ok(vec![(kind, 0); rows.len()])
            }
            Deed::Pair(one, other) => {
                let (table, chosen) = (self.table(one), self.table(other));
                let mut transaction = self.session.begin()?;
                transaction.insert(table, &tables::values(one, id, new(0)))?;
                let key = table.schema().decode_key(transaction.last_row().0)?;
                transaction.insert(chosen, &tables::values(other, id, new(1)))?;
                transaction.commit()?;
                Ok(vec![(one, tables::generated_key(one, &key[0])?), (other, 0)])
            }
            Deed::Update(kind, place) => {
                let (live, key) = self.at(kind, place);
                let live = Live { version: operation, ..live };
                let set = tables::assignments(id, live);
                let is_there = self.session.update(self.table(kind), &key, &set)?;
                ensure!(is_there, "{live:?} is not there to be updated");
                Ok(Vec::new())
            }
            Deed::Upsert(kind, place) => {
                let live = Live { version: operation, ..self.own.model.rows(kind)[place] };
                self.session.upsert(self.table(kind), &tables::values(kind, id, live))?;
                Ok(Vec::new())
            }
            Deed::DeleteOldest(kind) => {
                let (live, key) = self.at(kind, 0);
                let is_there = self.session.delete(self.table(kind), &key)?;
                ensure!(is_there, "{live:?} is not there to be deleted");
                Ok(Vec::new())
            }
            Deed::DeleteMany(kind, rows) => {
                let keys: Vec<_> = (0..rows).map(|place| self.at(kind, place)).collect();
                let table = self.table(kind);
                let mut transaction = self.session.begin()?;
                for (live, key) in keys {
                    ensure!(transaction.delete(table, &key)?, "{live:?} is not there");
                }
                transaction.commit()?;
                Ok(Vec::new())
            }
            Deed::Truncate => {
                self.shared.database.truncate_table(Kind::Scratch.name())?;
                Ok(Vec::new())
            }
            Deed::Get(kind, place) => self.get(kind, place),
            Deed::ScanOwn(place) => self.scan_own(place),
            Deed::ScanAll(kind) => self.scan_all(kind, operation),
        }
    }

    fn get(&mut self, kind: Kind, place: usize) -> Result<Vec<(Kind, tables::Key)>> {
        let (live, key) = self.at(kind, place);
        let row = self.session.get(self.table(kind), &key)?;
        let row = row.with_context(|| format!("{live:?} is not there"))?;
        let stored = tables::read(kind, &row)?;
        ensure!(stored.live == live, "{:?} was read, {live:?} is right", stored.live);
        Ok(Vec::new())
    }

    /// The rows of this session from one on: exactly those of the model, in its order.
    fn scan_own(&mut self, place: usize) -> Result<Vec<(Kind, tables::Key)>> {
        let (_, from) = self.at(Kind::Chosen, place);
        let to = vec![(self.number as i64).into()];
        let options = ScanOptions {
            from: Bound::Included(from),
            to: Bound::Included(to),
            limit: Some(SCANNED),
            ..ScanOptions::default()
        };
        let rows = self.session.scan(self.table(Kind::Chosen), &options)?;
        let rows: Vec<Row> = rows.collect::<onrush::Result<_>>()?;
        let expected = self.own.model.rows(Kind::Chosen).iter().skip(place).take(SCANNED as usize);
        ensure!(rows.len() == expected.len(), "{} rows, not {}", rows.len(), expected.len());
        for (row, live) in rows.iter().zip(expected) {
            let stored = tables::read(Kind::Chosen, row)?;
            ensure!(stored.live == *live, "{:?} was read, {live:?} is right", stored.live);
        }
        Ok(Vec::new())
    }

    /// Rows of everybody, from the lowest or from the highest key: whole, and in order.
    fn scan_all(&mut self, kind: Kind, operation: u64) -> Result<Vec<(Kind, tables::Key)>> {
        let is_forward = operation.is_multiple_of(2);
        let direction = if is_forward { Direction::Forward } else { Direction::Backward };
        let options = ScanOptions { limit: Some(SCANNED), direction, ..ScanOptions::default() };
        let table = self.table(kind);
        let mut last: Option<Vec<u8>> = None;
        for row in self.session.scan(table, &options)? {
            let row = row?;
            tables::read(kind, &row)?;
            let mut key = Vec::new();
            let columns = table.definition().primary_key().iter();
            let values: Vec<Value<'_>> = columns.map(|column| row[*column].borrowed()).collect();
            table.schema().encode_key(&values, &mut key)?;
            if let Some(last) = &last
                && (*last >= key) == is_forward
            {
                bail!("{row:?} comes out of order");
            }
            last = Some(key);
        }
        Ok(Vec::new())
    }

    /// The keys follow the rows of the model.
    fn follow(&mut self, deed: Deed, added: Vec<(Kind, tables::Key)>) {
        for (kind, key) in added {
            self.own.keys[kind as usize].push_back(key);
        }
        match deed {
            Deed::DeleteOldest(kind) => drop(self.own.keys[kind as usize].pop_front()),
            Deed::DeleteMany(kind, rows) => drop(self.own.keys[kind as usize].drain(..rows)),
            Deed::Truncate => self.own.keys[Kind::Scratch as usize].clear(),
            _ => {}
        }
    }
}
