//! The tables of `docs/performance.md`, made from the results under `docs/results`. What stands between the tables is
//! written by hand.
//!
//! `<!-- figures: NAME -->` begins a table of the section NAME of `figures.txt`, `<!-- study: NAME -->` one of the runs
//! of a study, `NAME.csv`; `<!-- end -->` ends it.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::finding::Finding;
use crate::source::Source;
use crate::waits_page::compare;

/// Where the page stands.
pub(crate) const PATH: &str = "docs/performance.md";
const RESULTS: &str = "docs/results";
const END: &str = "<!-- end -->";
const HEAD: &str = "| load | Onrush | F | durability | commits a sync | best baseline in the same run | goal |\n\
                    |---|---|---|---|---|---|---|\n";
/// The settings that two cases must share to be compared.
const SETTINGS: [&str; 7] =
    ["part", "sessions", "key", "durability", "rows_per_commit", "rows_per_statement", "loop_in"];

/// The whole page: its text as it is, and the tables.
pub(crate) fn page(sources: &[Source]) -> Result<String, String> {
    let source = sources.iter().find(|source| source.path == PATH);
    let text = source.map(|source| source.text.as_str()).ok_or(format!("{PATH} is missing"))?;
    filled(text, &read)
}

/// The page must be as it would be made now.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    match page(sources) {
        Ok(page) => compare(sources, PATH, &page),
        Err(message) => vec![Finding::file(PATH, message)],
    }
}

/// A file of the results. Rules get no text of tables and reports, which are not written by hand.
fn read(name: &str) -> Result<String, String> {
    let path = crate::workspace_root().join(RESULTS).join(name);
    std::fs::read_to_string(path).map_err(|error| format!("{RESULTS}/{name}: {error}"))
}

fn filled(text: &str, read: &dyn Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let mut page = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let _ = writeln!(page, "{line}");
        let mark = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
        let table = match mark.and_then(|mark| mark.split_once(": ")) {
            Some(("figures", name)) => section(&read("figures.txt")?, name)?,
            Some(("study", name)) => {
                study(name, &read(&format!("{name}.csv"))?, &read(&format!("{name}.html"))?)?
            }
            _ => continue,
        };
        lines.find(|line| *line == END).ok_or(format!("{line} has no {END}"))?;
        let _ = write!(page, "\n{table}\n{END}\n");
    }
    Ok(page)
}

/// A section of `figures.txt` as a table.
fn section(figures: &str, name: &str) -> Result<String, String> {
    let mut lines = figures.lines().skip_while(|line| line.strip_prefix("# ") != Some(name));
    lines.next().ok_or(format!("figures.txt has no section {name}"))?;
    let mut told = |what: &str| {
        let line = lines.next().and_then(|line| line.strip_prefix(what));
        line.ok_or(format!("figures.txt, {name}: there is no `{what}` in its place"))
    };
    let (command, date) = (told("command: ")?, told("date: ")?);
    let mut table = format!("{command}; date: {date}; commit: not recorded.\n\n{HEAD}");
    for line in lines.take_while(|line| !line.is_empty()) {
        if line.split(" | ").count() != 7 {
            return Err(format!("figures.txt, {name}: not seven columns: {line}"));
        }
        let _ = writeln!(table, "| {line} |");
    }
    Ok(table)
}

/// A run of a study: column and value.
type Run = BTreeMap<String, String>;

