//! `cargo xtask`: the tests, the checks and the generated documents of the workspace.
//!
//! * `cargo xtask test`: every test there is, with a summary (`test_command.rs`).
//! * `cargo xtask drivers`: tests of PostgreSQL's drivers in other languages (`drivers_command.rs`).
//! * `cargo xtask prove-wire`: power cuts under the whole server, judged by its clients' record
//!   (`prove_wire_command.rs`).
//! * `cargo xtask deny`: licences, sources and advisories of dependencies (`deny_command.rs`).
//! * `cargo xtask check`: style, layers, words, unsafe code, links, generated documents, formatting,
//!   lints. `cargo xtask check style` leaves out formatting and lints, which need a build.
//! * `cargo xtask generate`: writes the generated documents anew.
//! * `cargo xtask site`: the documents as a site (`site_command.rs`).
//! * `cargo xtask miri`, `cargo xtask sanitize thread` or `address`: tests under tools that need a
//!   nightly compiler (`nightly_command.rs`).
//! * `cargo xtask statistics-cost`: measures what statistics cost (`cost_command.rs`).
//!
//! Invariants
//! 1. Nothing here changes a file of the sources, but for `generate`.
//! 2. A rule that a file breaks today stands in `lists.rs` with that file; the lists only shrink.

mod check_page;
mod commands;
mod cost_command;
mod deny_command;
mod differences_page;
mod drivers_command;
mod figures_page;
mod finding;
mod glossary;
mod goals;
mod latch_page;
mod layers;
mod links;
mod lists;
mod nightly_command;
mod product;
mod prove_wire_command;
mod readme;
mod settings_page;
mod site;
mod site_command;
mod source;
mod steps;
mod test_command;
mod tidy;
mod tool;
mod unsafe_code;
mod waits_page;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use finding::Finding;
use source::Source;

const USAGE: &str = "usage: cargo xtask test | drivers | prove-wire [...] | deny | check | check style | generate | \
     site | miri | sanitize thread | sanitize address | statistics-cost [--rounds N]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = workspace_root();
    let outcome = match words.as_slice() {
        ["test"] => test_command::run(&root),
        ["drivers"] => drivers_command::run(&root),
        ["prove-wire", ..] => prove_wire_command::run(&root, &arguments[1..]),
        ["deny"] => deny_command::run(&root),
        ["check"] => check(&root, true),
        ["check", "style"] => check(&root, false),
        ["generate"] => generate(&root),
        ["site"] => site_command::run(&root),
        ["miri"] => nightly_command::miri(&root),
        ["sanitize", sanitizer @ ("thread" | "address")] => {
            nightly_command::sanitize(&root, sanitizer)
        }
        ["statistics-cost", ..] => cost_command::run(&root, &arguments[1..]),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The folder above this crate's.
fn workspace_root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

fn check(root: &Path, with_build: bool) -> Result<(), String> {
    let sources = source::read_all(root)?;
    let mut findings = Vec::new();
    for (name, rule) in RULES {
        let found = rule(&sources);
        println!("{name:12} {}", if found.is_empty() { "ok" } else { "FAILED" });
        findings.extend(found);
    }
    println!("  note: {}", layers::circles(&sources));
    for warning in tidy::long_files(&sources) {
        println!("  note: {warning}");
    }
    for finding in &findings {
        eprintln!("{finding}");
    }
    let mut failed = usize::from(!findings.is_empty());
    if with_build {
        let steps = commands::checks(root);
        failed += commands::run_all(&steps);
    }
    if failed == 0 { Ok(()) } else { Err(format!("check: {} findings", findings.len())) }
}

type Rule = fn(&[Source]) -> Vec<Finding>;

const RULES: [(&str, Rule); 14] = [
    ("tidy", tidy::check),
    ("unsafe", unsafe_code::check),
    ("layers", layers::check),
    ("product", product::check),
    ("glossary", glossary::check),
    ("links", links::check),
    ("steps", steps::check),
    ("README.md", readme::check),
    ("latches.md", latch_page::check),
    ("check.md", check_page::check),
    ("waits.md", waits_page::check),
    ("settings.md", settings_page::check),
    ("differences", differences_page::check),
    ("performance", figures_page::check),
];

fn generate(root: &Path) -> Result<(), String> {
    let sources = source::read_all(root)?;
    let settings = settings_page::page(&sources)?;
    let pages = [
        (waits_page::PATH, waits_page::page()),
        (settings_page::PATH, settings),
        (check_page::PATH, check_page::page(&sources)?),
        (differences_page::PATH, differences_page::page(&sources)?),
        (figures_page::PATH, figures_page::page(&sources)?),
    ];
    for (path, text) in pages {
        std::fs::write(root.join(path), text).map_err(|error| format!("{path}: {error}"))?;
        println!("wrote {path}");
    }
    let examples = commands::update_examples(root);
    match commands::run_all(&[examples]) {
        0 => Ok(()),
        _ => Err("the byte examples were not written".to_owned()),
    }
}
