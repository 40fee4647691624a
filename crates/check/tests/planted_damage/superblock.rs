//! Damage in the superblock file and in the header of the data file.

use onrush_check::Invariant;

use crate::{Case, Kind, kind};

pub fn kinds() -> Vec<Kind> {
    use Invariant::{DataFileHeader, Folders, SuperblockFields, SuperblockTurns};
    let mut kinds = counters();
    kinds.extend([
        kind("a generation skipped", SuperblockTurns, |case| {
            field(case, 16, |generation, dice| generation + 2 * (1 + dice % 100))
        }),
        kind("a copy in the other's place", SuperblockTurns, |case| {
            case.model.copies.swap(0, 1);
            case.model.save_superblock();
            true
        }),
        kind("a checkpoint number that went back", SuperblockTurns, |case| {
            field(case, 24, |checkpoint, dice| 1 + dice % (checkpoint - 2))
        }),
        kind("an incarnation that went back", SuperblockTurns, |case| {
            let older = 1 - case.model.newest();
            change(&mut case.model.copies[older], 32, |incarnation| incarnation + 1);
            case.model.save_superblock();
            true
        }),
        kind("E below C", SuperblockFields, |case| {
            field(case, 40, |end, dice| end - 1 - dice % (end / 2))
        }),
        kind("C where no block can start", SuperblockFields, |case| {
            field(case, 64, |offset, dice| offset + 1 + dice % 4095)
        }),
        kind("a root without a checkpoint", SuperblockFields, |case| {
            for copy in &mut case.model.copies {
                change(copy, 24, |_| 0);
            }
            case.model.save_superblock();
            true
        }),
        kind("bytes behind the superblock's fields", SuperblockFields, |case| {
            let at = 105 + case.random.below(3900);
            let newest = case.model.newest();
            case.model.copies[newest][at] = 1;
            case.model.save_superblock();
            true
        }),
        kind("too many folders", Folders, |case| {
            let count = 17 + case.random.below(200) as u8;
            case.model.change_folders(|body| body[0] = count);
            true
        }),
        kind("a folder that is no text", Folders, |case| {
            // The second path is the log's folder, behind the empty one of the data.
            case.model.change_folders(|body| body[5] = 0xFF);
            true
        }),
        kind("the header of another data file", DataFileHeader, |case| {
            let number = 1 + case.random.below(15) as u8;
            case.model.change_data_header(|header| header[32] = number);
            true
        }),
        kind("the header of another database", DataFileHeader, |case| {
            let at = 16 + case.random.below(16);
            case.model.change_data_header(|header| header[at] ^= 0x40);
            true
        }),
    ]);
    kinds
}

/// Each counter where counting cannot get: at its end, or as far as opening refuses.
fn counters() -> Vec<Kind> {
    use Invariant::CountersPossible;
    vec![
        kind("a generation at its end", CountersPossible, |case| {
            // Each copy in its place, whatever the dice say.
            let (newest, high) = (case.model.newest(), impossible(case.random.next()) & !1);
            change(&mut case.model.copies[newest], 16, |old| high | old & 1);
            case.model.save_superblock();
            true
        }),
        kind("a checkpoint's number at its end", CountersPossible, |case| at_its_end(case, 24)),
        kind("an incarnation at its end", CountersPossible, |case| at_its_end(case, 32)),
        kind("E at its end", CountersPossible, |case| at_its_end(case, 40)),
        kind("C at its end", CountersPossible, |case| at_its_end(case, 48)),
        kind("a log segment at its end", CountersPossible, |case| at_its_end(case, 56)),
        kind("an offset of C at its end", CountersPossible, |case| at_its_end(case, 64)),
        kind("an incarnation of C at its end", CountersPossible, |case| at_its_end(case, 72)),
        kind("all counters of both copies at their ends", CountersPossible, |case| {
            for copy in &mut case.model.copies {
                for at in [16, 24, 32, 40, 48, 56, 64, 72] {
                    change(copy, at, |_| u64::MAX);
                }
            }
            case.model.save_superblock();
            true
        }),
    ]
}

fn at_its_end(case: &mut Case, at: usize) -> bool {
    field(case, at, |_, dice| impossible(dice))
}

/// A number from 2^61 on; both ends come up.
fn impossible(dice: u64) -> u64 {
    match dice % 4 {
        0 => u64::MAX,
        1 => 1 << 61,
        _ => dice | 1 << 61,
    }
}

/// Changes an eight-byte field of the newest copy.
fn field(case: &mut Case, at: usize, new: impl Fn(u64, u64) -> u64) -> bool {
    let dice = case.random.next();
    let newest = case.model.newest();
    change(&mut case.model.copies[newest], at, |old| new(old, dice));
    case.model.save_superblock();
    true
}

fn change(body: &mut [u8], at: usize, new: impl Fn(u64) -> u64) {
    let old = u64::from_le_bytes(body[at..at + 8].try_into().unwrap());
    body[at..at + 8].copy_from_slice(&new(old).to_le_bytes());
}
