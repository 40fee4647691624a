//! What a client does: single changes, and transactions with intents.

use std::rc::Rc;

use super::large::transact_large;
use super::leaf::{Known, Look as LeafLook};
use super::locate::look_up;
use super::plant::Plant;
use super::status::Status;
use super::stock::Range;
use super::types::{
    Change, Intent, Key, LargeIntent, Lsn, Number, Owner, Record, Script, Value, Verb, Version,
    Work,
};
use super::world::{Shared, World};

/// Retries over a changed stock, after which the range's mutex is taken for the look.
const TRIES: usize = 3;
/// Keys that the engine draws for one row before it reads after all.
const DRAWS: usize = 3;

pub(super) struct Client {
    pub(super) number: usize,
    durable: bool,
    /// The end of its newest commit.
    pub(super) own_end: Lsn,
}

pub(super) async fn run(shared: Shared, number: usize, script: Script) {
    let mut client = Client { number, durable: script.durable, own_end: 0 };
    shared.until_open().await;
    for unit in &script.units {
        shared.step().await;
        shared.world().note(|| format!("client {number}: {unit:?}"));
        match &unit.work {
            Work::Single(change) => single(&shared, &mut client, *change).await,
            Work::Transaction(changes) => {
                transact(&shared, &mut client, (changes, unit.commits)).await;
            }
            Work::Large(steps) => transact_large(&shared, &mut client, (steps, unit.commits)).await,
        }
    }
    shared.world().active -= 1;
}

/// Where a key belongs, latched, the newest committed version of it, and what a large transaction that looks has
/// placed there itself.
pub(super) struct Located {
    pub(super) low: Key,
    pub(super) newest: Option<Version>,
    pub(super) own: Option<LargeIntent>,
}

impl Located {
    pub(super) fn is_there(&self) -> bool {
        match self.own {
            Some(own) => own.value.is_some(),
            None => self.newest.is_some_and(|version| version.value.is_some()),
        }
    }
}

/// Who looks for a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Seeker {
    Small,
    /// The engine drew the key, and takes another one rather than read.
    Drawing,
    Large(Number),
}

pub(super) enum Look {
    Here(Located),
    DrawAgain,
    /// An open large transaction has an intent on the key.
    Conflict,
}

/// Latches the leaf of a key, when no other small transaction has an intent on it, and finds the newest version.
pub(super) async fn locate(shared: &Shared, key: Key, seeker: Seeker) -> Look {
    let mut known: Option<Known> = None;
    let mut tries = 0;
    let mut held: Option<Rc<Range>> = None;
    loop {
        if shared.plant() == Plant::StockBeforeLeaf {
            known = look_too_early(shared, key).await;
        }
        if tries >= TRIES && held.is_none() {
            held = lock_range(shared, key).await;
            shared.world().counts.locked_looks += u64::from(held.is_some());
        }
        let low = shared.latch(key).await;
        let intent = shared.world().leaf(key).intents.get(&key).copied();
        if let Some(Intent { owner: Owner::Small(transaction), .. }) = intent
            && shared.world().statuses[transaction] == Status::Active
        {
            shared.unlatch(low);
            // Nobody waits for a transaction with a mutex in his hands.
            if let Some(range) = held.take() {
                range.unlock();
            }
            shared.until(move |world| world.statuses[transaction] != Status::Active).await;
            continue;
        }
        let look = {
            let mut world = shared.world();
            world.load(low);
            world.resolve_leaf(low);
            world.look(key, known.as_ref())
        };
        match look {
            LeafLook::Found { newest, active } => {
                if let Some(range) = held.take() {
                    range.unlock();
                }
                let is_own = |intent: LargeIntent| seeker == Seeker::Large(intent.owner.number);
                if active.is_some_and(|active| !is_own(active)) {
                    shared.unlatch(low);
                    shared.world().counts.conflicts += 1;
                    return Look::Conflict;
                }
                return Look::Here(Located { low, newest, own: active });
            }
            LeafLook::Refused(stock, candidates) => {
                shared.unlatch(low);
                if seeker == Seeker::Drawing {
                    return Look::DrawAgain;
                }
                {
                    let mut world = shared.world();
                    world.counts.refused_looks += 1;
                    world.counts.stale_lookups += u64::from(tries > 0);
                }
                known = Some(look_up(shared, stock, &candidates, key).await);
                tries += 1;
            }
        }
    }
}

async fn lock_range(shared: &Shared, key: Key) -> Option<Rc<Range>> {
    let range = shared.world().leaf(key).range().cloned()?;
    shared.lock(&range).await.then_some(range)
}

