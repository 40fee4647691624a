//! The commit: intents, then one record under the `definitions` mutex, then rows.
//!
//! 1. Intents are placed in (object, key) order; this may wait and may be refused.
//! 2. With definitions: the mutex is taken, and whatever may fail is done. From here on nothing may.
//! 3. Mark, reserve the LSN, copy the record, set the status, apply to the catalogue, clear the mark, give
//!    the mutex back.
//! 4. Locks are released with the end of the record; intents become rows.
//! 5. The client is told; a durable one when its record is durable.

use super::oracle::Commit;
use super::plant::Plant;
use super::statement::answer;
use super::transaction::{Client, Transaction, Write};
use super::types::{Entry, LEAVES, Lsn, Name, Object, Record, Refusal, TableId, apply};
use super::world::{Counter, Outcome, Shared, World};

/// A commit may be refused by this one in so many, before its record is published.
const REFUSED_ONE_IN: u64 = 16;

pub(super) async fn commit(
    shared: &Shared,
    client: &mut Client,
    transaction: Transaction,
) -> Result<(), Refusal> {
    let set = transaction.write_set(&shared.world());
    if set.is_empty() && transaction.entries.is_empty() {
        transaction.abort(&mut shared.world());
        return Ok(());
    }
    let placed = place_intents(shared, client, &transaction, &set).await;
    let published = match placed {
        Ok(()) => publish(shared, client.number, &transaction, &set).await,
        Err(refusal) => Err(refusal),
    };
    let (lsn, end) = match published {
        Ok(committed) => committed,
        Err(refusal) => {
            transaction.abort(&mut shared.world());
            return Err(refusal);
        }
    };
    shared.step().await;
    client.own_end = end;
    shared.world().release_locks(transaction.id, end);
    for write in &set {
        shared.step().await;
        shared.world().fold(write.change.object, write.change.key as usize % LEAVES);
    }
    let names: Vec<Name> = transaction.entries.iter().flat_map(|(entry, _)| names(entry)).collect();
    if client.durable {
        shared.until_durable(end).await;
    }
    let mut world = shared.world();
    world.note(|| format!("client {}: commit {lsn} is acknowledged", client.number));
    world.oracle.acknowledge(lsn, &names, client.durable);
    world.commits += 1;
    Ok(())
}

/// The names whose meaning an entry changes.
fn names(entry: &Entry) -> Vec<Name> {
    match *entry {
        Entry::Create { definition, .. } => vec![definition.name],
        Entry::Alter { from, definition } => vec![from, definition.name],
        Entry::Drop { name, .. } => vec![name],
        Entry::Truncate { .. } => Vec::new(),
    }
}

async fn place_intents(
    shared: &Shared,
    client: &Client,
    transaction: &Transaction,
    set: &[Write],
) -> Result<(), Refusal> {
    for write in set {
        let (object, key) = (write.change.object, write.change.key);
        shared.step().await;
        shared.until(move |world| world.has_no_other_intent(object, key)).await;
        let duplicate = {
            let mut world = shared.world();
            world.fold(object, key as usize % LEAVES);
            let newest = world.version(object, key, Lsn::MAX);
            if write.is_guarded && newest.is_some_and(|(lsn, _)| lsn >= transaction.snapshot) {
                return Err(Refusal::Conflict);
            }
            let leaf = world.leaf(object, key).expect("its object is there");
            let cell = leaf.cells.entry(key).or_default();
            let duplicate = cell.row.filter(|_| write.must_be_absent);
            if duplicate.is_none() {
                cell.intent = Some((transaction.id, write.change.value));
                leaf.is_dirty = true;
            }
            duplicate
        };
        if let Some((_, lsn)) = duplicate {
            answer(shared, client, Refusal::Duplicate, lsn + 1, lsn + 1).await;
            return Err(Refusal::Duplicate);
        }
    }
    Ok(())
}

async fn publish(
    shared: &Shared,
    client: usize,
    transaction: &Transaction,
    set: &[Write],
) -> Result<(Lsn, Lsn), Refusal> {
    let plant = shared.world().plant;
    if plant == Plant::UnlockedBeforePublish {
        shared.world().release_locks(transaction.id, 0);
        shared.step().await;
    }
    let defines = !transaction.entries.is_empty();
    if defines && plant != Plant::PublishedOutsideMutex {
        take_mutex(shared).await;
    }
    if plant == Plant::AppliedBeforeVerdict {
        let next = shared.world().tail();
        shared.world().carry_out(transaction, next);
        shared.step().await;
    }
    if shared.world().random.one_in(REFUSED_ONE_IN) {
        if defines && plant != Plant::PublishedOutsideMutex {
            shared.world().definitions_mutex = false;
        }
        return Err(Refusal::Failed);
    }
    shared.world().mark(client);
    shared.step().await;
    let (lsn, end) = record(shared, transaction, set).await;
    shared.step().await;
    shared.world().decide(transaction.id, set, lsn);
    shared.step().await;
    if !defines {
        shared.world().clear(client);
        return Ok((lsn, end));
    }
    match plant {
        Plant::PublishedOutsideMutex => take_mutex(shared).await,
        Plant::AppliedOutsideMutex => shared.world().definitions_mutex = false,
        Plant::JudgedByOlderSnapshot => shared.world().clear(client),
        _ => {}
    }
    shared.step().await;
    {
        let mut world = shared.world();
        let takes_effect = match plant {
            Plant::JudgedByOlderSnapshot => world.prefix() > lsn,
            Plant::ApplyFails => !world.random.one_in(4),
            _ => plant != Plant::AppliedBeforeVerdict,
        };
        if takes_effect {
            world.carry_out(transaction, lsn);
        }
    }
    shared.step().await;
    shared.world().clear(client);
    if plant != Plant::AppliedOutsideMutex {
        shared.world().definitions_mutex = false;
    }
    Ok((lsn, end))
}

