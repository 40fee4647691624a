//! Damage planted with every checksum repaired, so that only what the bytes say is wrong: each kind is
//! reported under its invariant, wherever it is planted.
//!
//! A few seeds of each kind here; all of them with
//! `ONRUSH_DAMAGE_SEEDS=1000 cargo test --release -p onrush-check --test planted_damage`.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/model.rs"]
mod model;

mod directory;
mod images;
mod log;
mod rows;
mod superblock;

use common::{Left, check_with, sample};
use model::{LogModel, Model, Table};
use onrush_check::{CheckOptions, Invariant};
use onrush_files::MemoryDisk;

/// A database to be damaged, and the dice.
struct Case {
    model: Model,
    log: LogModel,
    random: Random,
}

/// One kind of damage. The planting returns false where these dice offer no place for it.
struct Kind {
    name: &'static str,
    left: Left,
    invariant: Invariant,
    plant: fn(&mut Case) -> bool,
}

/// In a closed database.
const fn kind(name: &'static str, invariant: Invariant, plant: fn(&mut Case) -> bool) -> Kind {
    Kind { name, left: Left::Closed, invariant, plant }
}

/// In a database whose log goes on behind the checkpoint.
const fn log_kind(name: &'static str, invariant: Invariant, plant: fn(&mut Case) -> bool) -> Kind {
    Kind { name, left: Left::Dropped, invariant, plant }
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// A table, one of its segments and one of its leaves, by index.
type LeafPlace = (usize, usize, usize);

impl Case {
    /// A leaf that has an image with two rows at least.
    fn leaf(&mut self) -> LeafPlace {
        self.leaf_of(|_| true)
    }

    fn leaf_of(&mut self, wanted: impl Fn(&Table) -> bool) -> LeafPlace {
        loop {
            let table = self.random.below(self.model.tables.len());
            let segments = &self.model.tables[table].segments;
            let segment = self.random.below(segments.len());
            let leaf = self.random.below(segments[segment].leaves.len());
            let slot = segments[segment].leaves[leaf].slot;
            if slot != model::NONE
                && wanted(&self.model.tables[table])
                && self.model.image(slot).rows.len() > 2
            {
                return (table, segment, leaf);
            }
        }
    }

    fn slot(&self, (table, segment, leaf): LeafPlace) -> u64 {
        self.model.tables[table].segments[segment].leaves[leaf].slot
    }

    /// The index of a table with several leaves that have images.
    fn wide_table(&mut self) -> usize {
        loop {
            let table = self.random.below(self.model.tables.len());
            let leaves = self.model.tables[table].segments.iter().flat_map(|part| &part.leaves);
            if leaves.filter(|leaf| leaf.slot != model::NONE).count() > 3 {
                return table;
            }
        }
    }
}

fn seeds() -> u64 {
    match std::env::var("ONRUSH_DAMAGE_SEEDS") {
        Ok(text) => text.parse().expect("ONRUSH_DAMAGE_SEEDS is a number"),
        Err(_) => 4,
    }
}

fn kinds() -> Vec<Kind> {
    let mut kinds = superblock::kinds();
    kinds.extend(directory::kinds());
    kinds.extend(images::kinds());
    kinds.extend(rows::kinds());
    kinds.extend(log::kinds());
    kinds
}

#[test]
fn every_kind_of_damage_is_reported_under_its_invariant() {
    let options = CheckOptions { dop: 1, max_errors: 10_000, ..CheckOptions::default() };
    let mut missed = Vec::new();
    let (mut planted, kinds) = (0, kinds());
    for left in [Left::Closed, Left::Dropped] {
        let disk = MemoryDisk::new();
        sample(&disk, 900, left);
        assert!(check_with(&disk, &options).is_sound());
        for kind in kinds.iter().filter(|kind| kind.left == left) {
            for seed in 1..=seeds() {
                let model = Model::load(&disk, &common::folder());
                let log = LogModel::load(&model);
                let mut case = Case { model, log, random: Random(seed) };
                while !(kind.plant)(&mut case) {
                    case.model.undo();
                    case.model = Model::load(&disk, &common::folder());
                    case.log = LogModel::load(&case.model);
                }
                let report = check_with(&disk, &options);
                if !report.findings.iter().any(|found| found.invariant == kind.invariant) {
                    missed.push(format!("{}, seed {seed}", kind.name));
                    println!("{} of seed {seed}: {report}\n", kind.name);
                }
                planted += 1;
                case.model.undo();
            }
            assert!(check_with(&disk, &options).is_sound(), "{} left something", kind.name);
        }
    }
    println!("{} kinds of damage, {planted} planted, {} missed", kinds.len(), missed.len());
    assert!(missed.is_empty(), "missed: {missed:?}");
    let reported: Vec<Invariant> = kinds.iter().map(|kind| kind.invariant).collect();
    let untested = Invariant::ALL.iter().filter(|invariant| !reported.contains(invariant));
    // A missing file is another test's; see below.
    let elsewhere = [
        Invariant::SuperblockReadable,
        Invariant::DataFileReadable,
        Invariant::SegmentReadable,
        Invariant::SuperblockCopies,
        Invariant::PageWhole,
        Invariant::ImageWhole,
        // Of an open database: a test of the engine.
        Invariant::LiveAsStored,
        // The same, and under planted faults.
        Invariant::IndexFollowsRows,
        Invariant::LongValuesWhole,
        Invariant::LongValuesFollowRows,
        // Of key ranges with a stock: the same.
        Invariant::RunHeadDecodes,
        Invariant::RunsFit,
        Invariant::RunAddsUp,
        Invariant::RunKnowsKeys,
    ];
    let untested: Vec<_> = untested.filter(|invariant| !elsewhere.contains(invariant)).collect();
    assert!(untested.is_empty(), "no kind of damage for {untested:?}");
}
