//! Cursors: rows that a client asks for by FETCH. They live as long as their transaction, or, WITH HOLD, until they
//! are closed.
//!
//! One that only goes forward keeps no row. One that goes back keeps all that it has come by, in the memory of
//! connections. One of which nothing is said goes back, too, until many rows have come; then it gives them up.
//!
//! Invariant: a cursor stands before its first row, on a row, or behind its last one; rows are counted from 1.

use std::collections::HashMap;
use std::sync::Arc;

use onrush::{Row, Value};
use onrush_query::clock::unix_micros;
use pgwire::messages::response::TransactionStatus;
use tokio::io::{AsyncRead, AsyncWrite};

use super::memory::Part;
use super::{Connection, Stop};
use crate::error::{Result, SqlError, state};
use crate::execute::{Declared, RowStream, Step};
use crate::session_objects::ShownCursor;
use crate::sql::{FetchPlan, Movement, OutputColumn, Scroll};
use crate::values::Formats;

/// Most cursors of one client.
const CURSORS_MAX: usize = 1000;

/// When a cursor of which nothing is said gives up the rows that it has come by.
const SHORT_ROWS_MAX: usize = 1000;
const SHORT_BYTES_MAX: usize = 256 << 10;

/// All cursors of one client.
#[derive(Default)]
pub(super) struct Cursors {
    by_name: HashMap<String, Cursor>,
}

struct Cursor {
    /// Rows that have come may have keys behind them.
    columns: Arc<[OutputColumn]>,
    /// None when all have come.
    rows: Option<Box<RowStream>>,
    /// How many have come.
    come: u64,
    /// Where it stands.
    at: u64,
    /// The rows that have come, if it goes back, too.
    kept: Option<Kept>,
    is_held: bool,
    /// Its transaction is not over yet.
    is_new: bool,
}

#[derive(Default)]
struct Kept {
    rows: Vec<Row>,
    bytes: usize,
    /// Only as long as they are few.
    while_short: bool,
}

impl Cursors {
    pub(super) fn columns(&self, name: &str) -> Option<Arc<[OutputColumn]>> {
        self.by_name.get(name).map(|cursor| Arc::clone(&cursor.columns))
    }

    pub(super) fn clear(&mut self) {
        self.by_name.clear();
    }

    /// No transaction is open, and the last one was rolled back or committed.
    pub(super) fn end_transaction(&mut self, is_rolled_back: bool) {
        self.by_name.retain(|_, cursor| cursor.is_held && !(cursor.is_new && is_rolled_back));
        self.by_name.values_mut().for_each(|cursor| cursor.is_new = false);
    }

    /// What the rows that are kept take in memory.
    pub(super) fn bytes(&self) -> usize {
        self.by_name.values().map(Cursor::bytes).sum()
    }

    fn insert(&mut self, declared: Declared, is_new: bool) -> Result<()> {
        let Declared { name, rows, keyed: _, scroll, is_held } = declared;
        if self.by_name.contains_key(&name) {
            let message = format!("cursor {name:?} already exists");
            return Err(SqlError::new(state::DUPLICATE_CURSOR, message));
        }
        if self.by_name.len() >= CURSORS_MAX {
            let message = format!("there are {CURSORS_MAX} cursors already");
            return Err(SqlError::new(state::LIMIT_EXCEEDED, message).with_hint("CLOSE some."));
        }
        let columns = Arc::clone(rows.columns());
        let while_short = scroll == Scroll::WhileShort;
        let kept = (scroll != Scroll::Never).then(|| Kept { while_short, ..Kept::default() });
        let cursor = Cursor { columns, rows: Some(rows), come: 0, at: 0, kept, is_held, is_new };
        self.by_name.insert(name, cursor);
        Ok(())
    }

    fn take(&mut self, name: &str) -> Result<Cursor> {
        self.by_name.remove(name).ok_or_else(|| {
            let message = format!("cursor {name:?} does not exist");
            SqlError::new(state::UNKNOWN_PORTAL, message)
                .with_hint("DECLARE makes one, for as long as its transaction.")
        })
    }
}

