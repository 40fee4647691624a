//! The tables of `docs/performance.md`, made from the results under `docs/results`. What stands between the tables is
//! written by hand.
//!
//! `<!-- figures: NAME -->` begins a table of the section NAME of `figures.txt`, `<!-- study: NAME -->` one of the runs
//! of a study, `NAME.csv`, `<!-- goals: all -->` the one of `goals.txt`; `<!-- end -->` ends it.
//!
//! Invariant: no field of a table is empty. What a result does not say is `not recorded`.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::finding::Finding;
use crate::goals::{self, Figures, Goal};
use crate::source::Source;
use crate::waits_page::compare;

/// Where the page stands.
pub(crate) const PATH: &str = "docs/performance.md";
const RESULTS: &str = "docs/results";
/// What a field says that its result does not have.
const NOT_RECORDED: &str = "not recorded";
const END: &str = "<!-- end -->";
const HEAD: &str = "| load | Onrush | F | durability | commits a sync | best baseline in the same run | goal |\n\
                    |---|---|---|---|---|---|---|\n";
/// The settings that two cases must share to be compared.
const SETTINGS: [&str; 9] = [
    "part",
    "sessions",
    "key",
    "durability",
    "rows_per_commit",
    "rows_per_statement",
    "loop_in",
    "memory_ratio",
    "key_spread",
];

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
        let goals = || goals::read(&read("goals.txt")?);
        let table = match mark.and_then(|mark| mark.split_once(": ")) {
            Some(("figures", name)) => section(&read("figures.txt")?, name)?,
            Some(("study", name)) => study(name, &Results::read(name, read)?, &goals()?)?,
            Some(("goals", _)) => all_goals(&goals()?, read)?,
            _ => continue,
        };
        lines.find(|line| *line == END).ok_or(format!("{line} has no {END}"))?;
        let _ = write!(page, "\n{table}\n{END}\n");
    }
    Ok(page)
}

/// Every goal, and the figures of the study that tests it.
fn all_goals(
    goals: &[Goal],
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let mut table = "| load | goal | newest figure |\n|---|---|---|\n".to_owned();
    for goal in goals {
        let results = Results::read(&goal.study, read).ok();
        let figures = results.as_ref().map_or(Ok(Vec::new()), Results::figures)?;
        let of_goal = figures.iter().map(|(_, figures)| figures).filter(|one| goal.is_of(one));
        let found: Vec<String> = of_goal
            .map(|one| {
                let [_, key, driver, durability] = &one.place;
                let rate = grouped(one.rows_per_s);
                format!("{key}, {driver}, {durability}: {rate} rows/s; {}", goal.judged(one))
            })
            .collect();
        let found = if found.is_empty() { NOT_RECORDED.to_owned() } else { found.join("<br>") };
        let _ = writeln!(table, "| {} | {} | {found} |", goal.load, goal.text());
    }
    Ok(table)
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
    let (machine, commit) = (told("machine: ")?, told("commit: ")?);
    let mut table =
        format!("{command}; date: {date}; machine: {machine}; commit: {commit}.\n\n{HEAD}");
    for line in lines.take_while(|line| !line.is_empty()) {
        let fields: Vec<&str> = line.split(" | ").collect();
        if fields.len() != 7 || fields.contains(&"-") {
            return Err(format!(
                "figures.txt, {name}: not seven columns with words in each: {line}"
            ));
        }
        let _ = writeln!(table, "| {line} |");
    }
    Ok(table)
}

/// A run of a study: column and value.
type Run = BTreeMap<String, String>;

/// The runs of a study, and the words about them all in its report.
struct Results {
    runs: Vec<Run>,
    about: String,
}

fn of(run: &Run, column: &str) -> String {
    run.get(column).cloned().unwrap_or_default()
}

fn settings(run: &Run) -> [String; SETTINGS.len()] {
    SETTINGS.map(|column| of(run, column))
}

