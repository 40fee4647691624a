//! `docs/settings.md`, made from the text of the engine's `options.rs`: documentation, default and
//! range of every setting.

use std::fmt::Write;

use crate::finding::Finding;
use crate::source::Source;
use crate::waits_page::compare;

/// Where the page stands.
pub(crate) const PATH: &str = "docs/settings.md";
const OPTIONS: &str = "crates/engine/src/options.rs";
const LARGE_PAGES: &str = "crates/engine/src/memory/frame.rs";

const HEAD: &str = "<!-- Made by `cargo xtask generate` from crates/engine/src/options.rs. -->
# Settings

The fields of `onrush::Options`. A name ends in its unit: `bytes`, `ms` (milliseconds), `seconds`.
A setting outside its range is refused when the database is created or opened, with its name, its
value and the reason. `Options::small()` is a set for tests and tiny databases.
";

/// One field of a struct, or one variant of an enum.
struct Item {
    name: String,
    /// The type of a field; empty for a variant.
    kind: String,
    about: String,
}

/// The whole page.
pub(crate) fn page(sources: &[Source]) -> Result<String, String> {
    let text_of = |path: &str| {
        let source = sources.iter().find(|source| source.path == path);
        source.map(|source| source.text.as_str()).ok_or(format!("{path} is missing"))
    };
    let (options, large_pages) = (text_of(OPTIONS)?, text_of(LARGE_PAGES)?);
    let settings = items(options, "pub struct Options {");
    let defaults = block(options, "fn default() -> Self {");
    let ranges = block(options, "fn validate(&self)");
    if settings.is_empty() {
        return Err(format!("{OPTIONS} has no `pub struct Options` any more"));
    }
    let mut page =
        format!("{HEAD}\n| setting | type | default | range | meaning |\n|---|---|---|---|---|\n");
    for Item { name, kind, about } in &settings {
        let default = default_of(&defaults, name)
            .ok_or(format!("{OPTIONS}: `{name}` has no default that can be read"))?;
        let range = range_of(&ranges, name).unwrap_or_else(|| match kind.as_str() {
            "bool" => "`true` or `false`".to_owned(),
            choice if is_choice(choice, options, large_pages) => "see below".to_owned(),
            _ => "any".to_owned(),
        });
        let kind = kind.replace('|', "\\|");
        let _ = writeln!(page, "| `{name}` | `{kind}` | {default} | {range} | {about} |");
    }
    for Item { kind, .. } in &settings {
        for text in [options, large_pages] {
            choices(&mut page, text, kind);
        }
    }
    Ok(page)
}

fn is_choice(kind: &str, options: &str, large_pages: &str) -> bool {
    [options, large_pages].iter().any(|text| text.contains(&format!("pub enum {kind} {{")))
}

/// The section of an enum, once.
fn choices(page: &mut String, text: &str, kind: &str) {
    let variants = items(text, &format!("pub enum {kind} {{"));
    let title = format!("\n## {kind}\n\n");
    if variants.is_empty() || page.contains(&title) {
        return;
    }
    page.push_str(&title);
    for Item { name, about, .. } in variants {
        let _ = writeln!(page, "* `{name}`: {about}");
    }
}

/// The lines between the one that holds `start` and the closing brace of the same depth.
fn block(text: &str, start: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.contains(start));
    let first = lines.next().unwrap_or("");
    let indent = first.len() - first.trim_start().len();
    let is_end = |line: &str| {
        line.trim_start().starts_with('}') && line.len() - line.trim_start().len() == indent
    };
    lines.take_while(|line| !is_end(line)).collect::<Vec<_>>().join("\n")
}

fn items(text: &str, start: &str) -> Vec<Item> {
    let mut found = Vec::new();
    let mut about = Vec::new();
    for line in block(text, start).lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            about.push(words.trim().to_owned());
        } else if !line.is_empty() && !line.starts_with("#[") {
            let declaration = line.trim_start_matches("pub ").trim_end_matches(',');
            let (name, kind) = declaration.split_once(": ").unwrap_or((declaration, ""));
            let about = std::mem::take(&mut about).join(" ");
            found.push(Item { name: name.to_owned(), kind: kind.to_owned(), about });
        }
    }
    found
}

/// The default in words: numbers of bytes as powers of 1024.
fn default_of(defaults: &str, name: &str) -> Option<String> {
    let line = defaults.lines().find_map(|line| line.trim().strip_prefix(&format!("{name}: ")))?;
    let value = line.trim_end_matches(',');
    let value = value.rsplit("::").next().unwrap_or(value);
    let words = match value.split_once(" << ") {
        Some((base, shift)) => shifted(base.parse().ok()?, shift.parse().ok()?, name)?,
        None if value == "new()" => "empty".to_owned(),
        None => format!("`{value}`"),
    };
    Some(words)
}

fn shifted(base: u64, shift: u32, name: &str) -> Option<String> {
    let number = base.checked_shl(shift)?;
    if !name.ends_with("bytes") && !name.contains("_bytes_") {
        return Some(format!("`{number}`"));
    }
    let (count, unit) = match number.trailing_zeros() {
        30.. => (number >> 30, "GiB"),
        20..30 => (number >> 20, "MiB"),
        10..20 => (number >> 10, "KiB"),
        _ => (number, "bytes"),
    };
    Some(format!("{count} {unit}"))
}

/// The reason that `validate` gives for a setting.
fn range_of(validation: &str, name: &str) -> Option<String> {
    let quoted = format!("\"{name}\",");
    let after = &validation[validation.find(&quoted)? + quoted.len()..];
    let call = &after[..after.find(")?;").or_else(|| after.rfind(')'))?];
    // Every second piece between quotes is a string; the last string of a call is the reason.
    let reason = call.split('"').skip(1).step_by(2).last()?;
    Some(reason.split(": {").next().unwrap_or(reason).to_owned())
}

/// The page must be as it would be made now.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    match page(sources) {
        Ok(page) => compare(sources, PATH, &page),
        Err(message) => vec![Finding::file(PATH, message)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
/// Who.
pub enum Who {
    /// Me.
    #[default]
    Me,
    /// You.
    You,
}
pub struct Options {
    /// Ring bytes,
    /// a power of two.
    pub ring_bytes: usize,
    /// Does it.
    pub who: Who,
}
impl Default for Options {
    fn default() -> Self {
        Options {
            ring_bytes: 64 << 20,
            who: Who::Me,
        }
    }
}
impl Options {
    fn validate(&self) -> Result<()> {
        check(
            *ring_bytes >= 64,
            "ring_bytes",
            ring_bytes.to_string(),
            &format!("at least 64: {least} bytes"),
        )?;
    }
}
"#;

    fn sources(text: &str) -> [Source; 2] {
        [Source::new(OPTIONS, text), Source::new(LARGE_PAGES, "")]
    }

    #[test]
    fn a_setting_has_its_default_its_range_and_its_meaning() {
        let page = page(&sources(TEXT)).unwrap();
        let line =
            "| `ring_bytes` | `usize` | 64 MiB | at least 64 | Ring bytes, a power of two. |";
        assert!(page.contains(line), "{page}");
        assert!(page.contains("| `who` | `Who` | `Me` | see below | Does it. |"), "{page}");
        assert!(page.ends_with("## Who\n\n* `Me`: Me.\n* `You`: You.\n"), "{page}");
    }

    #[test]
    fn a_setting_without_a_default_is_an_error() {
        let text = TEXT.replace("            who: Who::Me,\n", "");
        assert!(page(&sources(&text)).unwrap_err().contains("`who`"));
        assert_eq!(check(&sources(&text)).len(), 1);
    }
}
