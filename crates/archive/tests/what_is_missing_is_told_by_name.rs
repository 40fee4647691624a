//! Damaged and missing objects are told by their names, and what is before them is taken if that is asked for.

#![allow(clippy::unwrap_used)]

mod world;

use std::sync::Arc;

use onrush_archive::{ArchiveError, FromArchive};
use world::*;

/// An archive of 80 commits, and the object of the log that begins with the commit of 40.
async fn archived() -> (Machine, Arc<FaultyStore>, String) {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    machine.insert(0..20);
    let mut archiver = machine.archiver(&store);
    archiver.back_up().await.unwrap();
    machine.insert(20..40);
    catch_up(&mut archiver).await.unwrap();
    let before = store.log(machine.db.id()).await.len();
    machine.insert(40..60);
    catch_up(&mut archiver).await.unwrap();
    machine.insert(60..80);
    catch_up(&mut archiver).await.unwrap();
    let name = store.log(machine.db.id()).await.swap_remove(before);
    (machine, store, name)
}

fn far() -> FromArchive {
    FromArchive { as_far_as_possible: true, ..FromArchive::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_gone() {
    let (_machine, store, object) = archived().await;
    store.remove(&object).await;
    let refused = try_restored(&store, &FromArchive::default()).map(drop).unwrap_err();
    let name = object.split_once('/').unwrap().1;
    assert!(refused.to_string().contains(name), "{refused}");
    let (successor, report) = try_restored(&store, &far()).unwrap();
    assert_eq!(successor.numbers(), (0..40).collect::<Vec<_>>());
    assert!(report.missing.unwrap().contains(name));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_damaged() {
    let (_machine, store, object) = archived().await;
    store.damage(&object).await;
    let refused = try_restored(&store, &FromArchive::default()).map(drop).unwrap_err();
    let name = object.split_once('/').unwrap().1;
    assert!(refused.to_string().contains(name), "{refused}");
    assert_eq!(try_restored(&store, &far()).unwrap().0.numbers(), (0..40).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_backup() {
    let (machine, store, _) = archived().await;
    machine.db.checkpoint().unwrap();
    machine.archiver(&store).back_up().await.unwrap();
    let history = machine.db.id();
    let names = store.names(&format!("{history:032x}/backup")).await;
    let part = names.iter().rfind(|name| name.contains("part-")).unwrap();
    store.damage(part).await;
    let refused = try_restored(&store, &FromArchive::default()).map(drop).unwrap_err();
    assert!(
        matches!(&refused, ArchiveError::Damaged { object, .. } if part.ends_with(object)),
        "{refused}"
    );
    // The backup before will do.
    assert_eq!(try_restored(&store, &far()).unwrap().0.numbers(), (0..80).collect::<Vec<_>>());
}