/// The fault: the stock first, then the leaf.
async fn look_too_early(shared: &Shared, key: Key) -> Option<Known> {
    let range = shared.world().leaf(key).range().cloned()?;
    let stock = range.stock();
    let candidates = stock.candidates(key);
    Some(look_up(shared, stock, &candidates, key).await)
}

/// What to do with a row that was located.
pub(super) enum Course {
    Go(Value),
    SplitFirst,
    /// The row is there, or is not.
    Refused,
}

pub(super) fn course(world: &mut World, verb: Verb, key: Key, located: &Located) -> Course {
    let inserts = matches!(verb, Verb::Insert | Verb::InsertDrawn);
    if inserts == located.is_there() {
        return Course::Refused;
    }
    if let Some(at) = world.split_at(key) {
        world.split(located.low, at);
        return Course::SplitFirst;
    }
    world.make_dirty(located.low);
    Course::Go(world.new_value())
}

/// A change by itself, without intents.
async fn single(shared: &Shared, client: &mut Client, (verb, key): (Verb, Key)) {
    let (mut key, mut draws) = (key, 0);
    let (low, value) = loop {
        let is_drawn = verb == Verb::InsertDrawn && draws < DRAWS;
        let seeker = if is_drawn { Seeker::Drawing } else { Seeker::Small };
        let located = match locate(shared, key, seeker).await {
            Look::Here(located) => located,
            Look::Conflict => return,
            Look::DrawAgain => {
                draws += 1;
                key = shared.world().random.below(u64::from(super::types::KEYS)) as Key;
                continue;
            }
        };
        let course = course(&mut shared.world(), verb, key, &located);
        match course {
            Course::Go(value) => break (located.low, value),
            Course::SplitFirst => shared.unlatch(located.low),
            Course::Refused => return refuse(shared, client, key, located).await,
        }
        shared.step().await;
    };
    shared.step().await;
    shared.world().mark(client.number);
    shared.step().await;
    let value = (verb != Verb::Delete).then_some(value);
    let change = Change { key, value };
    let lsn = {
        let mut world = shared.world();
        let lsn = world.reserve();
        let inserts = matches!(verb, Verb::Insert | Verb::InsertDrawn).then_some(key);
        let outcome = world.oracle.commit(lsn, &[change], inserts.as_slice());
        world.must(outcome);
        world.settle(key, Version { lsn, value });
        world.note(|| format!("client {}: key {key} at LSN {lsn}", client.number));
        lsn
    };
    shared.step().await;
    shared.unlatch(low);
    shared.step().await;
    shared.world().copy(lsn, Record::Commit(vec![change]));
    shared.step().await;
    shared.world().clear(client.number);
    acknowledge(shared, client, lsn).await;
}

pub(super) async fn acknowledge(shared: &Shared, client: &mut Client, lsn: Lsn) {
    client.own_end = lsn + 1;
    if client.durable {
        shared.until_durable(lsn + 1).await;
    }
    let mut world = shared.world();
    if client.durable {
        world.oracle.promise(lsn + 1, "an acknowledged commit");
    }
    world.note(|| format!("client {}: LSN {lsn} is acknowledged", client.number));
    world.counts.commits += 1;
}

/// The answer *duplicate* or *no such row*, under whose latch it was found.
async fn refuse(shared: &Shared, client: &Client, key: Key, located: Located) {
    let waits_below = {
        let mut world = shared.world();
        let as_there = located.is_there();
        let outcome = world.oracle.refused(key, as_there);
        world.must(outcome);
        world.counts.refusals += 1;
        world.note(|| format!("client {}: key {key} is refused", client.number));
        // Where no row is there to say so, what ended it may be merged away: all that is reserved by now.
        match located.newest {
            Some(_) if as_there && world.is_planted(Plant::DuplicateNotAwaited) => 0,
            Some(version) if as_there => version.lsn + 1,
            newest if world.is_planted(Plant::AbsentNotAwaited) => {
                newest.map_or(0, |tombstone| tombstone.lsn + 1)
            }
            _ => world.tail(),
        }
    };
    let rests_below = shared.world().oracle.last_change(key);
    shared.unlatch(located.low);
    if client.durable {
        shared.until_durable(waits_below).await;
        shared.world().oracle.promise(rests_below, "the answer to a refused statement");
    }
}

/// A snapshot is registered before it reads the prefix.
pub(super) async fn open_snapshot(shared: &Shared) -> (u32, Lsn) {
    let number = shared.world().new_number();
    shared.world().snapshots.insert(number, 0);
    shared.step().await;
    let mut world = shared.world();
    let snapshot = world.prefix();
    world.snapshots.insert(number, snapshot);
    (number, snapshot)
}

