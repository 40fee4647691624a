//! `onrush backup` and `onrush restore`: a checked copy, and back, to any point in time the log reaches.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use indicatif::ProgressBar;
use onrush_archive::{ArchiveError, FromArchive, Place};
use onrush_backup::{BackupError, BackupReport, RestoreOptions, parse_time, restore};
use onrush_check::{CheckOptions, LogLimit, Lsn, Progress};
use onrush_files::{Disk, OsDisk};
use onrush_terminal::arguments::answer::AnswerArguments;
use onrush_terminal::failure::{AlreadyTold, Outcome, usage_error};

use onrush_terminal::{output, progress};

/// Copy a database into a new folder, and check what is copied
#[derive(Args)]
#[command(after_help = BACKUP_EXAMPLES)]
pub struct Backup {
    /// The database's folder; no other program may have it open
    folder: PathBuf,
    /// Where to put the copy; new or empty
    #[arg(long, value_name = "NEW_FOLDER")]
    into: PathBuf,
    #[command(flatten)]
    how: How,
}

/// Make a database of a backup: as it was then, or as it was at a later moment
#[derive(Args)]
#[command(after_help = RESTORE_EXAMPLES)]
pub struct Restore {
    /// The backup's folder, in which nothing is changed; or the URL of an archive, file:///folder or
    /// s3://bucket/prefix, with the history behind it if there are several
    #[arg(value_name = "BACKUP")]
    folder: PathBuf,
    /// Where to make the database; new or empty
    #[arg(long, value_name = "NEW_FOLDER")]
    into: PathBuf,
    /// A folder with later log segments: the database's own log, or where its segments are kept; may
    /// be given several times, and the first that has a segment counts
    #[arg(long = "log", value_name = "FOLDER")]
    log_folders: Vec<PathBuf>,
    /// Leave out what was made durable after this moment, as 2026-03-01T14:05:00Z or with an offset
    #[arg(long, value_name = "TIME", conflicts_with = "to_lsn")]
    to_time: Option<String>,
    /// Leave out commits at or above this position in the log
    #[arg(long, value_name = "LSN")]
    to_lsn: Option<u64>,
    /// Of an archive in which something is missing or damaged, take what comes before it
    #[arg(long)]
    as_far_as_possible: bool,
    /// Of an archive: do not close its history, so that its node may go on. For looking into the archive of a node
    /// that lives
    #[arg(long)]
    without_closing: bool,
    #[command(flatten)]
    how: How,
}

#[derive(Args)]
struct How {
    /// Threads that check and copy [default: one a processor]
    #[arg(long, value_name = "COUNT")]
    dop: Option<usize>,
    /// Check checksums and structure only: do not look at the rows
    #[arg(long)]
    physical_only: bool,
    #[command(flatten)]
    answer: AnswerArguments,
}

const BACKUP_EXAMPLES: &str = "\
Examples:
  onrush backup shop --into /mnt/backups/shop-monday
  onrush backup shop --into copy --json | jq '{end_lsn, end_time, mb_per_s}'

The copy is a database of its own, in one folder: `onrush check` checks it, `onrush restore` makes a
database of it. A program that has its database open makes backups itself (`Database::backup`).

Exit codes:
  0  the copy is there, durable, and sound
  1  there is no copy
  2  the command line makes no sense
  3  there is no copy, because the database is damaged";

const RESTORE_EXAMPLES: &str = "\
Examples:
  onrush restore shop-monday --into shop
  onrush restore shop-monday --into shop --log shop-broken/log          all that the log still has
  onrush restore shop-monday --into shop --log kept --log shop-broken/log \\
         --to-time 2026-03-01T14:04:59Z                                 before the accident
  onrush restore s3://backups/shop --into shop                          a node whose machine is lost

Exit codes:
  0  the database is there, durable, and sound
  1  there is no database
  2  the command line makes no sense
  3  there is no database, because the backup or its log is damaged or not all there

docs/backup.md tells how to keep log segments.";

/// Copies and prints.
pub fn backup(arguments: &Backup) -> Outcome {
    run(&arguments.folder, &arguments.into, &arguments.how, RestoreOptions::default(), "backing up")
}

