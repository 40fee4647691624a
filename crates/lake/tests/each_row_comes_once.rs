//! What could go wrong between a node and the table, one scenario a test.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use iceberg::spec::{MAIN_BRANCH, SnapshotReference, SnapshotRetention};
use iceberg::{Catalog, TableUpdate};
use onrush_lake::{Claimant, ExpectedMark, FencedBecause, LakeError, Verdict};
use world::*;

/// A catalogue with a node that has drained ten rows.
async fn begin() -> (Arc<FaultyCatalogue>, Process) {
    let catalogue = Arc::new(FaultyCatalogue::new());
    let mut process = start(&catalogue, 7).await;
    assert_eq!(process.mark.lsn, START);
    process.drain(START + 10).await;
    check_exact(&catalogue).await;
    (catalogue, process)
}

#[tokio::test(start_paused = true)]
async fn a_node_killed_between_any_two_steps_loses_and_doubles_nothing() {
    enum Killed {
        BeforeWriting,
        BeforeCommit,
        RequestLost,
        AnswerLost,
        BeforeConfirming,
    }
    let (catalogue, mut process) = begin().await;
    for killed in [
        Killed::BeforeWriting,
        Killed::BeforeCommit,
        Killed::RequestLost,
        Killed::AnswerLost,
        Killed::BeforeConfirming,
    ] {
        let to = process.mark.lsn + 10;
        match killed {
            Killed::BeforeWriting => {}
            Killed::BeforeCommit => drop(process.stage(to).await),
            Killed::RequestLost | Killed::AnswerLost => {
                let files = process.stage(to).await;
                let is_lost = matches!(killed, Killed::RequestLost);
                let fault = if is_lost { Fault::LoseRequest } else { Fault::LoseAnswer };
                catalogue.fail_commits([fault]).await;
                let _ = process.append(to, &files).await;
            }
            Killed::BeforeConfirming => {
                let files = process.stage(to).await;
                applied(process.append(to, &files).await);
            }
        }
        process = succeed(&catalogue, &process).await;
        check_exact(&catalogue).await;
        process.drain(to + 5).await;
        check_exact(&catalogue).await;
        assert_eq!(process.mark.lsn, to + 5);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_counts_as_applied_when_the_mark_is_there() {
    let (catalogue, process) = begin().await;
    let files = process.stage(START + 20).await;
    catalogue.fail_commits([Fault::LoseAnswer]).await;
    assert_eq!(applied(process.append(START + 20, &files).await).lsn, START + 20);
    check_exact(&catalogue).await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_is_not_applied_and_the_same_files_go_again() {
    let (catalogue, mut process) = begin().await;
    let files = process.stage(START + 20).await;
    catalogue.fail_commits([Fault::LoseRequest, Fault::LoseRequest]).await;
    assert!(not_applied(process.append(START + 20, &files).await).contains("reset"));
    not_applied(process.append(START + 20, &files).await);
    assert_eq!(process.target.missing_files(&files).await.unwrap(), Vec::<String>::new());
    let confirmed = applied(process.append(START + 20, &files).await);
    process.confirm(confirmed);
    process.drain(START + 21).await;
    check_exact(&catalogue).await;
}

#[tokio::test(start_paused = true)]
async fn a_commit_sent_twice_is_applied_once_though_the_second_answer_refuses() {
    let (catalogue, process) = begin().await;
    let files = process.stage(START + 20).await;
    catalogue.fail_commits([Fault::Twice]).await;
    applied(process.append(START + 20, &files).await);
    check_exact(&catalogue).await;
}

#[tokio::test(start_paused = true)]
async fn a_delayed_commit_and_its_repetition_are_applied_once() {
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Arrives {
        BetweenVerdictAndLoad,
        BetweenLoadAndCommit,
        Last,
        AfterTheNextRound,
    }
    for arrives in [
        Arrives::BetweenVerdictAndLoad,
        Arrives::BetweenLoadAndCommit,
        Arrives::Last,
        Arrives::AfterTheNextRound,
    ] {
        let (catalogue, mut process) = begin().await;
        let to = START + 20;
        let files = process.stage(to).await;
        catalogue.fail_commits([Fault::Delay]).await;
        not_applied(process.append(to, &files).await);
        match arrives {
            Arrives::BetweenVerdictAndLoad => assert_eq!(catalogue.release().await, Some(true)),
            Arrives::BetweenLoadAndCommit => catalogue.fail_commits([Fault::AfterDelayed]).await,
            Arrives::Last | Arrives::AfterTheNextRound => {}
        }
        let confirmed = applied(process.append(to, &files).await);
        process.confirm(confirmed);
        if arrives == Arrives::AfterTheNextRound {
            process.drain(to + 3).await;
        }
        let is_late = matches!(arrives, Arrives::Last | Arrives::AfterTheNextRound);
        assert_eq!(catalogue.release().await, is_late.then_some(false), "{arrives:?}");
        check_exact(&catalogue).await;
        process.drain(to + 10).await;
        check_exact(&catalogue).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_comes_after_the_successors_claim_is_refused() {
    let (catalogue, process) = begin().await;
    let files = process.stage(START + 20).await;
    catalogue.fail_commits([Fault::Delay]).await;
    not_applied(process.append(START + 20, &files).await);
    let mut successor = succeed(&catalogue, &process).await;
    assert_eq!(successor.mark.lsn, START + 10);
    assert_eq!(catalogue.release().await, Some(false));
    successor.drain(START + 25).await;
    check_exact(&catalogue).await;
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_comes_before_the_successors_claim_is_what_it_starts_from() {
    let (catalogue, process) = begin().await;
    let files = process.stage(START + 20).await;
    catalogue.fail_commits([Fault::Delay]).await;
    not_applied(process.append(START + 20, &files).await);
    // It arrives between the claim's load and the claim's commit.
    catalogue.fail_commits([Fault::AfterDelayed]).await;
    let mut successor = succeed(&catalogue, &process).await;
    assert_eq!(successor.mark.lsn, START + 20);
    successor.drain(START + 25).await;
    check_exact(&catalogue).await;
}

#[tokio::test(start_paused = true)]
async fn a_predecessor_that_lives_on_stops_for_good() {
    let (catalogue, mut process) = begin().await;
    let files = process.stage(START + 20).await;
    let mut successor = succeed(&catalogue, &process).await;
    for _ in 0..2 {
        let because = fenced(process.append(START + 20, &files).await);
        assert_eq!(because, FencedBecause::OtherNonce { found: successor.mark });
        successor.drain(successor.mark.lsn + 4).await;
        check_exact(&catalogue).await;
    }
    // It stays so when the successor stands where the predecessor was going.
    process.mark = process.mark.at(successor.mark.lsn - 4);
    let because = fenced(process.verdict(successor.mark.lsn).await);
    assert_eq!(because, FencedBecause::OtherNonce { found: successor.mark });
}

#[tokio::test(start_paused = true)]
async fn a_part_of_the_range_that_somebody_else_committed_fences() {
    let (catalogue, process) = begin().await;
    let part = process.stage(START + 15).await;
    let all = process.stage(START + 20).await;
    let base = table(&catalogue).await;
    let mark = (process.node, process.mark.at(START + 15));
    commit_blindly(&*catalogue, &base, &part, Some(mark)).await.unwrap();
    let because = fenced(process.append(START + 20, &all).await);
    let (from, found, to) = (START + 10, START + 15, START + 20);
    assert_eq!(because, FencedBecause::MarkBetween { from, found, to });
    check_exact(&catalogue).await;
}

#[tokio::test(start_paused = true)]
async fn a_mark_outlives_the_expiry_of_snapshots() {
    let (catalogue, mut process) = begin().await;
    let mut other = start(&catalogue, 8).await;
    other.drain(START + 3).await;
    expire(&catalogue).await;
    assert_eq!(table(&catalogue).await.metadata().snapshots().len(), 1);
    // While it runs, and after it was away.
    process.drain(START + 20).await;
    other.drain(START + 6).await;
    expire(&catalogue).await;
    let mut successor = succeed(&catalogue, &process).await;
    assert_eq!(successor.mark.lsn, START + 20);
    successor.drain(START + 30).await;
    check_exact(&catalogue).await;
}

#[tokio::test(start_paused = true)]
async fn another_writers_commit_between_load_and_commit_sends_the_same_files_again() {
    let (catalogue, mut process) = begin().await;
    let base = table(&catalogue).await;
    catalogue.fail_commits([Fault::Delay]).await;
    commit_once(&catalogue, &base).await;
    let files = process.stage(START + 20).await;
    catalogue.fail_commits([Fault::AfterDelayed]).await;
    let cause = not_applied(process.append(START + 20, &files).await);
    assert!(cause.contains("Conflict"), "{cause}");
    let confirmed = applied(process.append(START + 20, &files).await);
    process.confirm(confirmed);
    process.drain(START + 30).await;
    check_exact(&catalogue).await;
}

/// One attempt of another writer, whose answer does not come.
async fn commit_once(catalogue: &Arc<FaultyCatalogue>, base: &iceberg::table::Table) {
    let attempt = commit_blindly(&**catalogue, base, &[], None);
    // It would wait longer before it tries again.
    let result = tokio::time::timeout(Duration::from_millis(1), attempt).await;
    assert!(result.is_err(), "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn a_success_that_did_not_happen_is_not_believed() {
    let (catalogue, process) = begin().await;
    let files = process.stage(START + 20).await;
    catalogue.fail_commits([Fault::Lie]).await;
    assert!(not_applied(process.append(START + 20, &files).await).contains("is not"));
    applied(process.append(START + 20, &files).await);
    check_exact(&catalogue).await;
}

#[tokio::test(start_paused = true)]
async fn a_catalogue_that_is_away_ends_the_call_and_the_verdict_resumes_it() {
    let (catalogue, mut process) = begin().await;
    let files = process.stage(START + 20).await;
    // A few failures are waited for.
    catalogue.fail_commits([Fault::LoseAnswer]).await;
    catalogue.fail_loads_after_commit(5).await;
    let confirmed = applied(process.append(START + 20, &files).await);
    process.confirm(confirmed);

    // Many are not, and what is unknown stays so until the catalogue answers.
    for (fault, is_applied) in [(Fault::LoseAnswer, true), (Fault::LoseRequest, false)] {
        let to = process.mark.lsn + 10;
        let files = process.stage(to).await;
        catalogue.fail_commits([fault]).await;
        catalogue.fail_loads_after_commit(1000).await;
        let result = process.append(to, &files).await;
        assert!(matches!(&result, Err(LakeError::Away { cause }) if cause.contains("reset")));
        assert!(result.is_err_and(|error| error.is_retryable()));
        assert!(matches!(process.verdict(to).await, Err(LakeError::Away { .. })));
        catalogue.fail_loads(3).await;
        let confirmed = match process.verdict(to).await.unwrap() {
            Verdict::Applied(confirmed) if is_applied => confirmed,
            Verdict::NotApplied { .. } if !is_applied => applied(process.append(to, &files).await),
            other => panic!("{other:?}"),
        };
        process.confirm(confirmed);
        check_exact(&catalogue).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_without_an_answer_ends_with_the_callers_patience() {
    let (catalogue, process) = begin().await;
    let files = process.stage(START + 20).await;
    catalogue.fail_commits([Fault::Hang]).await;
    assert!(not_applied(process.append(START + 20, &files).await).contains("in time"));
    applied(process.append(START + 20, &files).await);
    check_exact(&catalogue).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_one_claim_whatever_becomes_of_its_answer() {
    for fault in [Fault::LoseRequest, Fault::LoseAnswer, Fault::Twice, Fault::Delay, Fault::Lie] {
        let (catalogue, process) = begin().await;
        catalogue.fail_commits([fault]).await;
        let mut successor = succeed(&catalogue, &process).await;
        assert_ne!(successor.mark.nonce, process.mark.nonce);
        if fault == Fault::Delay {
            assert_eq!(catalogue.release().await, Some(false));
        }
        successor.drain(START + 20).await;
        check_exact(&catalogue).await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_copies_the_last_to_claim_stays() {
    let (catalogue, process) = begin().await;
    let mut first = succeed(&catalogue, &process).await;
    let mut last = succeed(&catalogue, &process).await;
    let files = first.stage(START + 20).await;
    let because = fenced(first.append(START + 20, &files).await);
    assert_eq!(because, FencedBecause::OtherNonce { found: last.mark });
    last.drain(START + 20).await;
    // The first may open again, and goes on from where the last is.
    first = succeed(&catalogue, &first).await;
    assert_eq!(first.mark.lsn, START + 20);
    check_exact(&catalogue).await;
}

#[tokio::test(start_paused = true)]
async fn a_table_that_went_back_fences() {
    let (catalogue, mut process) = begin().await;
    let early = table(&catalogue).await;
    let early_snapshot = early.metadata().current_snapshot_id().unwrap();
    process.drain(START + 20).await;
    let late = table(&catalogue).await;

    // Main was rolled back by hand: the properties stay as they were.
    let retention = SnapshotRetention::branch(None, None, None);
    let reference = SnapshotReference::new(early_snapshot, retention);
    let rollback = TableUpdate::SetSnapshotRef { ref_name: MAIN_BRANCH.to_owned(), reference };
    catalogue.change(&ident(), vec![rollback]).await;
    let files = process.stage(START + 30).await;
    let because = fenced(process.append(START + 30, &files).await);
    assert!(matches!(because, FencedBecause::RolledBack { .. }), "{because}");
    let again = ExpectedMark::Confirmed(process.confirmed);
    let because = fenced(claim(&catalogue, 7, again).await);
    assert!(matches!(because, FencedBecause::RolledBack { .. }), "{because}");

    // The catalogue was restored from a backup: all is as it was.
    catalogue.set_back(&ident(), early.metadata_location().unwrap()).await;
    let because = fenced(process.append(START + 30, &files).await);
    let (confirmed, found) = (START + 20, START + 10);
    assert_eq!(because, FencedBecause::MarkBelow { confirmed, found });
    let because = fenced(claim(&catalogue, 7, again).await);
    assert_eq!(because, FencedBecause::MarkBelow { confirmed, found });

    // It came back, and so does the drain.
    catalogue.set_back(&ident(), late.metadata_location().unwrap()).await;
    applied(process.append(START + 30, &files).await);
    check_exact(&catalogue).await;
}

#[tokio::test(start_paused = true)]
async fn a_table_that_is_another_fences() {
    let (catalogue, process) = begin().await;
    let files = process.stage(START + 20).await;
    catalogue.drop_table(&ident()).await.unwrap();
    assert_eq!(fenced(process.append(START + 20, &files).await), FencedBecause::TableGone);
    let other = open(&catalogue).await;
    let because = fenced(process.append(START + 20, &files).await);
    let (expected, found) = (process.target.table_uuid(), other.table_uuid());
    assert_eq!(because, FencedBecause::OtherTable { expected, found });
    let again = ExpectedMark::Confirmed(process.confirmed);
    let because = fenced(claim(&catalogue, 7, again).await);
    assert_eq!(because, FencedBecause::OtherTable { expected, found });
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_is_missing_unreadable_or_of_another_history_fences() {
    let (catalogue, process) = begin().await;
    let again = ExpectedMark::Confirmed(process.confirmed);
    let files = process.stage(START + 20).await;
    let property = process.node.property();

    let removals = vec![property.clone()];
    catalogue.change(&ident(), vec![TableUpdate::RemoveProperties { removals }]).await;
    assert_eq!(fenced(process.append(START + 20, &files).await), FencedBecause::MarkMissing);
    assert_eq!(fenced(claim(&catalogue, 7, again).await), FencedBecause::MarkMissing);

    let set = |text: String| TableUpdate::SetProperties {
        updates: HashMap::from([(property.clone(), text)]),
    };
    catalogue.change(&ident(), vec![set("nonsense".to_owned())]).await;
    let because = fenced(process.append(START + 20, &files).await);
    assert!(matches!(because, FencedBecause::MarkUnreadable(_)), "{because}");
    let state = process.target.load(PATIENCE).await.unwrap();
    assert_eq!((state.marks.len(), state.unreadable), (0, vec![process.node]));

    // Another database under the same number.
    let catalogue = Arc::new(FaultyCatalogue::new());
    let process = start(&catalogue, 7).await;
    let target = open(&catalogue).await;
    let by = Claimant { node: process.node, history: 99, nonce: 1, lost: &[] };
    let expected = ExpectedMark::start(START);
    let because = fenced(target.claim(&by, expected, PATIENCE).await);
    let found = process.history;
    assert_eq!(because, FencedBecause::OtherHistory { expected: 99, found });
}

#[tokio::test(start_paused = true)]
async fn each_snapshot_repeats_the_mark() {
    let (catalogue, mut process) = begin().await;
    process.drain(START + 20).await;
    let table = table(&catalogue).await;
    let mut marks = Vec::new();
    for snapshot in table.metadata().snapshots() {
        let summary = &snapshot.summary().additional_properties;
        let mark = onrush_lake::Mark::find(summary, process.node).unwrap().unwrap();
        assert_eq!((mark.history, mark.nonce), (process.mark.history, process.mark.nonce));
        marks.push(mark.lsn);
    }
    marks.sort_unstable();
    assert_eq!(marks, [START, START + 10, START + 20]);
}

#[tokio::test(start_paused = true)]
async fn without_the_guard_rows_double() {
    for fault in [Fault::Twice, Fault::LoseAnswer] {
        for is_guarded in [true, false] {
            let (catalogue, process) = begin().await;
            let to = START + 20;
            let files = process.stage(to).await;
            catalogue.fail_commits([fault]).await;
            if is_guarded {
                applied(process.append(to, &files).await);
                check_exact(&catalogue).await;
            } else {
                // The same commit, and `iceberg`'s own retry, which loads and applies blindly.
                let base = table(&catalogue).await;
                let mark = (process.node, process.mark.at(to));
                commit_blindly(&*catalogue, &base, &files, Some(mark)).await.unwrap();
                let rows = rows(&table(&catalogue).await).await;
                assert_eq!(rows[&7].len(), 10 + 2 * 10, "the planted fault was not seen");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ranges_that_are_none_are_refused() {
    let (_catalogue, process) = begin().await;
    let refused = process.append(process.mark.lsn, &[]).await;
    assert!(matches!(refused, Err(LakeError::Internal(_))), "{refused:?}");
    let (from, mut to) = (process.mark, process.mark.at(START + 20));
    to.nonce += 1;
    let refused = process.target.append(process.node, &from, &to, &[], PATIENCE).await;
    assert!(matches!(refused, Err(LakeError::Internal(_))), "{refused:?}");
}
