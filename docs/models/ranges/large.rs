//! A large transaction: its changes are intents in leaves at once, and pieces in the log; one small record commits it.
//!
//! 1. The intents of a piece stand before it is logged, and every piece is logged before the commit.
//! 2. A savepoint lies between two pieces. Going back to it places what later pieces have replaced as another piece;
//!    only then these pieces count as rolled back, and the record of the commit names them. Nothing is taken out.

use std::collections::BTreeMap;

use super::plant::Plant;
use super::session::{
    Client, Course, Located, Look, Seeker, acknowledge, close_snapshot, course, locate,
    open_snapshot,
};
use super::sweep::{sweep, sweep_leaves};
use super::types::{
    Change, Intent, Key, LargeOwner, LargeStep, Lsn, Number, Owner, Piece, Record, Value, Verb,
};
use super::world::{Shared, World};

/// What it has placed last, by key, and in which piece.
type Own = BTreeMap<Key, (Piece, Option<Value>)>;

struct Large {
    number: Number,
    snapshot: Lsn,
    /// The piece that comes next.
    piece: Piece,
    own: Own,
    /// What was placed and is in no piece yet.
    placed: Vec<Change>,
    /// Each with the piece that came behind it.
    savepoints: Vec<(Piece, Own)>,
}

impl Large {
    fn owner(&self) -> LargeOwner {
        LargeOwner { number: self.number, piece: self.piece }
    }
}

pub(super) async fn transact_large(
    shared: &Shared,
    client: &mut Client,
    (steps, commits): (&[LargeStep], bool),
) {
    let own_end = client.own_end;
    shared.until(move |world| world.prefix() >= own_end).await;
    let (opened, snapshot) = open_snapshot(shared).await;
    let number = shared.world().large.begin();
    let (own, placed) = (Own::new(), Vec::new());
    let mut large = Large { number, snapshot, piece: 1, own, placed, savepoints: Vec::new() };
    let goes_on = make_steps(shared, client, steps, &mut large).await;
    if goes_on && commits && !large.own.is_empty() {
        if shared.plant() != Plant::LastPieceNotLogged {
            log_piece(shared, client.number, &mut large).await;
        }
        let lsn = commit(shared, client.number, &large).await;
        close_snapshot(shared, opened);
        acknowledge(shared, client, lsn).await;
        if shared.world().random.one_in(2) {
            sweep(shared, number).await;
        }
        return;
    }
    {
        let mut world = shared.world();
        world.large.abort(number);
        world.counts.large_aborts += 1;
        world.note(|| format!("large transaction {number} is aborted"));
    }
    close_snapshot(shared, opened);
    if shared.world().random.one_in(3) {
        sweep_leaves(shared).await;
    }
}

/// False: the transaction is in conflict.
async fn make_steps(
    shared: &Shared,
    client: &Client,
    steps: &[LargeStep],
    large: &mut Large,
) -> bool {
    for step in steps {
        shared.step().await;
        match step {
            LargeStep::Change(verb, key) => {
                // A key is once in a piece.
                if large.placed.iter().any(|change| change.key == *key) {
                    log_piece(shared, client.number, large).await;
                }
                if !place(shared, client, (*verb, *key), large).await {
                    return false;
                }
            }
            LargeStep::EndPiece => {
                shared.idle(12).await;
                log_piece(shared, client.number, large).await;
                shared.idle(12).await;
            }
            LargeStep::Savepoint => {
                log_piece(shared, client.number, large).await;
                large.savepoints.push((large.piece, large.own.clone()));
            }
            LargeStep::Release => drop(large.savepoints.pop()),
            LargeStep::RollBack => roll_back(shared, client, large).await,
        }
    }
    true
}

async fn place(
    shared: &Shared,
    client: &Client,
    (verb, key): (Verb, Key),
    large: &mut Large,
) -> bool {
    loop {
        let Look::Here(located) = locate(shared, key, Seeker::Large(large.number)).await else {
            return false;
        };
        let course = {
            let mut world = shared.world();
            if located.own.is_none() && world.changed_since(large.snapshot, key, &located) {
                world.unlatch(located.low);
                world.counts.refusals += 1;
                return false;
            }
            world.check_own(key, &located, large);
            course(&mut world, verb, key, &located)
        };
        let value = match course {
            Course::Go(value) => (verb != Verb::Delete).then_some(value),
            Course::SplitFirst => {
                shared.unlatch(located.low);
                shared.step().await;
                continue;
            }
            Course::Refused => {
                // A statement that did nothing: an insert that meets a row goes on as well.
                shared.unlatch(located.low);
                return true;
            }
        };
        if shared.plant() == Plant::PieceLoggedEarly {
            shared.unlatch(located.low);
            log_piece(shared, client.number, large).await;
            large.placed.push(Change { key, value });
            large.own.insert(key, (large.piece, value));
            let owner = large.owner();
            log_piece(shared, client.number, large).await;
            let again = locate(shared, key, Seeker::Large(large.number)).await;
            let Look::Here(located) = again else { return false };
            shared.world().place_large(located.low, (key, value), owner);
            shared.unlatch(located.low);
            return true;
        }
        shared.world().place_large(located.low, (key, value), large.owner());
        large.placed.push(Change { key, value });
        large.own.insert(key, (large.piece, value));
        shared.step().await;
        shared.unlatch(located.low);
        return true;
    }
}

