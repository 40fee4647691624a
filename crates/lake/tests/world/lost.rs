//! Scenarios of a node that is lost, and of one that was restored from its backup, for every lake.

// The ranges of one node's keys, of which there is often one.
#![allow(clippy::single_range_in_vec_init)]

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use onrush::{Database, Options};
use onrush_lake::drain::attachment::Attachment;
use onrush_lake::{FencedBecause, Identity, LakeError, NodeId};
use tempfile::TempDir;

use super::Fault;
use super::lake::Lake;
use super::node::{
    Backup, EVENTS, NODE, Node, attach, create, create_alone, define, first, insert, open, open_as,
};

/// Lake, folder, and a node that has brought ten rows.
async fn begin(lake: &Lake) -> (TempDir, Node) {
    let folder = tempfile::tempdir().unwrap();
    let node = create(&folder.path().join("db"), lake);
    node.insert(0..10);
    node.flush().await.unwrap();
    (folder, node)
}

fn place(folder: &TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}

fn back_up(node: &Node, folder: &TempDir, name: &str) -> (PathBuf, Backup) {
    let place = place(folder, name);
    let backup = node.back_up(&place);
    (place, backup)
}

/// Ids by node.
async fn in_lake(lake: &Lake, table: &str) -> BTreeMap<i32, Vec<i64>> {
    let mut ids: BTreeMap<i32, Vec<i64>> = BTreeMap::new();
    for row in lake.rows(table).await {
        ids.entry(row.node).or_default().push(row.id);
    }
    ids
}

async fn check(lake: &Lake, expected: &[(i32, &[Range<i64>])]) {
    let ids = |ranges: &[Range<i64>]| ranges.iter().cloned().flatten().collect::<Vec<i64>>();
    let expected: BTreeMap<i32, Vec<i64>> =
        expected.iter().map(|(node, ranges)| (*node, ids(ranges))).collect();
    assert_eq!(in_lake(lake, EVENTS).await, expected);
}

async fn fence(node: &Node) -> FencedBecause {
    match node.flush().await {
        Err(LakeError::Fenced { because, .. }) => *because,
        other => panic!("not fenced: {other:?}"),
    }
}

/// Tries as the drain's thread does, turn by turn.
async fn flush(node: &Node) {
    for _ in 0..10 {
        match node.flush().await {
            Err(LakeError::Away { .. }) => {}
            other => return other.unwrap(),
        }
    }
    panic!("it never comes through: {:?}", node.drain.states());
}

pub async fn rows_that_were_restored_and_not_drained_come_under_the_new_number(lake: Lake) {
    let (folder, node) = begin(&lake).await;
    node.insert(10..20);
    let (place, backup) = back_up(&node, &folder, "copy");
    drop(node);
    let mut node = backup.restore(&place, 8, &lake);
    node.flush().await.unwrap();
    check(&lake, &[(7, &[0..10]), (8, &[10..20])]).await;
    for round in 2..5 {
        node.insert(round * 10..round * 10 + 10);
        node.flush().await.unwrap();
        check(&lake, &[(7, &[0..10]), (8, &[10..round * 10 + 10])]).await;
        node = node.reopen(&place, &lake);
    }
}

pub async fn rows_that_the_lake_has_and_the_backup_has_not_stay(lake: Lake) {
    let (folder, node) = begin(&lake).await;
    let (place, backup) = back_up(&node, &folder, "copy");
    node.insert(10..300);
    node.flush().await.unwrap();
    drop(node);
    let node = backup.restore(&place, 8, &lake);
    node.flush().await.unwrap();
    node.insert(1000..1010);
    node.flush().await.unwrap();
    check(&lake, &[(7, &[0..300]), (8, &[1000..1010])]).await;
}

pub async fn a_backup_that_ends_where_the_lake_does_goes_on_there(lake: Lake) {
    let (folder, node) = begin(&lake).await;
    let (place, backup) = back_up(&node, &folder, "copy");
    drop(node);
    let node = backup.restore(&place, 8, &lake);
    node.insert(10..20);
    node.flush().await.unwrap();
    check(&lake, &[(7, &[0..10]), (8, &[10..20])]).await;
}

pub async fn a_node_that_was_lost_before_it_drained_anything_is_closed_too(lake: Lake) {
    let folder = tempfile::tempdir().unwrap();
    let old = create_alone(&place(&folder, "db"), 0..10);
    let place = place(&folder, "copy");
    let node = Backup::of(&old, first(&old), &place).restore(&place, 8, &lake);
    node.flush().await.unwrap();
    let because = fence(&open(old, &lake)).await;
    assert!(matches!(because, FencedBecause::Closed { by: NodeId(8), .. }), "{because}");
    check(&lake, &[(8, &[0..10])]).await;
}

