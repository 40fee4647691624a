//! Rows: all columns outside the key. A table's plan is made once; a row is then checked without
//! memory of its own.

use super::definition::Definition;
use super::field::Rule;
use super::input::u16_at;
use super::is_zero;
use super::wide::is_wide;

/// What is wrong with a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowFault {
    /// Its parts.
    Shape(&'static str),
    /// The value of this column (its number among all that there ever were).
    Value(usize, &'static str),
}

/// How to check the rows of a table.
#[derive(Clone, Debug)]
pub(crate) struct RowPlan {
    /// Rows of these versions, from the first up to the second.
    versions: (u16, u16),
    /// How to check rows of earlier versions, where the table was altered.
    earlier: Box<[RowPlan]>,
    /// The version of rows whose record names none.
    first_version: u16,
    /// Where the columns of fixed width begin, after version and NULL bitmap.
    pub(super) fixed_at: usize,
    /// Where the ends of the variable columns stand, two bytes each.
    pub(super) ends_at: usize,
    /// Where the bytes of the variable columns begin.
    pub(super) variable_at: usize,
    /// Whether values may stand elsewhere.
    pub(super) may_be_wide: bool,
    /// Bits that may not be set in the NULL bitmap.
    pub(super) never_null: Box<[u8]>,
    /// All columns outside the key.
    pub(super) stored: Box<[Stored]>,
    /// Those of fixed width that cannot hold just any bytes.
    fixed: Box<[Fixed]>,
    /// Those of variable width, as indices into `stored`.
    variable: Box<[u16]>,
}

/// A column of fixed width whose bytes must be looked at.
#[derive(Clone, Copy, Debug)]
struct Fixed {
    /// Its index in `stored`.
    index: u32,
    start: u32,
    end: u32,
    rule: Rule,
}

/// A column outside the key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    /// Its number among all columns that there ever were.
    pub(crate) column: usize,
    pub(crate) rule: Rule,
    /// Its offset in the row, or its number among the variable columns.
    pub(crate) place: usize,
    /// Whether the log leaves it out at its default.
    pub(crate) is_elided: bool,
}

impl RowPlan {
    pub(crate) fn new(definition: &Definition) -> RowPlan {
        let mut plans: Vec<RowPlan> = definition
            .versions()
            .into_iter()
            .map(|versions| RowPlan::of_versions(definition, versions))
            .collect();
        let newest = || RowPlan::of_versions(definition, (definition.version, definition.version));
        let mut plan = plans.pop().unwrap_or_else(newest);
        plan.first_version = plans.first().map_or(plan.versions.0, |first| first.versions.0);
        plan.earlier = plans.into();
        plan
    }

    fn of_versions(definition: &Definition, versions: (u16, u16)) -> RowPlan {
        let columns = definition.stored_at(versions.0);
        let fixed_at = 2 + columns.len().div_ceil(8);
        let mut never_null = vec![0xFF; fixed_at - 2];
        let (mut offset, mut ordinal) = (fixed_at, 0);
        let mut stored = Vec::with_capacity(columns.len());
        for (index, (number, _, declared)) in columns.iter().enumerate() {
            if declared.nullable {
                never_null[index / 8] &= !(1 << (index % 8));
            }
            let rule = Rule::of(declared.data_type);
            let place = match rule.width() {
                Some(width) => {
                    offset += width;
                    offset - width
                }
                None => {
                    ordinal += 1;
                    ordinal - 1
                }
            };
            let is_elided = declared.is_elided();
            stored.push(Stored { column: *number, rule, place, is_elided });
        }
        let all = || stored.iter().enumerate();
        let fixed = all().filter_map(|(index, stored)| {
            let width = stored.rule.width().filter(|_| !matches!(stored.rule, Rule::Any(_)))?;
            let (start, end) = (stored.place as u32, (stored.place + width) as u32);
            Some(Fixed { index: index as u32, start, end, rule: stored.rule })
        });
        let variable = all().filter(|(_, stored)| stored.rule.width().is_none());
        RowPlan {
            versions,
            earlier: Box::default(),
            first_version: versions.0,
            fixed_at,
            ends_at: offset,
            variable_at: offset + 2 * ordinal,
            may_be_wide: definition.long_values.is_some(),
            never_null: never_null.into(),
            fixed: fixed.collect(),
            variable: variable.map(|(index, _)| index as u16).collect(),
            stored: stored.into(),
        }
    }

    /// The columns outside the key.
    pub(crate) fn stored(&self) -> &[Stored] {
        &self.stored
    }

    /// Bits that may not be set in a NULL bitmap.
    pub(crate) fn never_null(&self) -> &[u8] {
        &self.never_null
    }