/// Medians of a study, each case of Onrush beside the best baseline with the same settings.
fn study(name: &str, csv: &str, report: &str) -> Result<String, String> {
    let meta = report.split_once("<p class=\"meta\">").and_then(|(_, rest)| rest.split_once('<'));
    let (meta, _) = meta.ok_or(format!("{name}.html does not say when and where it ran"))?;
    let runs = runs(csv);
    let of = |run: &Run, column: &str| run.get(column).cloned().unwrap_or_default();
    let settings = |run: &Run| SETTINGS.map(|column| of(run, column));
    let own = ["onrush-server", "onrush"]
        .into_iter()
        .find(|own| runs.iter().any(|run| of(run, "target") == **own))
        .ok_or(format!("{name}.csv has no run of Onrush"))?;
    let median_of = |case: &str, column: &str| {
        let of_case = runs.iter().filter(|run| of(run, "case") == case);
        median(of_case.filter_map(|run| run.get(column)?.parse().ok()).collect())
    };
    let mut cases: Vec<&Run> = Vec::new();
    for run in &runs {
        let is_new = cases.last().is_none_or(|last| of(last, "case") != of(run, "case"));
        if is_new && run.get("rows_per_s").is_some_and(|rate| !rate.is_empty()) {
            cases.push(run);
        }
    }
    let mut table =
        format!("`onrush-lab run {name}` ([report](results/{name}.html)); {meta}.\n\n{HEAD}");
    for case in cases.iter().filter(|run| of(run, "target") == own) {
        let number = of(case, "case");
        let rate = median_of(&number, "rows_per_s").unwrap_or_default();
        let baselines = cases.iter().filter(|run| {
            let target = of(run, "target");
            let counts = of(run, "not_synchronous") != "true" && settings(run) == settings(case);
            counts && !["onrush", "onrush-server", "null"].contains(&target.as_str())
        });
        let best = baselines
            .filter_map(|run| Some((median_of(&of(run, "case"), "rows_per_s")?, of(run, "target"))))
            .max_by(|(one, _), (other, _)| one.total_cmp(other));
        let best = best.map_or("-".to_owned(), |(baseline, target)| {
            format!("{target} {} ({:.1} times)", grouped(baseline), rate / baseline)
        });
        let [part, sessions, key, durability, rows, statement, loop_in] = settings(case);
        let plural = |rows: &str| if rows == "1" { "row" } else { "rows" };
        let many = match statement.as_str() {
            "0" | "1" => String::new(),
            some => format!(", {some} a statement"),
        };
        let block = match (part == "log block", of(case, "log_block_bytes_max")) {
            (true, bytes) => format!(", blocks of {bytes} bytes"),
            (false, _) => String::new(),
        };
        let place = if loop_in == "server" { ", loop in the server" } else { "" };
        let _ = writeln!(
            table,
            "| {part}: {key}, {sessions} {}, {rows} {} a commit{many}{place}{block} | {} rows/s | \
             {} us | {durability} | {} | {best} | - |",
            of(case, "driver"),
            plural(&rows),
            grouped(rate),
            median_of(&number, "sync_p50_us").map_or("-".to_owned(), |f| format!("{f:.0}")),
            median_of(&number, "commits_per_sync").map_or("-".to_owned(), |n| format!("{n:.1}")),
        );
    }
    Ok(table)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// A whole number with its thousands apart.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let parts: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|part| std::str::from_utf8(part).ok())
        .collect();
    parts.join(",")
}

/// The lines of a CSV file by the names of its first line. No value has a line break.
fn runs(csv: &str) -> Vec<Run> {
    let mut lines = csv.lines().map(fields);
    let head = lines.next().unwrap_or_default();
    lines.map(|line| head.iter().cloned().zip(line).collect()).collect()
}

fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut is_quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => fields.last_mut().expect("there is always one").push(letter),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "case,target,part,sessions,rows_per_s,commits_per_sync,sync_p50_us,verdict\n\
        0,onrush,a,24,3000,20,90,\"x, y\"\n0,onrush,a,24,1000,20,90,\n0,onrush,a,24,2000,20,90,\n\
        1,redb,a,24,500,,,\n2,fjall,a,24,1000,,,\n3,lmdb,b,24,9000,,,\n";

    #[test]
    fn a_case_has_its_median_and_the_best_baseline_of_the_same_settings() {
        let table = study("keys", CSV, "<p class=\"meta\">a day</p>").unwrap();
        assert!(table.contains("| 2,000 rows/s | 90 us |"), "{table}");
        assert!(table.contains("| 20.0 | fjall 1,000 (2.0 times) |"), "{table}");
        assert_eq!(table.matches("rows/s").count(), 1, "{table}");
    }

    #[test]
    fn what_stands_between_the_marks_is_made_anew_and_the_rest_stays() {
        let figures = "# one\ncommand: c\ndate: d\n1 | 2 | 3 | 4 | 5 | 6 | 7\n";
        let text = "A\n<!-- figures: one -->\nold\n<!-- end -->\nB\n";
        let read = |_: &str| Ok(figures.to_owned());
        let page = filled(text, &read).unwrap();
        assert!(page.starts_with("A\n") && page.ends_with("<!-- end -->\nB\n"), "{page}");
        assert!(page.contains("| 1 | 2 |") && !page.contains("old"), "{page}");
        assert_eq!(filled(&page, &read).unwrap(), page);
        assert!(filled("<!-- figures: two -->\n<!-- end -->\n", &read).is_err());
        assert!(filled("<!-- figures: one -->\n", &read).is_err());
    }
}
