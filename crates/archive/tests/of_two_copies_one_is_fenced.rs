//! A folder that was copied: of both copies one goes on, and the other is told why it does not.

#![allow(clippy::unwrap_used)]

mod world;

use onrush_archive::{ArchiveError, FencedBecause};
use world::*;

fn because(error: ArchiveError) -> FencedBecause {
    match error {
        ArchiveError::Fenced { because } => because,
        error => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_one_that_comes_second_is_refused_whatever_it_has() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    machine.insert(0..20);
    machine.archiver(&store).back_up().await.unwrap();
    let copy = Machine::open(machine.disk.copy(), "/db");
    machine.insert(20..30);
    copy.insert(100..140);
    let (mut first, mut second) = (machine.archiver(&store), copy.archiver(&store));
    catch_up(&mut first).await.unwrap();
    let refused = because(catch_up(&mut second).await.unwrap_err());
    assert!(matches!(refused, FencedBecause::OtherLog { .. }), "{refused}");
    // For good, and inserts go on.
    copy.insert(140..150);
    assert!(second.step().await.is_err());
    machine.insert(30..40);
    catch_up(&mut first).await.unwrap();
    assert_eq!(restored(&store).numbers(), (0..40).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_run_side_by_side_part_at_the_first_object_that_differs() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    machine.insert(0..20);
    machine.archiver(&store).back_up().await.unwrap();
    machine.insert(20..25);
    let copy = Machine::open(machine.disk.copy(), "/db");
    let (mut first, mut second) = (machine.archiver(&store), copy.archiver(&store));
    // The same log in both: either may archive it.
    first.step().await.unwrap();
    second.step().await.unwrap();
    copy.insert(100..110);
    machine.insert(25..30);
    catch_up(&mut second).await.unwrap();
    let refused = because(catch_up(&mut first).await.unwrap_err());
    assert!(matches!(refused, FencedBecause::OtherLog { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_does_not_go_on_where_the_newer_one_is() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    machine.insert(0..20);
    let copy = machine.disk.copy();
    machine.insert(20..200);
    machine.archiver(&store).back_up().await.unwrap();
    let copy = Machine::open(copy, "/db");
    let refused = because(copy.archiver(&store).step().await.unwrap_err());
    assert!(matches!(refused, FencedBecause::Ahead { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_begin_an_archive_at_once_do_not_both_go_on() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    machine.insert(0..20);
    let copy = Machine::open(machine.disk.copy(), "/db");
    machine.insert(20..30);
    machine.db.checkpoint().unwrap();
    copy.insert(100..140);
    let (mut first, mut second) = (machine.archiver(&store), copy.archiver(&store));
    first.step().await.unwrap();
    assert!(matches!(second.step().await, Err(ArchiveError::Fenced { .. })));
    first.back_up().await.unwrap();
    assert_eq!(restored(&store).numbers(), (0..30).collect::<Vec<_>>());
}
