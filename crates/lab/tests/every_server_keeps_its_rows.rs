//! Servers that the lab starts itself: they take the classic rows, give them back, tell what they
//! counted, and are gone afterwards, whatever happened in between.
//!
//! A server that is not installed is left out with a line that says so; with
//! `ONRUSH_REQUIRE_SERVERS` set that is a failure.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use onrush_lab::study::{Setting, Settings};
use onrush_lab::target::record::{LOG_RECORD_BYTES, LOG_SYNCS};
use onrush_lab::target::{self, Instance, LoadOrder, Target};
use onrush_measure::{Quiet, Step};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

const SERVERS: [&str; 3] = ["onrush-server", "postgresql", "mariadb"];

/// The servers that are installed here.
fn installed() -> Vec<Box<dyn Target>> {
    let is_required = std::env::var_os("ONRUSH_REQUIRE_SERVERS").is_some();
    let all = SERVERS.iter().map(|name| target::find(name).unwrap());
    all.filter(|target| match target.missing() {
        None => true,
        Some(reason) => {
            assert!(!is_required, "{reason}");
            eprintln!("left out: {reason}");
            false
        }
    })
    .collect()
}

fn small() -> Settings {
    Settings::default().with(Setting::Sessions, 2).with(Setting::CacheBytes, 32 << 20)
}

/// A folder that the user of a server may enter.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn load(instance: &mut dyn Instance, rows: u64) -> target::LoadFigures {
    instance.load(LoadOrder { rows, step: Step::Load }, &Quiet).unwrap()
}

/// Preloads, loads and verifies.
fn run(target: &dyn Target, settings: &Settings, rows: u64, commits: u64) {
    let name = target.name();
    assert_eq!(target.impossible(settings), None, "{name}");
    let folder = folder();
    let mut instance = target.prepare(settings, folder.path()).unwrap();
    let preload = LoadOrder { rows: 500, step: Step::Preload };
    assert_eq!(instance.load(preload, &Quiet).unwrap().rows, 500, "{name}");
    let figures = load(&mut *instance, rows);
    assert_eq!((figures.rows, figures.commits), (rows, commits), "{name}");
    instance.settle().unwrap();
    let verdict = instance.verify(&Quiet).unwrap().unwrap();
    assert!(verdict.passed && verdict.faults.is_empty(), "{name}: {:?}", verdict.faults);
    assert_eq!(verdict.rows_found, rows + 500, "{name}");
    instance.clean_up().unwrap();
    assert_eq!(processes_in(folder.path()), 0, "{name}");
}

/// How many processes have their working folder below this one.
fn processes_in(folder: &Path) -> usize {
    ids_in(folder).count()
}

fn ids_in(folder: &Path) -> impl Iterator<Item = Pid> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(move |entry| {
        let cwd = std::fs::read_link(entry.path().join("cwd")).ok()?;
        cwd.starts_with(folder).then_some(())?;
        Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)
    })
}

/// Kills every process of a server, and waits until the system has ended them.
fn kill_all_in(folder: &Path) {
    let none = PidfdFlags::empty();
    // Those that their first process ends may be gone before their turn.
    let ids = ids_in(folder).filter_map(|id| Some((id, pidfd_open(id, none).ok()?)));
    for (id, handle) in ids.collect::<Vec<_>>() {
        let _ = kill_process(id, Signal::KILL);
        poll(&mut [PollFd::new(&handle, PollFlags::IN)], None).unwrap();
    }
}

#[test]
fn durable_and_not_with_the_loop_in_client_and_server() {
    for target in installed() {
        for durability in ["durable", "delayed"] {
            for loop_in in ["client", "server"] {
                let settings =
                    small().with(Setting::Durability, durability).with(Setting::LoopIn, loop_in);
                run(&*target, &settings, 301, 301);
            }
        }
    }
}

#[test]
fn several_rows_a_commit_in_one_statement_or_several() {
    for target in installed() {
        for loop_in in ["client", "server"] {
            for rows_per_statement in [0, 4] {
                let settings = small()
                    .with(Setting::LoopIn, loop_in)
                    .with(Setting::RowsPerCommit, 10)
                    .with(Setting::RowsPerStatement, rows_per_statement);
                // Two sessions with 152 and 151 rows: 15 whole transactions each, and a rest.
                run(&*target, &settings, 303, 32);
            }
        }
    }
}

#[test]
fn with_indexes_of_random_numbers_that_come_with_their_keys() {
    for target in installed() {
        let settings = small()
            .with(Setting::Key, "identity")
            .with(Setting::KeySource, "client")
            .with(Setting::Columns, "random")
            .with(Setting::Indexes, 3);
        run(&*target, &settings, 101, 101);
        run(&*target, &settings.with(Setting::RowsPerCommit, 10), 100, 10);
    }
}

#[test]
fn every_key_that_client_or_server_can_make() {
    for target in installed() {
        for key in ["identity(7)", "uuid-v4", "uuid-v7", "bit-reversed", "sequential-guid"] {
            let settings = small().with(Setting::Durability, "delayed").with(Setting::Key, key);
            run(&*target, &settings, 200, 200);
            let in_server = settings.with(Setting::LoopIn, "server");
            if target.impossible(&in_server).is_none() {
                run(&*target, &in_server, 200, 200);
            }
        }
    }
}

#[test]
fn each_commit_of_a_lone_durable_session_is_synced_and_counted() {
    for target in installed() {
        let folder = folder();
        let settings = small().with(Setting::Sessions, 1).with(Setting::ElideDefaults, "off");
        let mut instance = target.prepare(&settings, folder.path()).unwrap();
        let before = instance.statistics().unwrap();
        load(&mut *instance, 200);
        let counted = instance.statistics().unwrap().since(&before);
        let name = target.name();
        assert!(counted.counter(LOG_SYNCS).unwrap() >= 200.0, "{name}: {counted:?}");
        assert!(counted.counter(LOG_RECORD_BYTES).unwrap() >= 200.0 * 151.0, "{name}");
        let mut sampler = instance.sampler().unwrap();
        assert!(sampler().unwrap().counter(LOG_SYNCS).is_some(), "{name}");
        instance.clean_up().unwrap();
    }
}

#[test]
fn a_server_that_dies_is_told_and_leaves_nothing_behind() {
    for target in installed() {
        let folder = folder();
        let mut instance = target.prepare(&small(), folder.path()).unwrap();
        load(&mut *instance, 100);
        kill_all_in(folder.path());
        let order = LoadOrder { rows: 100, step: Step::Load };
        let message = instance.load(order, &Quiet).unwrap_err().to_string();
        assert!(message.contains("the server ended, signal: 9"), "{message}");
        drop(instance);
        assert_eq!(processes_in(folder.path()), 0);
    }
}

#[test]
fn a_folder_that_the_servers_user_may_not_enter_is_refused_with_the_cure() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only root runs servers as another user");
        return;
    }
    // Our own server does not mind who runs it.
    for target in installed().into_iter().filter(|target| target.name() != "onrush-server") {
        let closed = tempfile::tempdir().unwrap();
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(closed.path(), mode).unwrap();
        let refused = target.prepare(&small(), closed.path()).err().unwrap().to_string();
        assert!(refused.contains("may not enter") && refused.contains("--dir"), "{refused}");
    }
}

#[test]
fn each_shows_its_version_and_what_it_is_configured_with() {
    for target in installed() {
        let shown = target.shown(&small()).unwrap();
        assert!(shown.version.contains('.'), "{}", shown.version);
        assert!(shown.settings.len() > 10);
        assert!(shown.settings.iter().any(|(name, _)| name == "runs as"));
    }
}
