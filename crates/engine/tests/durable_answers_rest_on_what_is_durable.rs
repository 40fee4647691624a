//! What a durable session is told survives a power cut: the refusal, the *no such row*, the commit of a
//! transaction that only read. Its rows need not, unless the program waits for what they rest on.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::faulty_disk::FaultyDisk;
use common::{Fixture, note, notes};
use onrush::{Database, Durability, Error, Lsn, Options, ScanOptions, Session, Table, Wait};

/// Asks of a session, and says whether it was told what is there, and not something else.
type Ask = fn(&mut Session, &Table) -> bool;

/// Told by a call of the session's or of its transaction's.
const ASKED: [(&str, Ask); 9] = [
    ("a taken key", |session, table| is_taken(session.insert(table, &note(1, "mine")))),
    ("a taken key of a batch", |session, table| {
        let rows = [note(7, "mine"), note(1, "mine")];
        is_taken(session.insert_many(table, rows.iter().map(|row| &row[..])))
    }),
    ("nothing to delete", |session, table| !session.delete(table, &[2.into()]).unwrap()),
    ("nothing to change", |session, table| {
        !session.update(table, &[2.into()], &[("note", "x".into())]).unwrap()
    }),
    ("a key that a row cannot move to", |session, table| {
        is_taken(session.update(table, &[4.into()], &[("id", 1.into())]).map(drop))
    }),
    ("a taken key in a transaction", |session, table| {
        is_taken(session.begin().unwrap().insert(table, &note(1, "mine")))
    }),
    ("nothing to delete in a transaction", |session, table| {
        !session.begin().unwrap().delete(table, &[2.into()]).unwrap()
    }),
    ("nothing to change in a transaction", |session, table| {
        let mut transaction = session.begin().unwrap();
        !transaction.update(table, &[2.into()], &[("note", "x".into())]).unwrap()
    }),
    ("the end of a transaction that only read", |session, table| {
        let mut transaction = session.begin().unwrap();
        let row = transaction.get(table, &[1.into()]).unwrap();
        transaction.commit().unwrap();
        row.is_some()
    }),
];

fn is_taken(outcome: Result<(), Error>) -> bool {
    matches!(outcome, Err(Error::DuplicateKey { .. }))
}

struct World {
    disk: FaultyDisk,
    db: Database,
    table: Table,
    _fixture: Fixture,
}

impl World {
    fn new() -> World {
        let disk = FaultyDisk::default();
        let mut fixture = Fixture::on(Arc::new(disk.clone()));
        // The disk is held for longer than any delayed commit would wait.
        fixture.options = Options { delayed_window_ms: 600_000, ..fixture.options };
        let (db, table) = fixture.create_with(notes());
        let mut session = db.session().unwrap();
        for id in 2..5 {
            session.insert(&table, &note(id, "old")).unwrap();
        }
        World { disk, db, table, _fixture: fixture }
    }

    /// Row 1 comes, row 2 goes and row 3 changes, and nothing of it is durable. Where that ends.
    fn change(&self) -> Lsn {
        self.disk.hold_syncs();
        let mut session = common::delayed_session(&self.db);
        session.insert(&self.table, &note(1, "new")).unwrap();
        session.delete(&self.table, &[2.into()]).unwrap();
        session.update(&self.table, &[3.into()], &[("note", "new".into())]).unwrap();
        session.last_commit_lsn().unwrap()
    }

    fn someone_waits(&self) -> bool {
        self.db.sessions().iter().any(|session| session.waits_now == Some(Wait::WriteLog))
    }

    /// Whether all below `end` is durable when `asked` returns. The disk is held until it has returned, or
    /// waits.
    fn is_durable_when_told(&self, end: Lsn, asked: impl FnOnce() + Send) -> bool {
        std::thread::scope(|scope| {
            let told = scope.spawn(|| {
                asked();
                self.db.durable_lsn() >= end
            });
            while !told.is_finished() && !self.someone_waits() {
                std::thread::yield_now();
            }
            self.disk.release_syncs();
            told.join().unwrap()
        })
    }
}

#[test]
fn no_refusal_and_no_count_is_told_before_what_it_rests_on_is_durable() {
    for (what, ask) in ASKED {
        let world = World::new();
        let mut session = world.db.session().unwrap();
        let end = world.change();
        let is_durable = world.is_durable_when_told(end, || {
            assert!(ask(&mut session, &world.table), "{what}");
        });
        // One round makes all three changes durable.
        assert!(is_durable, "{what}");
    }
}

#[test]
fn a_conflict_is_told_when_the_change_that_came_first_is_durable() {
    let world = World::new();
    let mut session = world.db.session().unwrap();
    let mut late = session.begin().unwrap();
    let end = world.change();
    late.update(&world.table, &[3.into()], &[("note", "mine".into())]).unwrap();
    let is_durable = world.is_durable_when_told(end, || {
        let refused = late.commit();
        assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    });
    assert!(is_durable);
}

/// Rows, too, by whichever way they are read.
#[test]
fn a_program_that_waits_later_is_told_what_its_answers_rest_on() {
    let reads: [(&str, Ask); 8] = [
        ("get", |session, table| session.get(table, &[1.into()]).unwrap().is_some()),
        ("get of nothing", |session, table| session.get(table, &[2.into()]).unwrap().is_none()),
        ("scan", |session, table| {
            session.scan(table, &ScanOptions::default()).unwrap().count() == 3
        }),
        ("snapshot", |session, table| {
            session.snapshot().unwrap().get(table, &[1.into()]).unwrap().is_some()
        }),
        ("get in a transaction", |session, table| {
            session.begin().unwrap().get(table, &[1.into()]).unwrap().is_some()
        }),
        ("get of nothing in a transaction", |session, table| {
            session.begin().unwrap().get(table, &[2.into()]).unwrap().is_none()
        }),
        ("scan in a transaction", |session, table| {
            let mut transaction = session.begin().unwrap();
            transaction.scan(table, &ScanOptions::default()).unwrap().count() == 3
        }),
        ("snapshot of a transaction", |session, table| {
            let snapshot = session.begin().unwrap().snapshot();
            snapshot.scan(table, &ScanOptions::default()).unwrap().count() == 3
        }),
    ];
    for (what, ask) in reads.into_iter().chain(ASKED) {
        let world = World::new();
        let mut session = world.db.session().unwrap();
        session.set_waits_later(true);
        world.change();
        assert!(ask(&mut session, &world.table), "{what}");
        let rest = session.take_rest().unwrap_or_else(|| panic!("{what} rests on nothing"));
        assert!(!rest.is_durable(), "{what}");
        assert!(session.take_rest().is_none_or(|rest| rest.is_durable()), "{what}: taken");
        world.disk.release_syncs();
        rest.wait().unwrap();
    }
}

#[test]
fn what_is_old_rests_on_nothing_that_must_be_waited_for() {
    let world = World::new();
    let mut session = world.db.session().unwrap();
    session.set_waits_later(true);
    world.change();
    assert!(session.get(&world.table, &[4.into()]).unwrap().is_some());
    assert!(session.get(&world.table, &[99.into()]).unwrap().is_none());
    drop(session.begin().unwrap());
    assert!(session.take_rest().is_none_or(|rest| rest.is_durable()));
    session.set_durability(Durability::Delayed);
    assert!(session.get(&world.table, &[1.into()]).unwrap().is_some());
    assert!(session.take_rest().is_none(), "a delayed session promises nothing");
    world.disk.release_syncs();
}
