//! What clients may do: kinds of statements that can be left out one by one.

use std::fmt;

macro_rules! kinds {
    ($($(#[$text:meta])+ $name:ident = $word:literal,)+) => {
        /// A kind of statements.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Kind {
            $($(#[$text])+ $name,)+
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Kind] = &[$(Kind::$name,)+];

            /// As it is written on the command line.
            pub fn word(self) -> &'static str {
                match self {
                    $(Kind::$name => $word,)+
                }
            }
        }
    };
}

kinds! {
    /// INSERT in all its forms, UPDATE, DELETE, SELECT. Always there.
    Rows = "rows",
    /// Counts, errors and RETURNING of a durable session wait for the commits of others that they rest on.
    Hearsay = "hearsay",
    /// And so do the rows that it reads.
    Reads = "reads",
    /// BEGIN, COMMIT, ROLLBACK.
    Transactions = "transactions",
    /// SAVEPOINT, ROLLBACK TO.
    Savepoints = "savepoints",
    /// Sessions whose commits do not wait.
    Delayed = "delayed",
    /// CREATE and DROP TABLE.
    Tables = "tables",
    /// TRUNCATE.
    Truncate = "truncate",
    /// Columns are added, dropped and renamed, and get other defaults and NOT NULL.
    Columns = "columns",
    /// Columns get another type: the rows are written anew.
    Types = "types",
    /// Tables are renamed, and names go from one to another.
    Names = "names",
    /// CREATE and DROP TABLE inside transactions.
    Transactional = "transactional",
    /// CREATE and DROP ROLE.
    Roles = "roles",
    /// GRANT and REVOKE.
    Grants = "grants",
    /// COMMENT.
    Comments = "comments",
    /// CREATE and DROP SCHEMA, and tables in them.
    Schemas = "schemas",
    /// CHECKPOINT.
    Checkpoints = "checkpoints",
    /// Statements of others in the middle of a checkpoint.
    Visits = "visits",
    /// Statements of others while the log is being written: the disk is slow.
    Slow = "slow",
}

/// A set of kinds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u32);

impl Kinds {
    /// All of them.
    pub fn all() -> Kinds {
        Kinds::of(Kind::ALL)
    }

    /// These, and rows.
    pub fn of(kinds: &[Kind]) -> Kinds {
        Kinds(kinds.iter().fold(1 << Kind::Rows as u32, |set, kind| set | 1 << *kind as u32))
    }

    /// Whether a kind is in it.
    pub fn has(self, kind: Kind) -> bool {
        self.0 & 1 << kind as u32 != 0
    }

    /// Without one.
    #[must_use]
    pub fn without(self, kind: Kind) -> Kinds {
        Kinds(self.0 & !(1 << kind as u32))
    }

    /// Reads `all`, or words with commas; a word with `-` in front leaves that one out of all.
    ///
    /// # Errors
    /// A word that is none.
    pub fn read(text: &str) -> Result<Kinds, String> {
        let words: Vec<&str> = text.split(',').filter(|word| !word.is_empty()).collect();
        let leaves_out = words.iter().all(|word| word.starts_with('-') || *word == "all");
        let mut kinds = if leaves_out { Kinds::all() } else { Kinds::of(&[]) };
        for word in words.into_iter().filter(|word| *word != "all") {
            let name = word.trim_start_matches('-');
            let known = Kind::ALL.iter().find(|kind| kind.word() == name);
            let Some(kind) = known else { return Err(format!("there is no kind {name}")) };
            kinds = if leaves_out {
                kinds.without(*kind)
            } else {
                Kinds(kinds.0 | Kinds::of(&[*kind]).0)
            };
        }
        Ok(kinds)
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = Kind::ALL.iter().filter(|kind| self.has(**kind)).map(|kind| kind.word());
        f.write_str(&words.collect::<Vec<_>>().join(","))
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kinds({self})")
    }
}
