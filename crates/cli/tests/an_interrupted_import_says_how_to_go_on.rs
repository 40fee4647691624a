//! An import that is asked to end, or killed, loses nothing of what it read, and what is left says how to go on.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::Write;
use std::process::{Child, Command, Stdio};

use common::{Ran, World};

/// More than a pipe holds, so that a row that could be written behind them proves that the first were read.
const ROWS_BEFORE: u64 = 20_000;

fn line(id: u64) -> String {
    match id % 1000 {
        500 => format!("{id},note,many\n"),
        _ => format!("{id},\"a note\nof two lines\",{}\n", id % 7),
    }
}

fn import(world: &World, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_onrush"))
        .args(["import", "shop", "orders", "--rejects", "bad.csv", "--rows-per-commit", "10"])
        .args(more)
        .current_dir(world.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn whole(rows: u64) -> String {
    let rows: String = (1..=rows).map(line).collect();
    format!("id,note,amount\n{rows}")
}

/// Rows of the table.
fn count(world: &World) -> u64 {
    let told = world.ok(&["count", "shop", "orders"]).replace(',', "");
    told.trim().trim_end_matches(" rows").parse().unwrap()
}

/// How many of so many rows are none for the table.
fn bad(rows: u64) -> u64 {
    (rows + 500) / 1000
}

/// Gives an import rows, has `end` end it after the first of them, and returns what it said, and how many it was
/// given: there are always more.
fn ended(world: &World, end: impl FnOnce(&mut Child)) -> (Ran, u64) {
    let mut child = import(world, &["--json"]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"id,note,amount\n").unwrap();
    for id in 1..=ROWS_BEFORE {
        input.write_all(line(id).as_bytes()).unwrap();
    }
    end(&mut child);
    let mut given = ROWS_BEFORE;
    while input.write_all(line(given + 1).as_bytes()).is_ok() {
        given += 1;
    }
    drop(input);
    (Ran::of(child.wait_with_output().unwrap()), given)
}

#[cfg(unix)]
#[test]
fn what_was_read_is_there_and_the_command_to_go_on_imports_the_rest() {
    let world = World::with_orders();
    let (ran, given) = ended(&world, |child| {
        let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(killed.success());
    });
    assert_eq!(ran.code, 1, "{}", ran.err);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let number = |name: &str| report[name].as_u64().unwrap();
    assert!(report["is_interrupted"] == true && number("rows_read") <= given, "{report}");
    assert_eq!(number("rows_read"), number("rows_imported") + number("rows_rejected"));
    let rejected = world.read("bad.csv").lines().count() as u64 - 1;
    assert_eq!(rejected, number("rows_rejected"));
    let told = format!("--from-line {}", number("next_line"));
    assert!(ran.err.contains(&told), "{}", ran.err);

    let check = world.run(&["check", "shop", "--quiet"]);
    assert!(check.code == 0 && check.err.contains(&told), "{}", check.err);
    let from = number("next_line").to_string();
    let rest = ["import", "shop", "orders", "--rejects", "bad.csv", "--from-line", &from];
    let ran = world.run_with_input(&rest, &whole(given));
    let again = match world.exists("bad-2.csv") {
        true => world.read("bad-2.csv").lines().count() as u64 - 1,
        false => 0,
    };
    assert_eq!(ran.code, i32::from(again > 0), "{}", ran.err);
    assert_eq!(count(&world), given - bad(given));
    assert_eq!(rejected + again, bad(given), "each is rejected once, and both files are there");
    assert!(!world.exists("shop/import.unfinished"));
}

#[test]
fn an_import_that_is_killed_is_known_and_can_be_repeated_with_upsert() {
    let world = World::with_orders();
    let (_, given) = ended(&world, |child| child.kill().unwrap());
    let check = world.run(&["check", "shop", "--quiet"]);
    assert!(
        check.err.contains("was cut off") && check.err.contains("--from-line"),
        "{}",
        check.err
    );
    let arguments = ["import", "shop", "orders", "--upsert", "--rejects", "again.csv", "--json"];
    let ran = world.run_with_input(&arguments, &whole(given));
    assert!(ran.err.contains("was cut off"), "{}", ran.err);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["rows_imported"], given - bad(given));
    assert_eq!(count(&world), given - bad(given));
    assert!(!world.run(&["check", "shop", "--quiet"]).err.contains("cut off"));
}

#[test]
fn rejected_rows_of_an_earlier_import_are_kept_unless_they_are_to_be_overwritten() {
    let world = World::with_orders();
    world.write("orders.csv", "id,note,amount\n1,a,many\n");
    for name in ["orders.csv.rejected.csv", "orders.csv.rejected-2.csv"] {
        world.run(&["import", "shop", "orders", "orders.csv"]);
        assert!(world.read(name).contains("1,a,many"), "{name}");
    }
    world.write("orders.csv", "id,note,amount\n2,b,more\n");
    world.run(&["import", "shop", "orders", "orders.csv", "--overwrite-rejects"]);
    assert!(world.read("orders.csv.rejected.csv").contains("2,b,more"));
    assert!(world.read("orders.csv.rejected-2.csv").contains("1,a,many"));
    assert!(!world.exists("orders.csv.rejected-3.csv"));
}
