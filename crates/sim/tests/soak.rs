//! A few seconds of the soak; two hours of it: `cargo run -p onrush-sim --release --bin soak`.

use std::process::Command;

fn soak(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_soak")).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_few_seconds_of_mixed_work_with_kills_lose_nothing() {
    let (holds, said) = soak(&["--minutes", "0.1", "--max-bytes", "512M"]);
    assert!(holds, "{said}");
    for line in ["| nothing lost, nothing wrong |", "| checks are clean |"] {
        let line = said.lines().find(|found| found.starts_with(line)).unwrap();
        assert!(line.ends_with("| holds |"), "{line}");
    }
}

#[test]
fn a_folder_with_something_in_it_is_left_alone() {
    let folder = std::env::temp_dir().join(format!("onrush-soak-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("mine"), "mine").unwrap();
    let (holds, said) = soak(&["--minutes", "0.1", "--folder", folder.to_str().unwrap()]);
    let is_there = std::fs::read_to_string(folder.join("mine")).unwrap() == "mine";
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(!holds && is_there && said.contains("is not empty"), "{said}");
}
