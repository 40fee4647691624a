//! `onrush check`: its exit codes, that a finding says where and what next, and that it can read where
//! nothing can be written.

#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;

use common::{Ran, World};

/// Runs the command where the folder `shop` is mounted read-only; none where the system lets nobody
/// mount.
fn run_on_read_only(world: &World, arguments: &[&str]) -> Option<Ran> {
    let in_own_mounts = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.current_dir(world.path("."));
        command
    };
    if !in_own_mounts("mount --bind shop shop").status().is_ok_and(|status| status.success()) {
        eprintln!("not shown: this system lets nobody mount");
        return None;
    }
    let mount = "mount --bind shop shop && mount -o remount,bind,ro shop && exec \"$0\" \"$@\"";
    let ran = in_own_mounts(mount).arg(env!("CARGO_BIN_EXE_onrush")).args(arguments).output();
    Some(Ran::of(ran.unwrap()))
}

#[test]
fn a_database_mounted_read_only_is_checked() {
    let world = World::with_orders();
    world.ok(&["insert", "shop", "orders", "note=first"]);
    let Some(checked) = run_on_read_only(&world, &["check", "shop"]) else { return };
    assert_eq!(checked.code, 0, "{}{}", checked.out, checked.err);
    assert!(checked.out.contains("sound"), "{}", checked.out);
}

#[test]
fn a_database_mounted_read_only_is_not_opened() {
    let world = World::with_orders();
    let Some(counted) = run_on_read_only(&world, &["count", "shop", "orders"]) else { return };
    assert_eq!((counted.code, counted.out.as_str()), (1, ""), "{}", counted.err);
    assert!(counted.err.contains("mounted read-only"), "{}", counted.err);
    assert_eq!(world.ok(&["count", "shop", "orders"]).trim(), "0 rows");
}

#[test]
fn exit_codes_tell_sound_from_damaged_from_undone() {
    let world = World::with_orders();
    world.ok(&["insert", "shop", "orders", "note=first"]);
    world.ok(&["checkpoint", "shop"]);
    let sound = world.ok(&["check", "shop", "--json"]);
    assert!(sound.contains("\"gb_per_s\"") && sound.contains("\"findings\": []"), "{sound}");
    assert!(world.ok(&["check", "shop", "--dop", "1"]).contains("sound: everything checked"));

    let unknown = world.run(&["check", "shop", "--table", "order"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("the tables are: orders"), "{}", unknown.err);
    let nowhere = world.run(&["check", "nowhere"]);
    assert_eq!(nowhere.code, 1, "{}", nowhere.err);

    // A bit of every image, those included that are free by now.
    let path = world.path("shop").join("data-00.onrush");
    let mut bytes = std::fs::read(&path).unwrap();
    for slot in bytes.chunks_mut(16_384).filter(|slot| slot.starts_with(b"ONRI")) {
        slot[100] ^= 1;
    }
    std::fs::write(&path, bytes).unwrap();
    let damaged = world.run(&["check", "shop"]);
    assert_eq!(damaged.code, 3, "{}{}", damaged.out, damaged.err);
    for words in ["damage 501", "data-00.onrush at byte", "table orders", "next: "] {
        assert!(damaged.out.contains(words), "{words} is missing in {}", damaged.out);
    }
}
