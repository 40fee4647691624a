//! Sequences as definitions keep them: a table whose only row says where the sequence stands. Its columns are the
//! last value, how many are logged ahead, and whether the last value was given; the key is [`ROW_ID`], always 1.
//!
//! Invariant: what a sequence gives lies between its least and its greatest value, and they differ.

use super::definition::ROW_ID;
use super::{ColumnDefinition, TableBuilder, TableDefinition};
use crate::{DataType, TypeError};

/// The column that a sequence goes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceOwner {
    /// The number of its table.
    pub table: u32,
    /// Its number there; see [`TableDefinition::column_number`].
    pub column: u16,
}

/// What a sequence gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceDefinition {
    /// Of its values: one of the three of whole numbers.
    pub data_type: DataType,
    /// The first value.
    pub start: i64,
    /// What is added for the next one; never 0.
    pub increment: i64,
    /// No value is below.
    pub least: i64,
    /// No value is above.
    pub greatest: i64,
    /// How many values a session takes at a time.
    pub cache: i64,
    /// Whether it begins anew at its end.
    pub cycles: bool,
    /// How often it was altered: who knows where an earlier one stands knows nothing of this one.
    pub generation: u32,
    /// None: it goes by itself.
    pub owner: Option<SequenceOwner>,
}

impl SequenceDefinition {
    /// The value that comes after another; none at the end.
    #[must_use]
    pub fn after(&self, value: i64) -> Option<i64> {
        let next = value.checked_add(self.increment);
        match next.filter(|next| (self.least..=self.greatest).contains(next)) {
            None if self.cycles && self.increment > 0 => Some(self.least),
            None if self.cycles => Some(self.greatest),
            next => next,
        }
    }

    /// How many values come after this one before the end.
    #[must_use]
    pub fn left_after(&self, value: i64) -> u64 {
        let end = if self.increment > 0 { self.greatest } else { self.least };
        let is_beyond = if self.increment > 0 { value > end } else { value < end };
        if is_beyond { 0 } else { value.abs_diff(end) / self.increment.unsigned_abs() }
    }

    /// The value that comes so many after another, before the end.
    #[must_use]
    pub fn so_many_after(&self, value: i64, count: u64) -> i64 {
        let step = i128::from(self.increment) * i128::from(count.min(self.left_after(value)));
        i64::try_from(i128::from(value) + step).unwrap_or(value)
    }

    fn fault(&self) -> Option<&'static str> {
        let is_between = |value: i64| (self.least..=self.greatest).contains(&value);
        if !matches!(self.data_type, DataType::Int16 | DataType::Int32 | DataType::Int64) {
            Some("a sequence is of no type of whole numbers")
        } else if self.increment == 0 || self.cache < 1 {
            Some("a sequence does not go on")
        } else if self.least >= self.greatest || !is_between(self.start) {
            Some("a sequence has no values")
        } else {
            None
        }
    }
}

impl TableBuilder {
    /// Makes the table a sequence, and gives it the columns of one.
    pub fn sequence(mut self, sequence: SequenceDefinition) -> TableBuilder {
        self.sequence = Some(sequence);
        let number = |name: &str| ColumnDefinition::new(name, DataType::Int64).not_null();
        self.column(number("last_value"))
            .column(number("log_cnt"))
            .column(ColumnDefinition::new("is_called", DataType::Boolean).not_null())
            .column(number(ROW_ID))
            .primary_key([ROW_ID])
    }
}

impl TableDefinition {
    /// What makes the table a sequence; none for one that is not.
    pub fn sequence(&self) -> Option<&SequenceDefinition> {
        self.sequence.as_ref()
    }

    pub(super) fn check_sequence(&self) -> Result<(), TypeError> {
        match self.sequence.as_ref().and_then(SequenceDefinition::fault) {
            Some(reason) => Err(TypeError::DefinitionDamaged { at: 0, reason }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(increment: i64, least: i64, greatest: i64) -> SequenceDefinition {
        SequenceDefinition {
            data_type: DataType::Int64,
            start: if increment > 0 { least } else { greatest },
            increment,
            least,
            greatest,
            cache: 1,
            cycles: false,
            generation: 0,
            owner: None,
        }
    }

    #[test]
    fn values_end_at_the_limits_or_begin_anew() {
        let up = sequence(3, 1, 8);
        assert_eq!((up.after(1), up.after(4), up.after(7)), (Some(4), Some(7), None));
        assert_eq!((up.left_after(1), up.left_after(7), up.left_after(9)), (2, 0, 0));
        assert_eq!(SequenceDefinition { cycles: true, ..up }.after(7), Some(1));
        let down = sequence(-3, 1, 8);
        assert_eq!((down.after(8), down.after(2), down.left_after(8)), (Some(5), None, 2));
        assert_eq!(SequenceDefinition { cycles: true, ..down }.after(2), Some(8));
    }

    #[test]
    fn steps_do_not_leave_the_range_of_numbers() {
        let all = sequence(1, i64::MIN, i64::MAX);
        assert_eq!((all.after(i64::MAX), all.left_after(i64::MIN)), (None, u64::MAX));
        assert_eq!(all.so_many_after(i64::MAX - 5, 1000), i64::MAX);
        let far = sequence(i64::MIN, i64::MIN, i64::MAX);
        assert_eq!((far.after(i64::MAX), far.left_after(i64::MAX)), (Some(-1), 1));
    }

    #[test]
    fn a_sequence_comes_back_from_its_bytes() -> Result<(), TypeError> {
        let mut kept = sequence(-7, -100, 20);
        kept.owner = Some(SequenceOwner { table: 70_000, column: 3 });
        kept.generation = 9;
        let table = TableDefinition::builder("s").sequence(kept).build()?;
        assert_eq!(TableDefinition::from_bytes(&table.to_bytes())?, table);
        assert_eq!(table.shown_columns().collect::<Vec<_>>(), [0, 1, 2]);
        Ok(())
    }
}
