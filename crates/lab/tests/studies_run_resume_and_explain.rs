//! Studies through the command: a matrix is run, kept, continued after a kill, and shown.

#![allow(clippy::unwrap_used)]

mod command;

use command::World;

const SMALL: &str = r#"
name = "small"
title = "A small study"
targets = ["onrush", "lmdb", "null"]
repeats = 2

[settings]
sessions = 2
rows = 240
durability = ["delayed", "durable"]
cache_bytes = "16MiB"
log_capacity_bytes = "256MiB"

[chart]
x = "durability"
"#;

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_study_runs_every_possible_case_and_says_why_others_are_not_run() {
    let world = World::new();
    world.write("small.toml", SMALL);
    let out = world.ok(&["run", "small.toml", "--out", "r.sqlite", "--json"]);
    let result = json(&out);
    let cases = result["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        if case["target"] == "null" && case["settings"]["durability"] == "durable" {
            assert!(case["skipped"].as_str().unwrap().contains("no disk"));
            continue;
        }
        assert_eq!(case["repeats"].as_array().unwrap().len(), 2, "{case}");
        assert!(case["summary"]["rows_per_s"].as_f64().unwrap() > 0.0);
        let verified = &case["repeats"][0]["verification"];
        assert!(case["target"] == "null" || verified["passed"] == true, "{verified}");
    }
    let shown = world.ok(&["show", "r.sqlite"]);
    for words in ["A small study", "onrush", "rows/s", "log MB/s", "skipped: null"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(json(&world.ok(&["show", "r.sqlite", "--json"])), result);
    let mut left = world.list();
    left.sort();
    assert_eq!(left, ["r-waits.csv", "r.csv", "r.html", "r.json", "r.sqlite", "small.toml"]);
}

#[test]
fn a_report_is_written_again_and_its_kept_compares_with_the_results() {
    let world = World::new();
    world.write("small.toml", SMALL);
    world.ok(&["run", "small.toml", "--target", "null", "--out", "results", "--quiet"]);
    world.ok(&["report", "results/small.sqlite", "--out", "again"]);
    let page = world.read("again/small.html");
    assert!(page.contains("The load generator alone") && page.contains("has no disk"), "{page}");
    world.ok(&["report", "results/small.sqlite", "--kept", "before.json"]);
    let told = world.ok(&["compare", "before.json", "results/small.sqlite", "--json"]);
    let differences = &json(&told)["differences"];
    assert_eq!(differences.as_array().unwrap().len(), 1, "{told}");
    assert_eq!(differences[0]["change"], "same");
    // The same runs, beyond any doubt faster before: what is there now has regressed.
    let mut faster = json(&world.read("before.json"));
    for case in faster["cases"].as_array_mut().unwrap() {
        let rates: &[f64] = &[1e30, 1.01e30];
        for (repeat, rate) in case["repeats"].as_array_mut().unwrap().iter_mut().zip(rates) {
            repeat["rows_per_s"] = (*rate).into();
        }
    }
    world.write("faster.json", &faster.to_string());
    let refused = world.run(&["compare", "faster.json", "results/small.sqlite"]);
    assert_eq!(refused.code, 1, "{}{}", refused.out, refused.err);
}

