//! Scenarios of a table that is drained, for every lake.

use onrush::{ColumnDefinition, DataType, Database, Options, TableChange};
use onrush_lake::LakeError;

use super::Fault;
use super::lake::Lake;
use super::node::{EVENTS, create, open};

pub async fn rows_come_once_each_in_rounds_and_across_restarts(lake: Lake) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("db");
    let mut node = create(&folder, &lake);
    node.flush().await.unwrap();
    assert!(lake.ids().await.is_empty());
    for round in 0..5 {
        node.insert(round * 100..round * 100 + 100);
        if round % 2 == 0 {
            node.database.checkpoint().unwrap();
        }
        node.flush().await.unwrap();
        // Nothing is new.
        node.flush().await.unwrap();
        assert_eq!(lake.ids().await, (0..round * 100 + 100).collect::<Vec<_>>());
        node = node.reopen(&folder, &lake);
    }
    // In the order of their commits.
    assert!(lake.rows(EVENTS).await.is_sorted_by_key(|row| row.lsn));
    let state = &node.drain.states()[0];
    assert_eq!((state.rows, state.commits), (0, 0), "of this process");
}

pub async fn a_transaction_comes_whole_also_one_that_is_larger_than_memory(lake: Lake) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("db");
    let node = create(&folder, &lake);
    let mut session = node.session();
    let mut transaction = session.begin().unwrap();
    let note = "n".repeat(1000);
    for id in 0..30_000i64 {
        transaction.insert(&node.table, &[id.into(), note.as_str().into()]).unwrap();
        if id == 20_000 {
            node.insert(30_000..30_010);
            node.flush().await.unwrap();
            // Nobody sees it yet.
            assert_eq!(lake.ids().await.len(), 10);
        }
    }
    transaction.commit().unwrap();
    node.flush().await.unwrap();
    let rows = lake.rows(EVENTS).await;
    assert!(rows.iter().map(|row| row.id).eq(0..30_010));
    assert!(rows[..30_000].iter().all(|row| row.lsn == rows[0].lsn));
}

pub async fn answers_that_are_lost_double_and_lose_nothing(lake: Lake) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("db");
    let mut node = create(&folder, &lake);
    node.flush().await.unwrap();
    let mut last = 0;
    for fault in [Fault::LoseRequest, Fault::LoseAnswer, Fault::Twice, Fault::Lie] {
        node.insert(last..last + 10);
        last += 10;
        lake.fail_commits([fault]).await;
        node.flush().await.unwrap();
        assert_eq!(lake.ids().await, (0..last).collect::<Vec<_>>(), "{fault:?}");
    }
    // The catalogue is away behind the commit, and the database ends before it answers again.
    for (fault, is_applied) in [(Fault::LoseRequest, false), (Fault::LoseAnswer, true)] {
        node.insert(last..last + 10);
        lake.fail_commits([fault]).await;
        lake.go_away_after_commit().await;
        assert!(matches!(node.flush().await, Err(LakeError::Away { .. })));
        assert_eq!(node.drain.states()[0].phase.word(), "away");
        lake.heal().await;
        let known = lake.ids().await.len() as i64;
        assert_eq!(known, if is_applied { last + 10 } else { last });
        last += 10;
        node = node.reopen(&folder, &lake);
        node.flush().await.unwrap();
        assert_eq!(lake.ids().await, (0..last).collect::<Vec<_>>(), "{fault:?}");
    }
    // And goes on without an end of the database, with more rows.
    node.insert(last..last + 10);
    lake.fail_commits([Fault::LoseAnswer]).await;
    lake.go_away_after_commit().await;
    assert!(node.flush().await.is_err());
    node.insert(last + 10..last + 20);
    lake.heal().await;
    node.flush().await.unwrap();
    assert_eq!(lake.ids().await, (0..last + 20).collect::<Vec<_>>());
}

/// Found by `clients/lake/kill.py`: the claim's note took the place of that of the commit before, whose outcome was not
/// known when the node ended.
pub async fn a_claim_that_is_lost_takes_nothing_from_what_was_asked_for_before(lake: Lake) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("db");
    let mut node = create(&folder, &lake);
    node.insert(0..10);
    node.flush().await.unwrap();
    node.insert(10..20);
    lake.fail_commits([Fault::LoseAnswer]).await;
    lake.go_away_after_commit().await;
    assert!(node.flush().await.is_err());
    for _ in 0..3 {
        lake.heal().await;
        node = node.reopen(&folder, &lake);
        lake.fail_commits([Fault::LoseRequest; 100]).await;
        assert!(matches!(node.flush().await, Err(LakeError::Away { .. })));
    }
    lake.heal().await;
    node = node.reopen(&folder, &lake);
    node.flush().await.unwrap();
    assert_eq!(lake.ids().await, (0..20).collect::<Vec<_>>());
}

pub async fn a_first_claim_that_comes_late_is_the_nodes_own(lake: Lake) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("db");
    let lost = [Fault::LoseRequest; 100];
    lake.fail_commits([Fault::Delay].into_iter().chain(lost)).await;
    let mut node = create(&folder, &lake);
    node.insert(0..10);
    assert!(node.flush().await.is_err());
    node = node.reopen(&folder, &lake);
    lake.heal().await;
    lake.fail_commits([Fault::AfterDelayed]).await;
    let _ = node.flush().await;
    node = node.reopen(&folder, &lake);
    node.flush().await.unwrap();
    assert_eq!(lake.ids().await, (0..10).collect::<Vec<_>>());
}

