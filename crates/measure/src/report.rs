//! Results as text for people: two columns, units in the names.

use std::fmt::Write;
use std::time::Duration;

use crate::disk::DiskReport;
use crate::repeats::Repeated;
use crate::result::CaseResult;
use crate::settings::{Driver, Leave};
use crate::units::{bytes, elapsed, grouped, micros, rounded};

/// Lines of names and values, the values below each other.
#[derive(Default)]
struct Lines {
    lines: Vec<(String, String)>,
}

impl Lines {
    fn add(&mut self, name: &str, value: impl Into<String>) {
        self.lines.push((name.to_owned(), value.into()));
    }

    fn text(&self) -> String {
        let width = self.lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, value) in &self.lines {
            push(&mut text, format_args!("  {name:width$}  {value}"));
        }
        text
    }
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a String cannot fail");
}

fn seconds(value: f64) -> String {
    elapsed(Duration::from_secs_f64(value.max(0.0)))
}

/// What was run, in one line.
fn heading(result: &CaseResult) -> String {
    let settings = &result.settings;
    let sessions = match settings.driver {
        Driver::Threads => {
            format!("{} sessions (a thread each)", grouped(settings.sessions as u64))
        }
        Driver::Tasks => format!("{} sessions (tasks)", grouped(settings.sessions as u64)),
    };
    let rows = match settings.rows_per_commit {
        1 => "1 row per commit".to_owned(),
        rows => format!("{} rows per commit", grouped(rows)),
    };
    let mut text =
        format!("Classic table, {sessions}, key {}, {}, {rows}", settings.key, settings.durability);
    if settings.preload_rows > 0 {
        text += &format!(", {} rows preloaded", grouped(settings.preload_rows));
    }
    text
}

/// The result of one load as a table.
pub fn table(result: &CaseResult) -> String {
    let mut lines = Lines::default();
    lines.add("rows", grouped(result.rows));
    lines.add("elapsed", seconds(result.elapsed_s));
    lines.add("rows/s", rounded(result.rows_per_s));
    lines.add("CPU", format!("{} % of {} CPUs", rounded(result.cpu_percent), result.machine.cpus));
    lines.add("log MB/s", rounded(result.log_mb_per_s));
    lines.add(
        "log bytes per row",
        format!(
            "{} ({} written, with headers and padding)",
            rounded(result.log_bytes_per_row),
            rounded(result.log_written_bytes_per_row)
        ),
    );
    lines.add("rows per commit", rounded(result.rows_per_commit));
    lines.add("commits per sync", rounded(result.commits_per_sync));
    let sync = format!(
        "{} p50, {} p99 (durable write of 4 KiB, the better of before and after)",
        micros(result.sync_time_us.p50_us),
        micros(result.sync_time_us.p99_us)
    );
    lines.add("sync time F", sync);
    let share = match (result.share_of_bound, result.bound_commits_per_s) {
        (Some(share), Some(bound)) => format!(
            "{:.0} % of {} commits/s (N/F: {} sessions, one sync each)",
            share * 100.0,
            rounded(bound),
            result.settings.sessions
        ),
        _ => "does not apply: commits do not wait for the disk".to_owned(),
    };
    lines.add("share of the bound", share);
    let latency = &result.commit_latency_us;
    lines.add(
        "commit latency",
        format!(
            "p50 {}, p99 {}, p99.9 {}, max {}",
            micros(latency.p50),
            micros(latency.p99),
            micros(latency.p999),
            micros(latency.max)
        ),
    );
    let how = match result.settings.left_by {
        Leave::Close => "close",
        Leave::Drop => "drop",
    };
    lines.add(
        "afterwards",
        format!(
            "all durable {} ms later, {how} {}, reopen {}",
            rounded(result.durable_after_ms),
            seconds(result.close_s),
            seconds(result.reopen_s)
        ),
    );
    if result.redone_rows > 0 {
        let rows_per_s = result.redone_rows as f64 / result.redo_s;
        let (rows, time) = (grouped(result.redone_rows), seconds(result.redo_s));
        lines.add("recovered", format!("{rows} rows in {time}, {} rows/s", rounded(rows_per_s)));
    }
    lines.add("large pages", large_pages(result));
    lines.add("verified", verified(result));
    if let Some(folder) = &result.kept_folder {
        lines.add("database kept in", folder.clone());
    }
    format!("{}\n\n{}", heading(result), lines.text())
}

/// What was asked for, and what was obtained.
fn large_pages(result: &CaseResult) -> String {
    let memory = bytes(result.settings.leaf_memory_bytes as u64);
    match (result.settings.large_pages.as_str(), result.large_page_bytes) {
        ("off", _) => "not asked for".to_owned(),
        (_, 0) => "none obtained: the system has none, or does not say".to_owned(),
        (_, obtained) => format!("{} obtained, {memory} of memory for leaves", bytes(obtained)),
    }
}

fn verified(result: &CaseResult) -> String {
    match &result.verification {
        None => "not asked for".to_owned(),
        Some(verdict) if verdict.passed => format!(
            "yes: all {} acknowledged rows are there after reopening, {} ({})",
            grouped(verdict.rows_acknowledged),
            if verdict.is_exact { "with their content" } else { "counted, each as inserted" },
            seconds(verdict.elapsed_s)
        ),
        Some(_) => "NO, SEE BELOW".to_owned(),
    }
}