#[test]
fn a_killed_study_goes_on_at_the_first_missing_run() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let world = World::new();
    world.write("small.toml", &SMALL.replace("repeats = 2", "repeats = 4"));
    let arguments = ["run", "small.toml", "--out", "r.sqlite"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_onrush-lab"))
        .args(arguments)
        .current_dir(world.path(""))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let ends = lines.map(|line| line.unwrap()).filter(|line| line.ends_with("rows/s"));
    assert_eq!(ends.take(3).count(), 3);
    child.kill().unwrap();
    child.wait().unwrap();
    let runs = |text: &str| -> Vec<String> {
        let cases = json(text)["cases"].as_array().unwrap().clone();
        cases.iter().map(|case| case["repeats"].to_string()).collect()
    };
    let count = |runs: &[String]| runs.iter().map(|run| run.matches("\"commits\":").count()).sum();
    let before = runs(&world.ok(&["show", "r.sqlite", "--json"]));
    let made: usize = count(&before);
    assert!((2..20).contains(&made), "{made}");
    let again = world.run(&["run", "small.toml", "--out", "r.sqlite"]);
    assert!(again.code == 1 && again.err.contains("--resume"), "{}", again.err);
    let resumed = world.run(&["run", "small.toml", "--out", "r.sqlite", "--resume"]);
    assert_eq!(resumed.code, 0, "{}", resumed.err);
    let told = resumed.err.lines().filter(|line| line.ends_with("rows/s")).count();
    let after = runs(&world.ok(&["show", "r.sqlite", "--json"]));
    let all: usize = count(&after);
    assert_eq!((all, told), (20, 20 - made), "what was there is not made again");
    let is_database = |name: &String| name.starts_with("onrush-lab-");
    assert!(!world.list().iter().any(is_database), "{:?} was left", world.list());
    for (before, after) in before.iter().zip(&after) {
        assert!(after.starts_with(before.trim_end_matches(']')), "what was there is kept");
    }
}

#[test]
fn another_study_does_not_go_into_the_same_file() {
    let world = World::new();
    world.write("small.toml", &SMALL.replace("repeats = 2", "repeats = 1"));
    world.ok(&["run", "small.toml", "--out", "r.sqlite", "--target", "null"]);
    world.write("small.toml", &SMALL.replace("rows = 240", "rows = 241"));
    let ran = world.run(&["run", "small.toml", "--out", "r.sqlite", "--resume"]);
    assert!(ran.code == 1 && ran.err.contains("would not compare"), "{}", ran.err);
}

