//! The result file of a study: SQLite, one run of a case a row, written as soon as it has ended.
//!
//! Three tables. `study` has one row: the study as it was read, and what it was run on. `run` has a
//! row for each run of each case, found by case and repeat: its outcome as JSON, or why it failed.
//! `underway` has the folder of the run that is being made, and whose process makes it; that of a run
//! which was killed stays there until the folder is removed.
//!
//! Invariants
//! 1. A run is written whole or not at all, and is on disk before the next one begins: whoever
//!    interrupts the lab loses at most the run that was on its way.
//! 2. A file is continued only with the same study, settings, size, version and build.

use std::path::{Path, PathBuf};

use crate::error::LabError;
use rusqlite::{Connection, OptionalExtension, params};

use crate::study::outcome::{Repeat, StudyResult, TargetShown};

/// The layout of the file.
const LAYOUT: i64 = 2;

const TABLES: &str = "
    create table study (layout integer not null, settings_hash text not null, result text not null);
    create table run (
        case_number integer not null, repeat integer not null,
        target_shown text, outcome text, failure text,
        primary key (case_number, repeat)
    );";

const UNDERWAY: &str =
    "create table if not exists underway (folder text not null, process integer not null);";

/// A result file.
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// One run as it was kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    pub(crate) case: usize,
    pub(crate) repeat: usize,
    pub(crate) target_shown: Option<TargetShown>,
    pub(crate) outcome: Result<Repeat, String>,
}

impl Store {
    /// Makes a new file for this study, all cases without runs.
    ///
    /// # Errors
    /// There is a file already, or the disk refuses.
    pub fn create(path: &Path, result: &StudyResult) -> Result<Store, LabError> {
        Store::check_new(path)?;
        let store = Store::connect(path)?;
        store.sql(|connection| {
            connection.execute_batch(TABLES)?;
            connection.execute_batch(UNDERWAY)?;
            let text = json(result)?;
            let row = params![LAYOUT, result.settings_hash, text];
            connection.execute("insert into study values (?, ?, ?)", row)?;
            Ok(())
        })?;
        Ok(store)
    }

