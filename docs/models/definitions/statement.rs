//! The statements of a client, and what it is told.
//!
//! Whatever a durable client is told waits until what it rests on is durable: errors, rows that are there, and
//! rows or tables that are not.

use super::locks::lock;
use super::plant::Plant;
use super::transaction::{Client, Transaction, Write};
use super::types::{
    Definition, Entry, KEYS_BY_NAME, Key, Lsn, Meaning, Name, Record, Refusal, RowChange, SYSTEM,
    Statement, Value,
};
use super::world::{LockName, Shared, Tree, World};

/// Tells a client something, as soon as it may be told. `waits_below` is what the engine waits for,
/// `rests_below` what the oracle holds it to.
pub(super) async fn answer(
    shared: &Shared,
    client: &Client,
    what: Refusal,
    waits_below: Lsn,
    rests_below: Lsn,
) {
    if !client.durable {
        return;
    }
    let plant = shared.world().plant;
    let waits = match what {
        Refusal::Exists => plant != Plant::ExistsNotAwaited,
        Refusal::Unknown => plant != Plant::AbsentNotAwaited,
        Refusal::Duplicate => plant != Plant::DuplicateNotAwaited,
        _ => true,
    };
    if waits {
        shared.until_durable(waits_below).await;
    }
    let told = match what {
        Refusal::Exists => "the answer `exists`",
        Refusal::Duplicate => "the answer `duplicate key`",
        _ => "an answer about what is there",
    };
    shared.world().oracle.answered(rests_below, told);
}

/// The newest definition that the catalogue in memory has.
pub(super) fn newest_definition(world: &World) -> Lsn {
    world.name_changed.iter().copied().max().unwrap_or(0)
}

/// The key of what was granted (0) on a table, or said (1) of it.
fn grant_key(world: &World, definition: &Definition, kind: Key) -> Key {
    if world.is_planted(Plant::GrantsByName) {
        return KEYS_BY_NAME + Key::from(definition.name) * 2 + kind;
    }
    definition.id * 2 + kind
}

/// The table that a statement looks for.
fn named(statement: Statement) -> Option<Name> {
    match statement {
        Statement::Drop(name)
        | Statement::Rename(name, _)
        | Statement::Alter(name)
        | Statement::Truncate(name)
        | Statement::Insert(name, _)
        | Statement::Delete(name, _)
        | Statement::Generate(name)
        | Statement::Grant(name, _)
        | Statement::Select(name, _) => Some(name),
        Statement::Create(_) | Statement::Savepoint | Statement::RollbackTo => None,
    }
}

pub(super) async fn answer_name(
    shared: &Shared,
    client: &Client,
    what: Refusal,
    name: Name,
) -> Refusal {
    let (waits, rests) = {
        let world = shared.world();
        (newest_definition(&world), world.name_changed[usize::from(name)])
    };
    answer(shared, client, what, waits, rests).await;
    what
}

impl Transaction {
    pub(super) async fn statement(
        &mut self,
        shared: &Shared,
        client: &Client,
        statement: Statement,
    ) -> Result<(), Refusal> {
        let plant = shared.world().plant;
        let outcome = match statement {
            Statement::Create(name) => self.create(shared, client, name).await,
            Statement::Drop(name) => self.drop_table(shared, name).await,
            Statement::Rename(from, to) => self.rename(shared, client, from, to).await,
            Statement::Alter(name) => self.alter(shared, name).await,
            Statement::Truncate(name) => self.truncate(shared, name).await,
            Statement::Insert(name, key) => self.insert(shared, client, name, key).await,
            Statement::Delete(name, key) => self.delete(shared, client, name, key).await,
            Statement::Generate(name) => self.generate(shared, client, name).await,
            Statement::Grant(name, kind) => self.grant(shared, name, kind).await,
            Statement::Select(name, key) => self.select(shared, client, name, key).await.map(drop),
            Statement::Savepoint => {
                self.savepoint = Some((self.entries.len(), self.writes.len()));
                Ok(())
            }
            Statement::RollbackTo => {
                self.roll_back_to_savepoint(plant);
                Ok(())
            }
        };
        if let (Err(Refusal::Unknown), Some(name)) = (outcome, named(statement)) {
            answer_name(shared, client, Refusal::Unknown, name).await;
        }
        outcome
    }

    async fn create(
        &mut self,
        shared: &Shared,
        client: &Client,
        name: Name,
    ) -> Result<(), Refusal> {
        self.take_name(shared, client, name).await?;
        let mut world = shared.world();
        let id = world.new_id();
        let made_by = world.next_made_by;
        world.next_made_by += 1;
        world.trees.insert(id, Tree::default());
        self.made.push(id);
        self.counters.insert(id, 0);
        let definition = Definition { id, made_by, object: id, name, version: 1 };
        let entry = Entry::Create { definition, counter: 0 };
        if world.is_planted(Plant::DefinedAtOnce) {
            let lsn = world.reserve();
            world.copy(lsn, Record::Commit { entries: vec![entry], rows: Vec::new() });
        }
        self.entries.push((entry, Meaning::Create { id, made_by, name }));
        Ok(())
    }

    /// A name for a table of this transaction: free, and nobody else's until the transaction ends.
    async fn take_name(&self, shared: &Shared, client: &Client, name: Name) -> Result<(), Refusal> {
        if self.find(&shared.world(), name).is_none() {
            if !shared.world().is_planted(Plant::NameNotLocked) {
                lock(shared, self.id, LockName::Name(name), true).await?;
            }
            if self.find(&shared.world(), name).is_none() {
                return Ok(());
            }
        }
        Err(answer_name(shared, client, Refusal::Exists, name).await)
    }

