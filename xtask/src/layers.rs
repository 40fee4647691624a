//! Rule: who may use whom. The tables stand in `ARCHITECTURE.md`; the code must agree with them.
//!
//! A table begins under a heading that ends in *Crates* or *Modules of the engine*; a row is
//! ``| `name` | `used`, `used` | what it is |``. The modules of the engine stand in the order of their layers, the
//! lowest first: a module uses those above it in the table only. What breaks that today stands in
//! [`UPWARD_ARROWS`].

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::lists::UPWARD_ARROWS;
use crate::source::{Source, words};

const PAGE: &str = "ARCHITECTURE.md";
const ENGINE: &str = "crates/engine/src/";
const MODULES: &str = "Modules of the engine";

/// Name and what it may use, in the order of the page.
type Table = BTreeMap<String, Vec<String>>;

/// See the module.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    check_but(sources, UPWARD_ARROWS)
}

fn check_but(sources: &[Source], upward_arrows: &[(&str, &str)]) -> Vec<Finding> {
    let Some(page) = sources.iter().find(|source| source.path == PAGE) else {
        return vec![Finding::file(PAGE, "is missing: it holds the tables of layers")];
    };
    let mut findings = Vec::new();
    findings.extend(compare("Crates", &table(&page.text, "Crates"), &used_by_crates(sources)));
    let uses = used_by_modules(sources);
    findings.extend(compare(MODULES, &table(&page.text, MODULES), &uses));
    let order: Vec<String> = rows(&page.text, MODULES).map(|(name, _)| name).collect();
    findings.extend(upward(&order, &uses, upward_arrows));
    findings
}

/// How many modules of the engine are in circles of uses, and of how many, in words.
pub(crate) fn circles(sources: &[Source]) -> String {
    let uses = used_by_modules(sources);
    let in_circles: Vec<&str> = uses
        .keys()
        .filter(|name| reached(name, &uses).contains(name.as_str()))
        .map(|name| &**name)
        .collect();
    let names =
        if in_circles.is_empty() { String::new() } else { format!(": {}", in_circles.join(", ")) };
    format!("{} of {} modules of the engine are in circles{names}", in_circles.len(), uses.len())
}

/// All modules that a module uses, itself or by way of others.
fn reached<'u>(name: &str, uses: &'u Uses) -> BTreeSet<&'u str> {
    let used_by = |name: &str| uses.get(name).into_iter().flat_map(BTreeMap::keys);
    let mut found: BTreeSet<&str> = BTreeSet::new();
    let mut next: Vec<&str> = used_by(name).map(String::as_str).collect();
    while let Some(name) = next.pop() {
        if found.insert(name) {
            next.extend(used_by(name).map(String::as_str));
        }
    }
    found
}

/// Uses of a module that stands lower in the table than its user, but for those that are listed.
fn upward(order: &[String], uses: &Uses, listed: &[(&str, &str)]) -> Vec<Finding> {
    let place_of = |name: &str| order.iter().position(|row| row == name);
    let is_upward = |from: &str, to: &str| place_of(from) < place_of(to);
    let mut findings = Vec::new();
    for (from, used) in uses {
        for (to, place) in used.iter().filter(|(to, _)| is_upward(from, to)) {
            if !listed.contains(&(from, to)) {
                let message = format!(
                    "`{from}` uses `{to}`, a layer above its own (table *{MODULES}* in {PAGE})"
                );
                findings.push(Finding::file(place, message));
            }
        }
    }
    for (from, to) in listed {
        let is_there = uses.get(*from).is_some_and(|used| used.contains_key(*to));
        if !is_there || !is_upward(from, to) {
            let message =
                format!("`{from}` does not use `{to}` upward any more: take it off the list");
            findings.push(Finding::file("xtask/src/lists.rs", message));
        }
    }
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
    rows(page, heading).collect()
}

/// Its rows, from above.
fn rows(page: &str, heading: &str) -> impl Iterator<Item = (String, Vec<String>)> {
    let is_heading = move |line: &&str| line.starts_with('#') && line.trim_end().ends_with(heading);
    let lines = page.lines().skip_while(move |line| !is_heading(line)).skip(1);
    let rows =
        lines.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| {
        let mut cells = row.trim_matches('|').split('|');
        let name = in_ticks(cells.next()?).next()?.to_owned();
        let used = in_ticks(cells.next()?).map(str::to_owned).collect();
        Some((name, used))
    })
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

