//! Rule: no baseline is linked into the product. What `crates/cli` uses, and what that uses in turn, names none of
//! them among its dependencies; they belong to the command `onrush-lab`.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::layers::{dependencies, package_name};
use crate::source::Source;

const PRODUCT: &str = "crates/cli/Cargo.toml";
const BASELINES: [&str; 8] =
    ["fjall", "heed", "mysql", "postgres", "redb", "rocksdb", "rusqlite", "tiberius"];

/// See the module.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let is_manifest = |source: &&Source| source.path.ends_with("/Cargo.toml");
    let manifests: Vec<&Source> = sources.iter().filter(is_manifest).collect();
    let of_package = |package: &str| {
        let named = |source: &&&Source| package_name(&source.text) == Some(package);
        manifests.iter().find(named).copied()
    };
    let mut findings = Vec::new();
    let mut seen = BTreeSet::from([PRODUCT]);
    let mut left: Vec<&Source> =
        manifests.iter().copied().filter(|source| source.path == PRODUCT).collect();
    if left.is_empty() {
        findings.push(Finding::file(PRODUCT, "is missing: it is the product's manifest"));
    }
    while let Some(manifest) = left.pop() {
        for used in dependencies(&manifest.text) {
            if BASELINES.contains(&used) {
                let message = format!("brings the baseline `{used}` into the product ({PRODUCT})");
                findings.push(Finding::file(&manifest.path, message));
            }
            let other = of_package(used).filter(|other| seen.insert(&other.path));
            left.extend(other);
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(cli: &str, lab: &str) -> Vec<Finding> {
        check(&[
            Source::new(PRODUCT, &format!("name = \"onrush-cli\"\n[dependencies]\n{cli}\n")),
            Source::new(
                "crates/lab/Cargo.toml",
                &format!("name = \"onrush-lab\"\n[dependencies]\n{lab}\n"),
            ),
        ])
    }

    #[test]
    fn a_baseline_is_found_through_a_crate_that_the_product_uses() {
        assert!(found("clap = \"4\"", "redb = \"4\"").is_empty());
        assert_eq!(found("rusqlite.workspace = true", "").len(), 1);
        let found = found("onrush-lab.workspace = true", "redb.workspace = true");
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().contains("crates/lab/Cargo.toml"), "{}", found[0]);
    }

    #[test]
    fn a_product_without_a_manifest_is_found() {
        assert_eq!(check(&[]).len(), 1);
    }
}
