//! `pinned-containers.sh` with a container engine that is a stand-in: it ties the command to the processor
//! and gives it the folder, as an engine would, without a container around it.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use common::World;

const ENGINE: &str = r#"#!/bin/sh
set -eu
echo "$*" >> "$(dirname "$0")/asked"
[ "$1 $2 $3 $5 $7" = "run --rm --cpuset-cpus -v -v" ] || exit 9
cpu=$4 data=${6%%:/data} onrush=${8%%:/usr/local/bin/onrush:ro}
shift 10
for word; do
    shift
    [ "$word" = /data/db ] && word=$data/db
    set -- "$@" "$word"
done
exec taskset -c "$cpu" "$onrush" "$@"
"#;

fn recipe(world: &World, engine: &str, folder: &str) -> (bool, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/studies/pinned-containers.sh");
    let output = Command::new("sh")
        .args([script, env!("CARGO_BIN_EXE_onrush"), folder, "500"])
        .current_dir(world.path(""))
        .env("CONTAINER_ENGINE", engine)
        .env("CPUS", "1")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn each_instance_is_asked_for_with_its_processor_and_its_rate_is_in_the_sum() {
    let world = World::new();
    world.write("engine", ENGINE);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(world.path("engine"), mode).unwrap();
    let (is_done, told) = recipe(&world, world.path("engine").to_str().unwrap(), "runs");
    assert!(is_done, "{told}");
    let rate = |word: &str| {
        let line =
            told.lines().find(|line| line.starts_with(word)).unwrap_or_else(|| panic!("{told}"));
        line.split_whitespace().rev().nth(1).unwrap().parse::<u64>().unwrap()
    };
    assert!(rate("sum:") > 0 && rate("sum:") == rate("instance 1:"), "{told}");
    assert!(world.read("asked").contains("--cpuset-cpus 0"));
    let result: serde_json::Value =
        serde_json::from_str(&world.read("runs/instance-0.json")).unwrap();
    assert_eq!(result["verification"]["passed"], true);
    assert_eq!(result["rows"], 500);
}

#[test]
fn an_engine_that_is_not_there_is_named() {
    let world = World::new();
    let (is_done, told) = recipe(&world, "no-such-engine", "runs");
    assert!(!is_done && told.contains("no-such-engine is not installed"), "{told}");
    assert!(!world.exists("runs"));
}
