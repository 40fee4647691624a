//! Rule: a retired word does not come back. The glossary of `ARCHITECTURE.md` names, beside each term, the words
//! that it replaced; none of them is part of a name in the code where they are retired.

use crate::finding::Finding;
use crate::source::{Source, words};

const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Glossary";

/// A word that no name may have.
#[derive(Debug, PartialEq, Eq)]
struct Retired<'page> {
    /// In lower case: a part of any name. With a capital: a part of the names of types only.
    word: &'page str,
    /// Folders in which it is retired; none means everywhere.
    folders: Vec<&'page str>,
    term: &'page str,
}

/// See the module.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let Some(page) = sources.iter().find(|source| source.path == PAGE) else {
        return vec![Finding::file(PAGE, "is missing: it has the glossary")];
    };
    let retired = retired_words(&page.text);
    if retired.is_empty() {
        let message = format!("`{HEADING}` has no table with a third column of retired words");
        return vec![Finding::file(PAGE, message)];
    }
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let here: Vec<&Retired<'_>> =
            retired.iter().filter(|retired| retired.is_in(&source.path)).collect();
        for (number, line) in source.code_lines() {
            for (_, name) in names(line) {
                if let Some(retired) = here.iter().find(|retired| retired.is_part_of(name)) {
                    let Retired { word, term, .. } = retired;
                    let message =
                        format!("`{name}` has the retired word `{word}`; the term is {term}");
                    findings.push(Finding::line(&source.path, number, message));
                }
            }
        }
    }
    findings
}

impl Retired<'_> {
    fn is_in(&self, path: &str) -> bool {
        self.folders.is_empty() || self.folders.iter().any(|folder| path.starts_with(folder))
    }

    fn is_part_of(&self, name: &str) -> bool {
        let of_types = self.word.starts_with(char::is_uppercase);
        if of_types && !name.starts_with(char::is_uppercase) {
            return false;
        }
        parts(name).any(|part| {
            let part = part.strip_suffix('s').unwrap_or(&part);
            part.eq_ignore_ascii_case(self.word)
        })
    }
}

/// Reads `| term | meaning | `word` in `folder`, `folder`; `word` |`.
fn retired_words(page: &str) -> Vec<Retired<'_>> {
    let Some((_, section)) = page.split_once(HEADING) else { return Vec::new() };
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut retired = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [term, _, words] = cells.as_slice() else { continue };
        for entry in words.split(';') {
            let mut code = entry.split('`').skip(1).step_by(2);
            if let Some(word) = code.next() {
                retired.push(Retired { word, folders: code.collect(), term });
            }
        }
    }
    retired
}

/// The identifiers of a line, outside of strings and comments. What follows a dot may be a method of a library, which
/// is theirs to name.
fn names(line: &str) -> impl Iterator<Item = (usize, &str)> {
    words(line).filter(|(at, _)| {
        let before = &line[..*at];
        let quotes = before.matches('"').count() - before.matches("\\\"").count();
        // The standard library's threads are joined.
        let is_of_others = before.ends_with('.') || before.ends_with("std::thread::");
        quotes.is_multiple_of(2) && !is_of_others
    })
}

/// The words that a name is made of: `BlockPlace` and `block_place` are `block` and `place`.
fn parts(name: &str) -> impl Iterator<Item = String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        if character == '_' || (character.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        was_lower = character.is_lowercase() || character.is_ascii_digit();
        if character != '_'
            && let Some(part) = parts.last_mut()
        {
            part.push(character);
        }
    }
    parts.into_iter().filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLOSSARY: [&str; 8] = [
        "## Glossary",
        "",
        "| term | meaning | instead of |",
        "|---|---|---|",
        "| space | of a log | `room` |",
        "| permit | to be inside | `Place` in `crates/latch` |",
        "| leaf | a page of rows | |",
        "\n## Next\n\n| a | b | `c` |",
    ];

    fn found(path: &str, text: &str) -> Vec<Finding> {
        check(&[Source::new(PAGE, &GLOSSARY.join("\n")), Source::new(path, text)])
    }

    #[test]
    fn a_retired_word_is_found_as_a_part_of_any_name() {
        for text in
            ["fn make_room() {}", "struct LogRoom;", "let rooms = 1;", "const ROOM: u8 = 1;"]
        {
            assert_eq!(found("crates/log/src/a.rs", text).len(), 1, "{text}");
        }
    }

    #[test]
    fn longer_words_strings_comments_and_methods_of_others_are_free() {
        for text in
            ["fn mushroom() {}", "let a = \"room\";", "// room", "a.room()", "let roomy = 1;"]
        {
            assert!(found("crates/log/src/a.rs", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_word_with_a_capital_is_retired_in_types_of_its_folders() {
        assert_eq!(found("crates/latch/src/a.rs", "struct BlockPlace;").len(), 1);
        assert!(found("crates/latch/src/a.rs", "fn place() {}").is_empty());
        assert!(found("crates/log/src/a.rs", "struct BlockPlace;").is_empty());
    }

    #[test]
    fn a_glossary_that_is_gone_is_found() {
        assert_eq!(check(&[]).len(), 1);
        assert_eq!(check(&[Source::new(PAGE, "# A\n")]).len(), 1);
    }
}
