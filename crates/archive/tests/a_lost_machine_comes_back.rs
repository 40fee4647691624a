//! What was archived comes back on another machine, whatever became of the first one.

#![allow(clippy::unwrap_used)]

mod world;

use onrush_archive::{ArchiveError, FencedBecause, FromArchive};
use onrush_check::LogLimit;
use world::*;

fn all(to: i64) -> Vec<i64> {
    (0..to).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_was_archived_is_there_under_a_new_history() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    machine.insert(0..50);
    let mut archiver = machine.archiver(&store);
    archiver.back_up().await.unwrap();
    machine.insert(50..80);
    machine.db.checkpoint().unwrap();
    let end = machine.insert(80..120);
    catch_up(&mut archiver).await.unwrap();
    assert_eq!(archiver.safe_lsn(), end);
    machine.insert(120..130);

    let (successor, report) = try_restored(&store, &FromArchive::default()).unwrap();
    assert_eq!(successor.numbers(), all(120));
    let from = successor.db.restored_from().unwrap();
    assert_eq!((from.history, from.lsn), (machine.db.id(), end));
    assert_ne!(successor.db.id(), machine.db.id());
    assert!(report.is_closed && report.missing.is_none(), "{report}");
    // It goes on, and so does its own archive.
    successor.insert(120..140);
    let mut archiver = successor.archiver(&store);
    archiver.back_up().await.unwrap();
    assert_eq!(restored(&store).numbers(), all(140));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_thought_lost_archives_nothing_any_more() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    let mut archiver = machine.archiver(&store);
    machine.insert(0..10);
    let end = archiver.back_up().await.unwrap();
    restored(&store);
    machine.insert(10..20);
    for _ in 0..2 {
        let refused = archiver.step().await.unwrap_err();
        assert!(
            matches!(&refused, ArchiveError::Fenced { because: FencedBecause::Closed { lsn } } if *lsn == end),
            "{refused}"
        );
    }
    assert_eq!(archiver.safe_lsn(), end);
    // Nor after a restart, and inserts go on.
    let machine = machine.restarted();
    machine.insert(20..30);
    let refused = machine.archiver(&store).step().await.unwrap_err();
    assert!(refused.to_string().contains("was closed"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_archived_while_the_history_is_closed_is_in_the_successor() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    let mut archiver = machine.archiver(&store);
    machine.insert(0..10);
    archiver.back_up().await.unwrap();
    // Not closed: looked at only.
    let look = FromArchive { closes: false, ..FromArchive::default() };
    assert_eq!(try_restored(&store, &look).unwrap().0.numbers(), all(10));
    machine.insert(10..20);
    catch_up(&mut archiver).await.unwrap();
    assert_eq!(restored(&store).numbers(), all(20));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_goes_to_the_position_that_is_asked_for() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    let mut archiver = machine.archiver(&store);
    machine.insert(0..10);
    archiver.back_up().await.unwrap();
    let wanted = machine.insert(10..15);
    machine.insert(15..30);
    machine.db.checkpoint().unwrap();
    archiver.back_up().await.unwrap();
    let limit = LogLimit::Lsn(wanted);
    let options = FromArchive { limit, closes: false, ..FromArchive::default() };
    assert_eq!(try_restored(&store, &options).unwrap().0.numbers(), all(15));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_without_an_archive_and_one_with_several_are_told_apart() {
    let store = FaultyStore::new();
    let refused = try_restored(&store, &FromArchive::default()).map(drop).unwrap_err();
    assert!(matches!(refused, ArchiveError::NoArchive { .. }), "{refused}");
    let (one, other) = (Machine::new(), Machine::new());
    for machine in [&one, &other] {
        machine.insert(0..10);
        machine.archiver(&store).back_up().await.unwrap();
    }
    other.insert(10..12);
    other.archiver(&store).back_up().await.unwrap();
    let refused = try_restored(&store, &FromArchive::default()).map(drop).unwrap_err();
    let word = format!("{:032x}", one.db.id());
    assert!(refused.to_string().contains(&word), "{refused}");
    let place = store.place().of_history(other.db.id());
    let (successor, _) = try_restored_of(&place, &FromArchive::default()).unwrap();
    assert_eq!(successor.numbers(), all(12));
    // One of them is closed now and has no archive of its own yet, so the other one is meant.
    assert_eq!(restored(&store).numbers(), all(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn log_without_a_complete_backup_is_no_archive() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    machine.insert(0..10);
    let mut archiver = machine.archiver(&store);
    catch_up(&mut archiver).await.unwrap();
    assert!(archiver.is_backup_due());
    assert_eq!(archiver.safe_lsn(), onrush::Lsn::ZERO);
    let refused = try_restored(&store, &FromArchive::default()).map(drop).unwrap_err();
    assert!(matches!(refused, ArchiveError::NoBackup { .. }), "{refused}");
}