async fn take_mutex(shared: &Shared) {
    shared.until(|world| !std::mem::replace(&mut world.definitions_mutex, true)).await;
    shared.step().await;
}

/// Reserves and copies: the moment of the commit. The oracle hears of it with the LSN. Returns where the record
/// begins and ends.
async fn record(shared: &Shared, transaction: &Transaction, set: &[Write]) -> (Lsn, Lsn) {
    let plant = shared.world().plant;
    let rows: Vec<_> = set.iter().map(|write| write.change).collect();
    let counter = |id: TableId| match plant {
        Plant::CounterNotInCreate => 0,
        _ => transaction.counters.get(&id).copied().unwrap_or(0),
    };
    let entry = |(entry, _): &(Entry, _)| match *entry {
        Entry::Create { definition, .. } => {
            Entry::Create { definition, counter: counter(definition.id) }
        }
        other => other,
    };
    let is_logged =
        |entry: &Entry| !(plant == Plant::DefinedAtOnce && matches!(entry, Entry::Create { .. }));
    let entries: Vec<_> = transaction.entries.iter().map(entry).filter(is_logged).collect();
    let lsn = {
        let mut world = shared.world();
        let lsn = world.reserve();
        let meant = |write: &Write| (write.table, write.change.key, write.change.value);
        let meanings = transaction.entries.iter().map(|(_, meaning)| *meaning).collect();
        let commit = Commit { lsn, meanings, rows: set.iter().map(meant).collect() };
        let outcome = world.oracle.commit(commit);
        world.must(outcome);
        lsn
    };
    shared.step().await;
    if plant == Plant::TwoRecords && !entries.is_empty() && !rows.is_empty() {
        shared.world().copy(lsn, Record::Commit { entries, rows: Vec::new() });
        let second = shared.world().reserve();
        shared.step().await;
        shared.world().copy(second, Record::Commit { entries: Vec::new(), rows });
        return (lsn, second + 1);
    }
    shared.world().copy(lsn, Record::Commit { entries, rows });
    (lsn, lsn + 1)
}

impl World {
    pub(super) fn has_no_other_intent(&mut self, object: u32, key: u32) -> bool {
        self.fold(object, key as usize % LEAVES);
        let cell = self.leaf(object, key).and_then(|leaf| leaf.cells.get(&key));
        cell.is_none_or(|cell| cell.intent.is_none())
    }

    fn decide(&mut self, transaction: usize, set: &[Write], lsn: Lsn) {
        self.outcomes[transaction] = Outcome::Committed(lsn);
        for write in set {
            let at = (write.change.object, write.change.key);
            self.versions.entry(at).or_default().push((lsn, write.change.value));
        }
    }

    /// The rows of an object that no table has any more.
    fn forget_object(&mut self, object: Object) {
        self.trees.remove(&object);
        self.versions.retain(|at, _| at.0 != object);
    }

    /// The fault of a TRUNCATE without a new object.
    fn empty_object(&mut self, object: Object, lsn: Lsn) {
        self.versions.retain(|at, versions| {
            versions.retain(|version| version.0 >= lsn);
            at.0 != object || !versions.is_empty()
        });
        for leaf in self.trees.get_mut(&object).into_iter().flatten() {
            leaf.cells.values_mut().for_each(|cell| cell.row = None);
            leaf.image.clear();
        }
    }

    /// Applies the definitions of a transaction to the catalogue in memory: only copies.
    fn carry_out(&mut self, transaction: &Transaction, lsn: Lsn) {
        for (entry, _) in &transaction.entries {
            let before = |id: TableId| self.catalogue.get(&id).map(|known| known.object);
            match *entry {
                Entry::Create { definition, .. } => {
                    self.object_since.insert(definition.object, lsn);
                    let next = transaction.counters.get(&definition.id).copied().unwrap_or(0);
                    let counter = Counter { next, reserved: next, is_busy: false };
                    self.counters.insert(definition.id, counter);
                }
                Entry::Drop { id, .. } => {
                    if let Some(object) = before(id) {
                        self.forget_object(object);
                    }
                    self.counters.remove(&id);
                }
                Entry::Truncate { id, object } => {
                    self.object_since.insert(object, lsn);
                    match before(id) {
                        Some(before) if before == object => self.empty_object(object, lsn),
                        Some(before) => self.forget_object(before),
                        None => {}
                    }
                }
                Entry::Alter { .. } => {}
            }
            apply(&mut self.catalogue, entry);
            for name in names(entry) {
                self.name_changed[usize::from(name)] = lsn + 1;
            }
        }
        let catalogue = self.catalogue.clone();
        self.note(|| format!("  applied: {:?}", catalogue.values().collect::<Vec<_>>()));
    }
}
