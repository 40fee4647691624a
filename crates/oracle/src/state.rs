//! What the tables must hold, kept beside the engine: rows as bytes, and a digest of everything.
//!
//! Invariants
//! 1. The digest depends on names, definitions and rows, not on the order in which they came: a
//!    scan of a recovered database gives the same number.
//! 2. Rows that are not logged are no part of the digest: a power cut takes them.
//! 3. Two states with one digest are taken for equal (128 bits of XXH3, summed).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use onrush_types::TableDefinition;
use xxhash_rust::xxh3::xxh3_128;

use crate::history::{Expected, Placed};

/// One change of the model.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A row is there, or is another now.
    Put {
        /// The table.
        table: String,
        /// Its key bytes.
        key: Vec<u8>,
        /// Its value bytes.
        value: Arc<[u8]>,
    },
    /// A key is gone.
    Remove {
        /// The table.
        table: String,
        /// Its key bytes.
        key: Vec<u8>,
    },
    /// A new table.
    Create {
        /// Its name.
        table: String,
        /// Its definition, as bytes.
        definition: Vec<u8>,
    },
    /// A table has another definition, and perhaps another name; its rows are as they were.
    Alter {
        /// Its name before.
        table: String,
        /// Its name now.
        name: String,
        /// Its definition, as bytes.
        definition: Vec<u8>,
    },
    /// A table is gone.
    Drop {
        /// Its name.
        table: String,
    },
    /// A table lost all rows.
    Truncate {
        /// Its name.
        table: String,
    },
}

/// One table.
#[derive(Clone, Debug, Default)]
pub struct TableRows {
    /// Its definition, as bytes.
    pub definition: Vec<u8>,
    /// Whether its rows are not logged.
    pub unlogged: bool,
    /// Key bytes to value bytes.
    pub rows: BTreeMap<Vec<u8>, Arc<[u8]>>,
}

/// All tables.
#[derive(Clone, Debug, Default)]
pub struct State {
    tables: BTreeMap<String, TableRows>,
    digest: u128,
}

/// Part of the digest: one row.
pub fn row_digest(table: &str, key: &[u8], value: &[u8]) -> u128 {
    let mut bytes = Vec::with_capacity(table.len() + key.len() + value.len() + 9);
    bytes.extend_from_slice(table.as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&(key.len() as u64).to_le_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value);
    xxh3_128(&bytes)
}

/// Part of the digest: one table.
pub fn table_digest(table: &str, definition: &[u8]) -> u128 {
    row_digest(table, b"definition", definition).rotate_left(1)
}

impl State {
    /// The number that stands for the whole state.
    pub fn digest(&self) -> u128 {
        self.digest
    }

    /// A table.
    pub fn table(&self, name: &str) -> Option<&TableRows> {
        self.tables.get(name)
    }

    /// All tables by name.
    pub fn tables(&self) -> &BTreeMap<String, TableRows> {
        &self.tables
    }

    /// Rows of all tables.
    pub fn row_count(&self) -> usize {
        self.tables.values().map(|table| table.rows.len()).sum()
    }

    fn put(&mut self, table: &str, key: &[u8], value: &Arc<[u8]>) {
        self.remove(table, key);
        let Some(rows) = self.tables.get_mut(table) else { return };
        rows.rows.insert(key.to_vec(), Arc::clone(value));
        if rows.unlogged {
            return;
        }
        self.digest = self.digest.wrapping_add(row_digest(table, key, value));
    }

    fn remove(&mut self, table: &str, key: &[u8]) {
        let Some(rows) = self.tables.get_mut(table) else { return };
        if let Some(old) = rows.rows.remove(key)
            && !rows.unlogged
        {
            self.digest = self.digest.wrapping_sub(row_digest(table, key, &old));
        }
    }

    fn clear(&mut self, table: &str) {
        let Some(rows) = self.tables.get_mut(table) else { return };
        for (key, value) in std::mem::take(&mut rows.rows) {
            if rows.unlogged {
                continue;
            }
            self.digest = self.digest.wrapping_sub(row_digest(table, &key, &value));
        }
    }

