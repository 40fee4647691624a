//! `onrush backup` and `onrush restore`: exit codes, what they print, and that the copy can be used.

#![allow(clippy::unwrap_used)]

mod common;

use common::World;

#[test]
fn a_copy_is_made_restored_and_rolled_forward() {
    let world = World::with_orders();
    world.ok(&["insert", "shop", "orders", "note=first"]);
    let told = world.ok(&["backup", "shop", "--into", "copy"]);
    assert!(told.contains("sound: everything checked"), "{told}");
    world.ok(&["insert", "shop", "orders", "note=second"]);

    world.ok(&["restore", "copy", "--into", "as-then"]);
    assert!(world.ok(&["count", "as-then", "orders"]).contains('1'));
    world.ok(&["check", "as-then"]);
    let told = world.ok(&["backup", "as-then", "--into", "again", "--json", "--physical-only"]);
    assert!(told.contains("\"rows_checked\": false"), "{told}");
}

#[test]
fn what_makes_no_sense_is_exit_code_2_and_changes_nothing() {
    let world = World::with_orders();
    world.ok(&["backup", "shop", "--into", "copy"]);
    let taken = world.run(&["backup", "shop", "--into", "copy"]);
    assert_eq!((taken.code, taken.err.contains("exists already")), (2, true), "{}", taken.err);
    let inside = world.run(&["backup", "shop", "--into", "shop/copy"]);
    assert_eq!((inside.code, inside.err.contains("inside")), (2, true), "{}", inside.err);
    let time = ["restore", "copy", "--into", "new", "--to-time", "yesterday"];
    let time = world.run(&time);
    assert_eq!((time.code, time.err.contains("2026-03-01T14:05:00Z")), (2, true), "{}", time.err);
    assert!(!world.exists("new"));
}

#[test]
fn a_damaged_database_is_exit_code_3_and_there_is_no_copy() {
    let world = World::with_orders();
    world.ok(&["insert", "shop", "orders", "note=first"]);
    world.ok(&["checkpoint", "shop"]);
    let path = world.path("shop").join("data-00.onrush");
    let mut bytes = std::fs::read(&path).unwrap();
    for slot in bytes.chunks_mut(16_384).filter(|slot| slot.starts_with(b"ONRI")) {
        slot[100] ^= 1;
    }
    std::fs::write(&path, bytes).unwrap();
    let refused = world.run(&["backup", "shop", "--into", "copy"]);
    assert_eq!((refused.code, refused.err.contains("onrush repair")), (3, true), "{}", refused.err);
    assert!(!world.exists("copy/superblock.onrush"));
}
