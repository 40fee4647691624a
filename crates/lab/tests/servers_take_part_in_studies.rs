//! `onrush-lab run` with baselines that are servers, as a user types it: the study of keys and that of the
//! check, cut down to few rows.
//!
//! A server that is not installed is left out with a line that says so; with
//! `ONRUSH_REQUIRE_SERVERS` set that is a failure.

#![allow(clippy::unwrap_used)]

mod command;

use std::os::unix::fs::PermissionsExt;

use command::World;

const SERVERS: [&str; 2] = ["postgresql", "mariadb"];

/// Onrush and the servers that are installed, by what `lab list` says of them.
fn targets(world: &World) -> Vec<String> {
    let list = world.ok(&["list"]);
    let is_required = std::env::var_os("ONRUSH_REQUIRE_SERVERS").is_some();
    let is_ready = |name: &&str| {
        let line = list.lines().find(|line| line.trim().starts_with(name)).unwrap();
        let is_ready = line.trim_end().ends_with("ready");
        assert!(is_ready || !is_required, "{line}");
        if !is_ready {
            eprintln!("left out: {line}");
        }
        is_ready
    };
    let servers = SERVERS.into_iter().filter(is_ready);
    ["onrush"].into_iter().chain(servers).map(String::from).collect()
}

/// Runs a shipped study with other settings, and returns what it found.
fn run(study: &str, changes: &[(&str, &str)]) -> (Vec<String>, serde_json::Value, World) {
    let world = World::new();
    // Servers that run as a user of their own must be able to enter.
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(world.path(""), open).unwrap();
    let targets = targets(&world);
    let mut text = world.ok(&["list", "--source", study]);
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not in {text}");
        text = text.replace(from, to);
    }
    world.write("study.toml", &text);
    let mut arguments = vec!["run", "study.toml", "--quick", "--json", "--out", "r.sqlite"];
    for target in &targets {
        arguments.extend(["--target", target]);
    }
    let result = serde_json::from_str(&world.ok(&arguments)).unwrap();
    (targets, result, world)
}

fn cases<'r>(result: &'r serde_json::Value, target: &str) -> Vec<&'r serde_json::Value> {
    let cases = result["cases"].as_array().unwrap().iter();
    cases.filter(|case| case["target"] == target && case["skipped"].is_null()).collect()
}

#[test]
fn the_study_of_keys_has_the_servers_beside_onrush_with_their_waits() {
    let (targets, result, world) = run(
        "keys",
        &[
            ("\"session-offset\", \"identity\", \"uuid-v4\"", "\"session-offset\""),
            ("\"session-offset\", \"uuid-v4\"", "\"session-offset\""),
            ("sessions = 24", "sessions = 2\ncache_bytes = \"32MiB\""),
            ("sessions = 128", "sessions = 4"),
            ("rows = \"10m\"", "rows = 300"),
            ("rows = \"200k\"", "rows = 300"),
            ("rows = \"300k\"", "rows = 300"),
        ],
    );
    for target in &targets {
        let cases = cases(&result, target);
        assert!(cases.len() >= 3, "{target}: {result}");
        for case in cases {
            let run = &case["repeats"][0];
            assert_eq!(run["rows"], 300, "{target}: {case}");
            assert_eq!(run["verification"]["passed"], true, "{target}: {case}");
            assert!(!run["counters"].as_array().unwrap().is_empty(), "{target} counted nothing");
        }
    }
    let page = world.read("r.html");
    for target in &targets {
        assert!(page.contains(target.as_str()), "{target} is not in the report");
    }
}

#[test]
fn the_study_of_the_check_has_the_checks_of_servers_beside_it() {
    let (targets, result, _) = run(
        "check",
        &[
            ("\"500k\"", "2000"),
            ("\"256MiB\"", "\"32MiB\""),
            ("check_threads = [1, 2, 4, 8, 16, 32]", "check_threads = 1\nsessions = 2"),
        ],
    );
    for target in &targets {
        let cases = cases(&result, target);
        assert!(!cases.is_empty(), "{target}: {result}");
        for case in cases {
            let run = &case["repeats"][0];
            assert_eq!(run["rows"], 2000, "{target}: {case}");
            assert!(run["gb_per_s"].as_f64().unwrap() > 0.0, "{target}: {case}");
            assert_eq!(run["verification"]["rows_found"], 2000, "{target}: {case}");
        }
    }
}
