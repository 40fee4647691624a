//! What must be true: the commits in their order, what clients were told, and which state follows.
//!
//! The oracle reads no structure of the model's engine. It hears of a commit when its LSN is reserved, and refuses
//! one that is impossible there; it hears what a client was told, and on what that rested.

use std::collections::{BTreeMap, BTreeSet};

use super::types::{KEYS_BY_NAME, Key, Lsn, Meaning, Name, SYSTEM, TableId, Value};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct State {
    pub(super) tables: BTreeMap<TableId, TableState>,
    /// Grants and comments.
    pub(super) system: BTreeMap<Key, Value>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TableState {
    pub(super) made_by: u32,
    pub(super) name: Name,
    pub(super) version: u16,
    pub(super) rows: BTreeMap<Key, Value>,
}

/// A commit as it was meant: definitions, then rows by table.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    pub(super) lsn: Lsn,
    pub(super) meanings: Vec<Meaning>,
    pub(super) rows: Vec<(TableId, Key, Option<Value>)>,
}

#[derive(Clone, Debug)]
pub(super) struct Oracle {
    /// What the incarnation began with.
    base: State,
    /// After all commits so far.
    pub(super) now: State,
    commits: Vec<Commit>,
    /// LSNs that must survive: acknowledged as durable, or what an answer to a durable client rested on.
    promised: Vec<(Lsn, &'static str)>,
    /// Keys that were handed out: the CREATE of the table, and the number.
    handed: BTreeSet<(u32, u64)>,
    /// The newest acknowledged commit that changed what a name means: the LSN after it.
    told: BTreeMap<Name, Lsn>,
}

impl State {
    pub(super) fn empty() -> State {
        State { tables: BTreeMap::new(), system: BTreeMap::new() }
    }

    /// The state after one more commit.
    fn commit(&mut self, commit: &Commit) -> Result<(), String> {
        let at = commit.lsn;
        for meaning in &commit.meanings {
            self.define(meaning).map_err(|what| format!("commit {at}: {what}"))?;
        }
        for (table, key, value) in &commit.rows {
            self.row(*table, *key, *value).map_err(|what| format!("commit {at}: {what}"))?;
        }
        self.check_system().map_err(|what| format!("after commit {at}: {what}"))
    }

    fn define(&mut self, meaning: &Meaning) -> Result<(), String> {
        if let Meaning::Create { name, .. } | Meaning::Rename { name, .. } = *meaning
            && self.tables.values().any(|table| table.name == name)
        {
            return Err(format!("the name {name} is taken twice"));
        }
        let gone = || format!("{meaning:?} of a table that is not there");
        match *meaning {
            Meaning::Create { id, made_by, name } => {
                let table = TableState { made_by, name, version: 1, rows: BTreeMap::new() };
                if self.tables.insert(id, table).is_some() {
                    return Err(format!("table {id} is created twice"));
                }
            }
            Meaning::Alter { id, rows_seen } => {
                let table = self.tables.get_mut(&id).ok_or_else(gone)?;
                if table.rows.len() != rows_seen {
                    let there = table.rows.len();
                    return Err(format!("ALTER looked at {rows_seen} rows of {there}"));
                }
                table.version += 1;
            }
            Meaning::Rename { id, name } => {
                self.tables.get_mut(&id).ok_or_else(gone)?.name = name;
            }
            Meaning::Drop { id } => {
                self.tables.remove(&id).ok_or_else(gone)?;
            }
            Meaning::Truncate { id } => {
                self.tables.get_mut(&id).ok_or_else(gone)?.rows.clear();
            }
        }
        Ok(())
    }

    fn row(&mut self, id: TableId, key: Key, value: Option<Value>) -> Result<(), String> {
        if id == SYSTEM {
            match value {
                Some(value) => self.system.insert(key, value),
                None => self.system.remove(&key),
            };
            return Ok(());
        }
        let gone = || format!("a row of table {id}, which is not there");
        let table = self.tables.get_mut(&id).ok_or_else(gone)?;
        match value {
            Some(value) if value.version != table.version => {
                let (own, newest) = (value.version, table.version);
                return Err(format!("a row of version {own} in a table of version {newest}"));
            }
            Some(value) => table.rows.insert(key, value),
            None => table.rows.remove(&key),
        };
        Ok(())
    }

