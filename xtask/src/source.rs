//! The text files of the workspace.

use std::path::Path;

/// Folders of the workspace root whose content is not ours to check.
const SKIPPED_FOLDERS: [&str; 2] = ["target", ".git"];
/// Endings of the files that are read.
const ENDINGS: [&str; 7] = ["rs", "md", "toml", "sh", "slt", "txt", "yml"];

/// One text file.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Path from the workspace root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// A file that is only in memory, for tests of the rules.
    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the file is only part of tests, examples or benchmarks.
    pub(crate) fn is_aside(&self) -> bool {
        self.path.ends_with("_test.rs")
            || ["tests", "examples", "benches"]
                .iter()
                .any(|folder| self.path.split('/').any(|part| part == *folder))
    }

    /// Lines with their numbers from 1, each cut off where a line comment begins.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, code_of(line)))
    }
}

/// The part of a line in front of a line comment. Knows of strings, not of raw ones.
pub(crate) fn code_of(line: &str) -> &str {
    let bytes = line.as_bytes();
    let mut in_string = false;
    let mut index = 0;
    while index < bytes.len() {
        match bytes[index] {
            b'\\' if in_string => index += 1,
            b'"' if index == 0 || bytes[index - 1] != b'\'' => in_string = !in_string,
            b'/' if !in_string && bytes.get(index + 1) == Some(&b'/') => return &line[..index],
            _ => {}
        }
        index += 1;
    }
    line
}

/// The identifiers in a piece of code, with the byte where each begins.
pub(crate) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    code.char_indices()
        .filter(move |(at, character)| {
            is_part(*character) && !code[..*at].chars().next_back().is_some_and(is_part)
        })
        .map(move |(at, _)| {
            let rest = &code[at..];
            let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
            (at, &rest[..end])
        })
}

/// Published results are made by programs: links lead to them, nobody reads them line by line.
const RESULTS: &str = "docs/results/";

/// Reads every text file below `root`, sorted by path.
pub(crate) fn read_all(root: &Path) -> Result<Vec<Source>, String> {
    let mut sources = Vec::new();
    read_folder(root, "", &mut sources)?;
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn read_folder(folder: &Path, prefix: &str, sources: &mut Vec<Source>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() && !SKIPPED_FOLDERS.contains(&path.as_str()) {
            read_folder(&entry.path(), &format!("{path}/"), sources)?;
        } else if kind.is_file() && (has_known_ending(&name) || path == ".ci/run") {
            let text = std::fs::read_to_string(entry.path())
                .map_err(|error| format!("{path}: {error}"))?;
            sources.push(Source { path, text });
        } else if kind.is_file() && path.starts_with(RESULTS) {
            sources.push(Source { path, text: String::new() });
        }
    }
    Ok(())
}

fn has_known_ending(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_cut_off_but_not_inside_strings() {
        assert_eq!(code_of("let a = 1; // one"), "let a = 1; ");
        assert_eq!(code_of(r#"let a = "http://b"; // c"#), r#"let a = "http://b"; "#);
        assert_eq!(code_of(r#"let a = "\"//"; b"#), r#"let a = "\"//"; b"#);
        assert_eq!(code_of("let q = '\"'; // c"), "let q = '\"'; ");
    }

    #[test]
    fn words_are_whole_identifiers() {
        let found: Vec<_> = words("unsafe_code(unsafe {})").map(|(_, word)| word).collect();
        assert_eq!(found, ["unsafe_code", "unsafe"]);
    }

    #[test]
    fn tests_and_examples_are_aside() {
        assert!(Source::new("crates/log/tests/a.rs", "").is_aside());
        assert!(Source::new("crates/engine/src/node/leaf_test.rs", "").is_aside());
        assert!(!Source::new("crates/log/src/log.rs", "").is_aside());
    }
}
