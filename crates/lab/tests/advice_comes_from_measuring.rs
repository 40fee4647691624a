//! `onrush-lab advise` on a table of one's own, measured: what one session that waits for each of its
//! syncs can gain is found.

#![allow(clippy::unwrap_used)]

use onrush_lab::advise::{self, Advice, Ladder, Recommendation};
use onrush_lab::own_table::OwnTable;
use onrush_lab::study::Size;

mod common;

/// The whole ladder with one session, in a size that takes seconds.
fn advice() -> Advice {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.sql");
    let statement = "CREATE TABLE orders (id bigint PRIMARY KEY, note varchar(40), amount int)";
    std::fs::write(&path, statement).unwrap();
    let table = OwnTable::read(&path).unwrap();
    let path = path.to_str().unwrap();
    let target = "onrush".to_owned();
    let ladder = Ladder { table: Some((&table, path)), target, sessions: 1, size: Size::Quick };
    let mut study = advise::study(&ladder).unwrap();
    for small in ["rows=2k", "cache_bytes=16MiB", "prefault_leaf_memory=false"] {
        study.set_everywhere(small).unwrap();
    }
    advise::of(&common::run(&study, &[]))
}

fn about<'a>(advice: &'a Advice, part: &str) -> &'a Recommendation {
    advice.recommendations.iter().find(|one| one.about == part).unwrap()
}

#[test]
fn a_session_that_waits_for_each_sync_is_told_to_batch_and_what_delaying_gains() {
    let advice = advice();
    assert_eq!(advice.title, "Advice for orders");
    let batch = about(&advice, "rows per commit");
    assert!(batch.change && batch.best.parse::<u64>().unwrap() >= 10, "{batch:?}");
    assert!(batch.sentence.starts_with("Insert"), "{}", batch.sentence);
    let durability = about(&advice, "durability");
    assert_eq!((durability.change, durability.best.as_str()), (true, "delayed"), "{durability:?}");
    // The rest has an answer too, whichever it is in a size as small as this.
    assert_eq!(about(&advice, "key").first, "identity");
    assert_eq!(about(&advice, "layout").first, "1");
}
