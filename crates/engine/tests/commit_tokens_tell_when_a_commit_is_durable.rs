//! A token answers, blocks or wakes a task when its commit is durable; nobody has to wait for it.

#![allow(clippy::unwrap_used)]

mod common;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use common::faulty_disk::FaultyDisk;
use common::{Fixture, all_rows, ids, note, notes};
use onrush::{RecorderKind, Wait};

/// Wakes the thread that runs the future: the smallest executor there is.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn a_token_is_durable_once_its_sync_has_returned() {
    let disk = FaultyDisk::default();
    let (db, table) = Fixture::on(Arc::new(disk.clone())).create_with(notes());
    let mut session = db.session().unwrap();
    disk.hold_syncs();
    let token = session.insert_token(&table, &note(1, "one")).unwrap();
    let released = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            token.wait().unwrap();
            assert!(released.load(Ordering::Acquire), "acknowledged before the sync returned");
        });
        scope.spawn(|| {
            block_on(token.clone()).unwrap();
            assert!(released.load(Ordering::Acquire), "acknowledged before the sync returned");
        });
        disk.wait_for_held_sync();
        assert!(!token.is_durable());
        assert!(db.durable_lsn() < token.lsn());
        // It is visible all the same.
        assert_eq!(ids(&all_rows(&mut session, &table)), [1]);
        released.store(true, Ordering::Release);
        disk.release_syncs();
    });
    assert!(token.is_durable());
    assert!(db.durable_lsn() >= token.lsn());
}

#[test]
fn what_a_task_waits_for_is_its_sessions_wait_for_the_log() {
    let disk = FaultyDisk::default();
    let (db, table) = Fixture::on(Arc::new(disk.clone())).create_with(notes());
    let mut session = db.session().unwrap();
    let of_session = || {
        let sessions = db.sessions();
        sessions.into_iter().find(|one| one.kind == RecorderKind::Session).unwrap()
    };
    disk.hold_syncs();
    let token = session.insert_token(&table, &note(1, "one")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| block_on(token.wait_async()).unwrap());
        disk.wait_for_held_sync();
        while of_session().waits_now.is_none() {
            std::thread::yield_now();
        }
        assert_eq!(of_session().waits_now, Some(Wait::WriteLog));
        disk.release_syncs();
    });
    assert_eq!(of_session().waits_now, None);
    let waits: Vec<Wait> = of_session().waits.iter().map(|total| total.wait).collect();
    assert!(waits.contains(&Wait::WriteLog), "{waits:?}");
}

#[test]
fn many_tasks_on_one_thread_wait_for_their_tokens() {
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let tokens: Vec<_> =
        (0..500).map(|id| session.insert_token(&table, &note(id, "task")).unwrap()).collect();
    assert!(tokens.is_sorted_by_key(|token| token.lsn()));
    block_on(async {
        for token in tokens.into_iter().rev() {
            token.clone().await.unwrap();
            assert!(token.is_durable());
        }
    });
}

#[test]
fn dropping_a_token_or_its_future_undoes_nothing() {
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    drop(session.insert_token(&table, &note(1, "dropped")).unwrap());
    let mut future = Box::pin(session.insert_token(&table, &note(2, "polled")).unwrap());
    let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    drop(future);
    let mut transaction = session.begin().unwrap();
    transaction.insert(&table, &note(3, "three")).unwrap();
    transaction.insert(&table, &note(4, "four")).unwrap();
    drop(transaction.commit_token().unwrap());
    drop((session, db));
    let db = fixture.open();
    let rows = all_rows(&mut db.session().unwrap(), &db.table("notes").unwrap());
    assert_eq!(ids(&rows), [1, 2, 3, 4]);
}

#[test]
fn the_session_knows_the_position_of_its_last_commit() {
    let (db, table) = Fixture::in_memory().create_with(notes());
    let mut session = db.session().unwrap();
    assert_eq!(session.last_commit_lsn(), None);
    let token = session.insert_token(&table, &note(1, "one")).unwrap();
    assert_eq!(session.last_commit_lsn(), Some(token.lsn()));
    let mut transaction = session.begin().unwrap();
    transaction.insert(&table, &note(2, "two")).unwrap();
    let token = transaction.commit_token().unwrap();
    assert_eq!(session.last_commit_lsn(), Some(token.lsn()));
}

#[test]
fn a_later_durable_commit_and_a_barrier_make_all_earlier_ones_durable() {
    let fixture = Fixture::new();
    let (db, table) = fixture.create_with(notes());
    let mut session = db.session().unwrap();
    let first = session.insert_token(&table, &note(1, "one")).unwrap();
    session.insert(&table, &note(2, "two")).unwrap();
    assert!(first.is_durable());
    let third = session.insert_token(&table, &note(3, "three")).unwrap();
    db.barrier().unwrap();
    assert!(third.is_durable());
    let fourth = session.insert_token(&table, &note(4, "four")).unwrap();
    while !fourth.is_durable() {
        db.write_log().unwrap();
    }
}