    /// Whether a result file can be made here.
    ///
    /// # Errors
    /// It exists, or the folder that it should be in does not.
    pub fn check_new(path: &Path) -> Result<(), LabError> {
        let refused = |what: String| LabError::ResultFile { path: path.to_owned(), what };
        if path.exists() {
            let what = "exists already; continue it with --resume, or give another --out";
            return Err(refused(what.into()));
        }
        match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
            Some(folder) => Err(refused(format!(
                "there is no folder {}; make it, or give another --out",
                folder.display()
            ))),
            None => Ok(()),
        }
    }

    /// Opens a file that a study has written.
    ///
    /// # Errors
    /// There is none, or it is none.
    pub fn open(path: &Path) -> Result<Store, LabError> {
        if !path.is_file() {
            return Err(LabError::ResultFile {
                path: path.to_owned(),
                what: "there is no such file; `onrush-lab run` writes one".into(),
            });
        }
        let store = Store::connect(path)?;
        let layout: Option<i64> = store.sql(|connection| {
            Ok(connection.query_row("select layout from study", [], |row| row.get(0)).optional()?)
        })?;
        match layout {
            Some(LAYOUT) => Ok(store),
            Some(other) => Err(store
                .error(format!("it has layout {other}, and this version reads layout {LAYOUT}"))),
            None => Err(store.error("it holds no study; give a file that `onrush-lab run` wrote")),
        }
    }

    fn connect(path: &Path) -> Result<Store, LabError> {
        let opened = Connection::open(path).and_then(|connection| {
            connection.pragma_update(None, "synchronous", "full")?;
            connection.busy_timeout(std::time::Duration::from_secs(10))?;
            Ok(connection)
        });
        let path = path.to_owned();
        match opened {
            Ok(connection) => Ok(Store { connection, path }),
            Err(error) => Err(LabError::ResultFile { path, what: error.to_string() }),
        }
    }

    fn error(&self, what: impl Into<String>) -> LabError {
        LabError::ResultFile { path: self.path.clone(), what: what.into() }
    }

    fn sql<T>(
        &self,
        run: impl FnOnce(&Connection) -> Result<T, Box<dyn std::error::Error>>,
    ) -> Result<T, LabError> {
        run(&self.connection).map_err(|error| self.error(error.to_string()))
    }

    /// The study as it was when the file was made, its cases without runs.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn begun(&self) -> Result<StudyResult, LabError> {
        self.sql(|connection| {
            let text: String =
                connection.query_row("select result from study", [], |row| row.get(0))?;
            Ok(serde_json::from_str(&text)?)
        })
    }

    /// Takes over which cases are skipped now.
    pub(crate) fn renew(&self, result: &StudyResult) -> Result<(), LabError> {
        let mut renewed = self.begun()?;
        renewed.cases.clone_from(&result.cases);
        self.sql(|connection| {
            connection.execute("update study set result = ?", params![json(&renewed)?])?;
            Ok(())
        })
    }

    /// A run begins in a folder of its own.
    pub(crate) fn begins(&self, folder: &Path) -> Result<(), LabError> {
        self.sql(|connection| {
            let row = params![folder.to_string_lossy(), std::process::id()];
            connection.execute("insert into underway values (?, ?)", row)?;
            Ok(())
        })
    }

    /// The folders of runs whose process has ended without ending the run, or cannot be asked.
    pub(crate) fn left_behind(&self) -> Result<Vec<PathBuf>, LabError> {
        let found: Vec<(String, u32)> = self.sql(|connection| {
            connection.execute_batch(UNDERWAY)?; // files of earlier versions have none
            let mut select = connection.prepare("select folder, process from underway")?;
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?;
        let left = found.into_iter().filter(|(_, process)| !is_running(*process));
        Ok(left.map(|(folder, _)| folder.into()).collect())
    }

    /// Forgets a folder that a killed run has left: it is removed.
    pub(crate) fn forget_removed(&self, folder: &Path) -> Result<(), LabError> {
        self.sql(|connection| {
            let delete = "delete from underway where folder = ?";
            connection.execute(delete, params![folder.to_string_lossy()])?;
            Ok(())
        })
    }

    /// Keeps a run.
    pub(crate) fn keep(&self, kept: &Kept) -> Result<(), LabError> {
        self.sql(|connection| {
            let shown = kept.target_shown.as_ref().map(json).transpose()?;
            let (outcome, failure) = match &kept.outcome {
                Ok(repeat) => (Some(json(repeat)?), None),
                Err(failure) => (None, Some(failure)),
            };
            let both = connection.unchecked_transaction()?;
            both.execute(
                "insert or replace into run values (?, ?, ?, ?, ?)",
                params![kept.case as i64, kept.repeat as i64, shown, outcome, failure],
            )?;
            let ended = params![std::process::id()];
            both.execute("delete from underway where process = ?", ended)?;
            Ok(both.commit()?)
        })
    }

    /// Forgets the runs that failed, so that they are made again.
    pub(crate) fn forget_failures(&self) -> Result<(), LabError> {
        self.sql(|connection| {
            connection.execute("delete from run where failure is not null", [])?;
            Ok(())
        })
    }

    /// Every run, by case and repeat.
    pub(crate) fn kept(&self) -> Result<Vec<Kept>, LabError> {
        self.sql(|connection| {
            let mut select = connection.prepare(
                "select case_number, repeat, target_shown, outcome, failure from run order by 1, 2",
            )?;
            let mut rows = select.query([])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                let shown: Option<String> = row.get(2)?;
                let outcome: Option<String> = row.get(3)?;
                let failure: Option<String> = row.get(4)?;
                all.push(Kept {
                    case: usize::try_from(row.get::<_, i64>(0)?)?,
                    repeat: usize::try_from(row.get::<_, i64>(1)?)?,
                    target_shown: shown.map(|text| serde_json::from_str(&text)).transpose()?,
                    outcome: match outcome {
                        Some(text) => Ok(serde_json::from_str(&text)?),
                        None => Err(failure.unwrap_or_default()),
                    },
                });
            }
            Ok(all)
        })
    }

    /// The study with everything that was found so far.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn result(&self) -> Result<StudyResult, LabError> {
        let mut result = self.begun()?;
        for kept in self.kept()? {
            let Some(case) = result.cases.get_mut(kept.case) else { continue };
            case.target_shown = kept.target_shown.or(case.target_shown.take());
            match kept.outcome {
                Ok(repeat) => case.repeats.push(repeat),
                Err(failure) => {
                    case.failed.get_or_insert(failure);
                }
            }
        }
        for case in &mut result.cases {
            case.conclude();
        }
        crate::verdict::judge(&mut result);
        Ok(result)
    }
}

