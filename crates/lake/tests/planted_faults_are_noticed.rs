//! Mistakes that the drain and its targets could make, put back one by one: the scenarios notice each.
//!
//! `cargo test -p onrush-lake --features planted-faults --test planted_faults_are_noticed`. One test, because a fault
//! is planted in the whole process.

#![cfg(feature = "planted-faults")]
#![allow(clippy::unwrap_used)]

mod world;

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use onrush_fault::{Fault, plant};
use world::lake::{IS_FAULT_PLANTED, Lake};
use world::{drained, lost};

type Scenario = Box<dyn Fn(Lake) -> Pin<Box<dyn Future<Output = ()>>>>;

macro_rules! scenario {
    ($($path:tt)+) => {
        Box::new(|lake| Box::pin($($path)+(lake)) as Pin<Box<dyn Future<Output = ()>>>) as Scenario
    };
}

/// Faults, where they are planted, and the scenario that must notice each.
fn faults() -> Vec<(Fault, bool, Scenario)> {
    let (iceberg, postgres) = (false, true);
    let lost_answers = || scenario!(drained::answers_that_are_lost_double_and_lose_nothing);
    let in_flight =
        || scenario!(drained::what_a_predecessor_has_in_flight_is_refused_once_it_is_succeeded);
    let restored =
        || scenario!(lost::rows_that_were_restored_and_not_drained_come_under_the_new_number);
    let ahead = || scenario!(lost::rows_that_the_lake_has_and_the_backup_has_not_stay);
    let copies = || scenario!(drained::of_a_database_and_its_copy_that_begin_alike_one_goes_on);
    let lives_on = || scenario!(lost::who_lives_on_as_the_lost_node_brings_nothing_any_more);
    let delayed =
        || scenario!(drained::a_commit_that_is_delayed_and_its_repetition_are_applied_once);
    vec![
        (Fault::LakeUnguarded, iceberg, lost_answers()),
        (Fault::LakeAnswerBelieved, iceberg, lost_answers()),
        (Fault::LakeAnswerBelieved, postgres, lost_answers()),
        (Fault::LakeClaimWithoutSnapshot, iceberg, in_flight()),
        (
            Fault::LakeMarkOfSnapshot,
            iceberg,
            scenario!(drained::marks_outlive_the_upkeep_of_the_lake),
        ),
        (Fault::LakeFilesDeleted, iceberg, lost_answers()),
        (Fault::LakeNonceKept, iceberg, copies()),
        (Fault::LakeNonceKept, postgres, copies()),
        (Fault::LakeMarkApart, iceberg, lost_answers()),
        (Fault::LakeMarkApart, postgres, lost_answers()),
        (Fault::LakeMarkMovedBlindly, postgres, in_flight()),
        (Fault::LakeConfirmedEarly, iceberg, lost_answers()),
        (Fault::LakeConfirmedEarly, postgres, lost_answers()),
        (Fault::LakeAskNotNoted, iceberg, lost_answers()),
        (Fault::LakeAskNotNoted, postgres, lost_answers()),
        (Fault::LakeRangeGrows, iceberg, delayed()),
        (Fault::LakeRangeGrows, postgres, delayed()),
        (Fault::LakeLostNodeLeftOpen, iceberg, lives_on()),
        (Fault::LakeLostNodeLeftOpen, postgres, lives_on()),
        (Fault::LakeGoesOnAtMark, iceberg, ahead()),
        (Fault::LakeGoesOnAtMark, postgres, ahead()),
        (Fault::LakeGoesOnAtEnd, iceberg, restored()),
        (Fault::LakeGoesOnAtEnd, postgres, restored()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_that_is_put_back_is_noticed() {
    IS_FAULT_PLANTED.store(true, Ordering::Relaxed);
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for (fault, is_postgres, scenario) in faults() {
        let lake = match is_postgres {
            true => Lake::postgres().await,
            false => Some(Lake::iceberg()),
        };
        let Some(lake) = lake else { continue };
        plant(fault);
        let is_noticed = AssertUnwindSafe(scenario(lake)).catch_unwind().await.is_err();
        plant(Fault::None);
        println!(
            "{fault:?} in {}: {is_noticed}",
            if is_postgres { "PostgreSQL" } else { "Iceberg" }
        );
        if !is_noticed {
            missed.push((fault, is_postgres));
        }
    }
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}
