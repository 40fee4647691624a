//! `cargo xtask deny`: licences, sources and advisories of all dependencies, by cargo-deny, which is
//! installed into the target folder if this machine has none.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::commands::{Step, run_all};

const VERSION: &str = "0.20.2";

/// Runs the checks of `deny.toml`. Where cargo-deny cannot be installed, or the database of advisories not be
/// fetched, a note says what was left out; `ONRUSH_REQUIRE_DENY=1` makes that a failure.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let is_required = std::env::var("ONRUSH_REQUIRE_DENY").is_ok_and(|text| text == "1");
    let tools = root.join("target/tools");
    if !answers(Command::new("cargo-deny").arg("--version"))
        && !answers(Command::new(own(&tools)).arg("--version"))
    {
        let folder = tools.display().to_string();
        let install =
            ["install", "--locked", "cargo-deny", "--version", VERSION, "--root", &folder];
        if run_all(&[Step::cargo(root, "installing cargo-deny", &install)]) > 0 {
            let told = "deny: cargo-deny could not be installed; dependencies were not looked at";
            println!("{told}");
            return if is_required { Err(told.to_owned()) } else { Ok(()) };
        }
    }
    let path = with_folder(&tools.join("bin"))?;
    let step = |name, arguments: &[&str]| Step::cargo(root, name, arguments).with("PATH", &path);
    let checks = ["deny", "--all-features", "check", "bans", "licenses", "sources"];
    let mut steps = vec![step("dependencies", &checks)];
    let fetch = Command::new("cargo")
        .args(["deny", "fetch", "db"])
        .env("PATH", &path)
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if is_required || fetch.is_ok_and(|status| status.success()) {
        steps.push(step("advisories", &["deny", "--all-features", "check", "advisories"]));
    } else {
        println!("note: the database of advisories cannot be fetched; they were not looked at");
    }
    match run_all(&steps) {
        0 => Ok(()),
        _ => Err("deny: a dependency is not as deny.toml wants it".to_owned()),
    }
}

fn own(tools: &Path) -> PathBuf {
    tools.join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX))
}

fn answers(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// `PATH` with a folder in front.
fn with_folder(folder: &Path) -> Result<String, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    let joined = std::env::join_paths(folders).map_err(|error| error.to_string())?;
    joined.into_string().map_err(|_| "PATH is no text".to_owned())
}