pub(super) fn close_snapshot(shared: &Shared, number: u32) {
    let mut world = shared.world();
    world.snapshots.remove(&number);
    world.collect_old();
}

#[derive(Default)]
struct WriteSet {
    changes: Vec<Change>,
    inserts: Vec<Key>,
}

async fn transact(
    shared: &Shared,
    client: &mut Client,
    (changes, mut commits): (&[(Verb, Key)], bool),
) {
    // A session must not be in conflict with its own commit.
    let own_end = client.own_end;
    shared.until(move |world| world.prefix() >= own_end).await;
    let (number, snapshot) = open_snapshot(shared).await;
    let transaction = {
        let mut world = shared.world();
        world.statuses.push(Status::Active);
        world.statuses.len() - 1
    };
    let mut set = WriteSet::default();
    let mut changes = changes.to_vec();
    changes.sort_by_key(|(_, key)| *key);
    changes.dedup_by_key(|(_, key)| *key);
    for (verb, key) in changes {
        if !place_intent(shared, (transaction, snapshot), (verb, key), &mut set).await {
            commits = false;
            break;
        }
    }
    let lsn = if commits && !set.changes.is_empty() {
        Some(publish(shared, client.number, (transaction, snapshot), &set).await)
    } else {
        shared.world().statuses[transaction] = Status::Aborted;
        None
    };
    for change in &set.changes {
        let low = shared.latch(change.key).await;
        shared.world().resolve_leaf(low);
        shared.unlatch(low);
    }
    close_snapshot(shared, number);
    if let Some(lsn) = lsn {
        acknowledge(shared, client, lsn).await;
    }
}

impl World {
    /// Whether a transaction of this snapshot comes too late to change a key.
    pub(super) fn changed_since(&self, snapshot: Lsn, key: Key, located: &Located) -> bool {
        let looks = self.plant != Plant::ConflictWithoutStore;
        let ended = self.old.get(&key).into_iter().flatten().filter(|_| looks);
        let ended = ended.map(|old| old.ended_at + 1);
        let changed = located.newest.map(|version| version.lsn + 1).into_iter().chain(ended);
        changed.max().unwrap_or(0) > snapshot
    }
}

/// False: the transaction is in conflict, or meets a key that is there.
async fn place_intent(
    shared: &Shared,
    (transaction, snapshot): (usize, Lsn),
    (verb, key): (Verb, Key),
    set: &mut WriteSet,
) -> bool {
    loop {
        let Look::Here(located) = locate(shared, key, Seeker::Small).await else { return false };
        let course = {
            let mut world = shared.world();
            if world.changed_since(snapshot, key, &located) {
                world.unlatch(located.low);
                world.counts.refusals += 1;
                return false;
            }
            course(&mut world, verb, key, &located)
        };
        let value = match course {
            Course::Go(value) => value,
            Course::SplitFirst => {
                shared.unlatch(located.low);
                shared.step().await;
                continue;
            }
            Course::Refused => {
                shared.unlatch(located.low);
                // No such row: a statement that did nothing. A duplicate ends the transaction.
                return matches!(verb, Verb::Update | Verb::Delete);
            }
        };
        let value = (verb != Verb::Delete).then_some(value);
        let intent = Intent { owner: Owner::Small(transaction), value };
        shared.world().leaf(key).intents.insert(key, intent);
        set.changes.push(Change { key, value });
        if matches!(verb, Verb::Insert | Verb::InsertDrawn) {
            set.inserts.push(key);
        }
        shared.step().await;
        shared.unlatch(located.low);
        return true;
    }
}

/// Mark, reserve, copy, outcome, clear.
async fn publish(
    shared: &Shared,
    client: usize,
    (transaction, snapshot): (usize, Lsn),
    set: &WriteSet,
) -> Lsn {
    shared.world().mark(client);
    shared.step().await;
    let lsn = shared.world().reserve();
    shared.step().await;
    shared.world().copy(lsn, Record::Commit(set.changes.clone()));
    shared.step().await;
    {
        let mut world = shared.world();
        let outcome = world.oracle.is_first(snapshot, &set.changes);
        world.must(outcome);
        let outcome = world.oracle.commit(lsn, &set.changes, &set.inserts);
        world.must(outcome);
        world.statuses[transaction] = Status::Committed(lsn);
    }
    shared.step().await;
    shared.world().clear(client);
    lsn
}