pub(crate) fn package_name(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find(|line| line.starts_with("name = "))?;
    line.split('"').nth(1)
}

/// Names under `[dependencies]` and `[target.*.dependencies]`, not those for tests.
pub(crate) fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
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

/// Top-level modules of the engine, and those they name by `crate::` outside of tests.
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
        let tests_begin = lines_before_tests(source);
        for (line, code) in source.code_lines().take(tests_begin) {
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

/// Lines in front of the module of tests that ends a file.
fn lines_before_tests(source: &Source) -> usize {
    let (code, _) = source.text.split_once("\n#[cfg(test)]\nmod ").unwrap_or((&source.text, ""));
    code.lines().count()
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
        ## Modules of the engine\n\n| module | may use |\n|---|---|\n| `node` | nothing |\n\
        | `tree` | `node` |\n";

    fn sources(log_uses: &str, tree_uses: &str) -> Vec<Source> {
        let log = format!("[package]\nname = \"onrush-log\"\n\n[dependencies]\n{log_uses}\n");
        let files = "[package]\nname = \"onrush-files\"\n\n[dev-dependencies]\nonrush-log = 1\n";
        vec![
            Source::new(PAGE, PAGE_TEXT),
            Source::new("crates/log/Cargo.toml", &log),
            Source::new("crates/files/Cargo.toml", files),
            Source::new("crates/engine/src/tree/tree.rs", tree_uses),
            Source::new("crates/engine/src/node/leaf.rs", "//! Uses nothing, not crate::tree.\n"),
        ]
    }

    #[test]
    fn a_workspace_that_agrees_with_its_tables_passes() {
        let found =
            check_but(&sources("onrush-files.workspace = true", "use crate::node::leaf;"), &[]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_use_that_no_row_allows_is_found_with_its_place() {
        let mut sources = sources("onrush-files.workspace = true", "use crate::node::leaf;");
        sources[4].text.push_str("fn a() { crate::tree::tree() }\n");
        let found = check_but(&sources, &[]);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|found| found.contains("leaf.rs:2")), "{found:?}");
        assert!(found[0].contains("may not use `tree`"), "{found:?}");
        assert!(found[1].contains("a layer above its own"), "{found:?}");
    }

    #[test]
    fn what_a_test_uses_is_no_arrow() {
        let mut sources = sources("onrush-files.workspace = true", "use crate::node::leaf;");
        sources[4].text.push_str("\n#[cfg(test)]\nmod tests {\n    use crate::tree::Tree;\n}\n");
        assert_eq!(check_but(&sources, &[]), []);
    }

    #[test]
    fn a_listed_arrow_passes_until_it_is_gone() {
        let order = ["node".to_owned(), "tree".to_owned()];
        let to_tree = BTreeMap::from([("tree".to_owned(), "leaf.rs:1".to_owned())]);
        let uses = BTreeMap::from([("node".to_owned(), to_tree)]);
        assert_eq!(upward(&order, &uses, &[("node", "tree")]), []);
        assert_eq!(upward(&order, &Uses::new(), &[("node", "tree")]).len(), 1);
        assert_eq!(upward(&order, &uses, &[]).len(), 1);
    }

    #[test]
    fn modules_that_use_each_other_are_a_circle() {
        let apart = sources("", "use crate::node::leaf;");
        assert_eq!(circles(&apart), "0 of 2 modules of the engine are in circles");
        let mut together = apart;
        together[4].text.push_str("fn a() { crate::tree::tree() }\n");
        assert!(circles(&together).starts_with("2 of 2"), "{}", circles(&together));
    }

    #[test]
    fn a_row_that_promises_too_much_is_found() {
        let found = check_but(&sources("", "fn nothing() {}"), &[]);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn a_crate_without_a_row_is_found() {
        let mut sources = sources("onrush-files.workspace = true", "use crate::node::leaf;");
        sources.push(Source::new("crates/sim/Cargo.toml", "name = \"onrush-sim\""));
        assert_eq!(check_but(&sources, &[]).len(), 1);
    }
}