pub async fn who_lives_on_as_the_lost_node_brings_nothing_any_more(lake: Lake) {
    let (folder, mut old) = begin(&lake).await;
    let (place_of_copy, backup) = back_up(&old, &folder, "copy");
    let node = backup.restore(&place_of_copy, 8, &lake);
    node.insert(100..110);
    node.flush().await.unwrap();
    old.insert(10..20);
    for _ in 0..2 {
        let because = fence(&old).await;
        assert!(matches!(because, FencedBecause::Closed { by: NodeId(8), .. }), "{because}");
        assert!(because.to_string().contains("Stop this server"), "{because}");
        assert_eq!(old.drain.states()[0].phase.word(), "stopped");
        // Nor after a restart.
        old = old.reopen(&place(&folder, "db"), &lake);
    }
    node.insert(110..120);
    node.flush().await.unwrap();
    check(&lake, &[(7, &[0..10]), (8, &[100..120])]).await;
}

pub async fn what_the_lost_node_has_in_flight_comes_before_the_claim_or_not_at_all(lake: Lake) {
    // Whether rows that were in flight are in the backup, too.
    for is_in_backup in [true, false] {
        for is_before_claim in [true, false] {
            let lake = lake.another().await;
            let (folder, old) = begin(&lake).await;
            let (place, backup);
            if is_in_backup {
                old.insert(10..20);
                (place, backup) = back_up(&old, &folder, "copy");
            } else {
                (place, backup) = back_up(&old, &folder, "copy");
                old.insert(10..20);
            }
            lake.fail_commits([Fault::Delay]).await;
            lake.go_away_after_commit().await;
            assert!(matches!(old.flush().await, Err(LakeError::Away { .. })));
            drop(old);
            lake.heal().await;
            if is_before_claim {
                // It arrives between the look and the claim.
                lake.fail_commits([Fault::AfterDelayed]).await;
            }
            let node = backup.restore(&place, 8, &lake);
            node.insert(100..110);
            flush(&node).await;
            let late = lake.release().await;
            assert_eq!(late, (!is_before_claim).then_some(false), "what was on its way");
            node.insert(110..120);
            flush(&node).await;
            let new = 100..120;
            match (is_in_backup, is_before_claim) {
                (_, true) => check(&lake, &[(7, &[0..20]), (8, &[new])]).await,
                (true, false) => check(&lake, &[(7, &[0..10]), (8, &[10..20, new])]).await,
                (false, false) => check(&lake, &[(7, &[0..10]), (8, &[new])]).await,
            }
        }
    }
}

pub async fn a_closing_claim_whose_answer_is_lost_is_applied_once(lake: Lake) {
    let mut faults = vec![Fault::LoseRequest, Fault::LoseAnswer, Fault::Twice, Fault::Lie];
    if !lake.is_postgres() {
        // There its lock keeps the next claim away until it has arrived.
        faults.push(Fault::Delay);
    }
    for fault in faults {
        for ends_meanwhile in [true, false] {
            let lake = lake.another().await;
            let (folder, old) = begin(&lake).await;
            old.insert(10..20);
            let (place, backup) = back_up(&old, &folder, "copy");
            lake.fail_commits([fault]).await;
            if ends_meanwhile {
                lake.go_away_after_commit().await;
            }
            let mut node = backup.restore(&place, 8, &lake);
            if ends_meanwhile {
                assert!(matches!(node.flush().await, Err(LakeError::Away { .. })));
                lake.heal().await;
                node = node.reopen(&place, &lake);
            }
            flush(&node).await;
            lake.release().await;
            node.insert(20..30);
            flush(&node).await;
            check(&lake, &[(7, &[0..10]), (8, &[10..30])]).await;
            assert!(matches!(fence(&old).await, FencedBecause::Closed { .. }), "{fault:?}");
        }
    }
}

pub async fn who_is_restored_again_closes_all_that_were_lost(lake: Lake) {
    let (folder, first) = begin(&lake).await;
    first.insert(10..20);
    let (place, backup) = back_up(&first, &folder, "second");
    let second = backup.restore(&place, 8, &lake);
    second.insert(20..30);
    second.flush().await.unwrap();
    second.insert(30..40);
    let (place, backup) = back_up(&second, &folder, "third");
    second.insert(40..50);
    let third = backup.restore(&place, 9, &lake);
    third.insert(100..110);
    third.flush().await.unwrap();
    let expected: [(i32, &[Range<i64>]); 3] =
        [(7, &[0..10]), (8, &[10..30]), (9, &[30..40, 100..110])];
    check(&lake, &expected).await;
    for (node, by) in [(&first, 8), (&second, 9)] {
        let because = fence(node).await;
        let is_closed = matches!(because, FencedBecause::Closed { by: NodeId(it), .. } if it == by);
        assert!(is_closed, "{because}");
    }
}