pub async fn a_copy_of_the_database_that_went_another_way_brings_nothing(lake: Lake) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let node = create(&path, &lake);
    node.insert(0..10);
    node.flush().await.unwrap();
    let copied = folder.path().join("copy");
    node.back_up(&copied);
    node.insert(10..20);
    node.flush().await.unwrap();

    let copy = open(Database::open(&copied, Options::small()).unwrap(), &lake);
    copy.insert(100..200);
    let because = copy.flush().await.unwrap_err().to_string();
    assert!(because.contains("copy") && because.contains("backup"), "{because}");
    assert!(matches!(copy.flush().await, Err(LakeError::Fenced { .. })));
    assert_eq!(copy.drain.states()[0].phase.word(), "stopped");
    // The original goes on.
    node.insert(20..30);
    node.flush().await.unwrap();
    assert_eq!(lake.ids().await, (0..30).collect::<Vec<_>>());
}

pub async fn of_a_database_and_its_copy_that_begin_alike_one_goes_on(lake: Lake) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let node = create(&path, &lake);
    node.insert(0..10);
    node.flush().await.unwrap();
    let copied = folder.path().join("copy");
    node.back_up(&copied);
    let copy = open(Database::open(&copied, Options::small()).unwrap(), &lake);
    copy.insert(100..110);
    copy.flush().await.unwrap();
    node.insert(10..20);
    assert!(node.flush().await.unwrap_err().to_string().contains("claimed"));
    let all: Vec<i64> = (0..10).chain(100..110).collect();
    assert_eq!(lake.ids().await, all);
    // Nor after a restart.
    let node = node.reopen(&path, &lake);
    assert!(node.flush().await.unwrap_err().to_string().contains("copy"));
    assert_eq!(lake.ids().await, all);
}

pub async fn values_never_come_into_columns_of_others(lake: Lake) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("db");
    let node = create(&folder, &lake);
    node.flush().await.unwrap();
    // As many columns of the same kinds as before.
    let other = ColumnDefinition::new("other", DataType::Text);
    let dropped = TableChange::DropColumn { name: "note".into() };
    node.database.alter_table("events", &[dropped, TableChange::AddColumn(other)]).unwrap();
    let table = node.database.table("events").unwrap();
    node.session().insert(&table, &[1.into(), "of other".into()]).unwrap();
    let error = node.flush().await.unwrap_err();
    assert!(matches!(&error, LakeError::TableMismatch { .. }), "{error}");
    assert!(error.to_string().contains("other") && error.to_string().contains("note"), "{error}");
    assert!(lake.ids().await.is_empty());
}

pub async fn rows_that_come_meanwhile_come_with_a_later_round(lake: Lake) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let node = create(&path, &lake);
    let node = &node;
    std::thread::scope(|scope| {
        let inserting: Vec<_> = (0..4)
            .map(|thread| {
                scope.spawn(move || {
                    for id in 0..500 {
                        node.insert(thread * 500 + id..thread * 500 + id + 1);
                    }
                })
            })
            .collect();
        tokio::task::block_in_place(|| {
            let runtime = tokio::runtime::Handle::current();
            while !inserting.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                runtime.block_on(node.flush()).unwrap();
            }
            runtime.block_on(node.flush()).unwrap();
        });
    });
    assert_eq!(lake.ids().await, (0..2000).collect::<Vec<_>>());
}

/// All rows of the predecessor are on their way, in files or in a transaction, and its mark is still to be moved.
pub async fn what_a_predecessor_has_in_flight_is_refused_once_it_is_succeeded(lake: Lake) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let mut node = create(&path, &lake);
    node.insert(0..10);
    node.flush().await.unwrap();
    for round in 1..4 {
        node.insert(round * 10..round * 10 + 5);
        lake.fail_commits([Fault::Delay]).await;
        lake.go_away_after_commit().await;
        assert!(matches!(node.flush().await, Err(LakeError::Away { .. })));
        lake.heal().await;
        // Also where the successor has brought the same rows by then, and where it has claimed, and no more.
        let has_claimed_only = round % 2 == 1;
        if has_claimed_only {
            lake.go_away_after_commit().await;
        }
        node = node.reopen(&path, &lake);
        if !has_claimed_only {
            node.flush().await.unwrap();
        } else {
            assert!(matches!(node.flush().await, Err(LakeError::Away { .. })));
            lake.heal().await;
        }
        assert_eq!(lake.release().await, Some(false));
        node.insert(round * 10 + 5..round * 10 + 10);
        node.flush().await.unwrap();
        assert_eq!(lake.ids().await, (0..round * 10 + 10).collect::<Vec<_>>());
    }
}

pub async fn a_commit_that_is_delayed_and_its_repetition_are_applied_once(lake: Lake) {
    let folder = tempfile::tempdir().unwrap();
    let node = create(&folder.path().join("db"), &lake);
    node.flush().await.unwrap();
    // It arrives after its repetition, or before.
    for (round, faults) in
        [vec![Fault::Delay], vec![Fault::Delay, Fault::AfterDelayed]].into_iter().enumerate()
    {
        let first = 10 * round as i64;
        node.insert(first..first + 5);
        lake.fail_commits(faults).await;
        node.flush().await.unwrap();
        node.insert(first + 5..first + 10);
        assert_eq!(lake.release().await, (round == 0).then_some(false));
        node.flush().await.unwrap();
        assert_eq!(lake.ids().await, (0..first + 10).collect::<Vec<_>>());
    }
    assert_eq!(node.drain.states()[0].rows, 20);
}

pub async fn marks_outlive_the_upkeep_of_the_lake(lake: Lake) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let mut node = create(&path, &lake);
    for round in 0..3 {
        node.insert(round * 10..round * 10 + 10);
        node.flush().await.unwrap();
        lake.keep_up().await;
        node = node.reopen(&path, &lake);
    }
    node.flush().await.unwrap();
    assert_eq!(lake.ids().await, (0..30).collect::<Vec<_>>());
}
