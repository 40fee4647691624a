//! Drivers of PostgreSQL in several languages are served. Their tests are in `clients/`, each in its
//! language's usual form, with their versions pinned; a server is started by each of them.
//!
//! They are installed from their registries, so they run only when they are asked for:
//! `cargo xtask drivers`. A language that is not installed is said and left out; with
//! `ONRUSH_REQUIRE_CLIENTS` set it is a failure.

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
            let required = std::env::var_os("ONRUSH_REQUIRE_CLIENTS").unwrap_or_default();
            assert!(required.is_empty(), "{missing} is not installed");
            eprintln!("{name}: {missing} is not installed, nothing was tested");
            return None;
        }
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients").join(name);
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients").join(name);
        Some(Client { tests, target })
    }

    /// Installs what `manifest` names, unless that was done before.
    fn install(&self, manifest: &str, install: impl FnOnce()) {
        let wanted = std::fs::read_to_string(self.tests.join(manifest)).unwrap();
        let note = self.target.join("installed");
        if std::fs::read_to_string(&note).is_ok_and(|installed| installed == wanted) {
            return;
        }
        let _ = std::fs::remove_dir_all(&self.target);
        std::fs::create_dir_all(&self.target).unwrap();
        install();
        std::fs::write(note, wanted).unwrap();
    }

    /// Runs a command in the folder of the tests. It must succeed; its output goes where ours goes.
    fn run(&self, program: impl AsRef<Path>, words: &[&str]) {
        let program = program.as_ref();
        let status = Command::new(program)
            .args(words)
            .current_dir(&self.tests)
            .env("ONRUSH_BIN", env!("CARGO_BIN_EXE_onrush"))
            .env("NODE_PATH", self.target.join("node_modules"))
            .status()
            .unwrap();
        assert!(status.success(), "{} {}: {status}", program.display(), words.join(" "));
    }

    fn path(&self, within: &str) -> String {
        self.target.join(within).to_str().unwrap().to_owned()
    }
}

#[test]
#[ignore = "it installs drivers: cargo xtask drivers"]
fn python() {
    let Some(client) = Client::find("python", &["python3"]) else { return };
    let python = client.path("bin/python");
    client.install("requirements.txt", || {
        client.run("python3", &["-m", "venv", &client.path("")]);
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
        client.run(&python, &[&pip[..], &["--requirement", "requirements.txt"]].concat());
    });
    client.run(&python, &["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]);
}

#[test]
#[ignore = "it installs drivers: cargo xtask drivers"]
fn go() {
    let Some(client) = Client::find("go", &["go"]) else { return };
    client.install("go.sum", || client.run("go", &["mod", "download"]));
    client.run("go", &["test", "-count=1", "./..."]);
}

#[test]
#[ignore = "it installs drivers: cargo xtask drivers"]
fn node() {
    let Some(client) = Client::find("node", &["node", "npm"]) else { return };
    client.install("package.json", || {
        std::fs::copy(client.tests.join("package.json"), client.path("package.json")).unwrap();
        let quiet = ["--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"];
        let npm = ["install", "--legacy-peer-deps", "--prefix", &client.path("")];
        client.run("npm", &[&npm[..], &quiet].concat());
    });
    client.run("node", &["--test", "pg.test.cjs", "drizzle.test.cjs"]);
}

#[test]
#[ignore = "it installs drivers: cargo xtask drivers"]
fn java() {
    let Some(client) = Client::find("java", &["java", "mvn"]) else { return };
    let target = format!("-DbuildFolder={}", client.path("build"));
    let maven = ["--quiet", "--batch-mode", &target, "test"];
    client.install("pom.xml", || {
        // No test is called so: everything that tests need is fetched, and none is run.
        let none = ["-Dtest=Nothing", "-Dsurefire.failIfNoSpecifiedTests=false"];
        client.run("mvn", &[&maven[..], &none].concat());
    });
    client.run("mvn", &[&maven[..], &["--offline"]].concat());
}
