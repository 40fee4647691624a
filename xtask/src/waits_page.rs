//! `docs/waits.md`, made from the catalogue of `onrush-waits`.

use std::fmt::Write;

use onrush_waits::{Counter, LatchClass, Phase, Spin, Wait};

use crate::finding::Finding;
use crate::source::Source;

/// Where the page stands.
pub(crate) const PATH: &str = "docs/waits.md";

const HEAD: &str = "<!-- Made by `cargo xtask generate` from crates/waits/src/catalog.rs. -->
# Waits, latches, spins, counters and phases

Everything that a session or a background thread of Onrush can wait for has a name, a count and a
time. How to read them: [statistics](statistics.md).

*Wait time* is *resource time* (until the thing was there) plus *signal time* (from then until the
thread ran again). Idle waits are left out of percentages.
";

/// The whole page.
pub(crate) fn page() -> String {
    let mut page = HEAD.to_owned();
    let waits = Wait::ALL.iter().map(|w| (w.name(), format!("{:?}", w.class()), w.about()));
    section(&mut page, "Waits", "class", waits);
    let latches = LatchClass::ALL.iter().map(|latch| {
        let waits = (latch.exclusive_wait().name(), latch.shared_wait().name());
        (latch.name(), format!("{}, {}", waits.0, waits.1), latch.about())
    });
    section(&mut page, "Latch classes", "waits", latches);
    let spins = Spin::ALL.iter().map(|s| (s.name(), format!("{:?}", s.class()), s.about()));
    section(&mut page, "Spins", "kind", spins);
    let counters = Counter::ALL.iter().map(|c| (c.name(), format!("{:?}", c.class()), c.about()));
    section(&mut page, "Counters", "unit", counters);
    let phases = Phase::ALL.iter().map(|p| (p.name(), format!("{:?}", p.class()), p.about()));
    section(&mut page, "Phases", "where", phases);
    page
}

fn section(
    page: &mut String,
    title: &str,
    second: &str,
    rows: impl Iterator<Item = (&'static str, String, &'static str)>,
) {
    let _ = write!(page, "\n## {title}\n\n| name | {second} | meaning |\n|---|---|---|\n");
    for (name, class, about) in rows {
        let _ = writeln!(page, "| `{name}` | {class} | {about} |");
    }
}

/// The page must be as it would be made now.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    compare(sources, PATH, &page())
}

/// Whether the file at `path` is `wanted`.
pub(crate) fn compare(sources: &[Source], path: &str, wanted: &str) -> Vec<Finding> {
    let found = sources.iter().find(|source| source.path == path);
    if found.is_some_and(|source| source.text == wanted) {
        return Vec::new();
    }
    vec![Finding::file(path, "is not up to date: run `cargo xtask generate`")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wait_has_its_line() {
        let page = page();
        for wait in Wait::ALL {
            assert!(page.contains(&format!("| `{}` |", wait.name())));
        }
    }

    #[test]
    fn a_page_of_another_day_is_found() {
        assert!(check(&[Source::new(PATH, &page())]).is_empty());
        assert_eq!(check(&[Source::new(PATH, "old")]).len(), 1);
        assert_eq!(check(&[]).len(), 1);
    }
}
