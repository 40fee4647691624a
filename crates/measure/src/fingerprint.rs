//! What a set of rows is, in 24 bytes: how the lab knows, without keeping them, that exactly the
//! acknowledged rows are in the database, with their content.
//!
//! Every session adds each row that was acknowledged to it; after the database was opened again, a
//! scan adds every row it meets. The sums are equal when the rows are. A hash covers all bytes of a
//! row's key and value, so a changed byte, a lost row and a row too many each change the sums; that
//! a fault changes neither of two 64-bit sums by chance has a probability of about 2^-64.
//!
//! Invariants
//! 1. The order in which rows are added does not matter, nor which fingerprint they were added to
//!    before it was merged.
//! 2. Key and value do not run together: ("ab", "c") and ("a", "bc") differ.

use std::fmt;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Count and hashes of a set of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// Rows added.
    pub rows: u64,
    sum: u64,
    mixed_sum: u64, // of the hashes squared and folded: a second, independent equation
}

impl Fingerprint {
    /// Adds one row.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let hash = xxh3_64_with_seed(value, xxh3_64(key));
        self.rows += 1;
        self.sum = self.sum.wrapping_add(hash);
        self.mixed_sum = self.mixed_sum.wrapping_add(fold(hash));
    }

    /// Adds all rows of another one.
    pub fn merge(&mut self, other: &Fingerprint) {
        self.rows += other.rows;
        self.sum = self.sum.wrapping_add(other.sum);
        self.mixed_sum = self.mixed_sum.wrapping_add(other.mixed_sum);
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} rows, {:016x}{:016x}", self.rows, self.sum, self.mixed_sum)
    }
}

/// The high half of the square plus the low half: not linear, so it sees what a sum does not.
#[inline]
fn fold(hash: u64) -> u64 {
    let odd = u128::from(hash | 1);
    let square = odd * odd;
    ((square >> 64) as u64) ^ (square as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[(&str, &str)]) -> Fingerprint {
        let mut fingerprint = Fingerprint::default();
        for (key, value) in rows {
            fingerprint.add(key.as_bytes(), value.as_bytes());
        }
        fingerprint
    }

    #[test]
    fn order_and_grouping_do_not_matter() {
        let whole = of(&[("1", "a"), ("2", "b"), ("3", "c")]);
        let mut parts = of(&[("3", "c")]);
        parts.merge(&of(&[("2", "b"), ("1", "a")]));
        assert_eq!(whole, parts);
    }

    #[test]
    fn a_lost_changed_moved_or_doubled_row_shows() {
        let whole = of(&[("1", "a"), ("2", "b"), ("3", "c")]);
        let faulty: [&[(&str, &str)]; 5] = [
            &[("1", "a"), ("2", "b")],
            &[("1", "a"), ("2", "b"), ("3", "d")],
            &[("1", "a"), ("2", "b"), ("4", "c")],
            &[("1", "a"), ("2", "b"), ("3", "c"), ("3", "c")],
            &[("1", "b"), ("2", "a"), ("3", "c")],
        ];
        for rows in faulty {
            assert_ne!(whole, of(rows), "{rows:?}");
        }
        assert_ne!(of(&[("ab", "c")]), of(&[("a", "bc")]));
    }

    #[test]
    fn a_row_replaced_by_a_double_of_another_shows_though_the_count_is_right() {
        assert_ne!(of(&[("1", "a"), ("2", "b")]), of(&[("1", "a"), ("1", "a")]));
    }
}
