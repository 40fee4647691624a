//! What must be true: the commits in their order, what clients were told, and which state follows.
//!
//! The oracle reads no structure of the model's engine. It hears of a commit when its LSN is reserved, or when its
//! outcome is set, and refuses one that is impossible there; it hears what a client was told, and on what that
//! rested.

use std::collections::BTreeMap;

use super::types::{Change, Key, Lsn, Value};

pub(super) type State = BTreeMap<Key, Value>;

#[derive(Clone, Debug)]
struct Commit {
    lsn: Lsn,
    changes: Vec<Change>,
}

#[derive(Clone, Debug)]
pub(super) struct Oracle {
    /// What the incarnation began with.
    base: State,
    /// By LSN.
    commits: Vec<Commit>,
    /// LSNs that must survive, and why.
    promised: Vec<(Lsn, &'static str)>,
}

fn apply(state: &mut State, changes: &[Change]) {
    for Change { key, value } in changes {
        match value {
            Some(value) => state.insert(*key, *value),
            None => state.remove(key),
        };
    }
}

impl Oracle {
    pub(super) fn new(base: State) -> Oracle {
        Oracle { base, commits: Vec::new(), promised: Vec::new() }
    }

    /// A key as the newest of its commits left it.
    pub(super) fn now(&self, key: Key) -> Option<Value> {
        let changes = self.commits.iter().rev().flat_map(|commit| &commit.changes);
        let newest = changes.filter(|change| change.key == key).map(|change| change.value).next();
        newest.unwrap_or_else(|| self.base.get(&key).copied())
    }

    /// The end of the newest commit that changed a key.
    pub(super) fn last_change(&self, key: Key) -> Lsn {
        let changed = |commit: &&Commit| commit.changes.iter().any(|change| change.key == key);
        self.commits.iter().rev().find(changed).map_or(0, |commit| commit.lsn + 1)
    }

    /// A commit; `inserts` are the keys that must not be there before it.
    pub(super) fn commit(
        &mut self,
        lsn: Lsn,
        changes: &[Change],
        inserts: &[Key],
    ) -> Result<(), String> {
        for change in changes {
            let is_there = self.now(change.key).is_some();
            let inserts = inserts.contains(&change.key);
            if inserts == is_there {
                let (key, is) = (change.key, if is_there { "is" } else { "is not" });
                let does = if inserts { "inserts" } else { "changes" };
                return Err(format!("commit {lsn} {does} key {key}, which {is} there"));
            }
        }
        self.add(lsn, changes.to_vec());
        Ok(())
    }

    /// The commit of a large transaction, each of whose statements was compared when it was made. A row that it has
    /// inserted and deleted is no change.
    pub(super) fn commit_large(&mut self, lsn: Lsn, mut changes: Vec<Change>) {
        changes.retain(|change| change.value.is_some() || self.now(change.key).is_some());
        self.add(lsn, changes);
    }

    fn add(&mut self, lsn: Lsn, changes: Vec<Change>) {
        let at = self.commits.partition_point(|commit| commit.lsn < lsn);
        self.commits.insert(at, Commit { lsn, changes });
    }

    /// A transaction commits what it saw by a snapshot: nobody has changed these keys since.
    pub(super) fn is_first(&self, snapshot: Lsn, changes: &[Change]) -> Result<(), String> {
        let since = self.commits.iter().filter(|commit| commit.lsn >= snapshot);
        for commit in since {
            let same = |change: &Change| changes.iter().any(|own| own.key == change.key);
            if commit.changes.iter().any(same) {
                let lsn = commit.lsn;
                return Err(format!("a transaction of snapshot {snapshot} goes over commit {lsn}"));
            }
        }
        Ok(())
    }

    /// A statement was refused, because a key is there or because it is not.
    pub(super) fn refused(&self, key: Key, as_there: bool) -> Result<(), String> {
        if self.now(key).is_some() == as_there {
            return Ok(());
        }
        let is = if as_there { "is" } else { "is not" };
        Err(format!("refused as key {key} {is} there: {:?}", self.now(key)))
    }

    /// A durable client was told something that rests on all below this LSN.
    pub(super) fn promise(&mut self, rests_below: Lsn, what: &'static str) {
        if rests_below > 0 {
            self.promised.push((rests_below - 1, what));
        }
    }

    pub(super) fn state(&self, below: Lsn) -> State {
        let mut state = self.base.clone();
        for commit in self.commits.iter().take_while(|commit| commit.lsn < below) {
            apply(&mut state, &commit.changes);
        }
        state
    }

    /// The state that a log of this length must give, if all that was promised is below its end.
    pub(super) fn expected(&self, log_end: Lsn) -> Result<State, String> {
        match self.promised.iter().find(|(lsn, _)| *lsn >= log_end) {
            Some((lsn, what)) => {
                Err(format!("{what} rests on LSN {lsn}, and the log ends at {log_end}"))
            }
            None => Ok(self.state(log_end)),
        }
    }

    /// What a snapshot read of one key.
    pub(super) fn read(&self, key: Key, snapshot: Lsn, read: Option<Value>) -> Result<(), String> {
        let expected = self.state(snapshot).get(&key).copied();
        if expected == read {
            return Ok(());
        }
        Err(format!("snapshot {snapshot} read {read:?} of key {key}, expected {expected:?}"))
    }
}