/// What was waited for, under the classic headings.
pub fn waits(result: &CaseResult) -> String {
    let mut text = String::new();
    push(
        &mut text,
        format_args!(
            "  {:20} {:>10} {:>10} {:>10} {:>12} {:>10}",
            "WaitType", "Wait_S", "Resource_S", "Signal_S", "WaitCount", "Percentage"
        ),
    );
    for row in &result.waits {
        push(
            &mut text,
            format_args!(
                "  {:20} {:>10.2} {:>10.2} {:>10.2} {:>12} {:>10.2}",
                row.wait.name(),
                row.wait_s,
                row.resource_s,
                row.signal_s,
                row.count,
                row.percent
            ),
        );
    }
    if result.waits.is_empty() { "  nothing\n".to_owned() } else { text }
}

/// The failure of a verification, so that nobody overlooks it. None if there is none.
pub fn failure(result: &CaseResult) -> Option<String> {
    let verdict = result.verification.as_ref().filter(|verdict| !verdict.passed)?;
    let bar = "!".repeat(78);
    let mut text =
        format!("{bar}\nVERIFICATION FAILED: the database does not hold what it acknowledged\n");
    for fault in &verdict.faults {
        push(&mut text, format_args!("  {fault}"));
    }
    if let Some(folder) = &result.kept_folder {
        push(&mut text, format_args!("The database is kept in {folder} as evidence."));
    }
    text += &bar;
    Some(text)
}

/// What the figures mean, for somebody who sees them for the first time.
pub fn explanation(result: &CaseResult) -> String {
    let mut text = String::new();
    match (result.share_of_bound, result.bound_commits_per_s) {
        (Some(share), Some(bound)) => push(
            &mut text,
            format_args!(
                "Each of the {} sessions waits until its commit is on disk. One sync takes {} here,\n\
             so no engine can pass {} commits/s with them; this run reached {:.0} % of that{}.\n\
             More sessions, more rows per commit, or --driver tasks raise the figure; a faster\n\
             device raises the bound.",
                result.settings.sessions,
                micros(result.sync_time_us.p50_us),
                rounded(bound),
                share * 100.0,
                if share > 1.0 {
                    ": the\ndevice was faster during the load than when it was measured"
                } else {
                    ""
                },
            ),
        ),
        _ => push(
            &mut text,
            format_args!(
                "Commits return before they are on disk; a crash can take back the last {} ms, never\n\
             more than {} of log. The limit is the processor ({} % busy here) and, in the long\n\
             run, the disk's bandwidth.",
                result.settings.delayed_window_ms,
                bytes(result.settings.delayed_window_bytes),
                rounded(result.cpu_percent)
            ),
        ),
    }
    if let Some(top) = result.waits.first() {
        push(
            &mut text,
            format_args!("Sessions waited most for {}: {}", top.wait.name(), top.wait.about()),
        );
    }
    text += "Compare runs of one machine only, one after the other: devices differ and drift.\n";
    text
}

/// Several runs of the same load, after the table of the median one.
pub fn repeats(repeated: &Repeated) -> String {
    let rates = &repeated.rows_per_s_of_runs;
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let all = rates.iter().map(|rate| rounded(*rate)).collect::<Vec<_>>().join("  ");
    format!(
        "Median of {} runs. rows/s of each: {all} (spread {:.0} %)\n",
        rates.len(),
        100.0 * (most - least) / repeated.median.rows_per_s.max(f64::MIN_POSITIVE)
    )
}

/// What the device under a folder can do, and what follows.
pub fn disk(report: &DiskReport) -> String {
    let mut lines = Lines::default();
    lines.add("folder", report.folder.clone());
    let system = &report.file_system;
    lines.add(
        "file system",
        format!("{} on {}, {} free", system.kind, system.device, bytes(system.free_bytes)),
    );
    lines.add(
        "durable write of 4 KiB (F)",
        format!(
            "p50 {}, p99 {}, mean {} ({} writes, one at a time)",
            micros(report.sync.p50_us),
            micros(report.sync.p99_us),
            micros(report.sync.mean_us),
            grouped(report.sync.samples as u64)
        ),
    );
    lines.add(
        "sequential write",
        format!("{} MB/s (1 MiB each, 4 at a time)", rounded(report.bandwidth.write_mb_per_s)),
    );
    lines.add(
        "sequential read",
        format!("{} MB/s (1 MiB each, 4 at a time)", rounded(report.bandwidth.read_mb_per_s)),
    );
    lines.add(
        "random read of 16 KiB",
        format!("{} per s (32 at a time)", rounded(report.bandwidth.random_reads_per_s)),
    );
    let mut text = format!("The device\n\n{}\n", lines.text());
    text += "What it allows: durable commits/s, each session waiting for its own\n\n";
    push(&mut text, format_args!("  {:>8}  {:>12}  {:>12}", "sessions", "N/2F", "N/F (bound)"));
    for limit in &report.allows.durable {
        push(
            &mut text,
            format_args!(
                "  {:>8}  {:>12}  {:>12}",
                grouped(limit.sessions),
                rounded(limit.commits_per_s_late),
                rounded(limit.commits_per_s_max)
            ),
        );
    }
    let sustained = &report.allows.sustained;
    let mut lines = Lines::default();
    for (name, rows_per_s) in [
        ("ascending keys, short log records", sustained.ascending_rows_per_s),
        ("ascending keys, log records with all columns", sustained.ascending_full_log_rows_per_s),
        ("random keys, every leaf written twice", sustained.random_twice_rows_per_s),
        ("random keys, every leaf written five times", sustained.random_five_times_rows_per_s),
        ("rows read from a table larger than memory", report.allows.cold_reads_per_s),
    ] {
        lines.add(name, rounded(rows_per_s));
    }
    text +=
        "\nWhat it allows in the long run: rows/s of the classic table when no commit waits\n\n";
    text += &lines.text();
    if system.is_memory() {
        text += "\nThis file system lives in memory: its figures say nothing about a disk.\n";
    }
    text
}
