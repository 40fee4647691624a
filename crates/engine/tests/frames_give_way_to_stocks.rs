//! The memory for leaves has what is known of stocks in it: frames give way, and come again.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::{Fixture, Random, delayed_session, note, notes};
use onrush::{Background, Database, PastMemory};

const FRAMES: u64 = 128;
const LEAF_BYTES: u64 = 16 << 10;

/// Frames that there are, and what is known of stocks in bytes.
fn memory(db: &Database) -> (u64, u64) {
    let statistics = db.statistics();
    let stocks = statistics.memory.iter().find(|part| part.name == "stocks").unwrap();
    (statistics.frames.1, stocks.used_bytes)
}

/// Looks until it is so: the thread that does it looks a few times a second.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn frames_give_way_to_stocks_and_come_again_when_the_table_goes() {
    let mut fixture = Fixture::in_memory();
    fixture.options.leaf_memory_bytes = (FRAMES * LEAF_BYTES) as usize;
    fixture.options.past_memory = PastMemory::Auto;
    fixture.options.background = Background::Threads;
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    let mut random = Random(11);
    for _ in 0..150_000 {
        let id = random.id_below(i64::MAX);
        session.insert(&table, &note(id, "some forty bytes of a note, and no more")).unwrap();
    }
    let fits = || {
        let (frames, stocks) = memory(&db);
        stocks > 4 * LEAF_BYTES && frames * LEAF_BYTES + stocks < (FRAMES + 1) * LEAF_BYTES
    };
    until("frames give way", fits);
    let (frames, _) = memory(&db);
    assert!((64..FRAMES).contains(&frames), "{frames}");
    drop((session, table));
    db.drop_table("notes").unwrap();
    until("frames come again", || memory(&db).0 >= FRAMES - FRAMES / 16);
}