impl World {
    fn place_large(&mut self, low: Key, (key, value): (Key, Option<Value>), owner: LargeOwner) {
        self.make_dirty(low);
        self.note(|| format!("  {owner:?} wants {value:?} of key {key}"));
        self.leaf(key).intents.insert(key, Intent { owner: Owner::Large(owner), value });
    }

    /// What the transaction finds is what it has placed, or what is committed.
    fn check_own(&mut self, key: Key, located: &Located, large: &Large) {
        let own = large.own.get(&key).map(|(_, value)| *value);
        let expected = own.unwrap_or_else(|| self.oracle.now(key));
        let newest = located.newest.and_then(|version| version.value);
        let found = located.own.map_or(newest, |own| own.value);
        if found != expected {
            let what =
                format!("a large transaction finds {found:?} of key {key}, not {expected:?}");
            self.must(Err(what));
        }
    }
}

/// Mark, reserve, copy, clear.
async fn log_piece(shared: &Shared, client: usize, large: &mut Large) {
    if large.placed.is_empty() {
        return;
    }
    shared.world().mark(client);
    shared.step().await;
    let lsn = shared.world().reserve();
    shared.step().await;
    let changes = std::mem::take(&mut large.placed);
    shared.world().copy(lsn, Record::Piece(large.owner(), changes));
    large.piece += 1;
    shared.step().await;
    let mut world = shared.world();
    world.counts.pieces += 1;
    world.clear(client);
}

async fn roll_back(shared: &Shared, client: &Client, large: &mut Large) {
    let plant = shared.plant();
    let Some((from, mut own)) = large.savepoints.last().cloned() else { return };
    let pieces = from..large.piece + 1;
    large.placed.clear();
    large.piece += 1;
    if plant == Plant::RolledBackBeforeRestored {
        shared.world().large.roll_back(large.number, pieces.clone());
    }
    // Whether or not the value differs: the piece that it stands in goes.
    let is_replaced = |key| large.own.get(key).is_some_and(|(piece, _)| *piece >= from);
    let replaced = own.iter_mut().filter(|(key, _)| is_replaced(key));
    for (key, (piece, value)) in replaced.filter(|_| plant != Plant::ReplacedNotRestored) {
        shared.step().await;
        restore(shared, (*key, *value), (large.number, large.owner())).await;
        large.placed.push(Change { key: *key, value: *value });
        *piece = large.piece;
    }
    log_piece(shared, client.number, large).await;
    large.own = own;
    let mut world = shared.world();
    if plant != Plant::RolledBackBeforeRestored {
        world.large.roll_back(large.number, pieces.clone());
    }
    world.counts.roll_backs += 1;
    world.note(|| format!("large transaction {} goes back: pieces {pieces:?}", large.number));
}

async fn restore(
    shared: &Shared,
    (key, value): (Key, Option<Value>),
    (number, owner): (Number, LargeOwner),
) {
    loop {
        let Look::Here(located) = locate(shared, key, Seeker::Large(number)).await else {
            let what = format!("large transaction {number} has lost key {key} to another");
            shared.world().must(Err(what));
            return;
        };
        let mut world = shared.world();
        let at = world.split_at(key);
        match at {
            Some(at) => world.split(located.low, at),
            None => world.place_large(located.low, (key, value), owner),
        }
        world.unlatch(located.low);
        if at.is_none() {
            return;
        }
    }
}

/// Mark, reserve, copy, outcome, clear.
async fn commit(shared: &Shared, client: usize, large: &Large) -> Lsn {
    shared.world().mark(client);
    shared.step().await;
    let lsn = shared.world().reserve();
    shared.step().await;
    let rolled_back = shared.world().large.rolled_back(large.number);
    let logged = match shared.plant() {
        Plant::RolledBackNotLogged => Vec::new(),
        _ => rolled_back.clone(),
    };
    shared.world().copy(lsn, Record::LargeCommit(large.number, logged));
    shared.step().await;
    {
        let mut world = shared.world();
        let changes = large.own.iter().map(|(key, (_, value))| Change { key: *key, value: *value });
        let changes: Vec<Change> = changes.collect();
        let outcome = world.oracle.is_first(large.snapshot, &changes);
        world.must(outcome);
        world.oracle.commit_large(lsn, changes);
        world.large.commit(large.number, lsn, rolled_back);
        world.counts.large_commits += 1;
    }
    shared.step().await;
    shared.world().clear(client);
    lsn
}
