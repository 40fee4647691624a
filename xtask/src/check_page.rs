//! The tables of `docs/check.md`, made from the catalogue of invariants of `onrush-check`. What stands
//! in front of the mark is written by hand.

use std::fmt::Write;

use onrush_check::{Invariant, Severity};

use crate::finding::Finding;
use crate::source::Source;
use crate::waits_page::compare;

/// Where the page stands.
pub(crate) const PATH: &str = "docs/check.md";
/// Everything behind it is made by `cargo xtask generate`.
const MARK: &str = "<!-- Made by `cargo xtask generate` from crates/check/src/invariant.rs. -->\n";

/// The whole page: its text as it is, and the tables.
pub(crate) fn page(sources: &[Source]) -> Result<String, String> {
    let source = sources.iter().find(|source| source.path == PATH);
    let text = source.map(|source| source.text.as_str()).ok_or(format!("{PATH} is missing"))?;
    let end = text.find(MARK).ok_or(format!("{PATH} has lost its mark"))? + MARK.len();
    let mut page = text[..end].to_owned();
    let mut area = "";
    for invariant in Invariant::ALL {
        if invariant.area() != area {
            area = invariant.area();
            let _ = write!(page, "\n### {} - {area}\n\n", invariant.number() / 100 * 100);
            page.push_str("| number | what must hold | if not |\n|---|---|---|\n");
        }
        let warning = match invariant.severity() {
            Severity::Damage => "",
            Severity::Warning => " (warning)",
        };
        let (number, title, advice) = (invariant.number(), invariant.title(), invariant.advice());
        let _ = writeln!(page, "| {number}{warning} | {title} | {advice} |");
    }
    Ok(page)
}

/// The page must be as it would be made now.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    match page(sources) {
        Ok(page) => compare(sources, PATH, &page),
        Err(message) => vec![Finding::file(PATH, message)],
    }
}
