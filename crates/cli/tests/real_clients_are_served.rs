//! Drivers of PostgreSQL in several languages are served. Their tests are in `clients/`, each in its
//! language's usual form, with their versions pinned; a server is started by each of them.
//!
//! They are installed from their registries, so they run only when they are asked for:
//! `cargo xtask drivers`. A language that is not installed, or whose drivers cannot be fetched, is said
//! and left out; with `ONRUSH_REQUIRE_CLIENTS` set it is a failure.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A language: where its tests are, and where its drivers are installed.
struct Client {
    tests: PathBuf,
    target: PathBuf,
}

impl Client {
    /// None where one of its tools is not installed.
    fn find(name: &str, tools: &[&str]) -> Option<Client> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there =
            |tool: &str| std::env::split_paths(&path).any(|folder| folder.join(tool).is_file());
        if let Some(missing) = tools.iter().find(|tool| !is_there(tool)) {
            leave_out(&format!("{name}: {missing} is not installed"));
            return None;
        }
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients").join(name);
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients").join(name);
        Some(Client { tests, target })
    }

    /// Installs what `manifest` names, unless that was done before; whether it is there.
    fn install(&self, manifest: &str, install: impl FnOnce() -> bool) -> bool {
        let wanted = std::fs::read_to_string(self.tests.join(manifest)).unwrap();
        let note = self.target.join("installed");
        if std::fs::read_to_string(&note).is_ok_and(|installed| installed == wanted) {
            return true;
        }
        let _ = std::fs::remove_dir_all(&self.target);
        std::fs::create_dir_all(&self.target).unwrap();
        if !install() {
            leave_out(&format!("what {manifest} names cannot be installed"));
            return false;
        }
        std::fs::write(note, wanted).unwrap();
        true
    }

    /// Runs the tests: a command in their folder, which must succeed.
    fn test(&self, program: impl AsRef<Path>, words: &[&str]) {
        let program = program.as_ref();
        assert!(self.run(program, words), "{} {}", program.display(), words.join(" "));
    }

    /// Runs a command in the folder of the tests, and tells whether it succeeded. Its output goes
    /// where ours goes.
    fn run(&self, program: impl AsRef<Path>, words: &[&str]) -> bool {
        let status = Command::new(program.as_ref())
            .args(words)
            .current_dir(&self.tests)
            .env("ONRUSH_BIN", env!("CARGO_BIN_EXE_onrush"))
            .env("NODE_PATH", self.target.join("node_modules"))
            .status();
        status.is_ok_and(|status| status.success())
    }

    fn path(&self, within: &str) -> String {
        self.target.join(within).to_str().unwrap().to_owned()
    }
}

fn leave_out(reason: &str) {
    let required = std::env::var_os("ONRUSH_REQUIRE_CLIENTS").unwrap_or_default();
    assert!(required.is_empty(), "{reason}");
    eprintln!("left out: {reason}");
}

#[test]
#[ignore = "it installs drivers: cargo xtask drivers"]
fn python() {
    let Some(client) = Client::find("python", &["python3"]) else { return };
    let python = client.path("bin/python");
    let is_there = client.install("requirements.txt", || {
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
        client.run("python3", &["-m", "venv", &client.path("")])
            && client.run(&python, &[&pip[..], &["--requirement", "requirements.txt"]].concat())
    });
    if !is_there {
        return;
    }
    client.test(&python, &["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]);
}

#[test]
#[ignore = "it installs drivers: cargo xtask drivers"]
fn go() {
    let Some(client) = Client::find("go", &["go"]) else { return };
    if !client.install("go.sum", || client.run("go", &["mod", "download"])) {
        return;
    }
    client.test("go", &["test", "-count=1", "./..."]);
}

#[test]
#[ignore = "it installs drivers: cargo xtask drivers"]
fn node() {
    let Some(client) = Client::find("node", &["node", "npm"]) else { return };
    let is_there = client.install("package.json", || {
        std::fs::copy(client.tests.join("package.json"), client.path("package.json")).unwrap();
        let quiet = ["--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"];
        let npm = ["install", "--legacy-peer-deps", "--prefix", &client.path("")];
        client.run("npm", &[&npm[..], &quiet].concat())
    });
    if !is_there {
        return;
    }
    client.test("node", &["--test", "pg.test.cjs", "drizzle.test.cjs"]);
}

#[test]
#[ignore = "it installs drivers: cargo xtask drivers"]
fn java() {
    let Some(client) = Client::find("java", &["java", "mvn"]) else { return };
    let target = format!("-DbuildFolder={}", client.path("build"));
    let maven = ["--quiet", "--batch-mode", &target, "test"];
    let is_there = client.install("pom.xml", || {
        // No test is called so: what tests are compiled with is fetched, and none is run.
        let none = ["-Dtest=Nothing", "-Dsurefire.failIfNoSpecifiedTests=false"];
        client.run("mvn", &[&maven[..], &none].concat())
    });
    if !is_there {
        return;
    }
    // Not offline: what runs tests is fetched when there is one to run.
    client.test("mvn", &maven);
}

#[test]
#[ignore = "it installs drivers: cargo xtask drivers"]
fn rust() {
    let Some(client) = Client::find("rust", &["cargo"]) else { return };
    if !client.install("Cargo.lock", || client.run("cargo", &["fetch", "--locked"])) {
        return;
    }
    let target = client.path("target");
    client.test("cargo", &["test", "--locked", "--offline", "--target-dir", &target]);
}
