//! What queries need beyond their memory goes to temporary files, and all of them together are bounded.

use onrush_server::{ServerOptions, SpillOptions};

use crate::common::{World, failure, query};

/// A server whose statements have little memory, with or without a folder for what spills.
fn small_memory(spill: Option<SpillOptions>) -> World {
    World::with(ServerOptions {
        query_memory_bytes: 8 << 20,
        statement_memory_bytes: 4 << 20,
        spill,
        ..ServerOptions::default()
    })
}

/// Some 20 MB of rows, to be sorted by what is no key.
const SORTED: &str = "SELECT count(*) FROM (SELECT n, lag(md5(n::text)) OVER (ORDER BY md5(n::text)) \
                      AS before FROM generate_series(1, 200000) AS g(n)) t WHERE before IS NOT NULL";

#[tokio::test(flavor = "multi_thread")]
async fn a_sort_beyond_its_memory_goes_to_files_that_are_gone_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let spill = SpillOptions { folder: folder.path().to_owned(), bytes_max: 1 << 30 };
    let world = small_memory(Some(spill));
    let client = world.client().await;
    assert_eq!(query(&client, SORTED).await, ["199999"]);
    let files = walk(folder.path());
    assert!(files.is_empty(), "{files:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sort_beyond_its_memory_fails_by_name_where_no_files_are_written() {
    let world = small_memory(None);
    let client = world.client().await;
    assert_eq!(failure(&client, SORTED).await, "53200");
    // The connection is as good as before.
    assert_eq!(query(&client, "SELECT 1").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_tell_what_queries_may_have() {
    let world = small_memory(None);
    let memory = world.database.statistics().memory;
    let queries = memory.iter().find(|part| part.name == "queries").unwrap();
    assert_eq!(queries.limit_bytes, Some(8 << 20));
}

/// Files anywhere below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