pub async fn who_is_restored_again_closes_also_who_never_drained(lake: Lake) {
    let (folder, first) = begin(&lake).await;
    first.insert(10..20);
    let (place, backup) = back_up(&first, &folder, "second");
    let second = Database::open(&place, Options::small()).unwrap();
    let identity = backup.identity(&second, 8);
    insert(&second, 20..40);
    let place = folder.path().join("third");
    let backup = Backup::of(&second, identity.clone(), &place);
    insert(&second, 40..50);
    let third = backup.restore(&place, 9, &lake);
    third.insert(100..110);
    third.flush().await.unwrap();
    let second = open_as(identity, second, &lake);
    check(&lake, &[(7, &[0..10]), (9, &[10..40, 100..110])]).await;
    for node in [first, second] {
        let because = fence(&node).await;
        let told = because.to_string();
        assert!(told.contains("node 9") || told.contains("node 8"), "{told}");
    }
    check(&lake, &[(7, &[0..10]), (9, &[10..40, 100..110])]).await;
}

pub async fn of_two_databases_that_were_restored_from_one_backup_one_goes_on(lake: Lake) {
    let (folder, old) = begin(&lake).await;
    old.insert(10..20);
    let (place, backup) = back_up(&old, &folder, "copy");
    let (other_place, other) = back_up(&old, &folder, "other");
    let node = backup.restore(&place, 8, &lake);
    node.flush().await.unwrap();
    let other_node = other.restore(&other_place, 9, &lake);
    other_node.insert(200..210);
    for _ in 0..2 {
        let because = fence(&other_node).await;
        let taken = FencedBecause::LostNodeIsTaken { node: NodeId(7), by: NodeId(8) };
        assert_eq!(because, taken);
        assert!(because.to_string().contains("Go on with node 8"), "{because}");
    }
    node.insert(20..30);
    node.flush().await.unwrap();
    check(&lake, &[(7, &[0..10]), (8, &[10..30])]).await;
    // Under the same number, too.
    let (place, again) = back_up(&old, &folder, "again");
    let database = Database::open(&place, Options::small()).unwrap();
    let identity = Identity { history: 1, ..again.identity(&database, 8) };
    let because = fence(&open_as(identity, database, &lake)).await;
    assert!(matches!(because, FencedBecause::OtherHistory { .. }), "{because}");
}

pub async fn each_table_is_closed_where_its_own_mark_is(lake: Lake) {
    let (folder, old) = begin(&lake).await;
    define(&old.database, "visits");
    attach(&old.database, "visits");
    old.drain.refresh();
    let visits = old.database.table("visits").unwrap();
    old.insert_into(&visits, 0..5);
    old.drain.flush(visits.id()).await.unwrap();
    // One is ahead of the backup, the other one behind.
    old.insert(10..20);
    let (place, backup) = back_up(&old, &folder, "copy");
    old.insert_into(&visits, 5..10);
    old.drain.flush(visits.id()).await.unwrap();
    drop((old, visits));
    let node = backup.restore(&place, 8, &lake);
    let visits = node.database.table("visits").unwrap();
    node.insert_into(&visits, 50..60);
    node.flush().await.unwrap();
    node.drain.flush(visits.id()).await.unwrap();
    check(&lake, &[(7, &[0..10]), (8, &[10..20])]).await;
    let visits = in_lake(&lake, "visits").await;
    assert_eq!(visits[&7], (0..10).collect::<Vec<_>>());
    assert_eq!(visits[&8], (50..60).collect::<Vec<_>>());
}

pub async fn a_backup_under_the_number_of_the_lost_node_stays_refused(lake: Lake) {
    let (folder, old) = begin(&lake).await;
    let (place, backup) = back_up(&old, &folder, "copy");
    old.insert(10..20);
    old.flush().await.unwrap();
    let database = Database::open(&place, Options::small()).unwrap();
    let restored = backup.identity(&database, NODE);
    // Neither as the node that was lost, nor with another number and nothing said of the loss.
    let unnoticed = Identity { node: NodeId(8), lost: Vec::new(), ..restored.clone() };
    for identity in [restored, unnoticed] {
        let node = open_as(identity, database.clone(), &lake);
        let because = fence(&node).await.to_string();
        assert!(because.contains("number of its own"), "{because}");
        assert_eq!(node.drain.states()[0].phase.word(), "stopped");
    }
    check(&lake, &[(7, &[0..20])]).await;
}

pub async fn a_table_with_rows_of_a_lost_node_takes_no_other_one(lake: Lake) {
    let (folder, old) = begin(&lake).await;
    let (place, backup) = back_up(&old, &folder, "copy");
    let node = backup.restore(&place, 8, &lake);
    define(&node.database, "others");
    let table = node.database.table("others").unwrap().id();
    let (catalogue, name) = ("prod".to_owned(), format!("lake.{EVENTS}"));
    let attachment = Attachment { table, catalogue, name, lag: Duration::from_secs(1) };
    let refused = node.drain.check(&attachment).await;
    assert!(matches!(refused, Err(LakeError::HasRows { node: NodeId(7), .. })), "{refused:?}");
}
