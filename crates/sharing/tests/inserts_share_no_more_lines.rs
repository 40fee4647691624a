//! What sessions take from each other for a row is counted, and does not grow: a ratchet.
//!
//! Without Valgrind nothing can be counted, and the test says so; with `ONRUSH_REQUIRE_VALGRIND` that is a failure.

use std::path::Path;
use std::process::Command;

use onrush::Durability;
use onrush_sharing::{Sharing, Turns, count};
use onrush_types::KeyStrategy;

/// Counts for eight sessions; none where Valgrind is missing.
fn counted(key: KeyStrategy, durability: Durability) -> Option<Sharing> {
    let has_valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    if !has_valgrind {
        assert!(std::env::var_os("ONRUSH_REQUIRE_VALGRIND").is_none(), "valgrind is not installed");
        eprintln!("left out: valgrind is not installed");
        return None;
    }
    let turns = Turns { key, durability, sessions: 8, warm_rows: 5, rows: 15 };
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_onrush-sharing"));
    Some(count(program, &turns, &folder.path().join("database")).unwrap())
}

/// The most that a row may move: lines that change their owner, lines that are read after another's write, and
/// read-modify-writes of lines that several sessions write.
fn assert_at_most(sharing: &Sharing, owner_changes: f64, fetches: f64, shared_modifies: f64) {
    let counts =
        [sharing.owner_changes_per_row, sharing.fetches_per_row, sharing.shared_modifies_per_row];
    let limits = [owner_changes, fetches, shared_modifies];
    let is_held = counts.iter().zip(limits).all(|(count, limit)| *count <= limit);
    assert!(is_held, "{counts:.2?} of {limits:?} at most: {sharing:#?}");
}

/// The tail of the log, and the line of the ring where two records meet.
#[test]
fn rows_of_session_ranges_share_the_tail_of_the_log_and_one_line_of_its_ring() {
    let Some(sharing) = counted("session-offset".parse().unwrap(), Durability::Delayed) else {
        return;
    };
    assert_at_most(&sharing, 2.4, 0.6, 1.5);
    assert!(sharing.busiest_line_per_row < 1.4, "{sharing:#?}");
}

#[test]
fn rows_of_an_identity_share_no_more_than_those_of_session_ranges() {
    let Some(sharing) = counted("identity".parse().unwrap(), Durability::Delayed) else { return };
    assert_at_most(&sharing, 2.6, 0.9, 1.6);
    assert!(sharing.busiest_line_per_row < 1.4, "{sharing:#?}");
}

/// A random leaf was written by another session: its latch, its header, its order and the row's lines move.
#[test]
#[ignore = "half a minute, and other work on the machine adds to the counts: cargo test -p onrush-sharing -- --ignored"]
fn random_rows_share_the_lines_of_their_leaf() {
    let Some(sharing) = counted("uuid-v4".parse().unwrap(), Durability::Delayed) else { return };
    assert_at_most(&sharing, 10.5, 9.5, 4.5);
    assert!(sharing.busiest_line_per_row < 1.4, "{sharing:#?}");
}

/// The engine's own threads run while a commit is waited for, and are counted with it.
#[test]
#[ignore = "half a minute, and other work on the machine adds to the counts: cargo test -p onrush-sharing -- --ignored"]
fn durable_rows_share_a_sync_and_what_tells_of_it() {
    let Some(sharing) = counted("session-offset".parse().unwrap(), Durability::Durable) else {
        return;
    };
    assert_at_most(&sharing, 4.0, 3.5, 1.5);
    assert!(sharing.busiest_line_per_row < 1.4, "{sharing:#?}");
}
