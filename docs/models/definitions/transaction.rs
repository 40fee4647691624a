//! A transaction of a client: what it has written and defined so far, and how its statements see that.

use std::collections::BTreeMap;

use super::locks::lock;
use super::plant::Plant;
use super::types::{
    Definition, Definitions, Entry, Key, Lsn, Meaning, Name, Object, Refusal, RowChange, TableId,
    Value, apply,
};
use super::world::{LockName, Outcome, Shared, World};

/// One of the clients.
pub(super) struct Client {
    pub(super) number: usize,
    pub(super) durable: bool,
    /// The end of its last commit, which its next snapshot has to see.
    pub(super) own_end: Lsn,
}

#[derive(Clone, Copy)]
pub(super) struct Write {
    pub(super) table: TableId,
    pub(super) change: RowChange,
    /// The first committer wins.
    pub(super) is_guarded: bool,
    pub(super) must_be_absent: bool,
}

pub(super) struct Transaction {
    pub(super) id: usize,
    pub(super) snapshot: Lsn,
    pub(super) entries: Vec<(Entry, Meaning)>,
    pub(super) writes: Vec<Write>,
    /// Whether a statement has read or written rows by the snapshot.
    pub(super) has_read: bool,
    /// How many of both there were.
    pub(super) savepoint: Option<(usize, usize)>,
    /// Counters of the tables that it has created: in memory only, until the create entry takes them along.
    pub(super) counters: BTreeMap<TableId, u64>,
    /// Objects that it has made, which go if it does not commit.
    pub(super) made: Vec<Object>,
}

impl Transaction {
    /// A snapshot has what its own client has committed.
    pub(super) async fn begin(shared: &Shared, client: &Client) -> Transaction {
        let own_end = client.own_end;
        shared.until(move |world| world.prefix() >= own_end).await;
        let mut world = shared.world();
        world.outcomes.push(Outcome::Open);
        Transaction {
            id: world.outcomes.len() - 1,
            snapshot: world.prefix(),
            entries: Vec::new(),
            writes: Vec::new(),
            has_read: false,
            savepoint: None,
            counters: BTreeMap::new(),
            made: Vec::new(),
        }
    }

    /// The catalogue as this transaction has it.
    pub(super) fn view(&self, world: &World) -> Definitions {
        let mut definitions = world.catalogue.clone();
        self.entries.iter().for_each(|(entry, _)| apply(&mut definitions, entry));
        definitions
    }

    pub(super) fn find(&self, world: &World, name: Name) -> Option<Definition> {
        World::named(&self.view(world), name)
    }

    /// Locks the table of a name. While it waited the name may have come to mean another one.
    pub(super) async fn touch(
        &self,
        shared: &Shared,
        name: Name,
        exclusive: bool,
    ) -> Result<Definition, Refusal> {
        loop {
            let found = self.find(&shared.world(), name);
            let before = found.ok_or(Refusal::Unknown)?;
            shared.step().await;
            lock(shared, self.id, LockName::Table(before.id), exclusive).await?;
            let Some(now) = self.find(&shared.world(), name) else { continue };
            if now.id == before.id && now.made_by == before.made_by {
                let stale = shared.world().is_planted(Plant::DefinitionReadBeforeLock);
                return Ok(if stale { before } else { now });
            }
        }
    }

    /// The same for a statement that reads or writes rows: a table that got its rows after the snapshot would
    /// show half of the commit that gave them to it. The first such statement takes its snapshot here, after
    /// it has waited for the lock.
    pub(super) async fn touch_rows(
        &mut self,
        shared: &Shared,
        name: Name,
    ) -> Result<Definition, Refusal> {
        let definition = self.touch(shared, name, false).await?;
        let mut world = shared.world();
        if !std::mem::replace(&mut self.has_read, true) {
            self.snapshot = world.prefix();
        }
        let since = world.object_since.get(&definition.object);
        let is_newer = since.is_some_and(|since| *since >= self.snapshot);
        let is_own = self.made.contains(&definition.object);
        if is_newer && !is_own && !world.is_planted(Plant::TouchedByOlderSnapshot) {
            return Err(Refusal::Conflict);
        }
        Ok(definition)
    }

    /// What this transaction has written to a key; none if nothing.
    pub(super) fn own(&self, object: Object, key: Key) -> Option<Option<Value>> {
        let at = |write: &&Write| write.change.object == object && write.change.key == key;
        self.writes.iter().rev().find(at).map(|write| write.change.value)
    }

    pub(super) fn roll_back_to_savepoint(&mut self, plant: Plant) -> bool {
        let Some((entries, writes)) = self.savepoint else { return false };
        if plant != Plant::SavepointKeepsDefinitions {
            self.entries.truncate(entries);
        }
        self.writes.truncate(writes);
        true
    }

    /// The last write of each key, in (object, key) order, of the objects that are there at the end.
    pub(super) fn write_set(&self, world: &World) -> Vec<Write> {
        let view = self.view(world);
        let is_there =
            |object| object == 0 || view.values().any(|definition| definition.object == object);
        let mut set: BTreeMap<(Object, Key), Write> = BTreeMap::new();
        for write in self.writes.iter().filter(|write| is_there(write.change.object)) {
            let at = (write.change.object, write.change.key);
            let known = set.entry(at).or_insert(*write);
            known.change.value = write.change.value;
        }
        set.into_values().collect()
    }

    /// Nothing of it stays but numbers that were used up.
    pub(super) fn abort(self, world: &mut World) {
        world.note(|| format!("  transaction {} is rolled back", self.id));
        world.outcomes[self.id] = Outcome::Aborted;
        for object in self.made {
            world.trees.remove(&object);
        }
        for write in &self.writes {
            world.fold(write.change.object, write.change.key as usize % super::types::LEAVES);
        }
        world.release_locks(self.id, 0);
    }
}
