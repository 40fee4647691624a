//! The fields of rows that were cut out of a stream, in one buffer for all of them.

use std::ops::Range;

/// See the module. A row is there once it is ended.
#[derive(Default)]
pub(super) struct Fields {
    bytes: Vec<u8>,
    /// Where each field stands in `bytes`; none is NULL.
    places: Vec<Option<Range<usize>>>,
    /// Behind which of the fields each row ends.
    ends: Vec<usize>,
}

impl Fields {
    /// A field of the row that is being cut, as it is.
    pub(super) fn push(&mut self, field: Option<&[u8]>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(field.unwrap_or_default());
        self.places.push(field.map(|_| start..self.bytes.len()));
    }

    /// A field of that row that `write` appends to the buffer; false makes it NULL.
    pub(super) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let start = self.bytes.len();
        let is_value = write(&mut self.bytes);
        if !is_value {
            self.bytes.truncate(start);
        }
        self.places.push(is_value.then_some(start..self.bytes.len()));
    }

    /// The row is complete.
    pub(super) fn end_row(&mut self) {
        self.ends.push(self.places.len());
    }

    /// The row that is being cut is none.
    pub(super) fn drop_row(&mut self) {
        let kept = self.ends.last().copied().unwrap_or(0);
        let bytes = self.places[kept..].iter().flatten().map(|place| place.start).min();
        self.bytes.truncate(bytes.unwrap_or(self.bytes.len()));
        self.places.truncate(kept);
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
        self.ends.clear();
    }

    pub(super) fn row_count(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    /// The fields of a row; none is NULL.
    pub(super) fn row(&self, index: usize) -> impl ExactSizeIterator<Item = Option<&[u8]>> {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let places = self.places[start..self.ends[index]].iter();
        places.map(|place| place.clone().map(|place| &self.bytes[place]))
    }
}

#[cfg(test)]
impl Fields {
    /// All rows, to be compared.
    pub(super) fn rows(&self) -> Vec<Vec<Option<Vec<u8>>>> {
        let row = |index| self.row(index).map(|field| field.map(<[u8]>::to_vec)).collect();
        (0..self.row_count()).map(row).collect()
    }
}
