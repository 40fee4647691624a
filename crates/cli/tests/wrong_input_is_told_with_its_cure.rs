//! Whatever is wrong: exit code 1 or 2, nothing on standard output, and a message that names the
//! cause and what to do.

#![allow(clippy::unwrap_used)]

mod common;

use common::World;

fn refused(world: &World, arguments: &[&str], code: i32, words: &[&str]) {
    let ran = world.run(arguments);
    assert_eq!(ran.code, code, "{arguments:?}: {}{}", ran.out, ran.err);
    assert_eq!(ran.out, "", "{arguments:?}");
    for word in words {
        assert!(ran.err.contains(word), "{arguments:?} does not say {word:?}: {}", ran.err);
    }
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
}

#[test]
fn what_is_not_there() {
    let world = World::with_orders();
    refused(&world, &["get", "nowhere", "orders", "1"], 1, &["nowhere", "no Onrush database"]);
    refused(&world, &["get", "shop", "order", "1"], 1, &["order", "The tables are: orders"]);
    refused(&world, &["get", "shop", "orders", "99"], 1, &["no row with key 99"]);
    refused(&world, &["import", "shop", "orders", "none.csv"], 1, &["cannot open none.csv"]);
    refused(
        &world,
        &["insert", "shop", "orders", "colour=red"],
        1,
        &["colour", "id, note, amount"],
    );
}

#[test]
fn a_file_where_a_folder_should_be() {
    let world = World::with_orders();
    world.write("file", "no database");
    refused(&world, &["count", "file", "orders"], 1, &["file", "not a folder"]);
}

#[test]
fn what_does_not_fit() {
    let world = World::with_orders();
    refused(&world, &["insert", "shop", "orders", "amount=many"], 1, &["orders.amount", "whole"]);
    refused(&world, &["insert", "shop", "orders", "amount=NULL"], 1, &["NOT NULL"]);
    refused(&world, &["get", "shop", "orders", "1", "2"], 2, &["the key of table orders is id"]);
    world.ok(&["insert", "shop", "orders", "id=5"]);
    refused(&world, &["insert", "shop", "orders", "id=5"], 1, &["already has a row", "5"]);
    refused(&world, &["insert", "shop", "orders", "id=6", "id=7"], 2, &["id", "twice"]);
    refused(&world, &["create", "shop"], 1, &["already"]);
    refused(
        &world,
        &["create", "shop", "--table", "orders", "--column", "id int", "--key", "id"],
        1,
        &["orders", "exists"],
    );
}

#[test]
fn what_makes_no_sense() {
    let world = World::new();
    refused(&world, &["frobnicate"], 2, &["frobnicate", "--help"]);
    refused(&world, &["lab", "insert", "--key", "guid"], 2, &["guid", "session-offset"]);
    refused(&world, &["lab", "insert", "--rows", "many"], 2, &["--rows", "4m"]);
    refused(&world, &["create", "x", "--table", "t"], 2, &["no columns", "--column"]);
    refused(
        &world,
        &["create", "x", "--table", "t", "--column", "id serial", "--key", "id"],
        2,
        &["serial", "bigint"],
    );
    refused(
        &world,
        &["create", "x", "--table", "t", "--column", "id int", "--key", "other"],
        1,
        &["other", "id"],
    );
    for (column, words) in [
        ("id varchar(10485761)", ["varchar(10485761)", "1 to 10485760"]),
        ("id char(0)", ["char(0)", "1 to 8000"]),
        ("id decimal(2000,2)", ["decimal(2000,2)", "precision is 1 to 1000"]),
    ] {
        let create = ["create", "x", "--table", "t", "--column", column, "--key", "id"];
        refused(&world, &create, 2, &words);
    }
    assert!(!world.exists("x"), "nothing is created by a refused command");
}

/// The commands that a help lists, each with the words before it.
fn commands_of(before: &[String], help: &str) -> Vec<Vec<String>> {
    let is_heading = |line: &&str| *line == "Commands:" || *line == "Experiments:";
    let mut commands = Vec::new();
    let mut lines = help.lines();
    while lines.find(is_heading).is_some() {
        for line in lines.by_ref().take_while(|line| !line.is_empty()) {
            // What is indented further goes on with the line before it.
            let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '));
            let name = name.and_then(|rest| rest.split_whitespace().next());
            let named = name.filter(|name| *name != "help");
            commands.extend(named.map(|name| [before, &[name.to_owned()]].concat()));
        }
    }
    commands
}

#[test]
fn every_command_has_examples() {
    let world = World::new();
    let mut left = vec![Vec::new()];
    let mut seen = Vec::new();
    while let Some(command) = left.pop() {
        let words = command.iter().map(String::as_str).chain(["--help"]);
        let help = world.ok(&words.collect::<Vec<_>>());
        assert!(help.contains("Examples:\n  onrush "), "{command:?}\n{help}");
        left.extend(commands_of(&command, &help));
        seen.push(command.join(" "));
    }
    for command in ["checkpoint", "lab", "lab run singleton", "restore"] {
        assert!(seen.iter().any(|one| one == command), "{command} is not among {seen:?}");
    }
}

#[test]
fn what_the_lab_beside_this_command_does_is_told_with_how_to_run_it() {
    let world = World::new();
    let run = |words: &str| format!("cargo run --release -p onrush-lab -- {words}");
    refused(&world, &["lab", "run", "keys", "--quick"], 2, &[&run("run keys --quick")]);
    refused(&world, &["lab", "list"], 2, &[&run("list")]);
    refused(&world, &["lab", "run", "singleton", "--quick"], 2, &[&run("run singleton --quick")]);
    assert_eq!(world.list(), Vec::<String>::new());
}
