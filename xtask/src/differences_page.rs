//! `docs/postgresql-differences.md`, made from `differences.slt`, which the tests of the server run on
//! Onrush and on PostgreSQL: a row of the page is a pair of records that gave these answers.

use std::fmt::Write;

use crate::finding::Finding;
use crate::source::Source;
use crate::waits_page::compare;

/// Where the page stands.
pub(crate) const PATH: &str = "docs/postgresql-differences.md";
const RECORDS: &str = "crates/server/tests/slt/differences.slt";

const HEAD: &str = "<!-- Made by `cargo xtask generate` from crates/server/tests/slt/differences.slt. -->
# Where answers differ from PostgreSQL's

Each row was run on both servers by the tests. *error* names the SQLSTATE. What is neither here nor in
the [SQL reference](sql.md) is a defect where it differs.
";

/// The whole page.
pub(crate) fn page(sources: &[Source]) -> Result<String, String> {
    let source = sources.iter().find(|source| source.path == RECORDS);
    let text = source.map(|source| source.text.as_str()).ok_or(format!("{RECORDS} is missing"))?;
    let mut page = HEAD.to_owned();
    let mut ours: Option<(String, String)> = None;
    let mut in_table = false;
    for block in text.split("\n\n").map(str::trim) {
        if let Some(title) = block.strip_prefix("# ## ") {
            let (title, about) = title.split_once('\n').unwrap_or((title, ""));
            let about: Vec<&str> =
                about.lines().map(|line| line.trim_start_matches('#').trim()).collect();
            let _ = write!(page, "\n## {title}\n\n{}\n", about.join("\n").trim());
            in_table = false;
        } else if let Some(record) = block.strip_prefix("onlyif onrush\n") {
            ours = Some(statement_and_answer(record)?);
        } else if let Some(record) = block.strip_prefix("skipif onrush\n") {
            let (statement, theirs) = statement_and_answer(record)?;
            // One that PostgreSQL alone runs clears away what only it took.
            let Some((same, answer)) = ours.take() else { continue };
            if same != statement {
                return Err(format!(
                    "{RECORDS}: `{same}` is followed by another statement, `{statement}`"
                ));
            }
            if !in_table {
                page.push_str("\n| statement | Onrush | PostgreSQL |\n|---|---|---|\n");
                in_table = true;
            }
            let statement = statement.replace('|', "\\|");
            let _ = writeln!(page, "| `{statement}` | {answer} | {theirs} |");
        }
    }
    match ours {
        Some((statement, _)) => {
            Err(format!("{RECORDS}: `{statement}` has no answer of PostgreSQL's"))
        }
        None => Ok(page),
    }
}

/// A record's statement, and in words what it gave.
fn statement_and_answer(record: &str) -> Result<(String, String), String> {
    let (kind, rest) =
        record.split_once('\n').ok_or(format!("{RECORDS}: `{record}` has no statement"))?;
    if let Some(code) = kind.strip_prefix("statement error ") {
        return Ok((one_line(rest), format!("error `{code}`")));
    }
    if kind.starts_with("statement") {
        return Ok((one_line(rest), "done".to_owned()));
    }
    let (statement, rows) =
        rest.split_once("\n----\n").ok_or(format!("{RECORDS}: `{rest}` has no rows"))?;
    let rows: Vec<String> =
        rows.lines().map(|row| format!("`{}`", row.trim().replace('|', "\\|"))).collect();
    Ok((one_line(statement), rows.join("<br>")))
}

fn one_line(statement: &str) -> String {
    statement.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The page must be as it would be made now.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    match page(sources) {
        Ok(page) => compare(sources, PATH, &page),
        Err(message) => vec![Finding::file(RECORDS, message)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(records: &str) -> Result<String, String> {
        page(&[Source::new(RECORDS, records)])
    }

    #[test]
    fn a_pair_of_records_is_a_row() {
        let records = "# ## Numbers\n#\n# Why.\n\nonlyif onrush\nquery T\nSELECT 1\n----\na\nb\n\n\
                       skipif onrush\nstatement error 22003\nSELECT 1\n\nskipif onrush\nstatement ok\nDROP TABLE d\n";
        let page = page_of(records).unwrap_or_default();
        assert!(
            page.ends_with(
                "\n## Numbers\n\nWhy.\n\n| statement | Onrush | PostgreSQL |\n|---|---|---|\n\
                                | `SELECT 1` | `a`<br>`b` | error `22003` |\n"
            ),
            "{page}"
        );
    }

    #[test]
    fn an_answer_without_its_pair_is_refused() {
        assert!(page_of("onlyif onrush\nstatement ok\nBEGIN\n").is_err());
        let other = "onlyif onrush\nstatement ok\nBEGIN\n\nskipif onrush\nstatement ok\nEND\n";
        assert!(page_of(other).is_err());
    }
}