/// Restores and prints.
pub fn restored(arguments: &Restore) -> Outcome {
    let limit = match (&arguments.to_time, arguments.to_lsn) {
        (Some(time), _) => LogLimit::TimeUs(parse_time(time).map_err(told)?),
        (None, Some(lsn)) => LogLimit::Lsn(Lsn(lsn)),
        (None, None) => LogLimit::None,
    };
    if let Some(url) = arguments.folder.to_str().filter(|url| url.contains("://")) {
        return from_archive(arguments, url, limit);
    }
    if arguments.as_far_as_possible || arguments.without_closing {
        let message = "--as-far-as-possible and --without-closing are for archives: name a URL";
        return Err(usage_error(message.to_owned()));
    }
    let absolute = |folder: &PathBuf| std::path::absolute(folder);
    let log_folders = arguments.log_folders.iter().map(absolute).collect::<Result<_, _>>()?;
    let options = RestoreOptions { log_folders, limit, ..RestoreOptions::default() };
    run(&arguments.folder, &arguments.into, &arguments.how, options, "restoring")
}

fn from_archive(arguments: &Restore, url: &str, limit: LogLimit) -> Outcome {
    if !arguments.log_folders.is_empty() {
        return Err(usage_error(
            "--log is for backups in folders: an archive has its log".to_owned(),
        ));
    }
    let place = Place::of_url(url).map_err(|error| usage_error(error.to_string()))?;
    let into = std::path::absolute(&arguments.into)?;
    let check = check_options(&arguments.how);
    let options = FromArchive {
        limit,
        as_far_as_possible: arguments.as_far_as_possible,
        closes: !arguments.without_closing,
        check,
    };
    let progress = Progress::default();
    let disk: Arc<dyn Disk> = Arc::new(OsDisk::buffered());
    let report = beside_bar(&arguments.how, "restoring", &progress, || {
        onrush_archive::restore(&disk, &place, &into, &options, &progress)
    });
    let report = report.map_err(|error| match error {
        ArchiveError::Restore(error) => told(error),
        ArchiveError::BadUrl { .. } | ArchiveError::SeveralHistories { .. } => {
            usage_error(error.to_string())
        }
        ArchiveError::Damaged { .. } | ArchiveError::Incomplete { .. } => {
            onrush_terminal::tell!("onrush: {error}");
            AlreadyTold::Damage.into()
        }
        other => other.into(),
    })?;
    if arguments.how.answer.json {
        return output::json(&report);
    }
    output::text(&format!("{report}\n"))
}

fn check_options(how: &How) -> CheckOptions {
    let check = CheckOptions { physical_only: how.physical_only, ..CheckOptions::default() };
    CheckOptions { dop: how.dop.unwrap_or(check.dop), ..check }
}

fn beside_bar<T: Send>(
    how: &How,
    doing: &str,
    progress: &Progress,
    work: impl FnOnce() -> T + Send,
) -> T {
    let show = |bar: &ProgressBar| {
        bar.set_length(progress.total_bytes());
        bar.set_position(progress.done_bytes());
    };
    progress::beside_bytes_bar(how.answer.quiet || how.answer.json, doing, show, work)
}

fn run(
    folder: &PathBuf,
    into: &PathBuf,
    how: &How,
    options: RestoreOptions,
    doing: &str,
) -> Outcome {
    let (folder, into) = (std::path::absolute(folder)?, std::path::absolute(into)?);
    let options = RestoreOptions { check: check_options(how), ..options };
    let progress = Progress::default();
    let report = beside_bar(how, doing, &progress, || {
        restore(Arc::new(OsDisk::buffered()), &folder, &into, &options, &progress)
    });
    print(how, &report.map_err(told)?)
}

fn print(how: &How, report: &BackupReport) -> Outcome {
    if how.answer.json {
        return output::json(report);
    }
    output::text(&format!("{report}\n"))
}

fn told(error: BackupError) -> anyhow::Error {
    match error {
        BackupError::TargetExists { .. }
        | BackupError::TargetUnfinished(_)
        | BackupError::NoLogFolder { .. }
        | BackupError::TargetInside { .. }
        | BackupError::BadTime { .. }
        | BackupError::BadOption(_) => usage_error(error.to_string()),
        BackupError::Damaged(_) => {
            onrush_terminal::tell!("onrush: {error}");
            AlreadyTold::Damage.into()
        }
        other => other.into(),
    }
}
