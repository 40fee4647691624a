//! Which way to the rows of a table: by its own key, or by one of its indexes.
//!
//! There are no statistics, so the choice is by rule. In this order: a key that no two rows share and of which every
//! column is equal to something; the table's own key, if its first column is; the key with the most first columns
//! that are, then one with a range behind them; the table's own; entries that have every column that is wanted.
//!
//! A row that is found by an index is fetched by its key, which costs as much as reading a good part of a leaf. So an
//! index is left aside where its entries are many, unless they have every column that is wanted: see
//! [`Access::is_selective`].

use onrush::{DataType, EntrySource, ScanOptions, Table, TableDefinition, Uniqueness};

use crate::bounds::{Conditions, KeyBounds, KeyPart};
use crate::statement::Statement;

/// So many rows are always fetched one by one.
pub(crate) const ENTRIES_FEW: u64 = 1_000;

/// Where there are more, their leaves may be one of so many: a leaf of the table has some hundred rows, and is read in
/// the time of a few fetches.
const PART_OF_ALL: u64 = 20;

/// A way to the rows of a table, and what conditions leave of it.
pub(crate) struct Access {
    /// The entries of an index; none for the table itself.
    pub(crate) index: Option<IndexAccess>,
    /// The key of what is scanned.
    pub(crate) key: Vec<KeyPart>,
    pub(crate) bounds: KeyBounds,
}

/// The entries of an index as a way to rows.
pub(crate) struct IndexAccess {
    pub(crate) entries: Table,
    /// Where each column of an entry comes from.
    sources: Vec<EntrySource>,
    /// Columns that are indexed, if no two rows have the same values there.
    unique_columns: Option<usize>,
    /// Whether the entries have all that is wanted.
    pub(crate) is_enough: bool,
}

/// What is asked of a table.
pub(crate) struct Asked<'a> {
    pub(crate) table: &'a Table,
    pub(crate) conditions: &'a Conditions,
    /// Columns that are wanted in any case.
    pub(crate) columns: &'a [usize],
    /// Columns that each condition looks at: they are wanted where it is not part of the bounds.
    pub(crate) columns_of: &'a [Vec<usize>],
    /// Most rows that are wanted if all conditions are part of the bounds.
    pub(crate) limit: Option<usize>,
}

impl Access {
    /// The best way.
    pub(crate) fn choose(statement: &Statement, asked: &Asked<'_>) -> Access {
        let mut ways = Access::all(statement, asked);
        ways.retain(|way| way.index.is_none() || way.bounds.points > 0 || way.bounds.has_range);
        let found = ways.into_iter().find(|way| way.is_selective(statement, asked));
        found.unwrap_or_else(|| Access::by_key(asked))
    }

    /// The ways that leave no condition to be looked at row by row, best first.
    pub(crate) fn whole(statement: &Statement, asked: &Asked<'_>) -> Vec<Access> {
        let mut ways = Access::all(statement, asked);
        ways.retain(Access::is_whole);
        ways
    }

    /// All ways, best first.
    fn all(statement: &Statement, asked: &Asked<'_>) -> Vec<Access> {
        let count = asked.table.definition().indexes().len();
        let mut ways: Vec<Access> =
            (0..count).filter_map(|index| Access::by_index(statement, asked, index)).collect();
        ways.push(Access::by_key(asked));
        // Of those that are as good as each other the first one made stays first.
        ways.sort_by_key(|way| std::cmp::Reverse(way.rank()));
        ways
    }

    fn by_key(asked: &Asked<'_>) -> Access {
        let key = KeyPart::of_table(asked.table.definition());
        let bounds = KeyBounds::new(asked.table.schema(), &key, asked.conditions);
        Access { index: None, key, bounds }
    }

