//! `onrush repair`: its exit codes, what it prints, and that the new database can be used.

#![allow(clippy::unwrap_used)]

mod common;

use common::World;

fn damaged(name: &str, world: &World, damage: impl Fn(&mut Vec<u8>)) {
    let path = world.path("shop").join(name);
    let mut bytes = std::fs::read(&path).unwrap();
    damage(&mut bytes);
    std::fs::write(&path, bytes).unwrap();
}

#[test]
fn exit_codes_tell_what_is_lost() {
    let world = World::with_orders();
    world.ok(&["create", "shop", "--table", "items", "--column", "id int", "--key", "id"]);
    world.ok(&["insert", "shop", "orders", "note=first"]);
    world.ok(&["insert", "shop", "items", "id=7"]);
    world.ok(&["checkpoint", "shop"]);

    let sound = world.ok(&["repair", "shop", "--into", "copy"]);
    assert!(sound.contains("nothing is lost") && sound.contains("table orders: 1 rows"), "{sound}");
    world.ok(&["check", "copy"]);
    assert!(world.ok(&["get", "copy", "orders", "1"]).contains("first"));
    assert_eq!(world.run(&["repair", "shop", "--into", "copy"]).code, 2);
    let unknown = world.run(&["repair", "shop", "--into", "new", "--table", "order"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("the tables are: orders, items"), "{}", unknown.err);
    assert_eq!(world.run(&["repair", "nowhere", "--into", "new"]).code, 1);

    // Every image of the text, in use or not.
    damaged("data-00.onrush", &world, |bytes| {
        for slot in bytes.chunks_mut(16_384).filter(|slot| slot.starts_with(b"ONRI")) {
            if slot.windows(5).any(|window| window == b"first") {
                slot[100] ^= 1;
            }
        }
    });
    let partly = world.run(&["repair", "shop", "--into", "rest", "--json"]);
    assert_eq!(partly.code, 3, "{}{}", partly.out, partly.err);
    for words in ["\"invariant\": 501", "\"table\": \"orders\"", "\"something-lost\""] {
        assert!(partly.out.contains(words), "{words} is missing in {}", partly.out);
    }
    assert!(world.ok(&["get", "rest", "items", "7"]).contains('7'));
    assert!(world.ok(&["count", "rest", "orders"]).contains('0'));

    damaged("superblock.onrush", &world, |bytes| {
        bytes[50] ^= 1;
        bytes[65_536 + 50] ^= 1;
    });
    let nothing = world.run(&["repair", "shop", "--into", "nothing"]);
    assert_eq!(nothing.code, 4, "{}{}", nothing.out, nothing.err);
    assert!(nothing.out.contains("NOTHING COULD BE SALVAGED"), "{}", nothing.out);
    assert!(!world.exists("nothing"));
}
