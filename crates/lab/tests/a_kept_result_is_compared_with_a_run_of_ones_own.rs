//! One command runs the study of a kept result again, and tells whether anything became slower.

#![allow(clippy::unwrap_used)]

mod command;

use command::World;

/// So small that its rates say nothing: everything but 99 % slower is taken for the same.
const STUDY: &str = r#"
name = "small"
title = "A small study"
targets = ["onrush", "null"]
[settings]
rows = 500
sessions = [2, 3]
durability = "delayed"
cache_bytes = "16MiB"
[chart]
x = "target"
"#;

fn with_kept() -> World {
    let world = World::new();
    world.write("small.toml", STUDY);
    let run = ["run", "small.toml", "--repeats", "2", "--set", "rows=240"];
    world.ok(&[&run[..], &["--out", "r.sqlite"]].concat());
    world.ok(&["report", "r.sqlite", "--kept", "kept.json"]);
    world
}

#[test]
fn the_same_study_is_run_with_the_same_settings_and_repeats() {
    let world = with_kept();
    let compare = ["compare", "--run", "kept.json", "--threshold", "99", "--json"];
    let out = world.ok(&[&compare[..], &["--out", "again.sqlite", "--dir", "disk"]].concat());
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["differences"].as_array().unwrap().len(), 4, "{told}");
    assert_eq!(told["unmatched"].as_array().unwrap().len(), 0, "{told}");
    let again = world.ok(&["show", "again.sqlite", "--json"]);
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["repeats"], 2);
}

#[test]
fn of_one_target_alone_where_that_is_asked_for() {
    let world = with_kept();
    let compare = ["compare", "--run", "kept.json", "--threshold", "99", "--json"];
    let out = world.ok(&[&compare[..], &["--target", "null"]].concat());
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["differences"].as_array().unwrap().len(), 2, "{told}");
}

#[test]
fn a_result_whose_study_is_not_here_is_told_with_the_cure() {
    let world = with_kept();
    std::fs::remove_file(world.path("small.toml")).unwrap();
    let ran = world.run(&["compare", "--run", "kept.json"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(
        ran.err.contains("no file small.toml") && ran.err.contains("instead of --run"),
        "{}",
        ran.err
    );
}
