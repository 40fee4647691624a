//! The commands that checks and tests run, and what became of each.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// One command: a name for the summary, and what to run.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    program: std::ffi::OsString,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    folder: PathBuf,
}

impl Step {
    /// `cargo` with `arguments`, in the workspace.
    pub(crate) fn cargo(root: &Path, name: &str, arguments: &[&str]) -> Step {
        let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Step { program, ..Step::program(root, name, "cargo", arguments) }
    }

    /// A program with `arguments`, in the workspace.
    pub(crate) fn program(root: &Path, name: &str, program: &str, arguments: &[&str]) -> Step {
        Step {
            name: name.to_owned(),
            program: program.into(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            environment: Vec::new(),
            folder: root.to_owned(),
        }
    }

    /// The same with the cargo of the nightly toolchain.
    pub(crate) fn nightly_cargo(root: &Path, name: &str, arguments: &[&str]) -> Step {
        let arguments = [&["run", "nightly", "cargo"], arguments].concat();
        Step { program: "rustup".into(), ..Step::cargo(root, name, &arguments) }
    }

    /// With an environment variable.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Step {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Whether it succeeded, and how long it took. Its output goes where ours goes.
    fn run(&self) -> (bool, Duration) {
        let settings: String =
            self.environment.iter().map(|(name, value)| format!("{name}='{value}' ")).collect();
        let program = Path::new(&self.program).file_name().unwrap_or(&self.program).display();
        println!("\n== {}: {settings}{program} {}", self.name, self.arguments.join(" "));
        let began = Instant::now();
        let status = Command::new(&self.program)
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .status();
        let succeeded = match status {
            Ok(status) => status.success(),
            Err(error) => {
                eprintln!("{}: {error}", self.name);
                false
            }
        };
        // Told at once, so that a run that is stopped from outside has told what its time went to.
        let duration = began.elapsed();
        println!("== {}: {} after {:.1} s", self.name, word(succeeded), duration.as_secs_f64());
        (succeeded, duration)
    }
}

fn word(succeeded: bool) -> &'static str {
    if succeeded { "ok" } else { "FAILED" }
}

/// Runs all steps, also after one has failed, and prints a summary. Returns how many failed.
pub(crate) fn run_all(steps: &[Step]) -> usize {
    let outcomes: Vec<_> = steps.iter().map(|step| (step, step.run())).collect();
    println!("\n== summary");
    for (step, (succeeded, duration)) in &outcomes {
        println!("{:7} {:>7.1} s  {}", word(*succeeded), duration.as_secs_f64(), step.name);
    }
    outcomes.iter().filter(|(_, (succeeded, _))| !succeeded).count()
}

/// The checks that need a build.
pub(crate) fn checks(root: &Path) -> Vec<Step> {
    let product = ["clippy", "--workspace", "--keep-going", "--", "-D", "warnings"];
    // What helps tests may unwrap: a failure there is a failed test.
    let tests = ["clippy", "--workspace", "--all-targets", "--keep-going", "--", "-D", "warnings"];
    let tests = [&tests[..], &["-A", "clippy::unwrap_used"]].concat();
    // The build of the first command of README.md.
    let small = ["clippy", "--package", "onrush-cli", "--no-default-features"];
    let small = [&small[..], &["--", "-D", "warnings"]].concat();
    let docs = ["doc", "--workspace", "--no-deps", "--document-private-items", "--keep-going"];
    vec![
        Step::cargo(root, "formatting", &["fmt", "--all", "--check"]),
        Step::cargo(root, "lints", &product),
        Step::cargo(root, "lints of tests and examples", &tests),
        Step::cargo(root, "lints without the server", &small),
        Step::cargo(root, "links in the code's documentation", &docs)
            .with("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links"),
    ]
}

/// The test that compares the byte examples in `docs/` writes them instead.
pub(crate) fn update_examples(root: &Path) -> Step {
    let test = ["test", "--package", "xtask", "--test", "byte_examples"];
    Step::cargo(root, "byte examples", &test).with("ONRUSH_UPDATE_DOCS", "1")
}
