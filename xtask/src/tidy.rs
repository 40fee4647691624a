//! Rules of style that a machine can check: sizes, heads, words and doors.

use crate::finding::Finding;
use crate::lists::{
    ENGINE_CRATES, FILE_CALLERS, FILE_LINES_MAX, FILE_LINES_NOTED, LINE_CHARS_MAX, LONG_FILES,
    MESSAGE_READERS, TYPED_ERROR_CRATES, WIDE_FILES,
};
use crate::source::{Source, words};

/// All of them.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(sizes(sources, LONG_FILES, FILE_LINES_MAX, "lines", longest_file));
    findings.extend(sizes(sources, WIDE_FILES, LINE_CHARS_MAX, "characters a line", widest_line));
    for source in sources {
        findings.extend(machine_paths(source));
        if source.is_rust() {
            findings.extend(head(source));
            findings.extend(unfinished(source));
            findings.extend(words_of_the_engine(source));
            findings.extend(door_to_files(source));
            findings.extend(readers_of_messages(source));
        }
    }
    findings
}

/// Files that pass but have grown long.
pub(crate) fn long_files(sources: &[Source]) -> Vec<String> {
    let lines = |source: &Source| source.text.lines().count();
    sources
        .iter()
        .filter(|source| source.is_rust() && lines(source) > FILE_LINES_NOTED)
        .map(|source| format!("{} has {} lines; divide it soon", source.path, lines(source)))
        .collect()
}

fn longest_file(source: &Source) -> usize {
    source.text.lines().count()
}

fn widest_line(source: &Source) -> usize {
    source.text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// A size no Rust file may be above, but for those on the list, which may not grow.
fn sizes(
    sources: &[Source],
    exceptions: &[(&str, usize)],
    limit: usize,
    unit: &str,
    measure: fn(&Source) -> usize,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let exception = exceptions.iter().find(|(path, _)| *path == source.path);
        let allowed = exception.map_or(limit, |(_, allowed)| *allowed);
        let size = measure(source);
        if size > allowed {
            let message = format!("{size} {unit}, the limit is {allowed}");
            findings.push(Finding::file(&source.path, message));
        } else if exception.is_some() && size <= limit {
            let message = format!("now has at most {limit} {unit}: take it off the list");
            findings.push(Finding::file(&source.path, message));
        }
    }
    for (path, _) in exceptions {
        if !sources.iter().any(|source| source.path == *path) {
            findings.push(Finding::file(path, "is gone: take it off the lists"));
        }
    }
    findings
}

/// A file begins by saying what it is.
fn head(source: &Source) -> Option<Finding> {
    let first = source.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    let has_head = first.starts_with("//!") || first.starts_with("#![doc = include_str!(");
    if has_head || source.is_aside() {
        return None;
    }
    Some(Finding::line(&source.path, 1, "begin with `//!`: what this file is"))
}

fn unfinished(source: &Source) -> Vec<Finding> {
    let marks = [concat!("to", "do!("), concat!("db", "g!(")];
    let lines = source.code_lines();
    let found = lines.filter(|(_, code)| marks.iter().any(|mark| code.contains(mark)));
    found.map(|(line, _)| Finding::line(&source.path, line, "unfinished code")).collect()
}

/// One word would mean two things: handed to the system, or durable.
fn words_of_the_engine(source: &Source) -> Vec<Finding> {
    let is_engine = crate_of(&source.path).is_some_and(|own| ENGINE_CRATES.contains(&own));
    if !is_engine || source.is_aside() {
        return Vec::new();
    }
    let forbidden = concat!("flu", "sh");
    let names_it =
        |code: &str| words(code).any(|(_, word)| word.to_ascii_lowercase().contains(forbidden));
    let lines = source.code_lines().filter(|(_, code)| names_it(code));
    let message = "say published, written or durable";
    lines.map(|(line, _)| Finding::line(&source.path, line, message)).collect()
}

/// Only some crates call the system for files; the engine goes through `onrush_files::Disk`.
fn door_to_files(source: &Source) -> Vec<Finding> {
    let may_call = crate_of(&source.path).is_none_or(|own| FILE_CALLERS.contains(&own));
    if may_call || source.is_aside() {
        return Vec::new();
    }
    let calls = |code: &str| {
        code.contains("std::fs")
            || code.contains("rustix::fs")
            || words(code).any(|(at, word)| word == "File" && code[at..].starts_with("File::"))
    };
    let lines = source.code_lines().filter(|(_, code)| calls(code));
    let message = "go through onrush_files::Disk; only the files crate calls the system";
    lines.map(|(line, _)| Finding::line(&source.path, line, message)).collect()
}

/// What an error is stands in its type. Its message is for people, and is written otherwise one day.
fn readers_of_messages(source: &Source) -> Option<Finding> {
    let is_typed = crate_of(&source.path).is_some_and(|own| TYPED_ERROR_CRATES.contains(&own));
    if !is_typed || source.is_aside() {
        return None;
    }
    let lines: Vec<usize> = source
        .code_lines()
        .filter(|(_, code)| reads_a_message(code))
        .map(|(line, _)| line)
        .collect();
    let listed = MESSAGE_READERS.iter().find(|(path, _)| *path == source.path);
    let allowed = listed.map_or(0, |(_, allowed)| *allowed);
    if lines.len() < allowed {
        let message = format!("{} lines read messages: lower the number on the list", lines.len());
        return Some(Finding::file(&source.path, message));
    }
    let message = "decide by the type of an error, not by its words";
    lines.get(allowed).map(|line| Finding::line(&source.path, *line, message))
}