    /// Grants and comments say something of a table that is there, and are found from no other.
    pub(super) fn check_system(&self) -> Result<(), String> {
        for (key, value) in &self.system {
            let (id, made_by) = value.about;
            let found = if *key >= KEYS_BY_NAME {
                let name = ((key - KEYS_BY_NAME) / 2) as Name;
                self.tables.iter().find(|(_, table)| table.name == name).map(|(id, _)| *id)
            } else {
                Some(key / 2)
            };
            let living = self.tables.get(&id).is_some_and(|table| table.made_by == made_by);
            if !living || found != Some(id) {
                return Err(format!("what was granted on table {id} is found for {found:?}"));
            }
        }
        Ok(())
    }
}

impl Oracle {
    pub(super) fn new(base: State) -> Oracle {
        let now = base.clone();
        let (commits, promised, told) = (Vec::new(), Vec::new(), BTreeMap::new());
        Oracle { base, now, commits, promised, handed: BTreeSet::new(), told }
    }

    /// The next incarnation begins with what was recovered. Keys that were handed out stay so.
    pub(super) fn reopened(self, base: State) -> Oracle {
        Oracle { handed: self.handed, ..Oracle::new(base) }
    }

    pub(super) fn commit(&mut self, commit: Commit) -> Result<(), String> {
        self.now.commit(&commit)?;
        self.commits.push(commit);
        Ok(())
    }

    /// A commit is acknowledged: whoever looks from now on sees what its names mean.
    pub(super) fn acknowledge(&mut self, lsn: Lsn, names: &[Name], durable: bool) {
        if durable {
            self.promised.push((lsn, "an acknowledged commit"));
        }
        for name in names {
            let told = self.told.entry(*name).or_default();
            *told = (*told).max(lsn + 1);
        }
    }

    /// A durable client was told something that rests on all below this LSN.
    pub(super) fn answered(&mut self, rests_below: Lsn, what: &'static str) {
        if rests_below > 0 {
            self.promised.push((rests_below - 1, what));
        }
    }

    pub(super) fn told(&self, name: Name) -> Lsn {
        self.told.get(&name).copied().unwrap_or(0)
    }

    pub(super) fn hand_out(&mut self, made_by: u32, number: u64) -> Result<(), String> {
        if self.handed.insert((made_by, number)) {
            return Ok(());
        }
        Err(format!("the number {number} of the table of CREATE {made_by} is handed out twice"))
    }

    /// A snapshot read a row, or that there is none, in the table of this number and CREATE.
    pub(super) fn read(
        &self,
        (id, made_by): (TableId, u32),
        key: Key,
        snapshot: Lsn,
        row: Option<Value>,
    ) -> Result<(), String> {
        let mut state = self.base.clone();
        for commit in self.commits.iter().take_while(|commit| commit.lsn < snapshot) {
            state.commit(commit)?;
        }
        let table = state.tables.get(&id).filter(|table| table.made_by == made_by);
        let Some(table) = table else {
            return Err(format!("snapshot {snapshot} read table {id}, which came later"));
        };
        let there = table.rows.get(&key).copied();
        // A row may have been written anew for a later version.
        if there.map(|value| value.number) == row.map(|value| value.number) {
            return Ok(());
        }
        Err(format!("snapshot {snapshot} read {row:?} of table {id}, expected {there:?}"))
    }

    /// The state that a log of this length must give, if all that was promised is below its end.
    pub(super) fn expected(&self, log_end: Lsn) -> Result<State, String> {
        if let Some((lsn, what)) = self.promised.iter().find(|(lsn, _)| *lsn >= log_end) {
            return Err(format!("{what} rests on LSN {lsn}, and the log ends at {log_end}"));
        }
        let mut state = self.base.clone();
        for commit in self.commits.iter().take_while(|commit| commit.lsn < log_end) {
            state.commit(commit)?;
        }
        Ok(state)
    }
}
