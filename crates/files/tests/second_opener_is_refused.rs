//! A folder has one opener: not twice in a process, not in two processes, not even when somebody
//! deletes LOCK.

mod common;

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use onrush_files::{Disk, DiskErrorKind, OsDisk};

/// Names the folder to the second process, which is this test run again.
const FOLDER_VARIABLE: &str = "ONRUSH_TEST_LOCK_FOLDER";

#[test]
fn a_second_opener_in_this_process_is_refused_until_the_first_lets_go() {
    for place in common::places("lock-here") {
        let first = place.disk.lock(&place.folder).unwrap();
        assert_eq!(first.folder(), place.folder);
        let error = place.disk.lock(&place.folder).unwrap_err();
        assert_eq!(error.kind(), DiskErrorKind::Locked);
        assert!(error.to_string().contains("this process"), "{error}");
        drop(first);
        place.disk.lock(&place.folder).unwrap();
    }
}

#[test]
fn a_child_that_is_being_started_keeps_no_lock() {
    let place = common::places("lock-spawn").remove(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                Command::new("true").status().unwrap();
            }
        });
        let refused = (0..2000).filter(|_| place.disk.lock(&place.folder).is_err()).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(refused, 0, "the lock was given back each time");
    });
}

#[test]
fn another_name_of_the_folder_is_the_same_folder() {
    let place = common::places("lock-link").remove(0);
    let link = place.folder.with_extension("link");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(&place.folder, &link).unwrap();
    let _first = place.disk.lock(&place.folder).unwrap();
    assert_eq!(place.disk.lock(&link).unwrap_err().kind(), DiskErrorKind::Locked);
}

#[test]
fn another_process_is_refused_and_told_who_holds_it() {
    let place = common::places("lock-process").remove(0);
    let _first = place.disk.lock(&place.folder).unwrap();
    let answer = answer_of_second_process(&place.folder);
    assert!(answer.contains("Locked"), "{answer}");
    assert!(answer.contains(&format!("process {}", std::process::id())), "{answer}");
}

#[test]
fn another_process_is_refused_even_after_the_lock_file_is_deleted() {
    let place = common::places("lock-deleted").remove(0);
    let _first = place.disk.lock(&place.folder).unwrap();
    std::fs::remove_file(place.folder.join("LOCK")).unwrap();
    let answer = answer_of_second_process(&place.folder);
    assert!(answer.contains("Locked"), "{answer}");
    assert_eq!(place.disk.lock(&place.folder).unwrap_err().kind(), DiskErrorKind::Locked);
}

#[test]
fn the_lock_file_stays_and_a_closed_folder_opens_in_another_process() {
    let place = common::places("lock-stays").remove(0);
    drop(place.disk.lock(&place.folder).unwrap());
    assert!(place.folder.join("LOCK").exists());
    let answer = answer_of_second_process(&place.folder);
    assert!(answer.contains("answer: taken"), "{answer}");
}

/// Not a promise: what the second process runs.
#[test]
fn second_process() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else { return };
    match OsDisk::new().lock(folder.as_ref()) {
        Ok(_) => println!("answer: taken"),
        Err(error) => println!("answer: {:?} {error}", error.kind()),
    }
}

fn answer_of_second_process(folder: &std::path::Path) -> String {
    let output = Command::new(std::env::current_exe().expect("the path of this test"))
        .args(["second_process", "--exact", "--nocapture"])
        .env(FOLDER_VARIABLE, folder)
        .output()
        .expect("the second process runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
