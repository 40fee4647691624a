//! What the documentation site is made of: every document of the repository at its own path, so that links between
//! documents stay as they are, and whatever else a document links to, as a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::links::{links, resolve};
use crate::source::Source;

/// Documents in the order in which they are read, by what they are for. A folder stands for all documents in it; those
/// that are nowhere here come at the end.
const PARTS: &[(&str, &[&str])] = &[
    ("Onrush", &["README.md", "ARCHITECTURE.md"]),
    (
        "Using it",
        &[
            "docs/durability.md",
            "docs/settings.md",
            "docs/server.md",
            "docs/sql.md",
            "docs/postgresql-differences.md",
            "clients/",
            "docs/check.md",
            "docs/repair.md",
            "docs/backup.md",
            "docs/scale-out.md",
        ],
    ),
    (
        "Watching and measuring it",
        &[
            "docs/statistics.md",
            "docs/waits.md",
            "docs/memory.md",
            "docs/performance.md",
            "docs/scaling.md",
            "docs/lab.md",
            "docs/lab-servers.md",
            "docs/results/",
        ],
    ),
    (
        "Inside",
        &[
            "docs/log-format.md",
            "docs/data-file.md",
            "docs/latches.md",
            "docs/past-memory.md",
            "crates/",
            "docs/testing.md",
            "docs/models/",
        ],
    ),
    ("Why", &["docs/decisions/README.md", "docs/decisions/"]),
    ("The project", &["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]),
];

fn documents(sources: &[Source]) -> impl Iterator<Item = &Source> {
    sources.iter().filter(|source| source.path.ends_with(".md"))
}

/// `SUMMARY.md`, by which the book is built: every document under its own heading.
pub(crate) fn summary(sources: &[Source]) -> String {
    let mut left: BTreeMap<&str, &Source> =
        documents(sources).map(|source| (source.path.as_str(), source)).collect();
    let mut summary = "# Summary\n".to_owned();
    let others: (&str, &[&str]) = ("More", &[""]);
    for (part, paths) in PARTS.iter().chain([&others]) {
        let mut lines = String::new();
        for wanted in *paths {
            let is_folder = wanted.is_empty() || wanted.ends_with('/');
            let is_it =
                |path: &str| if is_folder { path.starts_with(wanted) } else { path == *wanted };
            let found: Vec<&str> = left.keys().copied().filter(|path| is_it(path)).collect();
            for path in found {
                if let Some(source) = left.remove(path) {
                    let _ = writeln!(lines, "- [{}]({path})", title(source));
                }
            }
        }
        if !lines.is_empty() {
            let _ = write!(summary, "\n# {part}\n\n{lines}");
        }
    }
    summary
}

/// The first heading of a document; in a summary brackets would end the name of a link.
fn title(document: &Source) -> String {
    let heading = document.text.lines().find_map(|line| line.strip_prefix("# "));
    heading.unwrap_or(&document.path).replace(['[', ']', '`'], "")
}

/// The files of the book by their paths: documents with their text, and None for what is copied as it is.
pub(crate) fn files(sources: &[Source]) -> BTreeMap<String, Option<String>> {
    let is_document = |path: &str| documents(sources).any(|source| source.path == path);
    let known: BTreeSet<&str> = sources.iter().map(|source| source.path.as_str()).collect();
    let mut files = BTreeMap::new();
    for document in documents(sources) {
        let mut text = document.text.clone();
        for link in links(&document.text).filter(|link| link.is_to_a_file()) {
            let (path, _) = link.target.split_once('#').unwrap_or((link.target, ""));
            if path.is_empty() {
                continue;
            }
            let target = resolve(&document.path, path);
            if is_document(&target) {
                continue;
            }
            if is_folder(&target, &known) {
                let index = index_of(&target, &known);
                text = text.replace(
                    &format!("]({})", link.target),
                    &format!("]({}/{})", path.trim_end_matches('/'), index.name),
                );
                if let Some(list) = index.text {
                    files.insert(format!("{target}/{}", index.name), Some(list));
                }
            } else {
                files.insert(target, None);
            }
        }
        files.insert(document.path.clone(), Some(text));
    }
    files.insert("SUMMARY.md".to_owned(), Some(summary(sources)));
    files
}

fn is_folder(path: &str, known: &BTreeSet<&str>) -> bool {
    known.iter().any(|file| file.starts_with(&format!("{}/", path.trim_end_matches('/'))))
}

/// What a link to a folder leads to.
struct Index {
    name: &'static str,
    /// None where the folder has a README of its own.
    text: Option<String>,
}

fn index_of(folder: &str, known: &BTreeSet<&str>) -> Index {
    let prefix = format!("{}/", folder.trim_end_matches('/'));
    if known.contains(format!("{prefix}README.md").as_str()) {
        return Index { name: "README.md", text: None };
    }
    let mut list = format!("{folder}\n\n");
    for file in known.iter().filter_map(|path| path.strip_prefix(&prefix)) {
        let _ = writeln!(list, "{file}");
    }
    Index { name: "files.txt", text: Some(list) }
}

/// The links of a page of the site that lead nowhere; `exists` knows the files of the site.
pub(crate) fn broken(page: &str, html: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let body = html.split_once("<main>").map_or(html, |(_, body)| body);
    let body = body.split("</main>").next().unwrap_or_default();
    let targets = [" href=\"", " src=\""]
        .into_iter()
        .flat_map(|start| body.split(start).skip(1).filter_map(|rest| rest.split('"').next()));
    let is_here =
        |target: &&str| !target.contains(':') && !target.starts_with('#') && !target.is_empty();
    targets
        .filter(is_here)
        .filter(|target| {
            let path = target.split('#').next().unwrap_or_default();
            !exists(&resolve(page, path))
        })
        .map(|target| format!("{page}: {target} leads nowhere"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_every_document_of_the_repository_once() {
        let sources = crate::source::read_all(&crate::workspace_root()).unwrap();
        let summary = summary(&sources);
        for document in documents(&sources) {
            let link = format!("]({})\n", document.path);
            assert_eq!(summary.matches(&link).count(), 1, "{}", document.path);
        }
        assert_eq!(summary.matches("](").count(), documents(&sources).count());
        assert!(!summary.contains("# More"), "a document is in no part of the site:\n{summary}");
    }

    #[test]
    fn a_document_that_no_part_names_comes_at_the_end() {
        let sources =
            [Source::new("notes/new.md", "# A `new` one\n"), Source::new("README.md", "# R\n")];
        let summary = summary(&sources);
        assert!(summary.ends_with("# More\n\n- [A new one](notes/new.md)\n"), "{summary}");
    }

    #[test]
    fn links_lead_to_documents_files_and_lists_of_folders() {
        let sources = [
            Source::new(
                "docs/a.md",
                "[b](b.md#x) [code](../src/c.rs) [folder](../src) [own](../e)\n",
            ),
            Source::new("docs/b.md", "# B\n"),
            Source::new("src/c.rs", ""),
            Source::new("e/README.md", "# E\n"),
        ];
        let files = files(&sources);
        let text = files["docs/a.md"].as_deref().unwrap();
        assert!(text.starts_with("[b](b.md#x) [code](../src/c.rs) "), "{text}");
        assert!(text.ends_with("[folder](../src/files.txt) [own](../e/README.md)\n"), "{text}");
        assert_eq!(files["src/c.rs"], None);
        assert_eq!(files["src/files.txt"].as_deref(), Some("src\n\nc.rs\n"));
    }

    #[test]
    fn a_link_of_a_page_that_leads_nowhere_is_found() {
        let page = "<a href=\"x\">menu</a><main><a href=\"../b.html#c\">b</a> <a href=\"gone.html\">c</a>\
                    <a href=\"https://example.org\">d</a><a href=\"#e\">e</a></main>";
        let found = broken("docs/a.html", page, &|path| path == "b.html");
        assert_eq!(found, ["docs/a.html: gone.html leads nowhere"]);
    }
}
