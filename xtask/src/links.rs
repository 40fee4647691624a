//! Rule: a link in a document leads somewhere.
//!
//! A relative link names a file or folder that exists; a fragment of a document names a heading of
//! it; and where the text of a link to Rust code is a name in back-ticks, the file holds that name.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::source::{Source, words};

/// Files that links may name though they are not among the sources.
const OTHER_FILES: [&str; 5] = ["LICENSE", "Cargo.lock", "justfile", ".gitignore", ".ci"];

/// See the module.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let known = known_paths(sources);
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.path.ends_with(".md")) {
        for link in links(&source.text) {
            if let Some(message) = fault(source, &link, sources, &known) {
                findings.push(Finding::line(&source.path, link.line, message));
            }
        }
    }
    findings
}

/// `[text](target)` in a document.
pub(crate) struct Link<'a> {
    line: usize,
    text: &'a str,
    pub(crate) target: &'a str,
}

/// The links of a document, those in code left out.
pub(crate) fn links(document: &str) -> impl Iterator<Item = Link<'_>> {
    let mut is_code = false;
    document.lines().enumerate().flat_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let line_links = if is_code { Vec::new() } else { links_of_line(line) };
        line_links.into_iter().map(move |(text, target)| Link { line: index + 1, text, target })
    })
}

impl Link<'_> {
    /// Not to elsewhere, and none of rustdoc, which checks those itself.
    pub(crate) fn is_to_a_file(&self) -> bool {
        let is_elsewhere = self.target.contains("://") || self.target.starts_with("mailto:");
        !is_elsewhere && !self.target.contains("::")
    }
}

fn links_of_line(line: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("](") {
        let Some(start) = line[..at].rfind('[') else { continue };
        let Some(length) = line[at + 2..].find(')') else { continue };
        found.push((&line[start + 1..at], &line[at + 2..at + 2 + length]));
    }
    found
}

fn fault(
    source: &Source,
    link: &Link<'_>,
    sources: &[Source],
    known: &BTreeSet<String>,
) -> Option<String> {
    if !link.is_to_a_file() {
        return None;
    }
    let (path, fragment) = link.target.split_once('#').unwrap_or((link.target, ""));
    let path = if path.is_empty() { source.path.clone() } else { resolve(&source.path, path) };
    if !known.contains(path.trim_end_matches('/')) {
        return Some(format!("there is no {path}"));
    }
    let target = sources.iter().find(|other| other.path == path)?;
    if !fragment.is_empty() && path.ends_with(".md") && !has_heading(&target.text, fragment) {
        return Some(format!("{path} has no heading #{fragment}"));
    }
    let name = link.text.strip_prefix('`')?.strip_suffix('`')?;
    let name = name.rsplit("::").next()?.trim_end_matches("()");
    let is_name = words(name).next().is_some_and(|(_, word)| word == name);
    let is_there = || words(&target.text).any(|(_, word)| word == name);
    (target.is_rust() && is_name && !is_there()).then(|| format!("{path} has no `{name}`"))
}

/// A relative path as seen from the folder of `from`.
pub(crate) fn resolve(from: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}

fn has_heading(document: &str, fragment: &str) -> bool {
    document.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == fragment)
}

/// The fragment under which a heading can be linked to.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|character| if character == ' ' { '-' } else { character }).collect()
}

/// Every file, and every folder that a file is in.
fn known_paths(sources: &[Source]) -> BTreeSet<String> {
    let mut known: BTreeSet<String> = OTHER_FILES.iter().map(|path| (*path).to_owned()).collect();
    for source in sources {
        let mut path = source.path.as_str();
        known.insert(path.to_owned());
        while let Some((folder, _)) = path.rsplit_once('/') {
            known.insert(folder.to_owned());
            path = folder;
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(document: &str) -> Vec<String> {
        let sources = [
            Source::new("docs/a.md", document),
            Source::new("README.md", "# What works, today\n"),
            Source::new("crates/log/src/log.rs", "pub fn reserve() {}"),
        ];
        check(&sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn good_links_pass() {
        let document = "[a](../README.md#what-works-today) [`Log::reserve`](../crates/log/src/log.rs)\n\
            [folder](../crates/log) [out](https://example.org/x) [here](#head)\n# Head\n";
        assert_eq!(found(document), Vec::<String>::new());
    }

    #[test]
    fn a_missing_file_heading_or_name_is_found() {
        assert!(found("[a](gone.md)")[0].contains("docs/a.md:1: there is no docs/gone.md"));
        assert!(found("[a](../README.md#gone)")[0].contains("no heading"));
        assert!(found("[`Log::gone`](../crates/log/src/log.rs)")[0].contains("no `gone`"));
    }

    #[test]
    fn links_inside_code_are_left_alone() {
        assert!(found("```\n[a](gone.md)\n```\n").is_empty());
    }
}
