//! Rule: unsafe code stands in a short list of files.

use crate::finding::Finding;
use crate::lists::UNSAFE_FILES;
use crate::source::{Source, words};

/// See the module.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    check_against(sources, UNSAFE_FILES)
}

fn check_against(sources: &[Source], allowed: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let rust = sources.iter().filter(|source| source.is_rust());
    for source in rust.filter(|source| !source.path.starts_with("xtask/")) {
        let line = first_unsafe(source);
        let is_allowed = allowed.contains(&source.path.as_str());
        match line {
            Some(line) if !is_allowed => {
                let message = "unsafe code outside the files listed in xtask/src/lists.rs";
                findings.push(Finding::line(&source.path, line, message));
            }
            None if is_allowed => {
                let message = "has no unsafe code any more: take it off the list";
                findings.push(Finding::file(&source.path, message));
            }
            _ => {}
        }
    }
    for path in allowed.iter().filter(|path| !sources.iter().any(|one| one.path == **path)) {
        findings.push(Finding::file(path, "is gone: take it off the list of unsafe code"));
    }
    findings
}

fn first_unsafe(source: &Source) -> Option<usize> {
    let mut lines = source.code_lines();
    lines.find(|(_, code)| words(code).any(|(_, word)| word == "unsafe")).map(|(line, _)| line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_found_outside_the_list_only() {
        let sources = [
            Source::new("a.rs", "fn a() {\n    unsafe { b() }\n}"),
            Source::new("b.rs", "unsafe fn b() {}"),
            Source::new("c.rs", "// unsafe in words\n#![forbid(unsafe_code)]"),
        ];
        let findings = check_against(&sources, &["b.rs"]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].to_string().starts_with("a.rs:2:"), "{}", findings[0]);
    }

    #[test]
    fn an_entry_too_many_is_found() {
        let sources = [Source::new("a.rs", "fn a() {}")];
        assert_eq!(check_against(&sources, &["a.rs", "gone.rs"]).len(), 2);
    }
}
