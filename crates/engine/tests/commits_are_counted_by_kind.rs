//! Every commit is counted once, under how it was acknowledged, whichever way it came; what is no commit is
//! not counted. So commits a second, and commits per sync, are what programs did.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Fixture, note, notes};
use onrush::{Database, Durability, Error, Session, Table, TableDefinition};
use onrush_waits::Counter;

/// Commits by kind: durable, delayed, token, unlogged.
type Kinds = [u64; 4];

const NOTHING: Kinds = [0; 4];
const DURABLE: Kinds = [1, 0, 0, 0];
const DELAYED: Kinds = [0, 1, 0, 0];
const TOKEN: Kinds = [0, 0, 1, 0];
const UNLOGGED: Kinds = [0, 0, 0, 1];

struct World {
    db: Database,
    table: Table,
    front: Table,
    session: Session,
    next: i64,
    _fixture: Fixture,
}

impl World {
    fn new() -> World {
        let fixture = Fixture::in_memory();
        let (db, table) = fixture.create_with(notes());
        let front = db.create_table(unlogged()).unwrap();
        let session = db.session().unwrap();
        World { db, table, front, session, next: 0, _fixture: fixture }
    }

    /// A key that no row has.
    fn key(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    /// What `work` is counted as, and how many rollbacks.
    fn counted(&mut self, work: impl FnOnce(&mut World)) -> (Kinds, u64) {
        let before = self.db.statistics();
        work(self);
        let totals = self.db.statistics().since(&before).totals;
        let kinds = Counter::COMMIT_KINDS.iter().map(|kind| totals.counter(*kind));
        let kinds: Vec<u64> = kinds.collect();
        assert_eq!(totals.counter(Counter::Commits), kinds.iter().sum::<u64>());
        (kinds.try_into().unwrap(), totals.counter(Counter::Rollbacks))
    }

    #[track_caller]
    fn is_counted(&mut self, as_kinds: Kinds, work: impl FnOnce(&mut World)) {
        assert_eq!(self.counted(work), (as_kinds, 0));
    }
}

fn unlogged() -> TableDefinition {
    let id = onrush::ColumnDefinition::new("id", onrush::DataType::Int64).not_null();
    let text = onrush::ColumnDefinition::new("note", onrush::DataType::Text);
    let front = TableDefinition::builder("front").column(id).column(text).primary_key(["id"]);
    front.unlogged().build().unwrap()
}

/// Everything that a session does to rows by one call.
fn calls(world: &mut World, kind: Kinds) {
    let (one, two, other) = (world.key(), world.key(), world.key());
    world.is_counted(kind, |w| w.session.insert(&w.table, &note(one, "a")).unwrap());
    world.is_counted(kind, |w| {
        let rows = [note(two, "a"), note(other, "b")];
        w.session.insert_many(&w.table, rows.iter().map(|row| &row[..])).unwrap();
    });
    world.is_counted(kind, |w| w.session.upsert(&w.table, &note(one, "b")).unwrap());
    let (set, moved) = ([("note", "c".into())], [("id", (-one).into())]);
    world.is_counted(kind, |w| assert!(w.session.update(&w.table, &[one.into()], &set).unwrap()));
    world.is_counted(kind, |w| assert!(w.session.update(&w.table, &[one.into()], &moved).unwrap()));
    world.is_counted(kind, |w| assert!(w.session.delete(&w.table, &[two.into()]).unwrap()));
    world.is_counted(kind, |w| {
        let mut transaction = w.session.begin().unwrap();
        transaction.insert(&w.table, &note(two, "a")).unwrap();
        transaction.delete(&w.table, &[other.into()]).unwrap();
        transaction.commit().unwrap();
    });
}

#[test]
fn durable_calls_are_durable_commits() {
    calls(&mut World::new(), DURABLE);
}

#[test]
fn delayed_calls_are_delayed_commits() {
    let mut world = World::new();
    world.session.set_durability(Durability::Delayed);
    calls(&mut world, DELAYED);
    let key = world.key();
    world.is_counted(DURABLE, |w| {
        let mut transaction = w.session.begin().unwrap();
        transaction.insert(&w.table, &note(key, "must not be lost")).unwrap();
        transaction.commit_as(Durability::Durable).unwrap();
    });
}

/// Their session is as durable, wherever the waiting is done.
#[test]
fn durable_calls_that_the_program_waits_for_are_durable_commits() {
    let mut world = World::new();
    world.session.set_waits_later(true);
    calls(&mut world, DURABLE);
    world.is_counted(NOTHING, |w| w.session.take_rest().unwrap().wait().unwrap());
}

/// When they have happened, whether or not anybody waits.
#[test]
fn commits_with_a_token_are_counted_once_as_such() {
    let mut world = World::new();
    let (one, two, three) = (world.key(), world.key(), world.key());
    let mut tokens = Vec::new();
    world.is_counted(TOKEN, |w| {
        tokens.push(w.session.insert_token(&w.table, &note(one, "a")).unwrap())
    });
    world.is_counted(TOKEN, |w| {
        let rows = [note(two, "a")];
        let rows = rows.iter().map(|row| &row[..]);
        tokens.push(w.session.insert_many_token(&w.table, rows).unwrap());
    });
    world.is_counted(TOKEN, |w| {
        let mut transaction = w.session.begin().unwrap();
        transaction.insert(&w.table, &note(three, "a")).unwrap();
        tokens.push(transaction.commit_token().unwrap());
    });
    world.is_counted(NOTHING, |_| tokens.iter().for_each(|token| token.wait().unwrap()));
}

#[test]
fn commits_of_unlogged_rows_alone_are_of_their_own_kind() {
    let mut world = World::new();
    let (one, two, three) = (world.key(), world.key(), world.key());
    world.is_counted(UNLOGGED, |w| w.session.insert(&w.front, &note(one, "a")).unwrap());
    world
        .is_counted(UNLOGGED, |w| drop(w.session.insert_token(&w.front, &note(two, "a")).unwrap()));
    world.is_counted(UNLOGGED, |w| {
        let mut transaction = w.session.begin().unwrap();
        transaction.insert(&w.front, &note(three, "a")).unwrap();
        transaction.commit().unwrap();
    });
    // A transaction that is logged for one of its rows is logged.
    world.is_counted(DURABLE, |w| {
        let mut transaction = w.session.begin().unwrap();
        transaction.delete(&w.front, &[one.into()]).unwrap();
        transaction.insert(&w.table, &note(one, "a")).unwrap();
        transaction.commit().unwrap();
    });
    let moved = |w: &mut World| assert_eq!(w.session.move_rows(&w.front, &w.table, 1).unwrap(), 1);
    world.is_counted(DURABLE, moved);
}

#[test]
fn what_changes_nothing_is_no_commit() {
    let mut world = World::new();
    let (one, two) = (world.key(), world.key());
    world.session.insert(&world.table, &note(one, "a")).unwrap();
    let set = [("note", "c".into())];
    world.is_counted(NOTHING, |w| {
        let again = w.session.insert(&w.table, &note(one, "a"));
        assert!(matches!(again, Err(Error::DuplicateKey { .. })));
        assert!(!w.session.update(&w.table, &[two.into()], &set).unwrap());
        assert!(!w.session.delete(&w.table, &[two.into()]).unwrap());
        w.session.insert_many(&w.table, []).unwrap();
        drop(w.session.insert_many_token(&w.table, []).unwrap());
        assert!(w.session.get(&w.table, &[one.into()]).unwrap().is_some());
        w.session.begin().unwrap().commit().unwrap();
        drop(w.session.begin().unwrap().commit_token().unwrap());
        let mut other = w.db.session().unwrap();
        let mut late = other.begin().unwrap();
        late.insert(&w.table, &note(two, "a")).unwrap();
        w.db.session().unwrap().get(&w.table, &[two.into()]).unwrap();
        drop(late);
    });
    let rolled_back = world.counted(|w| {
        let mut transaction = w.session.begin().unwrap();
        transaction.insert(&w.table, &note(two, "a")).unwrap();
        transaction.rollback();
    });
    assert_eq!(rolled_back, (NOTHING, 1));
}

#[test]
fn definitions_are_durable_commits() {
    let mut world = World::new();
    world.is_counted(DURABLE, |w| {
        drop(w.db.create_table(notes().renamed("more").unwrap()).unwrap())
    });
    world.is_counted(DURABLE, |w| w.db.truncate_table("more").unwrap());
    world.is_counted(DURABLE, |w| w.db.drop_table("more").unwrap());
}

/// A commit that waits for no sync is not among those that a sync serves.
#[test]
fn commits_per_sync_are_logged_commits_by_syncs() {
    let mut world = World::new();
    let before = world.db.statistics();
    let mut tokens = Vec::new();
    for _ in 0..40 {
        let key = world.key();
        tokens.push(world.session.insert_token(&world.table, &note(key, "a")).unwrap());
        world.session.insert(&world.front, &note(key, "a")).unwrap();
    }
    tokens.iter().for_each(|token| token.wait().unwrap());
    let load = world.db.statistics().since(&before);
    let rates = load.rates();
    assert_eq!(load.totals.counter(Counter::Commits), 80);
    assert_eq!(rates.commits_per_sync, Some(40.0 / load.log.syncs as f64));
    assert!((rates.commits * rates.seconds - 80.0).abs() < 1e-6);
}
