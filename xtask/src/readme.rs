//! Rule: what `README.md` shows is what runs. Its example is the tested one of the engine's first
//! page, and its test command is the one that runs on every change.

use crate::finding::Finding;
use crate::source::Source;

const PAGE: &str = "README.md";
const TESTED: &str = "crates/engine/src/lib.rs";
const RUN: &str = ".ci/run";
const TEST_COMMAND: &str = "cargo xtask test";
/// The one line that differs: where the database is.
const OPENING: &str = "let db = Database::create(";

/// See the module.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let text_of = |path: &str| {
        sources.iter().find(|source| source.path == path).map_or("", |source| source.text.as_str())
    };
    let (page, tested) = (text_of(PAGE), text_of(TESTED));
    let mut findings = Vec::new();
    let tested: Vec<&str> = tested.lines().filter_map(|line| line.strip_prefix("//! ")).collect();
    let shown = example(page);
    if shown.clone().next().is_none() {
        findings.push(Finding::file(PAGE, "has no example in Rust"));
    }
    for (line, code) in shown {
        if !code.is_empty() && !code.starts_with(OPENING) && !tested.contains(&code) {
            let message = format!("this line is not in the tested example of {TESTED}");
            findings.push(Finding::line(PAGE, line, message));
        }
    }
    for (path, text) in [(PAGE, page), (RUN, text_of(RUN))] {
        if !text.contains(TEST_COMMAND) {
            findings.push(Finding::file(path, format!("does not say `{TEST_COMMAND}`")));
        }
    }
    findings
}

/// The lines of the first block of Rust, with their numbers.
fn example(page: &str) -> impl Iterator<Item = (usize, &str)> + Clone {
    let lines = page.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.skip_while(|(_, line)| *line != "```rust").skip(1).take_while(|(_, line)| *line != "```")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(example: &str, run: &str) -> usize {
        let page = format!("# A\n{TEST_COMMAND}\n```rust\n{example}\n```\n");
        let sources = [
            Source::new(PAGE, &page),
            Source::new(TESTED, "//! let a = 1;\n//!\n//! b(a);\n"),
            Source::new(RUN, run),
        ];
        check(&sources).len()
    }

    #[test]
    fn an_example_that_is_tested_passes() {
        assert_eq!(
            found("let a = 1;\n\nlet db = Database::create(\"x\")?;\nb(a);", TEST_COMMAND),
            0
        );
    }

    #[test]
    fn another_line_or_another_test_command_is_found() {
        assert_eq!(found("let a = 2;", TEST_COMMAND), 1);
        assert_eq!(found("b(a);", "cargo test"), 1);
        assert_eq!(check(&[]).len(), 3);
    }
}
