//! Files in and out through the command: bad rows aside, round trips, formats by name.

#![allow(clippy::unwrap_used)]

mod common;

use common::World;

const CSV: &str = "id,note,amount\n1,a,10\n2,b,many\n3,\"c, d\",30\n1,again,40\n";

#[test]
fn bad_rows_go_to_the_side_file_with_their_line_numbers() {
    let world = World::with_orders();
    world.write("orders.csv", CSV);
    let ran = world.run(&["import", "shop", "orders", "orders.csv"]);
    assert_eq!(ran.code, 1, "not everything was imported");
    assert!(ran.out.starts_with("imported 2 rows"), "{}", ran.out);
    assert!(ran.err.contains("rejected 2 of 4 rows"), "{}", ran.err);
    assert!(ran.err.contains("line 3:"), "{}", ran.err);
    let rejected = world.read("orders.csv.rejected.csv");
    let lines: Vec<_> = rejected.lines().collect();
    assert_eq!(lines.len(), 3, "{rejected}");
    assert!(lines[1].starts_with("3,") && lines[1].ends_with("\"2,b,many\""), "{rejected}");
    assert!(lines[2].starts_with("5,") && lines[2].contains("already has a row"), "{rejected}");
    assert_eq!(world.ok(&["count", "shop", "orders"]), "2 rows\n");
}

#[test]
fn rejected_rows_may_be_expected_and_json_tells_numbers() {
    let world = World::with_orders();
    let arguments = ["import", "shop", "orders", "--rejects", "bad.csv", "--rejects-ok", "--json"];
    let ran = world.run_with_input(&arguments, CSV);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["rows_imported"], 2);
    assert_eq!(report["rows_rejected"], 2);
    assert_eq!(report["rejects_file"], "bad.csv");
    assert!(world.exists("bad.csv"));
}

#[test]
fn what_is_exported_can_be_imported_elsewhere() {
    let world = World::with_orders();
    world.ok(&["insert", "shop", "orders", "id=1", "note="]);
    world.ok(&["insert", "shop", "orders", "id=2", "note=NULL"]);
    world.ok(&["insert", "shop", "orders", "id=3", "note=a \"b\", c"]);
    let whole = world.ok(&["export", "shop", "orders"]);
    assert_eq!(whole, "id,note,amount\n1,\"\",1\n2,,1\n3,\"a \"\"b\"\", c\",1\n");
    for file in ["copy.csv", "copy.jsonl"] {
        world.ok(&["export", "shop", "orders", "--output", file]);
        world.ok(&["truncate", "shop", "orders", "--yes"]);
        world.ok(&["import", "shop", "orders", file, "--rows-per-commit", "2"]);
        assert_eq!(world.ok(&["export", "shop", "orders"]), whole, "{file}");
        assert!(!world.exists(format!("{file}.rejected.csv")));
    }
    let part = world.ok(&["export", "shop", "orders", "--format", "json", "--from", "3"]);
    assert_eq!(part, "{\"id\":3,\"note\":\"a \\\"b\\\", c\",\"amount\":1}\n");
}

#[test]
fn a_parquet_file_is_complete_or_absent_and_not_replaced_unasked() {
    let world = World::with_orders();
    world.ok(&["insert", "shop", "orders"]);
    world.ok(&["export", "shop", "orders", "--output", "orders.parquet"]);
    let bytes = std::fs::read(world.path("orders.parquet")).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let refused = world.run(&["export", "shop", "orders", "--output", "orders.parquet"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("--force"), "{}", refused.err);
    world.ok(&["export", "shop", "orders", "--output", "orders.parquet", "--force"]);
    assert!(world.list().iter().all(|name| !name.ends_with(".partial")));
}
