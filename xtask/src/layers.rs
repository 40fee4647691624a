//! Rule: who may use whom. The tables stand in `ARCHITECTURE.md`; the code must agree with them.
//!
//! A table begins under a heading that ends in *Crates* or *Modules of the engine*; a row is
//! ``| `name` | `used`, `used` | what it is |``.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::source::{Source, words};

const PAGE: &str = "ARCHITECTURE.md";
const ENGINE: &str = "crates/engine/src/";

/// Name and what it may use, in the order of the page.
type Table = BTreeMap<String, Vec<String>>;

/// See the module.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let Some(page) = sources.iter().find(|source| source.path == PAGE) else {
        return vec![Finding::file(PAGE, "is missing: it holds the tables of layers")];
    };
    let mut findings = Vec::new();
    findings.extend(compare("Crates", &table(&page.text, "Crates"), &used_by_crates(sources)));
    let modules = "Modules of the engine";
    findings.extend(compare(modules, &table(&page.text, modules), &used_by_modules(sources)));
    findings
}

/// What is used, and where: name, used name, first place.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

fn compare(what: &str, table: &Table, uses: &Uses) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, used) in uses {
        let Some(allowed) = table.get(name) else {
            let message = format!("`{name}` has no row in the table *{what}*");
            findings.push(Finding::file(PAGE, message));
            continue;
        };
        for (other, place) in used.iter().filter(|(other, _)| !allowed.contains(other)) {
            let message = format!("`{name}` may not use `{other}` (table *{what}* in {PAGE})");
            findings.push(Finding::file(place, message));
        }
        for other in allowed.iter().filter(|other| !used.contains_key(*other)) {
            let message = format!("table *{what}*: `{name}` does not use `{other}` any more");
            findings.push(Finding::file(PAGE, message));
        }
    }
    for name in table.keys().filter(|name| !uses.contains_key(*name)) {
        findings.push(Finding::file(PAGE, format!("table *{what}*: there is no `{name}`")));
    }
    findings
}

/// The table under the heading that ends in `heading`.
fn table(page: &str, heading: &str) -> Table {
    let is_heading = |line: &&str| line.starts_with('#') && line.trim_end().ends_with(heading);
    let mut lines = page.lines().skip_while(|line| !is_heading(line)).skip(1);
    let rows = lines
        .by_ref()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| {
        let mut cells = row.trim_matches('|').split('|');
        let name = in_ticks(cells.next()?).next()?.to_owned();
        let used = in_ticks(cells.next()?).map(str::to_owned).collect();
        Some((name, used))
    })
    .collect()
}

/// The pieces of a text that stand between back-ticks.
fn in_ticks(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Crates by folder, and the folders of the crates that their normal dependencies name.
fn used_by_crates(sources: &[Source]) -> Uses {
    let manifests: Vec<(&str, &Source)> = sources
        .iter()
        .filter_map(|source| {
            let folder = source.path.strip_suffix("/Cargo.toml")?;
            // Others are workspaces of their own.
            let name = folder.strip_prefix("crates/").or((folder == "xtask").then_some(folder))?;
            Some((name, source))
        })
        .collect();
    let folder_of = |package: &str| {
        let named = |(_, source): &&(&str, &Source)| package_name(&source.text) == Some(package);
        manifests.iter().find(named).map(|(folder, _)| (*folder).to_owned())
    };
    let used = |source: &Source| {
        dependencies(&source.text)
            .filter_map(folder_of)
            .map(|other| (other, source.path.clone()))
            .collect()
    };
    manifests.iter().map(|(folder, source)| ((*folder).to_owned(), used(source))).collect()
}

fn package_name(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find(|line| line.starts_with("name = "))?;
    line.split('"').nth(1)
}

/// Names under `[dependencies]` and `[target.*.dependencies]`, not those for tests.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    manifest.lines().filter_map(move |line| {
        if line.starts_with('[') {
            is_inside = line.ends_with("dependencies]") && !line.contains("dev-");
            return None;
        }
        let name = line.split(['.', ' ', '=']).next()?;
        (is_inside && !name.is_empty()).then_some(name)
    })
}

/// Top-level modules of the engine, and those they name by `crate::`.
fn used_by_modules(sources: &[Source]) -> Uses {
    let mut uses = Uses::new();
    let engine = sources.iter().filter(|source| source.is_rust() && !source.is_aside());
    for source in engine {
        let Some(module) = module_of(&source.path) else { continue };
        uses.entry(module.to_owned()).or_default();
    }
    let names: Vec<String> = uses.keys().cloned().collect();
    for source in sources.iter().filter(|source| source.is_rust() && !source.is_aside()) {
        let Some(module) = module_of(&source.path) else { continue };
        for (line, code) in source.code_lines() {
            for other in modules_named(code).filter(|other| *other != module) {
                if names.iter().any(|name| name == other) {
                    let used = uses.entry(module.to_owned()).or_default();
                    used.entry(other.to_owned()).or_insert(format!("{}:{line}", source.path));
                }
            }
        }
    }
    uses
}

/// The top-level module of the engine that a file belongs to; none for the crate's root.
fn module_of(path: &str) -> Option<&str> {
    let inside = path.strip_prefix(ENGINE)?;
    let module = inside.split('/').next()?;
    let module = module.strip_suffix(".rs").unwrap_or(module);
    (module != "lib").then_some(module)
}

fn modules_named(code: &str) -> impl Iterator<Item = &str> {
    let mut after_crate = false;
    words(code).filter_map(move |(at, word)| {
        let is_path = code[at + word.len()..].starts_with("::");
        let named = after_crate.then_some(word);
        after_crate = word == "crate" && is_path;
        named
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE_TEXT: &str = "# A\n## Crates\n\n| crate | may use |\n|---|---|\n\
        | `log` | `files` | the log |\n| `files` | | files |\n\n\
        ## Modules of the engine\n\n| module | may use |\n|---|---|\n| `btree` | `node` |\n\
        | `node` | nothing |\n";

    fn sources(log_uses: &str, btree_uses: &str) -> Vec<Source> {
        let log = format!("[package]\nname = \"onrush-log\"\n\n[dependencies]\n{log_uses}\n");
        let files = "[package]\nname = \"onrush-files\"\n\n[dev-dependencies]\nonrush-log = 1\n";
        vec![
            Source::new(PAGE, PAGE_TEXT),
            Source::new("crates/log/Cargo.toml", &log),
            Source::new("crates/files/Cargo.toml", files),
            Source::new("crates/engine/src/btree/tree.rs", btree_uses),
            Source::new("crates/engine/src/node/leaf.rs", "//! Uses nothing, not crate::btree.\n"),
        ]
    }

    #[test]
    fn a_workspace_that_agrees_with_its_tables_passes() {
        let found = check(&sources("onrush-files.workspace = true", "use crate::node::leaf;"));
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_use_that_no_row_allows_is_found_with_its_place() {
        let mut sources = sources("onrush-files.workspace = true", "use crate::node::leaf;");
        sources[4].text.push_str("fn a() { crate::btree::tree() }\n");
        let found = check(&sources);
        assert_eq!(found.len(), 1);
        let found = found[0].to_string();
        assert!(found.contains("leaf.rs:2") && found.contains("may not use `btree`"), "{found}");
    }

    #[test]
    fn a_row_that_promises_too_much_is_found() {
        let found = check(&sources("", "fn nothing() {}"));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        let mut sources = sources("onrush-files.workspace = true", "use crate::node::leaf;");
        sources.push(Source::new("crates/sim/Cargo.toml", "name = \"onrush-sim\""));
        assert_eq!(check(&sources).len(), 1);
    }
}