impl Cursor {
    fn bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.bytes)
    }

    fn is_on_row(&self) -> bool {
        (1..=self.come).contains(&self.at)
    }

    /// What stands behind the columns of the row on which it stands.
    fn keys(&self) -> Option<Vec<Value<'static>>> {
        let at = usize::try_from(self.at.checked_sub(1)?).ok()?;
        let keys = match (&self.kept, &self.rows) {
            _ if !self.is_on_row() => return None,
            (Some(kept), _) => kept.rows.get(at)?.get(self.columns.len()..)?,
            (None, rows) => rows.as_ref()?.last_keys(),
        };
        Some(keys.to_vec())
    }

    /// How many rows are passed over, and how many are then wanted, where that is a way forward.
    fn way_forward(&self, movement: Movement) -> Result<(u64, Option<u64>)> {
        match movement {
            Movement::Forward(Some(0)) | Movement::Relative(0) if self.is_on_row() => {}
            Movement::Forward(count) => return Ok((0, count)),
            Movement::Relative(0) => return Ok((0, Some(0))),
            Movement::Relative(by) if by > 0 => return Ok((by.unsigned_abs() - 1, Some(1))),
            Movement::Absolute(to) if u64::try_from(to).is_ok_and(|to| to > self.at) => {
                return Ok((to.unsigned_abs() - self.at - 1, Some(1)));
            }
            // It has not moved yet.
            Movement::Absolute(0) if self.at == 0 => return Ok((0, Some(0))),
            Movement::Backward(_) if self.at == 0 => return Ok((0, Some(0))),
            _ => {}
        }
        Err(SqlError::new(state::NOT_IN_PREREQUISITE_STATE, "cursor can only scan forward")
            .with_hint("Declare it with SCROLL option to enable backward scan."))
    }

    /// How many rows must have come for a movement; none: all.
    fn wants(&self, movement: Movement) -> Option<u64> {
        match movement {
            Movement::Forward(count) => count.map(|count| self.at.saturating_add(count)),
            Movement::Backward(_) => Some(self.at),
            Movement::Absolute(to) => u64::try_from(to).ok(),
            Movement::Relative(by) => Some(self.at.saturating_add_signed(by)),
        }
    }

    /// The rows of a movement of a cursor that keeps them, by number, first and last; and where it stands then. All
    /// that are wanted have come.
    fn kept_way(&self, movement: Movement) -> (Option<(u64, u64)>, u64) {
        let (at, behind) = (self.at, self.come + 1);
        let one = |to: u64| match to {
            0 => (None, 0),
            to if to < behind => (Some((to, to)), to),
            _ => (None, behind),
        };
        match movement {
            Movement::Forward(Some(0)) | Movement::Backward(Some(0)) | Movement::Relative(0) => {
                (self.is_on_row().then_some((at, at)), at)
            }
            Movement::Forward(count) => {
                let last = count.map_or(behind, |count| at.saturating_add(count));
                let rows = (at + 1 < behind).then_some((at + 1, last.min(self.come)));
                (rows, last.min(behind))
            }
            Movement::Backward(count) => {
                let last = count.map_or(0, |count| at.saturating_sub(count));
                ((at > 1).then(|| (at - 1, last.max(1))), last)
            }
            Movement::Absolute(to) if to < 0 => one(behind.saturating_sub(to.unsigned_abs())),
            Movement::Absolute(to) => one(to.unsigned_abs()),
            Movement::Relative(by) => one(at.saturating_add_signed(by)),
        }
    }
}

impl Kept {
    fn is_short(&self) -> bool {
        self.rows.len() < SHORT_ROWS_MAX && self.bytes <= SHORT_BYTES_MAX
    }

    /// Whether there are more of them than are kept.
    fn is_too_much(&self) -> bool {
        self.while_short && !self.is_short()
    }

    /// Rows by number, in this order.
    fn between(&self, (first, last): (u64, u64)) -> Vec<Row> {
        let place = |number: u64| usize::try_from(number - 1).unwrap_or(usize::MAX);
        let (low, high) = (place(first.min(last)), place(first.max(last)));
        let mut rows = self.rows.get(low..=high).unwrap_or_default().to_vec();
        if first > last {
            rows.reverse();
        }
        rows
    }
}