    /// None for an index that the statement does not see, as it was made later, and for one that has not all rows.
    fn by_index(statement: &Statement, asked: &Asked<'_>, position: usize) -> Option<Access> {
        let definition = asked.table.definition();
        let index = definition.indexes().get(position).filter(|it| it.predicate.is_none())?;
        let sources = index.sources(definition).ok()?;
        let entries = statement.index_entries(asked.table, position).ok()?;
        let key = key_of_entries(entries.definition(), &sources);
        let bounds = KeyBounds::new(entries.schema(), &key, asked.conditions);
        let unused = asked.columns_of.iter().zip(&bounds.used).filter(|(_, used)| !**used);
        let mut wanted = asked.columns.iter().chain(unused.flat_map(|(columns, _)| columns));
        let is_enough =
            wanted.all(|column| has_value(definition, entries.definition(), &sources, *column));
        let is_unique = index.uniqueness != Uniqueness::NotUnique;
        let unique_columns = is_unique.then_some(index.columns.len());
        let index = IndexAccess { entries, sources, unique_columns, is_enough };
        Some(Access { index: Some(index), key, bounds })
    }

    /// The greater the better.
    fn rank(&self) -> (bool, bool, usize, bool, bool, bool) {
        let KeyBounds { points, has_range, has_null, .. } = self.bounds;
        let is_key = self.index.is_none();
        let unique_columns = match &self.index {
            None => Some(self.key.len()),
            Some(index) => index.unique_columns,
        };
        let is_one_row = unique_columns.is_some_and(|columns| points >= columns) && !has_null;
        let is_enough = self.index.as_ref().is_some_and(|index| index.is_enough);
        (is_one_row, is_key && points > 0, points, has_range, is_key, is_enough)
    }

    /// Whether it leaves no condition to be looked at row by row.
    pub(crate) fn is_whole(&self) -> bool {
        self.bounds.used.iter().all(|used| *used)
    }

    /// Whether this is better than to read the table: its rows need not be fetched, or are few, or are a small part
    /// of all. How small is told by leaves, which a few inner nodes tell without reading entries.
    fn is_selective(&self, statement: &Statement, asked: &Asked<'_>) -> bool {
        let Some(IndexAccess { entries, is_enough: false, .. }) = &self.index else { return true };
        if self.rank().0 {
            return true;
        }
        if self.is_whole() && asked.limit.is_some_and(|rows| rows as u64 <= ENTRIES_FEW) {
            return true;
        }
        let ranges = &self.bounds.ranges;
        if statement.has_at_most(entries, ranges, ENTRIES_FEW) {
            return true;
        }
        let all = statement.leaves_about(entries, &ScanOptions::default());
        let inside: u64 = ranges.iter().map(|range| statement.leaves_about(entries, range)).sum();
        inside <= all / PART_OF_ALL
    }
}

impl IndexAccess {
    /// The position in the entries of a column of the table.
    pub(crate) fn position(&self, column: usize) -> Option<usize> {
        position(&self.sources, column)
    }
}

fn position(sources: &[EntrySource], column: usize) -> Option<usize> {
    sources.iter().position(|source| *source == EntrySource::Column(column))
}

fn key_of_entries(entries: &TableDefinition, sources: &[EntrySource]) -> Vec<KeyPart> {
    let part = |(position, column): (usize, &usize)| {
        let column = match sources.get(*column) {
            Some(EntrySource::Column(column)) => Some(*column),
            _ => None,
        };
        KeyPart { column, order: entries.key_order(position) }
    };
    entries.primary_key().iter().enumerate().map(part).collect()
}

/// Whether entries have a column's value as the row has it. Keys have one form of 0 and one of NaN.
fn has_value(
    table: &TableDefinition,
    entries: &TableDefinition,
    sources: &[EntrySource],
    column: usize,
) -> bool {
    let Some(position) = position(sources, column) else { return false };
    let is_float =
        matches!(table.columns()[column].data_type, DataType::Float32 | DataType::Float64);
    !is_float || table.primary_key().contains(&column) || !entries.primary_key().contains(&position)
}
