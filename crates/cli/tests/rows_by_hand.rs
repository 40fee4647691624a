//! What is inserted by hand is there for the next command, in every form.

#![allow(clippy::unwrap_used)]

mod common;

use common::World;

#[test]
fn a_row_is_inserted_found_listed_counted_and_replaced() {
    let world = World::with_orders();
    assert_eq!(world.ok(&["insert", "shop", "orders", "note=first order"]), "inserted id=1\n");
    let json = world.ok(&["insert", "shop", "orders", "id=7", "note=NULL", "amount=5", "--json"]);
    assert_eq!(json, "{\"id\":7}\n");
    assert_eq!(
        world.ok(&["get", "shop", "orders", "7", "--json"]),
        "{\"id\":7,\"note\":null,\"amount\":5}\n"
    );
    assert_eq!(
        world.ok(&["scan", "shop", "orders"]),
        "id  note         amount\n 1  first order       1\n 7  NULL              5\n"
    );
    let last = world.ok(&["scan", "shop", "orders", "--reverse", "--limit", "1", "--json"]);
    assert!(last.starts_with("{\"id\":7"), "{last}");
    let one = world.ok(&["scan", "shop", "orders", "--from", "2", "--to", "7", "--json"]);
    assert_eq!(one.lines().count(), 1);
    assert_eq!(world.ok(&["count", "shop", "orders"]), "2 rows\n");
    world.ok(&["insert", "shop", "orders", "id=7", "note='NULL'", "--replace"]);
    let replaced = world.ok(&["get", "shop", "orders", "7", "--json"]);
    assert_eq!(replaced, "{\"id\":7,\"note\":\"NULL\",\"amount\":1}\n");
}

#[test]
fn generated_ids_ascend_from_one_command_to_the_next() {
    let world = World::new();
    world.ok(&[
        "create",
        "shop",
        "--table",
        "t",
        "--column",
        "id bigint default identity",
        "--key",
        "id",
    ]);
    let mut last = 0;
    for _ in 0..3 {
        let printed = world.ok(&["insert", "shop", "t", "--json"]);
        let key: serde_json::Value = serde_json::from_str(&printed).unwrap();
        let id = key["id"].as_i64().unwrap();
        assert!((last + 1..last + 10).contains(&id), "{id} after {last}");
        last = id;
    }
}

#[test]
fn tables_are_described_truncated_and_dropped() {
    let world = World::with_orders();
    assert_eq!(world.ok(&["tables", "shop"]), "orders\n");
    let described = world.ok(&["describe", "shop", "orders"]);
    assert!(described.contains("--column \"note varchar(40) null\""), "{described}");
    world.ok(&["insert", "shop", "orders"]);
    world.ok(&["checkpoint", "shop"]);
    let refused = world.run(&["truncate", "shop", "orders"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("--yes"), "{}", refused.err);
    world.ok(&["truncate", "shop", "orders", "--yes"]);
    assert_eq!(
        world.ok(&["count", "shop", "orders", "--json"]),
        "{\"rows\":0,\"table\":\"orders\"}\n"
    );
    world.ok(&["drop", "shop", "orders", "--yes"]);
    assert_eq!(world.ok(&["tables", "shop"]), "");
    world.ok(&["create", "shop", "--table", "big", "--classic", "uuid-v7"]);
    assert_eq!(world.ok(&["tables", "shop"]), "big\n");
}
