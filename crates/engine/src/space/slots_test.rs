use std::collections::HashSet;
use std::path::PathBuf;

use onrush_files::MemoryDisk;

use super::*;

fn space(disk: &MemoryDisk, files: usize) -> Arc<Space> {
    let folders: Vec<PathBuf> = (0..files).map(|n| PathBuf::from(format!("/data{n}"))).collect();
    Space::new(DataFiles::create(disk, &folders, 7).unwrap(), &[]).unwrap()
}

fn allocate(space: &Arc<Space>, cursor: &mut Cursor) -> Slot {
    while !space.try_reserve(1, Purpose::NewRows) {
        space.grow().unwrap();
    }
    space.allocate(cursor)
}

#[test]
fn no_slot_is_given_out_twice() {
    let space = space(&MemoryDisk::new(), 2);
    let mut cursor = Cursor::default();
    let slots: Vec<Slot> = (0..5000).map(|_| allocate(&space, &mut cursor)).collect();
    let distinct: HashSet<SlotId> = slots.iter().map(Slot::id).collect();
    assert_eq!(distinct.len(), slots.len());
    assert!(!distinct.contains(&SlotId { file: 0, index: 0 }), "the file header is no slot");
}

#[test]
fn a_dropped_slot_is_free_again() {
    let space = space(&MemoryDisk::new(), 1);
    let mut cursor = Cursor::default();
    let slots: Vec<Slot> = (0..2000).map(|_| allocate(&space, &mut cursor)).collect();
    let before = space.slots();
    drop(slots);
    let again: Vec<Slot> = (0..2000).map(|_| allocate(&space, &mut cursor)).collect();
    assert_eq!(space.slots(), before, "no growth while there are free slots");
    assert_eq!(again.len(), 2000);
}

#[test]
fn neighbours_are_given_out_together() {
    let space = space(&MemoryDisk::new(), 1);
    let mut cursor = Cursor::default();
    let first = allocate(&space, &mut cursor);
    let second = allocate(&space, &mut cursor);
    assert_eq!(second.id().index, first.id().index + 1);
}

#[test]
fn a_full_disk_is_an_error_and_works_again_with_space() {
    let disk = MemoryDisk::new();
    let space = space(&disk, 1);
    disk.set_capacity(disk.used_bytes() + 4096);
    assert!(space.grow().is_err());
    assert!(!space.try_reserve(1, Purpose::NewRows));
    disk.set_capacity(u64::MAX);
    space.grow().unwrap();
    assert!(space.try_reserve(1, Purpose::NewRows));
}

#[test]
fn all_files_are_used_in_turn() {
    let space = space(&MemoryDisk::new(), 4);
    let mut cursor = Cursor::default();
    let slots: Vec<Slot> = (0..4 * 16 * 64).map(|_| allocate(&space, &mut cursor)).collect();
    let files: HashSet<u16> = slots.iter().map(|slot| slot.id().file).collect();
    assert_eq!(files.len(), 4);
}

#[test]
fn a_data_file_grows_up_to_the_numbers_that_a_slot_can_have() {
    assert_eq!(longer(0), Some(GROWTH_EXTENTS));
    assert_eq!(longer(EXTENTS_MAX - 1), Some(EXTENTS_MAX));
    assert_eq!(longer(EXTENTS_MAX), None);
    let last = SlotId { file: 15, index: (EXTENTS_MAX * EXTENT_SLOTS as u64 - 1) as u32 };
    assert_eq!(SlotId::from_raw(last.to_raw()), Some(last));
    assert_eq!(last.offset() + LEAF_BYTES as u64, 64 << 40);
}

#[test]
fn a_slot_that_there_is_not_or_that_is_named_twice_is_damage() {
    let named = |slots: &[(u16, u32)]| {
        let folders = [PathBuf::from("/data0")];
        let files = DataFiles::create(&MemoryDisk::new(), &folders, 7).unwrap();
        files.grow(0, EXTENT_SLOTS as u64).unwrap();
        let slots: Vec<SlotId> =
            slots.iter().map(|(file, index)| SlotId { file: *file, index: *index }).collect();
        Space::new(files, &slots).map(|_| ())
    };
    named(&[(0, 1), (0, 63)]).unwrap();
    for slots in [&[(0, 64)][..], &[(0, 0)], &[(1, 1)], &[(u16::MAX, u32::MAX)], &[(0, 1), (0, 1)]]
    {
        let error = named(slots).unwrap_err().to_string();
        assert!(error.contains("a slot twice, or one that there is not"), "{slots:?}: {error}");
    }
}
