//! Rows of one table as they are stored, kept to be sorted, summed up or sent: of each only those columns are read
//! that somebody looks at, and nothing is copied for that.

use onrush::{Row, RowView, Table};

use crate::error::Result;

/// So many rows are kept, of so many bytes; where there are more the query engine takes the query.
const ROWS_MAX: usize = 10_000;
const BYTES_MAX: usize = 4 << 20;

/// See the module.
pub(super) struct StoredRows {
    table: Table,
    /// Of one row behind the other, key and value.
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// How many were handed out.
    next: usize,
}

#[derive(Clone, Copy)]
struct Place {
    key: usize,
    value: usize,
    end: usize,
}

impl StoredRows {
    pub(super) fn of(table: &Table) -> StoredRows {
        StoredRows { table: table.clone(), bytes: Vec::new(), places: Vec::new(), next: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Adds a row. False if there is no space for more.
    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) -> bool {
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let value_at = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.places.push(Place { key: key_at, value: value_at, end: self.bytes.len() });
        self.places.len() < ROWS_MAX && self.bytes.len() <= BYTES_MAX
    }

    /// The row at a position.
    pub(super) fn view(&self, position: usize) -> Result<RowView<'_>> {
        let (key, value) = self.row(position);
        Ok(self.table.schema().view(key, value)?)
    }

    fn row(&self, position: usize) -> (&[u8], &[u8]) {
        let Place { key, value, end } = self.places[position];
        (&self.bytes[key..value], &self.bytes[value..end])
    }

    /// Only the rows at these positions, in this order.
    pub(super) fn in_order(mut self, positions: &[usize]) -> StoredRows {
        self.places = positions.iter().map(|position| self.places[*position]).collect();
        self
    }

    /// The next row, whole.
    pub(super) fn next(&mut self) -> Result<Option<Row>> {
        if self.next == self.places.len() {
            return Ok(None);
        }
        self.next += 1;
        let (key, value) = self.row(self.next - 1);
        Ok(Some(self.table.schema().decode_row(key, value)?))
    }

    /// Hands out the next rows, up to so many, and returns how many there were.
    pub(super) fn visit(
        &mut self,
        rows_max: u64,
        mut visit: impl FnMut(&RowView<'_>) -> Result<()>,
    ) -> Result<u64> {
        let left = self.places.len() - self.next;
        let count = left.min(usize::try_from(rows_max).unwrap_or(usize::MAX));
        for position in self.next..self.next + count {
            visit(&self.view(position)?)?;
        }
        self.next += count;
        Ok(count as u64)
    }
}
