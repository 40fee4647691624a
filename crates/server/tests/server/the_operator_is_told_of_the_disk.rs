//! Whoever looks after a server finds in its log what its disk does to it.

use std::sync::Arc;

use onrush::Options;
use onrush_files::MemoryDisk;

use crate::common::{World, failure, logged_warnings, query};
use crate::held_disk::HeldDisk;

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_of_the_log_is_told_once_with_its_file_and_what_follows() {
    logged_warnings();
    let disk = HeldDisk::default();
    let world = World::on_disk(Arc::new(disk.clone()), Options::small());
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigserial PRIMARY KEY)").await;
    disk.fail();
    for _ in 0..3 {
        assert_ne!(failure(&client, "INSERT INTO t DEFAULT VALUES").await, "no error");
    }
    let told: Vec<String> =
        world.warnings().into_iter().filter(|line| line.contains("ERROR")).collect();
    let [line] = told.as_slice() else { panic!("{told:?}") };
    assert!(line.contains(".segment") && line.contains("the engine has stopped"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_of() {
    logged_warnings();
    let disk = MemoryDisk::new();
    let world = World::on(disk.clone());
    let client = world.client().await;
    query(&client, "CREATE TABLE t (id bigserial PRIMARY KEY, a text)").await;
    disk.set_capacity(disk.used_bytes());
    let insert = "INSERT INTO t (a) SELECT repeat('x', 1000) FROM generate_series(1, 1000)";
    while failure(&client, insert).await != "53100" {}
    let told = world.warnings();
    assert!(told.iter().any(|line| line.contains("the disk is full")), "{told:?}");
}
