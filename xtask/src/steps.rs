//! Rule: the steps of an insert are those of ARCHITECTURE.md, everywhere.
//!
//! A comment that says "Step 3 of an insert" stands in a folder to which step 3 there leads by a link, and a
//! comment that counts steps says of what.

use crate::finding::Finding;
use crate::source::Source;

const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## The life of one insert";

/// See the module.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let page = sources.iter().find(|source| source.path == PAGE);
    let steps = page.map(|page| steps(&page.text)).unwrap_or_default();
    if steps.is_empty() {
        return vec![Finding::file(PAGE, format!("has no numbered list below `{HEADING}`"))];
    }
    let mut findings = Vec::new();
    let is_ours = |source: &&Source| source.is_rust() && source.path.starts_with("crates/");
    for source in sources.iter().filter(is_ours) {
        let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (index, line) in source.text.lines().enumerate() {
            let Some((numbers, of)) = claim(line) else { continue };
            let message = match of {
                "of an insert" if !leads(&steps, &numbers, folder) => {
                    format!("no such step in {PAGE} has a link to this folder")
                }
                "" => "says of what this is a step: of an insert, of a checkpoint".to_owned(),
                _ => continue,
            };
            findings.push(Finding::line(&source.path, index + 1, message));
        }
    }
    findings
}

/// The text of each step, from 1.
fn steps(page: &str) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    let below = page.lines().skip_while(|line| *line != HEADING).skip(1);
    for line in below.take_while(|line| !line.starts_with('#')) {
        match line.strip_prefix(&format!("{}. ", steps.len() + 1)) {
            Some(text) => steps.push(text.to_owned()),
            None if line.starts_with("   ") => {
                if let Some(step) = steps.last_mut() {
                    step.push_str(line);
                }
            }
            None => {}
        }
    }
    steps
}

/// The numbers that a comment claims, and of what: "Steps 4 and 5 of an insert".
fn claim(line: &str) -> Option<(Vec<usize>, &'static str)> {
    let comment = line.trim_start().strip_prefix("//")?;
    let at = comment.find("Step ").or_else(|| comment.find("Steps "))?;
    let words: Vec<&str> = comment[at..].split_whitespace().skip(1).collect();
    let is_part = |word: &&&str| matches!(**word, "and" | "to") || number(word).is_some();
    let counted = words.iter().take_while(is_part).count();
    let numbers: Vec<usize> = words[..counted].iter().filter_map(|word| number(word)).collect();
    let ends_here = counted > 0 && words[counted - 1].ends_with([':', '.', ',']);
    let of = match words.get(counted..) {
        Some(["of", "an", what, ..]) if what.starts_with("insert") => "of an insert",
        Some(["of", ..]) if !ends_here => "of something else",
        _ => "",
    };
    (!numbers.is_empty()).then_some((numbers, of))
}

fn number(word: &str) -> Option<usize> {
    word.trim_end_matches([':', '.', ',']).parse().ok()
}

fn leads(steps: &[String], numbers: &[usize], folder: &str) -> bool {
    let of = |number: &usize| number.checked_sub(1).and_then(|index| steps.get(index));
    let all: Option<Vec<&String>> = numbers.iter().map(of).collect();
    all.is_some_and(|all| all.iter().any(|step| step.contains(&format!("({folder}/"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, comment: &str) -> usize {
        let page = format!(
            "{HEADING}\n\n1. **One.** [`a`](crates/a/src/a.rs)\n   more\n2. **Two.**\n   [`b`](crates/b/src/b.rs)\n"
        );
        check(&[Source::new(PAGE, &page), Source::new(path, comment)]).len()
    }

    #[test]
    fn a_step_stands_where_the_page_leads_to() {
        assert_eq!(found("crates/a/src/other.rs", "//! Step 1 of an insert: a."), 0);
        assert_eq!(found("crates/b/src/b.rs", "    /// Steps 1 and 2 of an insert."), 0);
        assert_eq!(found("crates/b/src/b.rs", "//! Step 1 of an insert: a."), 1);
        assert_eq!(found("crates/b/src/b.rs", "//! Step 0 of an insert: a."), 1);
        assert_eq!(found("crates/b/src/b.rs", "//! Step 3 of an insert: a."), 1);
    }

    #[test]
    fn a_step_says_of_what_it_is_one() {
        assert_eq!(found("crates/c/src/c.rs", "/// Step 4: the leaves."), 1);
        assert_eq!(found("crates/c/src/c.rs", "/// Step 4 of a checkpoint: the leaves."), 0);
        assert_eq!(found("crates/c/src/c.rs", "let text = \"Step 4: the leaves.\";"), 0);
        assert_eq!(check(&[]).len(), 1);
    }
}