/// What a row takes in memory, about.
fn row_bytes(row: &Row) -> usize {
    let of_value = |value: &Value<'_>| match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    size_of::<Row>()
        + row.iter().map(|value| size_of::<Value<'_>>() + of_value(value)).sum::<usize>()
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) async fn declare(&mut self, declared: Declared) -> std::result::Result<(), Stop> {
        let shown = ShownCursor {
            text: self.backend.presence.entry().activity().statement,
            made_micros: unix_micros(),
            is_held: declared.is_held,
            is_scroll: declared.scroll != Scroll::Never,
            keyed: declared.keyed.clone(),
            keys: None,
        };
        let name = declared.name.clone();
        let is_in_transaction = self.backend.is_in_transaction();
        self.cursors.insert(declared, is_in_transaction)?;
        if !is_in_transaction {
            self.keep_held(&name).await?;
        }
        self.objects().cursors.lock().insert(name, shown);
        self.complete("DECLARE CURSOR".into());
        Ok(())
    }

    /// CLOSE, of one or of all.
    pub(super) fn close_cursor(&mut self, name: Option<&str>) -> Result<()> {
        match name {
            Some(name) => {
                self.cursors.take(name)?;
                self.complete("CLOSE CURSOR".into());
            }
            None => {
                self.cursors.clear();
                self.complete("CLOSE CURSOR ALL".into());
            }
        }
        self.note_cursors();
        Ok(())
    }

    /// Once a transaction is over.
    pub(super) fn end_cursors(&mut self) {
        let has_chained = std::mem::take(&mut self.backend.has_chained);
        let is_over = has_chained || !self.backend.is_in_transaction();
        if has_chained {
            self.portals.clear();
        }
        if !self.cursors.by_name.is_empty() && is_over {
            let is_rolled_back = std::mem::take(&mut self.backend.is_rolled_back);
            self.cursors.end_transaction(is_rolled_back);
            self.note_cursors();
        }
    }

    pub(super) fn note_cursors(&mut self) {
        let mut shown = self.objects().cursors.lock();
        shown.retain(|name, shown| {
            let cursor = self.cursors.by_name.get(name);
            // Who holds rows of an earlier transaction does not change the tables by them.
            if cursor.is_some_and(|cursor| !cursor.is_new) {
                (shown.keyed, shown.keys) = (None, None);
            }
            cursor.is_some()
        });
        drop(shown);
        self.wire.memory.note(Part::Cursors, self.cursors.bytes());
    }

    /// Before a transaction commits: its cursors WITH HOLD outlive it. One that fails rolls the transaction back.
    pub(super) async fn keep_held_cursors(&mut self) -> std::result::Result<(), Stop> {
        if self.backend.status() != TransactionStatus::Transaction {
            return Ok(());
        }
        let cursors = self.cursors.by_name.iter();
        let new = cursors.filter(|(_, cursor)| cursor.is_held && cursor.is_new);
        let names: Vec<String> = new.map(|(name, _)| name.clone()).collect();
        for name in names {
            let kept = self.keep_held(&name).await;
            if kept.is_err() {
                self.backend.roll_back();
            }
            kept?;
        }
        Ok(())
    }

    /// Keeps the rows of a cursor as far as they are few, so that they outlive their tables. One with more of them
    /// reads on in its snapshot.
    async fn keep_held(&mut self, name: &str) -> std::result::Result<(), Stop> {
        let mut cursor = self.cursors.take(name)?;
        while cursor.rows.is_some() && cursor.kept.as_ref().is_some_and(Kept::is_short) {
            let wanted = cursor.come + 1;
            self.keep(&mut cursor, Some(wanted)).await?;
        }
        self.cursors.by_name.insert(name.to_owned(), cursor);
        self.note_cursors();
        Ok(())
    }

    /// Sends the rows of a movement. A cursor that fails is gone.
    pub(super) async fn fetch(
        &mut self,
        fetch: &FetchPlan,
        formats: &Formats,
    ) -> std::result::Result<(), Stop> {
        let mut cursor = self.cursors.take(&fetch.name)?;
        let count = match cursor.kept {
            Some(_) => self.fetch_kept(&mut cursor, fetch, formats).await,
            None => self.fetch_forward(&mut cursor, fetch.movement, fetch.is_move, formats).await,
        };
        if count.is_ok() {
            if let Some(shown) = self.objects().cursors.lock().get_mut(&fetch.name)
                && shown.keyed.is_some()
            {
                shown.keys = cursor.keys();
            }
            self.cursors.by_name.insert(fetch.name.clone(), cursor);
        }
        self.note_cursors();
        let verb = if fetch.is_move { "MOVE" } else { "FETCH" };
        self.complete(format!("{verb} {}", count?).into());
        Ok(())
    }

    async fn fetch_forward(
        &mut self,
        cursor: &mut Cursor,
        movement: Movement,
        is_move: bool,
        formats: &Formats,
    ) -> std::result::Result<u64, Stop> {
        let (passed, wanted) = cursor.way_forward(movement)?;
        let Some(rows) = &mut cursor.rows else { return Ok(0) };
        let mut has_more = self.pass(rows, Some(passed)).await?;
        let before = rows.sent();
        if has_more {
            has_more = match is_move {
                true => self.pass(rows, wanted).await?,
                false => self.rows(rows, formats, wanted).await?,
            };
        }
        let count = rows.sent() - before;
        cursor.come = rows.sent();
        cursor.at = cursor.come;
        if !has_more {
            (cursor.rows, cursor.at) = (None, cursor.come + 1);
        }
        Ok(count)
    }

    /// Passes over so many rows. False if there are none left.
    async fn pass(
        &mut self,
        rows: &mut RowStream,
        count: Option<u64>,
    ) -> std::result::Result<bool, Stop> {
        let mut left = count.unwrap_or(u64::MAX);
        while left > 0 {
            match self.step(rows).await? {
                Some(_) => left -= 1,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The next row, once it has come.
    async fn step(&mut self, rows: &mut RowStream) -> std::result::Result<Option<Row>, Stop> {
        loop {
            match rows.next()? {
                Step::Row(row) => return Ok(Some(row)),
                Step::RowThenPause(row) => {
                    self.backend.patience.check()?;
                    tokio::task::yield_now().await;
                    return Ok(Some(row));
                }
                Step::Wait => rows.wait(&self.backend.patience).await?,
                Step::End => return Ok(None),
            }
        }
    }

    async fn fetch_kept(
        &mut self,
        cursor: &mut Cursor,
        fetch: &FetchPlan,
        formats: &Formats,
    ) -> std::result::Result<u64, Stop> {
        let wanted = cursor.wants(fetch.movement);
        self.keep(cursor, wanted).await?;
        let has_more = cursor.rows.is_some() && wanted.is_none_or(|wanted| wanted > cursor.come);
        if has_more {
            return self.fetch_beyond_kept(cursor, fetch, formats).await;
        }
        let (way, at) = cursor.kept_way(fetch.movement);
        cursor.at = at;
        let Some((way, kept)) = way.zip(cursor.kept.as_ref()) else { return Ok(0) };
        let count = way.0.abs_diff(way.1) + 1;
        if !fetch.is_move {
            let rows = kept.between(way);
            let mut rows = RowStream::of_rows(Arc::clone(&cursor.columns), rows, "FETCH");
            self.rows(&mut rows, formats, None).await?;
        }
        Ok(count)
    }

    /// Sends what is left of the rows that are kept, which become too much, and goes on without keeping any.
    async fn fetch_beyond_kept(
        &mut self,
        cursor: &mut Cursor,
        fetch: &FetchPlan,
        formats: &Formats,
    ) -> std::result::Result<u64, Stop> {
        let left = cursor.come.saturating_sub(cursor.at);
        let at = std::mem::replace(&mut cursor.at, cursor.come);
        let kept = cursor.kept.take();
        let (count, movement) = match fetch.movement {
            Movement::Forward(count) => {
                (left, Movement::Forward(count.map(|count| count.saturating_sub(left))))
            }
            Movement::Relative(by) => {
                let to = at.saturating_add_signed(by);
                (0, Movement::Absolute(i64::try_from(to).unwrap_or(i64::MAX)))
            }
            other => (0, other),
        };
        if let Some(kept) = kept
            && count > 0
            && !fetch.is_move
        {
            let rows = kept.between((at + 1, cursor.come));
            let mut rows = RowStream::of_rows(Arc::clone(&cursor.columns), rows, "FETCH");
            self.rows(&mut rows, formats, None).await?;
        }
        Ok(count + self.fetch_forward(cursor, movement, fetch.is_move, formats).await?)
    }

    /// Lets rows come until there are so many, or all, or too many to keep them.
    async fn keep(
        &mut self,
        cursor: &mut Cursor,
        wanted: Option<u64>,
    ) -> std::result::Result<(), Stop> {
        let others = self.cursors.bytes();
        let (Some(rows), Some(kept)) = (&mut cursor.rows, &mut cursor.kept) else { return Ok(()) };
        while wanted.is_none_or(|wanted| cursor.come < wanted) && !kept.is_too_much() {
            let Some(row) = self.step(rows).await? else {
                cursor.rows = None;
                break;
            };
            kept.bytes += row_bytes(&row);
            self.wire.memory.ask(Part::Cursors, others + kept.bytes)?;
            kept.rows.push(row);
            cursor.come += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn movements() -> impl Strategy<Value = Movement> {
        let count = || prop_oneof![4 => (0..6u64).prop_map(Some), 1 => Just(None)];
        prop_oneof![
            count().prop_map(Movement::Forward),
            count().prop_map(Movement::Backward),
            (-6..6i64).prop_map(Movement::Absolute),
            (-6..6i64).prop_map(Movement::Relative),
        ]
    }

    /// Goes one row at a time, and collects the rows that it comes upon.
    struct Walker {
        at: u64,
        rows: u64,
        seen: Vec<u64>,
    }

    impl Walker {
        fn step(&mut self, is_back: bool) -> bool {
            self.at =
                if is_back { self.at.saturating_sub(1) } else { (self.at + 1).min(self.rows + 1) };
            let is_on_row = (1..=self.rows).contains(&self.at);
            if is_on_row {
                self.seen.push(self.at);
            }
            is_on_row
        }

        fn steps(&mut self, is_back: bool, count: u64) {
            for _ in 0..count {
                if !self.step(is_back) {
                    break;
                }
            }
        }

        /// The last row that it came upon is the only one that is wanted, if it stands on it.
        fn only_last(&mut self) {
            let at = self.at;
            self.seen.retain(|seen| *seen == at);
            self.seen.truncate(1);
        }

        fn walk(&mut self, movement: Movement) {
            match movement {
                Movement::Forward(Some(0))
                | Movement::Backward(Some(0))
                | Movement::Relative(0) => {
                    self.seen.extend(Some(self.at).filter(|at| (1..=self.rows).contains(at)));
                }
                Movement::Forward(count) => self.steps(false, count.unwrap_or(u64::MAX)),
                Movement::Backward(count) => self.steps(true, count.unwrap_or(u64::MAX)),
                Movement::Relative(by) => {
                    self.steps(by < 0, by.unsigned_abs());
                    self.only_last();
                }
                Movement::Absolute(to) => {
                    self.at = if to < 0 { self.rows + 1 } else { 0 };
                    self.steps(to < 0, to.unsigned_abs());
                    self.only_last();
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_cursor_goes_where_steps_of_one_row_go(
            rows in 0..5u64,
            movements in prop::collection::vec(movements(), 1..12),
        ) {
            let rows_kept = (1..=rows).map(|row| vec![Value::from(row as i64)]).collect();
            let kept = Kept { rows: rows_kept, ..Kept::default() };
            let (columns, rows_left) = (Arc::from([]), None);
            let mut cursor = Cursor {
                columns, rows: rows_left, come: rows, at: 0, kept: Some(kept), is_held: false, is_new: false,
            };
            let mut walker = Walker { at: 0, rows, seen: Vec::new() };
            for movement in movements {
                walker.seen.clear();
                walker.walk(movement);
                let (way, at) = cursor.kept_way(movement);
                let sent = way.zip(cursor.kept.as_ref()).map(|(way, kept)| kept.between(way));
                let sent: Vec<u64> = sent.unwrap_or_default().iter()
                    .map(|row| row[0].as_i64().unwrap_or_default().unsigned_abs()).collect();
                prop_assert_eq!((&sent, at), (&walker.seen, walker.at), "{:?}", movement);
                cursor.at = at;
            }
        }
    }
}
