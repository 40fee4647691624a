//! The report of a run, for people and for programs.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use super::judge::{self, Judgement, QUARTERS, Stretch, Verdict};
use super::rounds::{Request, Run};

const MIB: f64 = 1_048_576.0;

/// Whether everything that could be judged holds.
pub(crate) fn holds(judgements: &[Judgement]) -> bool {
    judgements.iter().all(|judgement| judgement.verdict != Verdict::Fails)
}

/// The report as Markdown.
pub(crate) fn markdown(
    request: &Request,
    run: &Run,
    judgements: &[Judgement],
    note: Option<&str>,
) -> String {
    let mut text = String::from("# A soak: inserts, reads, changes, deletes, kills, for hours\n\n");
    let asked = request.length.as_secs_f64();
    let _ = writeln!(
        text,
        "Made by `soak --minutes {:.1} --seed {} --max-bytes {}` (see [testing](../testing.md)); \
         it ran for {} of the {} asked for. {}\n",
        asked / 60.0,
        request.seed,
        request.max_bytes,
        duration(run.seconds),
        duration(asked),
        machine(),
    );
    if let Some(note) = note {
        let _ = writeln!(text, "{note}\n");
    }
    let failed = judgements.iter().filter(|judgement| judgement.verdict == Verdict::Fails).count();
    let short =
        judgements.iter().filter(|judgement| judgement.verdict == Verdict::TooShort).count();
    let verdict = match (failed, short) {
        (0, 0) => "**Everything holds.**".to_owned(),
        (0, short) => format!(
            "**Everything holds that could be judged; {short} could not, for so short a run.**"
        ),
        (failed, _) => format!("**{failed} of {} do not hold.**", judgements.len()),
    };
    let _ = writeln!(text, "{verdict}\n");
    if let Some(failure) = &run.failure {
        let _ = writeln!(text, "It ended early:\n\n```text\n{failure}\n```\n");
    }
    if let Some(bytes) = run.too_large_bytes {
        let (took, most) = (bytes as f64 / MIB, request.max_bytes as f64 / MIB);
        let _ = writeln!(
            text,
            "It ended early: the database took {took:.0} MiB of the disk, `--max-bytes` allows {most:.0} MiB.\n"
        );
    }
    text += "| judged | measured | allowed | |\n|---|---|---|---|\n";
    for judgement in judgements {
        let verdict = match judgement.verdict {
            Verdict::Holds => "holds",
            Verdict::Fails => "**fails**",
            Verdict::TooShort => "too short to tell",
        };
        let Judgement { what, measured, allowed, .. } = judgement;
        let _ = writeln!(text, "| {what} | {measured} | {allowed} | {verdict} |");
    }
    text += "\n## By quarter\n\nMedians, of the second half of each round.\n\n";
    text += &quarters(&judge::stretches(run, QUARTERS));
    text += "\n## What was done\n\n";
    text += &work(run);
    text
}

fn quarters(quarters: &[Stretch]) -> String {
    let mut text = String::from("| | first | second | third | last |\n|---|---|---|---|---|\n");
    let mut row = |name: &str, number: &dyn Fn(&Stretch) -> String| {
        let cells: Vec<String> = quarters.iter().map(number).collect();
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    };
    let mib = |bytes: f64| format!("{:.1}", bytes / MIB);
    let whole = |number: f64| format!("{number:.0}");
    row("memory in use, MiB", &|quarter| mib(quarter.resident_bytes));
    row("file descriptors", &|quarter| whole(quarter.descriptors));
    row("threads", &|quarter| whole(quarter.threads));
    row("data files, MiB of the disk", &|quarter| mib(quarter.data_bytes));
    row("log, MiB of the disk", &|quarter| mib(quarter.log_bytes));
    row("slots in the data files", &|quarter| whole(quarter.slots));
    row("leaves", &|quarter| whole(quarter.leaves));
    row("live rows", &|quarter| whole(quarter.live_rows));
    row("rows changed a second", &|quarter| whole(quarter.rows_per_s));
    row("samples", &|quarter| quarter.samples.to_string());
    text
}

fn work(run: &Run) -> String {
    let (told, seen) = (&run.told, &run.seen);
    format!(
        "* {} rounds, each a process of eight sessions: {} ended by kill -9, {} by closing.\n\
         * {} rows inserted, {} updated, {} deleted or truncated one by one, {} read; {} operations begun.\n\
         * {} checkpoints, {} checks beside sessions, {} backups beside sessions.\n\
         * After each round: a check of the closed database ({} with those of copies), and all rows \
         read and compared with the account outside the engine ({} rows; {} log records redone).\n\
         * Operations acknowledged as delayed and lost by a kill: {} of {} acknowledged.\n",
        run.rounds,
        run.kills,
        run.rounds - run.kills,
        told.inserted,
        told.updated,
        told.deleted,
        told.read,
        seen.intended,
        told.checkpoints,
        told.checks,
        told.backups,
        seen.checks,
        seen.rows,
        seen.redone_records,
        seen.lost_delayed,
        seen.acknowledged,
    )
}

fn duration(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0..120 => format!("{whole} s"),
        _ => format!("{} h {} min {} s", whole / 3600, whole / 60 % 60, whole % 60),
    }
}

fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{processors} processors, Linux {}.", kernel.trim())
}

/// The report as JSON, with a line for each minute.
pub(crate) fn json(request: &Request, run: &Run, judgements: &[Judgement]) -> Result<String> {
    let minutes = ((run.seconds / 60.0).ceil() as usize).max(1);
    let told = &run.told;
    let value = json!({
        "seconds": run.seconds,
        "asked_seconds": request.length.as_secs_f64(),
        "seed": request.seed,
        "max_bytes": request.max_bytes,
        "holds": holds(judgements),
        "failure": run.failure,
        "too_large_bytes": run.too_large_bytes,
        "judgements": judgements,
        "quarters": judge::stretches(run, QUARTERS),
        "minutes": judge::stretches(run, minutes),
        "rounds": run.rounds,
        "kills": run.kills,
        "rows": {
            "inserted": told.inserted,
            "updated": told.updated,
            "deleted": told.deleted,
            "read": told.read,
            "compared": run.seen.rows,
        },
        "lost_delayed": run.seen.lost_delayed,
    });
    Ok(serde_json::to_string_pretty(&value)?)
}

/// Writes a report, whole or not at all.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let beside = path.with_extension("part");
    std::fs::write(&beside, text).with_context(|| format!("write {}", beside.display()))?;
    std::fs::rename(&beside, path).with_context(|| format!("write {}", path.display()))
}
