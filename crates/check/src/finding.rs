//! One broken invariant, where it is, and what to do next.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::invariant::{Invariant, Severity};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The invariant that does not hold.
    pub invariant: Invariant,
    /// Damage or warning.
    pub severity: Severity,
    /// The file.
    pub file: PathBuf,
    /// Byte position in the file.
    pub offset: u64,
    /// The table, where one is concerned.
    pub table: Option<String>,
    /// The keys that are concerned, in words: one key, or a range.
    pub keys: Option<String>,
    /// What was found instead.
    pub found: String,
    /// What to do next.
    pub advice: &'static str,
}

impl Finding {
    /// A finding at a place of a file.
    #[must_use]
    pub fn new(
        invariant: Invariant,
        file: impl Into<PathBuf>,
        offset: u64,
        found: impl Into<String>,
    ) -> Finding {
        Finding {
            invariant,
            severity: invariant.severity(),
            file: file.into(),
            offset,
            table: None,
            keys: None,
            found: found.into(),
            advice: invariant.advice(),
        }
    }

    /// The same, of a table.
    #[must_use]
    pub fn of_table(mut self, table: &str) -> Finding {
        self.table = Some(table.to_owned());
        self
    }

    /// The same, with the keys that are concerned, in words.
    #[must_use]
    pub fn with_keys(mut self, keys: String) -> Finding {
        self.keys = Some(keys);
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Damage => "damage",
            Severity::Warning => "warning",
        };
        writeln!(
            formatter,
            "{word} {}: not so: {}",
            self.invariant.number(),
            self.invariant.title()
        )?;
        write!(formatter, "  {} at byte {}", self.file.display(), self.offset)?;
        if let Some(table) = &self.table {
            write!(formatter, ", table {table}")?;
        }
        if let Some(keys) = &self.keys {
            write!(formatter, ", {keys}")?;
        }
        writeln!(formatter, "\n  found: {}", self.found)?;
        write!(formatter, "  next: {}", self.advice)
    }
}
