//! `onrush check`: its exit codes, and that a finding says where and what next.

#![allow(clippy::unwrap_used)]

mod common;

use common::World;

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
