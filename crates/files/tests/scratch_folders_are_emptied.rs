//! What a process that was killed has left of its temporary files goes when the next one starts.

#![allow(clippy::unwrap_used)]

use onrush_files::scratch_folder;

#[test]
fn a_folder_that_is_missing_is_made() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("spill");
    scratch_folder(&folder).unwrap();
    assert!(folder.is_dir());
}

#[test]
fn what_was_left_in_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("left").join("deeper");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("file"), b"rows").unwrap();
    scratch_folder(folder.path()).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_file_of_that_name_is_an_error_that_names_it() {
    let above = tempfile::tempdir().unwrap();
    let file = above.path().join("spill");
    std::fs::write(&file, b"not a folder").unwrap();
    let error = scratch_folder(&file).unwrap_err();
    assert!(error.to_string().contains("spill"), "{error}");
}