    /// How to check rows of this version; None for one that there never was.
    #[inline]
    pub(super) fn of_version(&self, version: u16) -> Option<&RowPlan> {
        let has = |plan: &RowPlan| (plan.versions.0..=plan.versions.1).contains(&version);
        if has(self) { Some(self) } else { self.earlier.iter().find(|plan| has(plan)) }
    }

    /// How to check an elided row of this version, or of the first.
    pub(crate) fn of_elided(&self, version: Option<u16>) -> Option<&RowPlan> {
        self.of_version(version.unwrap_or(self.first_version))
    }

    /// The bytes of a stored column of fixed width in a sound row; None if it is NULL, or if the row is
    /// older than the column.
    #[inline]
    pub(crate) fn fixed<'r>(&self, row: &'r [u8], index: usize) -> Option<&'r [u8]> {
        let stored = self.stored[index];
        if !self.earlier.is_empty() && !self.is_of(row) {
            let plan = self.of_version(version_of(row))?;
            let then = plan.stored.iter().position(|other| other.column == stored.column)?;
            return plan.fixed(row, then);
        }
        if is_null(&row[2..], index) {
            return None;
        }
        let place = if is_wide(row) { stored.place + self.bitmap_bytes() } else { stored.place };
        row.get(place..place + stored.rule.width()?)
    }

    #[inline]
    fn is_of(&self, row: &[u8]) -> bool {
        (self.versions.0..=self.versions.1).contains(&version_of(row))
    }

    /// Checks a whole row.
    #[inline]
    pub(crate) fn check(&self, row: &[u8]) -> Result<(), RowFault> {
        use RowFault::Shape;
        if row.len() < 2 {
            return Err(Shape("the row ends inside its fixed part"));
        }
        if !self.is_of(row) {
            let plan = self.of_version(version_of(row));
            let none = Shape("the row is of another version of the table definition");
            return plan.ok_or(none)?.check(row);
        }
        if is_wide(row) {
            return self.check_wide(row);
        }
        if row.len() < self.variable_at {
            return Err(Shape("the row ends inside its fixed part"));
        }
        let nulls = &row[2..self.fixed_at];
        let (mut any, mut wrong) = (0, 0);
        for (bits, never) in nulls.iter().zip(&self.never_null) {
            any |= bits;
            wrong |= bits & never;
        }
        if wrong != 0 {
            return Err(Shape("a NOT NULL column is NULL, or a bit of no column is set"));
        }
        if any != 0 {
            self.check_nulls(row, nulls)?;
        }
        for fixed in &self.fixed {
            if any != 0 && is_null(nulls, fixed.index as usize) {
                continue;
            }
            let bytes = &row[fixed.start as usize..fixed.end as usize];
            if let Err(fault) = fixed.rule.check(bytes) {
                return Err(RowFault::Value(self.stored[fixed.index as usize].column, fault));
            }
        }
        self.check_variable(row)
    }

    #[inline(always)]
    fn check_variable(&self, row: &[u8]) -> Result<(), RowFault> {
        use RowFault::Shape;
        let bytes = &row[self.variable_at..];
        let mut start = 0;
        for (ordinal, &index) in self.variable.iter().enumerate() {
            let end = usize::from(u16_at(row, self.ends_at + 2 * ordinal));
            let value = bytes.get(start..end);
            let value = value.ok_or(Shape("an end of a column lies outside the row"))?;
            let stored = &self.stored[usize::from(index)];
            start = end;
            // NULL, whose bytes are none: not each type has a value of none.
            if value.is_empty() && is_null(&row[2..self.fixed_at], usize::from(index)) {
                continue;
            }
            stored.rule.check(value).map_err(|fault| RowFault::Value(stored.column, fault))?;
        }
        if start == bytes.len() {
            Ok(())
        } else {
            Err(Shape("bytes are left over after the last column"))
        }
    }

    /// A NULL column of fixed width is zeros, one of variable width is empty.
    fn check_nulls(&self, row: &[u8], nulls: &[u8]) -> Result<(), RowFault> {
        let end = |ordinal: usize| u16_at(row, self.ends_at + 2 * ordinal);
        for (index, stored) in self.stored.iter().enumerate() {
            if !is_null(nulls, index) {
                continue;
            }
            let empty = match stored.rule.width() {
                Some(width) => is_zero(&row[stored.place..stored.place + width]),
                None if stored.place == 0 => end(0) == 0,
                None => end(stored.place) == end(stored.place - 1),
            };
            if !empty {
                return Err(RowFault::Value(stored.column, "a NULL column has a value"));
            }
        }
        Ok(())
    }
}

/// The version of the definition that a row was written by.
#[inline]
pub(super) fn version_of(row: &[u8]) -> u16 {
    u16_at(row, 0) & 0x7FFF
}

/// Whether the column at `index` outside the key is NULL.
#[inline]
pub(crate) fn is_null(nulls: &[u8], index: usize) -> bool {
    nulls[index / 8] & (1 << (index % 8)) != 0
}
