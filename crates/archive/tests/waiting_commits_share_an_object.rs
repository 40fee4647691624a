//! A commit may wait until it would survive the loss of its machine; all who wait share one object.

#![allow(clippy::unwrap_used)]

mod world;

use std::time::Duration;

use onrush_archive::{Archive, ArchiveError, ArchiveOptions, Phase};
use world::*;

/// By time alone nothing would come in these tests.
fn options() -> ArchiveOptions {
    ArchiveOptions {
        interval: Duration::from_secs(3600),
        pause: Duration::from_millis(1),
        ..archive_options()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_is_served_at_once_and_together() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    let archive = Archive::start(&machine.db, &store.place(), options()).unwrap();
    // The first one waits for the first backup, too.
    archive.wait(machine.insert(0..10)).await.unwrap();
    assert_eq!(archive.state().phase, Phase::Running);
    let before = store.creates();
    let waits: Vec<_> =
        (10..60).map(|number| archive.wait(machine.insert(number..number + 1))).collect();
    for wait in waits {
        wait.await.unwrap();
    }
    let creates = store.creates() - before;
    assert!(creates < 50, "{creates} objects for 50 commits");
    assert!(archive.is_safe(machine.db.durable_lsn()));
    drop(archive);
    assert_eq!(restored(&store).numbers(), (0..60).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_while_the_store_is_away_waits_until_it_is_back() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    let archive = Archive::start(&machine.db, &store.place(), options()).unwrap();
    archive.wait(machine.insert(0..10)).await.unwrap();
    store.set_away(true);
    let wait = tokio::spawn(archive.wait(machine.insert(10..20)));
    while archive.state().phase != Phase::Away {
        tokio::task::yield_now().await;
    }
    assert!(!wait.is_finished());
    store.set_away(false);
    wait.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_on_a_fenced_archive_is_told() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    let archive = Archive::start(&machine.db, &store.place(), options()).unwrap();
    archive.wait(machine.insert(0..10)).await.unwrap();
    restored(&store);
    let refused = archive.wait(machine.insert(10..20)).await.unwrap_err();
    assert!(matches!(refused, ArchiveError::Fenced { .. }), "{refused}");
    let state = archive.state();
    assert_eq!(state.phase, Phase::Fenced);
    assert!(state.cause.unwrap().contains("was closed"));
    machine.insert(20..30);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_durable_is_archived_when_the_database_is_closed() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    let archive = Archive::start(&machine.db, &store.place(), options()).unwrap();
    archive.back_up().await.unwrap();
    machine.insert(0..10);
    machine.db.clone().close().unwrap();
    archive.stop();
    assert_eq!(restored(&store).numbers(), (0..10).collect::<Vec<_>>());
}
