//! The lab through the command: figures under plain names, nothing left behind, refusals.

#![allow(clippy::unwrap_used)]

mod common;

use common::World;
#[cfg(unix)]
use common::load::Load;

/// A load that is still going on when somebody looks at it, and for which any disk has space: one session
/// that waits for a sync a row.
#[cfg(unix)]
const LONG_LOAD: [&str; 9] = [
    "--rows",
    "1m",
    "--sessions",
    "1",
    "--durability",
    "durable",
    "--no-verify",
    "--log-capacity",
    "768m",
];

#[test]
fn one_load_prints_one_json_object_and_leaves_nothing() {
    let world = World::new();
    let arguments = ["lab", "insert", "--rows", "2k", "--sessions", "4", "--json"];
    let out = world.ok(&arguments);
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(result["rows"], 2000);
    assert_eq!(result["settings"]["key"], "session-offset");
    assert_eq!(result["settings"]["durability"], "durable");
    assert_eq!(result["verification"]["passed"], true);
    assert!(result["rows_per_s"].as_f64().unwrap() > 0.0);
    assert!(result["commit_latency_us"]["p999"].as_f64().unwrap() > 0.0);
    assert_eq!(world.list(), Vec::<String>::new());
}

#[test]
fn the_experiment_prints_a_table_and_explains_it() {
    let world = World::new();
    let out = world.ok(&[
        "lab",
        "run",
        "singleton",
        "--rows",
        "2k",
        "--sessions",
        "4",
        "--key",
        "uuid-v4",
        "--dir",
        "db",
        "--keep",
    ]);
    for word in [
        "rows/s",
        "elapsed",
        "CPU",
        "log MB/s",
        "log bytes per row",
        "rows per commit",
        "commits per sync",
        "share of the bound",
        "commit latency",
        "large pages",
        "yes: all 2,000 acknowledged rows",
        "database kept in",
        "WaitType",
    ] {
        assert!(out.contains(word), "{word}: {out}");
    }
    assert_eq!(world.ok(&["count", "db", "my_big_table"]), "2,000 rows\n");
}

#[test]
fn delayed_tasks_and_repeats_work_together() {
    let world = World::new();
    let out = world.ok(&[
        "lab",
        "insert",
        "--rows",
        "2k",
        "--sessions",
        "8",
        "--durability",
        "delayed",
        "--driver",
        "tasks",
        "--rows-per-commit",
        "10",
        "--repeats",
        "2",
        "--key",
        "identity",
        "--json",
    ]);
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(result["rows_per_s_of_runs"].as_array().unwrap().len(), 2);
    assert!(result["share_of_bound"].is_null());
    assert_eq!(result["commits"], 200);
}

#[test]
fn a_folder_in_use_and_impossible_numbers_are_refused() {
    let world = World::new();
    std::fs::create_dir(world.path("full")).unwrap();
    world.write("full/letter", "dear");
    let ran = world.run(&["lab", "insert", "--rows", "10", "--dir", "full"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("is not empty"), "{}", ran.err);
    assert_eq!(world.read("full/letter"), "dear");
    let ran = world.run(&["lab", "insert", "--rows", "10", "--sessions", "0"]);
    assert!(ran.code == 2 && ran.err.contains("--sessions"), "{}", ran.err);
    let ran = world.run(&["lab", "insert", "--rows", "999999g"]);
    assert!(ran.code == 1 && ran.err.contains("free"), "{}", ran.err);
    let ran = world.run(&["lab", "insert", "--rows", "10", "--log-block", "100"]);
    assert!(ran.code == 2 && ran.err.contains("512"), "{}", ran.err);
    assert_eq!(world.list(), ["full"]);
}

#[test]
fn what_cannot_be_measured_is_told_before_anything_is_measured_or_written() {
    let world = World::new();
    world.write("old.sqlite", "");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let many = ["--data-folder", "new"].repeat(17);
    let insert: &[(&[&str], &str)] = &[
        (&["--log-capacity", "1MiB"], "--log-capacity"),
        (&["--log-ring", "100000"], "--log-ring"),
        (&["--leaf-memory", "1MiB", "--sessions", "70000"], "--sessions"),
        (&["--leaf-memory", "1024TiB"], "--leaf-memory"),
        (&["--large-pages", "require", "--leaf-memory", "1024TiB"], "--large-pages"),
        (&["--rows-per-commit", "1m"], "--rows-per-commit"),
        (&["--cpu-mask", "0"], "--cpu-mask"),
        (&["--repeats", "0"], "--repeats"),
        (&["--metrics", &taken], &taken),
        (&many, "--data-folder"),
    ];
    let insert = insert
        .iter()
        .map(|(flags, words)| ([&["lab", "insert", "--dir", "new"], *flags].concat(), *words));
    let others: [(&[&str], &str); 2] = [
        (&["lab", "disk", "--dir", "new"], "--dir new: there is no such folder"),
        (&["lab", "run", "singleton", "--dir", "new", "--window-ms", "0"], "--window-ms"),
    ];
    let others = others.map(|(arguments, words)| (arguments.to_vec(), words));
    for (arguments, words) in insert.chain(others) {
        let ran = world.run(&arguments);
        assert!(matches!(ran.code, 1 | 2), "{arguments:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(words), "{arguments:?}: {}", ran.err);
        assert!(!ran.err.contains("measuring"), "{arguments:?}: {}", ran.err);
        assert_eq!(world.list(), ["old.sqlite"], "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_load_serves_its_statistics_to_a_real_request() {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    let world = World::new();
    let flags = [&["--metrics", "127.0.0.1:0"][..], &LONG_LOAD].concat();
    let (load, told) = Load::start(&world, &flags, "for Prometheus");
    let address = told.split("http://").nth(1).unwrap().strip_suffix("/metrics").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("onrush_events_total{counter=\"ROWS_INSERTED\"}"), "{answer}");
    assert_eq!(load.interrupt(), Some(130));
}

#[test]
fn statistics_are_served_to_this_machine_alone_unless_told_otherwise() {
    let world = World::new();
    let load = ["lab", "insert", "--rows", "100", "--metrics"];
    let ran = world.run(&[&load[..], &["0.0.0.0:0"]].concat());
    assert!(ran.code == 2 && ran.err.contains("--metrics-public"), "{}", ran.err);
    world.ok(&[&load[..], &["0.0.0.0:0", "--metrics-public"]].concat());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = world.run(&[&load[..], &[&address]].concat());
    assert!(ran.code == 1 && ran.err.contains(&address), "{}", ran.err);
    assert_eq!(world.list(), Vec::<String>::new());
}

#[cfg(unix)]
#[test]
fn an_interrupted_load_leaves_nothing() {
    let world = World::new();
    let flags = [&["--dir", "db"][..], &LONG_LOAD].concat();
    let (load, _) = Load::start(&world, &flags, "inserting");
    assert!(world.exists("db"));
    assert_eq!(load.interrupt(), Some(130));
    assert_eq!(world.list(), Vec::<String>::new());
}
