//! Every seed that ever failed, replayed for ever. Some kinds of runs change when a plan changes;
//! the ones whose reason is written here have a test of their own in the engine as well.

use onrush_sim::errors::fail_calls;
use onrush_sim::summary::Summary;

/// Seeds, with the number of failing calls.
fn replay(seed: u64, cases: u64) {
    if let Err(violation) = fail_calls(seed, cases, &mut Summary::default()) {
        panic!("{}", violation.0);
    }
}

#[test]
fn a_shared_image_between_others_has_one_owner_after_a_reopen() {
    replay(29, 20);
}

#[test]
fn a_failed_read_keeps_no_memory() {
    replay(4, 10);
    replay(57, 10);
}

#[test]
fn a_sibling_that_joins_an_older_list_during_the_drain_is_imaged() {
    replay(2175, 3);
    replay(2180, 2);
}

#[test]
fn an_engine_that_stops_behind_the_last_call_has_stopped() {
    replay(138, 2);
}

/// The simulator waited for itself: it was a visitor in the middle of an eviction and needed space.
#[test]
fn nobody_visits_a_checkpoint_that_makes_space_for_a_leaf() {
    replay(125, 30);
}

#[test]
fn a_sync_that_meets_a_full_disk_is_final() {
    replay(21, 20);
    replay(36, 10);
    replay(55, 10);
}

/// Each leaf of a batch that was read took the place of another of them, for ever.
#[test]
fn a_batch_whose_leaves_do_not_all_fit_into_memory_ends() {
    replay(3418, 1);
}