    /// Empties the tables whose rows are not logged, as opening does. Returns what was done.
    pub fn forget_unlogged(&mut self) -> Vec<Effect> {
        let unlogged = self.tables.iter().filter(|(_, table)| table.unlogged);
        let effects: Vec<Effect> =
            unlogged.map(|(table, _)| Effect::Truncate { table: table.clone() }).collect();
        effects.iter().for_each(|effect| self.apply(effect));
        effects
    }

    /// Whether a power cut takes all that `effects` did.
    pub fn is_unlogged(&self, effects: &[Effect]) -> bool {
        effects.iter().all(|effect| match effect {
            Effect::Put { table, .. } | Effect::Remove { table, .. } => {
                self.table(table).is_some_and(|table| table.unlogged)
            }
            Effect::Create { .. }
            | Effect::Alter { .. }
            | Effect::Drop { .. }
            | Effect::Truncate { .. } => false,
        })
    }

    /// What `other` has that this state has not, and the other way round; a few of each.
    pub fn differences(&self, other: &State) -> String {
        let mut text = String::new();
        let mut count = 0;
        for name in self.tables.keys().chain(other.tables.keys()) {
            if self.tables.contains_key(name) != other.tables.contains_key(name) {
                let _ = writeln!(text, "  table {name}: on one side only");
            }
        }
        for (name, mine) in &self.tables {
            let Some(theirs) = other.tables.get(name) else { continue };
            for (key, value) in &mine.rows {
                let what = match theirs.rows.get(key) {
                    None => "missing",
                    Some(found) if found != value => "has another value",
                    Some(_) => continue,
                };
                count += 1;
                if count <= 8 {
                    let _ = writeln!(text, "  {name}: key {key:02x?} {what}");
                }
            }
            for key in theirs.rows.keys().filter(|key| !mine.rows.contains_key(*key)) {
                count += 1;
                if count <= 8 {
                    let _ = writeln!(text, "  {name}: key {key:02x?} should not be there");
                }
            }
        }
        let _ = writeln!(text, "  {count} rows differ");
        text
    }
}

impl Expected for State {
    type Change = Effect;
    type Print = u128;

    fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::Put { table, key, value } => self.put(table, key, value),
            Effect::Remove { table, key } => self.remove(table, key),
            Effect::Create { table, definition } => {
                let unlogged =
                    TableDefinition::from_bytes(definition).is_ok_and(|table| !table.is_logged());
                let definition_bytes = definition.clone();
                let rows =
                    TableRows { definition: definition_bytes, unlogged, rows: BTreeMap::new() };
                self.digest = self.digest.wrapping_add(table_digest(table, definition));
                self.tables.insert(table.clone(), rows);
            }
            Effect::Alter { table, name, definition } => {
                let rows = self.tables.get(table).map(|rows| rows.rows.clone());
                self.apply(&Effect::Drop { table: table.clone() });
                let (table, definition) = (name.clone(), definition.clone());
                self.apply(&Effect::Create { table, definition });
                for (key, value) in rows.into_iter().flatten() {
                    self.put(name, &key, &value);
                }
            }
            Effect::Drop { table } => {
                self.clear(table);
                if let Some(dropped) = self.tables.remove(table) {
                    let digest = table_digest(table, &dropped.definition);
                    self.digest = self.digest.wrapping_sub(digest);
                }
            }
            Effect::Truncate { table } => self.clear(table),
        }
    }

    fn print(&self) -> u128 {
        self.digest
    }
}

impl Placed for State {
    /// A table and a key in it.
    type Place = (String, Vec<u8>);

    fn places(&self, effect: &Effect) -> Vec<(String, Vec<u8>)> {
        match effect {
            Effect::Put { table, key, .. } | Effect::Remove { table, key } => {
                vec![(table.clone(), key.clone())]
            }
            _ => Vec::new(),
        }
    }
}
