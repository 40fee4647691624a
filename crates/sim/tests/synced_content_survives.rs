//! In every mode, at every boundary, a byte of a crash image is the synced one or one written
//! since, never anything else.

use std::path::Path;
use std::sync::Arc;

use onrush_files::{Disk, DiskFile, OpenMode};
use onrush_sim::{CrashDisk, CrashMode, Operation, Random, Sweep};

const PATH: &str = "/data/file";
const FILE_BYTES: usize = 20_000;

/// For each byte of the file, the values it may have after a power cut.
struct Allowed {
    values: Vec<Vec<u8>>,
    writes: Vec<(usize, usize, usize, u8)>, // number, start, end, value; not durable
}

impl Allowed {
    fn follow(&mut self, number: usize, operation: &Operation) {
        match operation {
            Operation::Write { offset, bytes, .. } => {
                let start = usize::try_from(*offset).expect("a small file");
                let end = start + bytes.len();
                for values in &mut self.values[start..end] {
                    values.push(bytes[0]);
                }
                self.writes.push((number, start, end, bytes[0]));
            }
            Operation::MakeDurable { write, .. } => {
                let found = self.writes.iter().find(|found| found.0 == *write);
                let (_, start, end, value) = *found.expect("the write comes first");
                for values in &mut self.values[start..end] {
                    let from = values.iter().rposition(|known| *known == value);
                    values.drain(..from.expect("the value was allowed"));
                }
            }
            Operation::Sync { .. } => {
                for values in &mut self.values {
                    let last = values.pop().expect("never empty");
                    *values = vec![last];
                }
            }
            _ => {}
        }
    }

    fn check(&self, sweep: &Sweep, mode: CrashMode, seed: u64) {
        let disk = sweep.image(mode, seed);
        let Ok(file) = disk.open(Path::new(PATH), OpenMode::ReadOnly) else {
            panic!("the name was durable");
        };
        let len = usize::try_from(file.len().expect("a length")).expect("a small file");
        let mut bytes = vec![0; len];
        file.read_at(&mut bytes, 0).expect("the whole file");
        bytes.resize(FILE_BYTES, 0); // what is not there counts as zero
        let wrong =
            bytes.iter().zip(&self.values).position(|(byte, allowed)| !allowed.contains(byte));
        assert_eq!(wrong, None, "boundary {}, {mode:?}, seed {seed}", sweep.at_operation());
    }
}

fn run(seed: u64) -> CrashDisk {
    let disk = CrashDisk::new();
    disk.create_folder(Path::new("/data")).expect("an empty disk");
    let file = disk.open(Path::new(PATH), OpenMode::CreateNew).expect("an empty folder");
    disk.sync_folder(Path::new("/data")).expect("the folder");
    disk.forget_history();
    let mut random = Random::new(seed);
    for value in 1..=60 {
        step(&mut random, file.as_ref(), value);
    }
    disk
}

fn step(random: &mut Random, file: &dyn DiskFile, value: u8) {
    let len = 1 + random.below(6000);
    let offset = random.below(FILE_BYTES as u64 - len);
    let bytes = vec![value; usize::try_from(len).expect("a small write")];
    match random.below(8) {
        0..4 => file.write_at(&bytes, offset).expect("no faults"),
        4..6 => file.write_at_durable(&bytes, offset).expect("no faults"),
        6 => file.allocate(offset + len).expect("no faults"),
        _ => file.sync().expect("no faults"),
    }
}

#[test]
fn every_byte_of_every_image_is_allowed() {
    for seed in 0..20 {
        let disk = run(seed);
        let mut sweep = disk.sweep();
        let mut allowed = Allowed { values: vec![vec![0]; FILE_BYTES], writes: Vec::new() };
        while sweep.advance() {
            let operation = sweep.done().expect("one was done").clone();
            allowed.follow(sweep.at_operation() - 1, &operation);
            for mode in CrashMode::ALL {
                if mode != CrashMode::Garbage {
                    allowed.check(&sweep, mode, seed);
                }
            }
        }
    }
}

#[test]
fn a_sweep_and_a_single_image_agree() {
    let disk = run(7);
    let mut sweep = disk.sweep();
    while sweep.advance() {
        let at = sweep.at_operation();
        if at.is_multiple_of(10) || at == disk.operation_count() {
            for (mode, image) in sweep.images(3) {
                let single = disk.crash_image(at, mode, 3);
                assert_eq!(whole(&image), whole(&single), "boundary {at}, {mode:?}");
            }
        }
    }
    assert_eq!(sweep.at_operation(), disk.operation_count());
    let end = sweep.image(CrashMode::AllKept, 0);
    assert_eq!(whole(&end), whole(&disk), "all kept at the end is what reads showed");
}

fn whole(disk: &CrashDisk) -> Vec<u8> {
    let file: Arc<dyn DiskFile> =
        disk.open(Path::new(PATH), OpenMode::ReadOnly).expect("the name was durable");
    let mut bytes = vec![0; usize::try_from(file.len().expect("a length")).expect("small")];
    file.read_at(&mut bytes, 0).expect("the whole file");
    bytes
}