/// Whether words are looked for in what is called a message, or in what something tells of itself.
fn reads_a_message(code: &str) -> bool {
    const LOOKS: [&str; 9] = [
        "contains(",
        "starts_with(",
        "ends_with(",
        "strip_prefix(",
        "split(",
        "split_once(",
        "rsplit_once(",
        "find(",
        "to_lowercase(",
    ];
    let looked_at = |subject: &str| {
        code.match_indices(subject)
            .any(|(at, _)| LOOKS.iter().any(|look| code[at + subject.len()..].starts_with(look)))
    };
    looked_at("message.") || looked_at("error.to_string().")
}

/// Paths that exist on somebody's machine only.
fn machine_paths(source: &Source) -> Vec<Finding> {
    let starts = [
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/wo", "rk/"),
        concat!("/Us", "ers/"),
        concat!("C:\\", "Users"),
    ];
    let is_path = |line: &str, start: &str| {
        line.match_indices(start).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let goes_on =
                before.is_some_and(|before| before.is_alphanumeric() || "._-*".contains(before));
            // The invented user of examples.
            let user = &line[at + start.len()..];
            let is_invented = user.starts_with("me/") || user.starts_with("me\"");
            !goes_on && !is_invented
        })
    };
    let lines = source.text.lines().enumerate();
    lines
        .filter(|(_, line)| starts.iter().any(|start| is_path(line, start)))
        .map(|(index, _)| Finding::line(&source.path, index + 1, "a path of one machine"))
        .collect()
}

/// The folder under `crates/` that a path is in.
fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<String> {
        let source = [Source::new(path, text)];
        check(&source).iter().map(ToString::to_string).filter(|f| !f.contains("is gone")).collect()
    }

    fn one_finding(path: &str, text: &str, word: &str) {
        let found = rules(path, text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(word), "{found:?}");
    }

    #[test]
    fn a_good_file_passes() {
        let text = "//! A file.\n\nuse onrush_files::Disk;\n";
        assert_eq!(rules("crates/log/src/a.rs", text), Vec::<String>::new());
    }

    #[test]
    fn long_files_and_wide_lines_are_found() {
        let long = format!("//! Long.\n{}", "fn a() {}\n".repeat(FILE_LINES_MAX));
        one_finding("crates/log/src/a.rs", &long, "601 lines");
        let wide = format!("//! Wide.\n// {}\n", "µ".repeat(LINE_CHARS_MAX));
        one_finding("crates/log/src/a.rs", &wide, "123 characters");
    }

    #[test]
    fn a_listed_file_may_not_grow_and_leaves_the_list_when_it_is_short() {
        let source = [Source::new("a.rs", "//! A.\n//! B.\n//! C.\n")];
        let with = |allowed| sizes(&source, &[("a.rs", allowed)], 2, "lines", longest_file);
        assert!(with(3).is_empty());
        assert_eq!(with(2).len(), 1);
        assert_eq!(sizes(&source, &[("a.rs", 9)], 5, "lines", longest_file).len(), 1);
    }

    #[test]
    fn a_file_without_a_head_is_found_but_not_in_tests() {
        one_finding("crates/log/src/a.rs", "use std::fmt;\n", "begin with");
        assert!(rules("crates/log/tests/a.rs", "use std::fmt;\n").is_empty());
        assert!(rules("a.rs", "#![doc = include_str!(\"README.md\")]\n").is_empty());
    }

    #[test]
    fn unfinished_code_is_found() {
        let text = format!("//! A.\nfn a() {{ {}) }}\n", concat!("to", "do!("));
        one_finding("crates/log/src/a.rs", &text, "unfinished");
    }

    #[test]
    fn the_word_for_two_things_is_no_name_in_the_engine() {
        let name = concat!("flu", "sh");
        let text = format!("//! A.\n// may {name} in words\nfn {name}_log() {{}}\n");
        one_finding("crates/log/src/a.rs", &text, "published");
        assert!(rules("crates/cli/src/a.rs", &text).is_empty());
    }

    #[test]
    fn no_words_of_an_error_decide() {
        let text = "//! A.\nfn a(message: &str) -> bool { message.contains(\"overflow\") }\n";
        one_finding("crates/query/src/a.rs", text, "type of an error");
        let told = "//! A.\nfn a(error: E) -> bool { error.to_string().starts_with(\"x\") }\n";
        one_finding("crates/server/src/a.rs", told, "type of an error");
        assert!(rules("crates/server/tests/a.rs", text).is_empty());
        assert!(rules("crates/lab/src/a.rs", text).is_empty());
        one_finding("crates/server/src/error.rs", "//! A.\n", "lower the number");
    }

    #[test]
    fn only_some_crates_call_the_system_for_files() {
        let text = "//! A.\nfn a() { std::fs::remove_file(\"b\").ok(); }\n";
        one_finding("crates/engine/src/a.rs", text, "onrush_files");
        assert!(rules("crates/files/src/a.rs", text).is_empty());
        assert!(rules("crates/engine/examples/a.rs", &text.replace("//! A.", "//! B.")).is_empty());
        let other = "//! A.\nfn a() { SuperblockFile::open(); }\n";
        assert!(rules("crates/engine/src/a.rs", other).is_empty());
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let path = concat!("/ho", "me/you/data");
        one_finding("docs/a.md", &format!("put it in {path}"), "one machine");
        assert!(rules("docs/a.md", &format!("see docs{path}")).is_empty());
    }
}