impl Results {
    fn read(name: &str, read: &dyn Fn(&str) -> Result<String, String>) -> Result<Results, String> {
        let report = read(&format!("{name}.html"))?;
        let meta =
            report.split_once("<p class=\"meta\">").and_then(|(_, rest)| rest.split_once('<'));
        let (meta, _) = meta.ok_or(format!("{name}.html does not say when and where it ran"))?;
        let parts: Vec<&str> = meta.split(" \u{b7} ").collect();
        let [date, size, machine, device, sync, version] = parts[..] else {
            return Err(format!("{name}.html: when and where it ran is not in six parts: {meta}"));
        };
        let commit = version.split_once("commit ").map_or(NOT_RECORDED, |(_, rest)| {
            rest.split([',', ')']).next().unwrap_or(NOT_RECORDED)
        });
        let about = format!(
            "date: {date}; {size}; machine: {machine}, {device}; {sync} before the first case; \
             commit: {commit} ({version})"
        );
        Ok(Results { runs: runs(&read(&format!("{name}.csv"))?), about })
    }

    /// The first run of each case that ran.
    fn cases(&self) -> Vec<&Run> {
        let mut cases: Vec<&Run> = Vec::new();
        for run in &self.runs {
            let is_new = cases.last().is_none_or(|last| of(last, "case") != of(run, "case"));
            if is_new && run.get("rows_per_s").is_some_and(|rate| !rate.is_empty()) {
                cases.push(run);
            }
        }
        cases
    }

    fn median_of(&self, case: &Run, column: &str) -> Option<f64> {
        let of_case = self.runs.iter().filter(|run| of(run, "case") == of(case, "case"));
        median(of_case.filter_map(|run| run.get(column)?.parse().ok()).collect())
    }

    /// The cases of Onrush, each beside the baselines with the same settings.
    fn figures(&self) -> Result<Vec<(&Run, Figures)>, String> {
        let cases = self.cases();
        let own = ["onrush-server", "onrush"]
            .into_iter()
            .find(|own| self.runs.iter().any(|run| of(run, "target") == **own))
            .ok_or("a study has no run of Onrush")?;
        let rate_of = |case: &Run| self.median_of(case, "rows_per_s").unwrap_or_default();
        let figures = cases.iter().filter(|case| of(case, "target") == own).map(|case| {
            let is_baseline = |run: &&&Run| {
                let counts =
                    of(run, "not_synchronous") != "true" && settings(run) == settings(case);
                counts && !["onrush", "onrush-server", "null"].contains(&of(run, "target").as_str())
            };
            let but_key = |run: &Run| {
                let [part, sessions, _, rest @ ..] = settings(run);
                (of(run, "driver"), part, sessions, rest)
            };
            let others = cases.iter().filter(is_baseline);
            let keys = cases
                .iter()
                .filter(|run| of(run, "target") == own && but_key(run) == but_key(case));
            let [part, sessions, key, durability, ..] = settings(case);
            let figures = Figures {
                place: [part, key, format!("{sessions} {}", of(case, "driver")), durability],
                rows_per_s: rate_of(case),
                baselines: others.map(|run| (of(run, "target"), rate_of(run))).collect(),
                best_key_rows_per_s: keys.map(|run| rate_of(run)).fold(0.0, f64::max),
            };
            (*case, figures)
        });
        Ok(figures.collect())
    }
}