/// The command that a message names between backticks, as a shell runs it.
fn run_what_is_told(world: &World, message: &str) {
    let command = message.split('`').nth(1).expect("no command is told");
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_onrush-lab")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut shell = std::process::Command::new("sh");
    let ran = shell.args(["-c", command]).env("PATH", path).current_dir(world.path("")).output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn the_command_that_is_told_continues_a_study_begun_with_targets_settings_and_a_folder() {
    let world = World::new();
    world.write("my study.toml", SMALL);
    let run = ["run", "my study.toml", "--out", "my results.sqlite", "--repeats", "1"];
    let more = ["--target", "null", "--dir", "my disk", "--set", "rows=99"];
    world.ok(&[&run[..], &more[..]].concat());
    let again = world.run(&[&run[..], &more[..]].concat());
    assert_eq!(again.code, 1);
    run_what_is_told(&world, &again.err);
}

#[test]
fn a_study_that_is_not_the_one_in_the_file_is_told_how_that_one_goes_on() {
    let world = World::new();
    world.write("small.toml", SMALL);
    world.ok(&["run", "small.toml", "--out", "r.sqlite", "--target", "null"]);
    let refused = world.run(&["run", "small.toml", "--out", "r.sqlite", "--resume"]);
    assert!(refused.code == 1 && refused.err.contains("other targets"), "{}", refused.err);
    run_what_is_told(&world, &refused.err);
}

#[test]
fn a_target_that_the_study_does_not_name_is_measured_when_asked_for() {
    let world = World::new();
    world.write("small.toml", SMALL);
    let run = ["run", "small.toml", "--repeats", "1", "--json"];
    let result = json(&world.ok(&[&run[..], &["--target", "redb", "--target", "null"]].concat()));
    let cases = result["cases"].as_array().unwrap();
    let targets: Vec<_> = cases.iter().map(|case| case["target"].as_str().unwrap()).collect();
    assert_eq!(targets, ["null", "null", "redb", "redb"]);
    assert_eq!(cases[2]["repeats"][0]["verification"]["passed"], true, "{}", cases[2]);
    let own = SMALL.replace("[chart]", "[[part]]\nname = \"one\"\ntargets = [\"null\"]\n[chart]");
    world.write("small.toml", &own);
    let refused = world.run(&["run", "small.toml", "--target", "redb"]);
    assert!(refused.code == 2 && refused.err.contains("its own targets"), "{}", refused.err);
}

#[test]
fn singleton_is_the_study_of_that_name() {
    let world = World::new();
    let study = ["run", "singleton", "--target", "null", "--target", "redb"];
    let more = ["--quick", "--set", "rows=240", "--repeats", "2", "--out", "r.sqlite", "--json"];
    let result = json(&world.ok(&[&study[..], &more[..]].concat()));
    let cases = result["cases"].as_array().unwrap();
    assert!(cases.iter().all(|case| case["settings"]["rows"] == 240), "{result}");
    let ran: Vec<_> = cases.iter().filter(|case| case["skipped"].is_null()).collect();
    let targets: Vec<_> = ran.iter().map(|case| case["target"].as_str().unwrap()).collect();
    assert_eq!(targets, ["redb", "redb", "null"], "nothing durable is asked of null");
    assert!(ran.iter().all(|case| case["repeats"].as_array().unwrap().len() == 2), "{result}");
    world.ok(&[&study[..], &more[..], &["--resume"]].concat());
}

#[test]
fn stacks_are_sampled_into_a_flame_graph_beside_the_results() {
    let world = World::new();
    world.write("small.toml", SMALL);
    let run = ["run", "small.toml", "--target", "onrush", "--repeats", "1", "--out", "r.sqlite"];
    let settings = ["--set", "durability=delayed", "--set", "rows=400k", "--stacks"];
    world.ok(&[&run[..], &settings].concat());
    let graph = world.read("r-stacks-1-1.svg");
    assert!(graph.contains("<svg") && graph.contains("onrush::session"), "{graph}");
    assert!(world.read("r.html").contains("href=\"r-stacks-1-1.svg\""));
}

#[test]
fn settings_that_the_engine_refuses_are_a_reason_found_before_the_first_run() {
    let world = World::new();
    let sizes = "log_capacity_bytes = [\"1MiB\", \"256MiB\"]";
    world.write("small.toml", &SMALL.replace("log_capacity_bytes = \"256MiB\"", sizes));
    let run = ["run", "small.toml", "--target", "onrush", "--repeats", "1", "--json"];
    let result = json(&world.ok(&[&run[..], &["--set", "durability=delayed"]].concat()));
    let [refused, ran] = &result["cases"].as_array().unwrap()[..] else { panic!("{result}") };
    let reason = refused["skipped"].as_str().unwrap();
    assert!(reason.contains("log_capacity_bytes"), "{reason}");
    assert!(refused["failed"].is_null() && ran["skipped"].is_null(), "{result}");
}

#[test]
fn instances_run_in_processes_of_their_own_and_are_verified() {
    let world = World::new();
    let pinned = SMALL
        .replace("sessions = 2", "sessions = 3\ninstances = [1, 3]\npinning = \"instance\"")
        .replace("\"lmdb\", \"null\"", "\"lmdb\"")
        .replace("title", "without_permission = true\ntitle");
    world.write("small.toml", &pinned);
    let result = json(&world.ok(&["run", "small.toml", "--out", "r.sqlite", "--json"]));
    let cases = result["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 8);
    for case in cases {
        let repeat = &case["repeats"][0];
        assert_eq!(repeat["rows"], 240, "{case}");
        assert_eq!(repeat["verification"]["rows_found"], 240);
    }
}

#[test]
fn names_that_are_wrong_are_told_with_the_nearest_right_one() {
    let world = World::new();
    let ran = world.run(&["run", "kyes"]);
    assert!(ran.code == 2 && ran.err.contains("did you mean \"keys\"?"), "{}", ran.err);
    world.write("small.toml", &SMALL.replace("sessions = 2", "sesions = 2"));
    let ran = world.run(&["run", "small.toml"]);
    assert!(ran.code == 2 && ran.err.contains("did you mean \"sessions\"?"), "{}", ran.err);
    let ran = world.run(&["show", "nothing.sqlite"]);
    assert!(ran.code == 1 && ran.err.contains("no such file"), "{}", ran.err);
}

#[test]
fn studies_and_targets_are_listed_and_a_study_can_be_copied() {
    let world = World::new();
    let out = world.ok(&["list"]);
    for words in ["keys", "E1", "ladder", "pinned", "rocksdb", "onrush         ready"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(world.ok(&["list", "--source", "keys"]).contains("[[part]]"));
}

#[test]
fn all_shipped_studies_run_by_one_command_which_says_how_long_each_took() {
    let world = World::new();
    // Every study with its own parts, but for what makes them long: rows, waiting, and most axes.
    let mut arguments = vec!["run", "all", "--quick", "--repeats", "1", "--quiet", "--json"];
    for setting in [
        "rows=240",
        "rows_per_session=0",
        "preload_rows=300",
        "sessions=2",
        "durability=delayed",
        "key=session-offset",
        "rows_per_commit=1",
        "data_files=1",
        "cache_bytes=16MiB",
        "log_capacity_bytes=256MiB",
        "check_threads=2",
        "check_reads=memory",
    ] {
        arguments.extend(["--set", setting]);
    }
    arguments.extend(["--target", "onrush", "--target", "null"]);
    let all = json(&world.ok(&arguments));
    let studies = all["studies"].as_array().unwrap();
    let names: Vec<_> = studies.iter().map(|ran| ran["study"].as_str().unwrap()).collect();
    assert_eq!(names, onrush_lab::study::shipped::names().collect::<Vec<_>>());
    for ran in studies {
        assert!(ran["ran"].as_u64().unwrap() > 0, "{ran}");
        assert_eq!(ran["failed"], 0, "{ran}");
        assert!(ran["elapsed_s"].as_f64().unwrap() > 0.0, "{ran}");
        let results = ran["results"].as_str().unwrap();
        assert!(
            world.exists(results) && world.exists(results.replace(".sqlite", ".html")),
            "{ran}"
        );
    }
}

#[test]
fn all_studies_go_on_where_they_were_interrupted_and_those_without_a_wanted_target_are_left_out() {
    let world = World::new();
    let null = ["run", "all", "--quick", "--quiet", "--target", "null", "--out", "null"];
    let small = ["--set", "rows=9", "--set", "rows_per_session=0"];
    let text = world.ok(&[&null[..], &small[..]].concat());
    assert!(text.starts_with("study") && text.contains("\nin all"), "{text}");
    assert!(text.contains("left out: it has none of the targets"), "{text}");
    let before = world.read("null/generator-quick.json");
    let refused = world.run(&[&null[..], &small[..]].concat());
    assert!(refused.code == 1 && refused.out.contains("--resume"), "{}", refused.out);
    world.ok(&[&null[..], &small[..], &["--resume"]].concat());
    assert_eq!(world.read("null/generator-quick.json"), before, "nothing was run again");
    let refused = world.run(&["run", "all", "--out", "all.sqlite"]);
    assert!(refused.code == 2 && refused.err.contains("give a folder"), "{}", refused.err);
}

#[test]
fn a_setting_that_is_given_for_all_cases_takes_the_place_of_those_in_the_study() {
    let world = World::new();
    world.write("small.toml", SMALL);
    let run = ["run", "small.toml", "--target", "null", "--out", "r.sqlite", "--json"];
    let set = ["--set", "rows=77", "--set", "durability=delayed", "--repeats", "1"];
    let result = json(&world.ok(&[&run[..], &set[..]].concat()));
    let cases = result["cases"].as_array().unwrap();
    assert_eq!((cases.len(), &cases[0]["repeats"][0]["rows"]), (1, &77.into()));
    let refused = world.run(&["run", "small.toml", "--set", "rwos=7"]);
    assert!(refused.code == 2 && refused.err.contains("did you mean \"rows\"?"), "{}", refused.err);
}