fn is_running(process: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !has_ended(&stat))
}

/// Of a line of `/proc/PID/stat`: whether the process has ended, and only waits for its parent to ask
/// how. Its state stands behind its name, which is in brackets and may have brackets itself.
fn has_ended(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

fn json(value: &impl serde::Serialize) -> Result<String, Box<dyn std::error::Error>> {
    Ok(serde_json::to_string(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No process has this number: it is larger than the kernel gives.
    const GONE: u32 = 1 << 23;

    #[test]
    fn a_run_whose_process_is_gone_is_remembered_and_one_that_is_being_made_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.sqlite");
        let store = Store::create(&path, &crate::page::tests::invented()).unwrap();
        let left = || store.left_behind().unwrap();
        let none: Vec<PathBuf> = Vec::new();
        assert_eq!(left(), none);
        store.begins(Path::new("/databases/run")).unwrap();
        assert_eq!(left(), none, "this process is still there");
        let outcome = Err("it failed".to_owned());
        store.keep(&Kept { case: 0, repeat: 0, target_shown: None, outcome }).unwrap();
        store.connection.execute("update underway set process = ?", [GONE]).unwrap();
        assert_eq!(left(), none, "the run has ended");
        store.begins(Path::new("/databases/run")).unwrap();
        store.connection.execute("update underway set process = ?", [GONE]).unwrap();
        assert_eq!(left(), [PathBuf::from("/databases/run")]);
    }

    #[test]
    fn what_a_killed_run_left_is_remembered_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.sqlite");
        let store = Store::create(&path, &crate::page::tests::invented()).unwrap();
        let (killed, next) = (Path::new("/databases/killed"), Path::new("/databases/next"));
        store.begins(killed).unwrap();
        store.connection.execute("update underway set process = ?", [GONE]).unwrap();
        store.begins(next).unwrap();
        let outcome = Err("it failed".to_owned());
        store.keep(&Kept { case: 0, repeat: 0, target_shown: None, outcome }).unwrap();
        assert_eq!(store.left_behind().unwrap(), [killed]);
        store.forget_removed(killed).unwrap();
        assert!(store.left_behind().unwrap().is_empty());
    }

    #[test]
    fn a_process_that_only_waits_for_its_parent_has_ended() {
        for ended in ["71 (onrush) Z 70 71 0", "71 (a (b) S 1) Z 70", "71 (onrush) X 0"] {
            assert!(has_ended(ended), "{ended}");
        }
        for runs in ["71 (onrush) R 70 71 0", "71 (a) Z) S 70", "71 (onrush) D 70"] {
            assert!(!has_ended(runs), "{runs}");
        }
        assert!(is_running(std::process::id()) && !is_running(GONE));
    }

    #[test]
    fn a_killed_process_that_nobody_has_asked_for_is_not_running() {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

        let mut child = std::process::Command::new("true").spawn().unwrap();
        let (id, options) =
            (Pid::from_child(&child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        waitid(WaitId::Pid(id), options).unwrap();
        assert!(Path::new(&format!("/proc/{}", child.id())).exists());
        assert!(!is_running(child.id()));
        child.wait().unwrap();
    }
}