/// Medians of a study, each case of Onrush beside the best baseline with the same settings.
fn study(name: &str, results: &Results, goals: &[Goal]) -> Result<String, String> {
    let about = &results.about;
    let mut table =
        format!("`onrush-lab run {name}` ([report](results/{name}.html)); {about}.\n\n{HEAD}");
    for (case, figures) in results.figures()? {
        let rate = figures.rows_per_s;
        let best = figures.baselines.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let best = best.map_or("none".to_owned(), |(target, baseline)| {
            format!("{target} {} ({:.1} times)", grouped(*baseline), rate / baseline)
        });
        let goals = goals.iter().filter(|goal| goal.study == name && goal.is_of(&figures));
        let judged: Vec<String> = goals.map(|goal| goal.judged(&figures)).collect();
        let goal = if judged.is_empty() { "none".to_owned() } else { judged.join(", ") };
        let [part, sessions, key, durability, rows, statement, loop_in, ratio, spread] =
            settings(case);
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
        let of_memory = match ratio.as_str() {
            "0" | "" => String::new(),
            ratio => format!(", {ratio} times the memory"),
        };
        let spread = match spread.as_str() {
            "even" | "" => String::new(),
            spread => format!(" ({spread})"),
        };
        let recorded = |column, digits: usize, unit| {
            let median = results.median_of(case, column);
            median.map_or(NOT_RECORDED.to_owned(), |value| format!("{value:.digits$}{unit}"))
        };
        let _ = writeln!(
            table,
            "| {part}: {key}{spread}, {sessions} {}, {rows} {} a commit{many}{place}{block}{of_memory} | {} rows/s | \
             {} | {durability} | {} | {best} | {goal} |",
            of(case, "driver"),
            plural(&rows),
            grouped(rate),
            recorded("sync_p50_us", 0, " us"),
            recorded("commits_per_sync", 1, ""),
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

    const RATIOS: &str = "case,target,part,memory_ratio,rows_per_s\n\
        0,onrush,r,2,9000\n1,onrush,r,8,3000\n2,fjall,r,2,3000\n3,fjall,r,8,1000\n";

    const REPORT: &str = "<p class=\"meta\">a day \u{b7} quick size \u{b7} 2 CPUs \u{b7} ext4 \u{b7} F 90 us \u{b7} \
        Onrush 1</p>";
    const GOALS: &str = "Goals.\n\nload | keys | a | * | * | * | 2 times the best baseline\n\
        other | gone | a | * | * | * | 1 M rows/s\n";

    fn read(name: &str) -> Result<String, String> {
        match name {
            "figures.txt" => Ok(FIGURES.to_owned()),
            "goals.txt" => Ok(GOALS.to_owned()),
            "keys.csv" => Ok(CSV.to_owned()),
            "ratios.csv" => Ok(RATIOS.to_owned()),
            "keys.html" | "ratios.html" => Ok(REPORT.to_owned()),
            other => Err(format!("no {other}")),
        }
    }

    const FIGURES: &str =
        "# one\ncommand: c\ndate: d\nmachine: m\ncommit: e\n1 | 2 | 3 | 4 | 5 | 6 | 7\n";

    fn table(mark: &str) -> String {
        filled(&format!("<!-- {mark} -->\n<!-- end -->\n"), &read).unwrap()
    }

    #[test]
    fn a_case_has_its_median_the_best_baseline_of_the_same_settings_and_its_goal() {
        let table = table("study: keys");
        assert!(table.contains("| 2,000 rows/s | 90 us |"), "{table}");
        assert!(
            table.contains("| fjall 1,000 (2.0 times) | 2 times the best baseline: met |"),
            "{table}"
        );
        assert_eq!(table.matches("rows/s").count(), 1, "{table}");
    }

    #[test]
    fn cases_of_another_memory_ratio_are_not_compared_and_the_ratio_is_told() {
        let table = table("study: ratios");
        for (ratio, best) in [(2, "fjall 3,000 (3.0 times)"), (8, "fjall 1,000 (3.0 times)")] {
            let load = format!(", {ratio} times the memory |");
            let line = table.lines().find(|line| line.contains(&load)).unwrap();
            assert!(line.contains(best), "{table}");
        }
    }

    #[test]
    fn a_table_names_date_machine_sync_time_and_that_no_commit_was_recorded() {
        let about = "date: a day; quick size; machine: 2 CPUs, ext4; F 90 us before the first case; \
                     commit: not recorded (Onrush 1)";
        assert!(table("study: keys").contains(about), "{}", table("study: keys"));
        assert!(table("figures: one").contains("c; date: d; machine: m; commit: e."));
    }

    #[test]
    fn a_goal_without_a_figure_says_so() {
        let table = table("goals: all");
        assert!(table.contains("| load | 2 times the best baseline | "), "{table}");
        assert!(table.contains("| other | 1 M rows/s | not recorded |"), "{table}");
    }

    #[test]
    fn what_stands_between_the_marks_is_made_anew_and_the_rest_stays() {
        let text = "A\n<!-- figures: one -->\nold\n<!-- end -->\nB\n";
        let page = filled(text, &read).unwrap();
        assert!(page.starts_with("A\n") && page.ends_with("<!-- end -->\nB\n"), "{page}");
        assert!(page.contains("| 1 | 2 |") && !page.contains("old"), "{page}");
        assert_eq!(filled(&page, &read).unwrap(), page);
        assert!(filled("<!-- figures: two -->\n<!-- end -->\n", &read).is_err());
        assert!(filled("<!-- figures: one -->\n", &read).is_err());
    }
}