    async fn drop_table(&mut self, shared: &Shared, name: Name) -> Result<(), Refusal> {
        let definition = self.touch(shared, name, true).await?;
        lock(shared, self.id, LockName::Name(name), true).await?;
        let mut world = shared.world();
        let id = definition.id;
        self.entries.push((Entry::Drop { id, name }, Meaning::Drop { id }));
        if world.is_planted(Plant::GrantsDroppedLater) {
            return Ok(());
        }
        // The lock keeps new ones away; those that are there may be newer than the transaction's snapshot.
        let old = world.is_planted(Plant::DropReadsOldSnapshot);
        let snapshot = if old { self.snapshot } else { world.prefix() };
        let own = self.writes.iter().filter(|write| write.table == SYSTEM);
        let mut keys: Vec<Key> = own.map(|write| write.change.key).collect();
        keys.extend(world.scan(SYSTEM, snapshot).iter().map(|(key, _)| *key));
        for kind in 0..2 {
            let key = grant_key(&world, &definition, kind);
            if keys.contains(&key) {
                self.write(SYSTEM, RowChange { object: SYSTEM, key, value: None }, [false; 2]);
            }
        }
        Ok(())
    }

    async fn rename(
        &mut self,
        shared: &Shared,
        client: &Client,
        from: Name,
        to: Name,
    ) -> Result<(), Refusal> {
        let definition = self.touch(shared, from, true).await?;
        lock(shared, self.id, LockName::Name(from), true).await?;
        self.take_name(shared, client, to).await?;
        let renamed = Definition { name: to, ..definition };
        let meaning = Meaning::Rename { id: definition.id, name: to };
        self.entries.push((Entry::Alter { from, definition: renamed }, meaning));
        Ok(())
    }

    /// A new version, which every row that is there must suit; own rows are written anew.
    async fn alter(&mut self, shared: &Shared, name: Name) -> Result<(), Refusal> {
        let definition = self.touch(shared, name, true).await?;
        let mut world = shared.world();
        let snapshot = world.prefix();
        let rows_seen = world.scan(definition.object, snapshot).len();
        let (id, version) = (definition.id, definition.version + 1);
        let altered = Definition { version, ..definition };
        let from = definition.name;
        self.entries
            .push((Entry::Alter { from, definition: altered }, Meaning::Alter { id, rows_seen }));
        if world.is_planted(Plant::OwnRowsKeepVersion) {
            return Ok(());
        }
        for write in self.writes.clone() {
            if let (true, Some(value)) = (write.table == id, write.change.value)
                && self.own(write.change.object, write.change.key) == Some(Some(value))
            {
                let value = Some(Value { version, ..value });
                let change = RowChange { value, ..write.change };
                self.writes.push(Write { change, ..write });
            }
        }
        Ok(())
    }

    async fn truncate(&mut self, shared: &Shared, name: Name) -> Result<(), Refusal> {
        let definition = self.touch(shared, name, true).await?;
        let mut world = shared.world();
        let id = definition.id;
        let mut object = definition.object;
        if world.is_planted(Plant::TruncateKeepsObject) {
            for write in self.writes.clone().iter().filter(|write| write.table == id) {
                let change = RowChange { value: None, ..write.change };
                self.writes.push(Write { change, ..*write });
            }
        } else {
            object = world.new_id();
            world.trees.insert(object, Tree::default());
            self.made.push(object);
        }
        self.entries.push((Entry::Truncate { id, object }, Meaning::Truncate { id }));
        Ok(())
    }

    fn write(&mut self, table: u32, change: RowChange, [is_guarded, must_be_absent]: [bool; 2]) {
        self.writes.push(Write { table, change, is_guarded, must_be_absent });
    }

    async fn insert(
        &mut self,
        shared: &Shared,
        client: &Client,
        name: Name,
        key: Key,
    ) -> Result<(), Refusal> {
        let definition = self.touch_rows(shared, name).await?;
        let (object, version) = (definition.object, definition.version);
        let own = self.own(object, key);
        let seen = shared.world().version(object, key, self.snapshot);
        if own.is_none()
            && let Some((lsn, Some(_))) = seen
        {
            answer(shared, client, Refusal::Duplicate, self.snapshot, lsn + 1).await;
            return Err(Refusal::Duplicate);
        }
        if let Some(Some(_)) = own {
            return Err(Refusal::Duplicate);
        }
        let number = shared.world().new_number();
        let about = (definition.id, definition.made_by);
        let value = Some(Value { number, version, about });
        self.write(definition.id, RowChange { object, key, value }, [true; 2]);
        Ok(())
    }

    async fn delete(
        &mut self,
        shared: &Shared,
        client: &Client,
        name: Name,
        key: Key,
    ) -> Result<(), Refusal> {
        if self.select(shared, client, name, key).await? {
            let definition = self.touch(shared, name, false).await?;
            let change = RowChange { object: definition.object, key, value: None };
            self.write(definition.id, change, [true, false]);
        }
        Ok(())
    }

    /// GRANT and COMMENT: a row of the system table, by the table's number.
    async fn grant(&mut self, shared: &Shared, name: Name, kind: Key) -> Result<(), Refusal> {
        let definition = if shared.world().is_planted(Plant::GrantWithoutLock) {
            let found = self.find(&shared.world(), name);
            found.ok_or(Refusal::Unknown)?
        } else {
            self.touch(shared, name, false).await?
        };
        let mut world = shared.world();
        let key = grant_key(&world, &definition, kind);
        let about = (definition.id, definition.made_by);
        let value = Some(Value { number: world.new_number(), version: 0, about });
        drop(world);
        self.write(SYSTEM, RowChange { object: SYSTEM, key, value }, [true, false]);
        Ok(())
    }
}
