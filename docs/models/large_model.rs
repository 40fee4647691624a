//! A miniature of large transactions: pieces in the log, intents in leaves and images, one record that commits,
//! a table of outcomes in the directory, a sweep, checkpoints with eviction between, crashes, redo.
//!
//! ```text
//! rustc --edition 2024 -O docs/models/large_model.rs -o /tmp/large_model && /tmp/large_model 200000
//! ```
//!
//! Random schedules by number: first without a fault, then each planted fault until it is found. What must be
//! true: whoever reads sees exactly what the log up to now says; and after a crash at any step, with the log cut
//! anywhere at or above what is durable, recovery gives exactly what the log that is left says. What a log says
//! needs no leaf: rows at their place, and the pieces of a transaction at the place of its commit.

use std::collections::{BTreeMap, BTreeSet};

const KEYS: usize = 4;
const LEAVES: usize = 2;
type Value = Option<u64>;
type State = [Value; KEYS];

#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Cell {
    row: Option<(usize, u64)>,
    intent: Option<(OwnerCell, Value)>,
}

type OwnerCell = u64; // 0: a small transaction; else the number of a large one

#[derive(Clone, Copy, Default, Debug)]
struct Leaf {
    /// None: on disk only.
    cells: Option<[Cell; KEYS / LEAVES]>,
    image: [Cell; KEYS / LEAVES],
    dirty_epoch: u64,
}

#[derive(Clone, Copy, Debug)]
enum Record {
    Row(usize, Value),
    Piece(u64, usize, Value),
    TakeBack(u64, usize),
    Commit(u64),
}

#[derive(Clone, Default, Debug)]
struct Directory {
    start: usize,
    end: usize,
    images: [[Cell; KEYS / LEAVES]; LEAVES],
    outcomes: BTreeMap<u64, usize>,
    next: u64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    StatusesNotStored,
    StatusForgottenEarly,
    PieceNotRedone,
    CommitNotLogged,
    AbortedAsCommitted,
    SweepNotDirty,
    SmallIntentImaged,
    NumberGivenTwice,
    VerdictBeforePieces,
    TakeBackNotRedone,
}

const FAULTS: [Fault; 10] = [
    Fault::StatusesNotStored,
    Fault::StatusForgottenEarly,
    Fault::PieceNotRedone,
    Fault::CommitNotLogged,
    Fault::AbortedAsCommitted,
    Fault::SweepNotDirty,
    Fault::SmallIntentImaged,
    Fault::NumberGivenTwice,
    Fault::VerdictBeforePieces,
    Fault::TakeBackNotRedone,
];

struct Random(u64);

impl Random {
    fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % count
    }
}

/// What an intent means.
#[derive(PartialEq)]
enum Meaning {
    Pending,
    Aborted,
    Committed(usize),
}

struct Checkpoint {
    start: usize,
    epoch: u64,
    left: Vec<usize>,
    swept: BTreeSet<u64>,
}

struct World {
    fault: Fault,
    leaves: [Leaf; LEAVES],
    log: Vec<Record>,
    durable: usize,
    /// Committed large transactions, and those that were swept.
    outcomes: BTreeMap<u64, usize>,
    swept: BTreeSet<u64>,
    open: BTreeMap<u64, Vec<(usize, Option<Value>)>>,
    next: u64,
    /// The small transaction that has placed an intent on this key.
    small: Option<(usize, Value)>,
    sweeping: Option<(u64, usize)>,
    epoch: u64,
    checkpoint: Option<Checkpoint>,
    installed: Directory,
    recovering: bool,
    values: u64,
}

/// What a log says.
fn told(log: &[Record]) -> State {
    let mut state = State::default();
    let mut pieces: BTreeMap<u64, BTreeMap<usize, Value>> = BTreeMap::new();
    for record in log {
        match *record {
            Record::Row(key, value) => state[key] = value,
            Record::Piece(id, key, value) => drop(pieces.entry(id).or_default().insert(key, value)),
            Record::TakeBack(id, key) => drop(pieces.entry(id).or_default().remove(&key)),
            Record::Commit(id) => {
                for (key, value) in pieces.remove(&id).unwrap_or_default() {
                    state[key] = value;
                }
            }
        }
    }
    state
}

impl World {
    fn new(fault: Fault) -> World {
        let installed = Directory { next: 1, ..Directory::default() };
        World {
            fault,
            leaves: Default::default(),
            log: Vec::new(),
            durable: 0,
            outcomes: BTreeMap::new(),
            swept: BTreeSet::new(),
            open: BTreeMap::new(),
            next: 1,
            small: None,
            sweeping: None,
            epoch: 1,
            checkpoint: None,
            installed,
            recovering: false,
            values: 0,
        }
    }

    fn meaning(&self, owner: OwnerCell) -> Meaning {
        match self.outcomes.get(&owner) {
            _ if owner == 0 => Meaning::Pending,
            Some(lsn) => Meaning::Committed(*lsn),
            None if self.open.contains_key(&owner) || self.recovering => Meaning::Pending,
            None if self.fault == Fault::AbortedAsCommitted => Meaning::Committed(self.log.len()),
            None => Meaning::Aborted,
        }
    }

    fn load(&mut self, key: usize) -> &mut Cell {
        let leaf = &mut self.leaves[key / 2];
        let image = leaf.image;
        &mut leaf.cells.get_or_insert(image)[key % 2]
    }

    fn dirty(&mut self, leaf: usize) {
        if self.leaves[leaf].dirty_epoch == 0 {
            self.leaves[leaf].dirty_epoch = self.epoch;
        }
    }

    /// Folds what has an outcome. Whoever folds makes the leaf dirty, unless it is imaged at once.
    fn fold(&mut self, key: usize, makes_dirty: bool) {
        let Some((owner, value)) = self.load(key).intent else { return };
        match self.meaning(owner) {
            Meaning::Pending => return,
            Meaning::Aborted => self.load(key).intent = None,
            Meaning::Committed(lsn) => {
                *self.load(key) = Cell { row: value.map(|value| (lsn, value)), intent: None }
            }
        }
        if makes_dirty && self.fault != Fault::SweepNotDirty {
            self.dirty(key / 2);
        }
    }

    fn seen(&mut self, key: usize) -> Value {
        let cell = *self.load(key);
        if let Some((owner, value)) = cell.intent
            && let Meaning::Committed(_) = self.meaning(owner)
        {
            return value;
        }
        cell.row.map(|(_, value)| value)
    }

    fn image(&mut self, leaf: usize) {
        for key in leaf * 2..leaf * 2 + 2 {
            self.fold(key, false);
        }
        let mut image = self.leaves[leaf].cells.unwrap_or(self.leaves[leaf].image);
        let mut stays = false;
        for cell in &mut image {
            if let Some((0, value)) = cell.intent {
                stays = true;
                cell.intent = None;
                if self.fault == Fault::SmallIntentImaged {
                    // Its number means another transaction after a crash.
                    cell.row = value.map(|value| (1, value));
                }
            }
        }
        self.leaves[leaf].image = image;
        self.leaves[leaf].dirty_epoch = if stays { self.epoch } else { 0 };
    }

    /// Places something and logs it: two steps in life, between which a leaf may be imaged.
    fn place(&mut self, id: u64, key: usize, value: Value) {
        self.fold(key, true);
        if self.load(key).intent.is_some_and(|(owner, _)| owner != id) {
            return;
        }
        self.dirty(key / 2);
        let before = self.load(key).intent.map(|(_, value)| value);
        self.load(key).intent = Some((id, value));
        self.open.get_mut(&id).unwrap().push((key, before));
    }

    fn step(&mut self, random: &mut Random) {
        let key = random.below(KEYS as u64) as usize;
        let leaf = key / 2;
        self.values += 1;
        let value = (random.below(3) > 0).then_some(self.values);
        let some_open = |world: &World, random: &mut Random| {
            let count = world.open.len() as u64;
            (count > 0).then(|| *world.open.keys().nth(random.below(count) as usize).unwrap())
        };
        match random.below(16) {
            0 if self.open.len() < 2 => {
                self.open.insert(self.next, Vec::new());
                self.next += 1;
            }
            1 | 2 => {
                let Some(id) = some_open(self, random) else { return };
                self.place(id, key, value);
                let stands = self.load(key).intent == Some((id, value));
                if random.below(4) == 0 {
                    // An eviction between placing and logging.
                    self.image(leaf);
                }
                if stands {
                    self.log.push(Record::Piece(id, key, value));
                }
            }
            3 => {
                // Back to where the transaction was before its last change.
                let Some(id) = some_open(self, random) else { return };
                let Some((key, before)) = self.open.get_mut(&id).unwrap().pop() else { return };
                self.dirty(key / 2);
                self.load(key).intent = before.map(|value| (id, value));
                self.log.push(match before {
                    Some(value) => Record::Piece(id, key, value),
                    None => Record::TakeBack(id, key),
                });
            }
            4 => {
                let Some(id) = some_open(self, random) else { return };
                self.open.remove(&id);
                if random.below(3) == 0 {
                    return;
                }
                self.log.push(Record::Commit(id));
                self.outcomes.insert(id, self.log.len());
            }
            5 | 6 if self.small.is_none() => {
                self.fold(key, true);
                if self.load(key).intent.is_none() {
                    self.dirty(leaf);
                    self.load(key).intent = Some((0, value));
                    self.small = Some((key, value));
                }
            }
            7 | 8 => {
                let Some((key, value)) = self.small.take() else { return };
                self.dirty(key / 2);
                self.log.push(Record::Row(key, value));
                let lsn = self.log.len();
                *self.load(key) = Cell { row: value.map(|value| (lsn, value)), intent: None };
            }
            9 => {
                if self.leaves[leaf].dirty_epoch != 0 {
                    self.image(leaf);
                }
                if self.leaves[leaf].dirty_epoch == 0 {
                    self.leaves[leaf].cells = None;
                }
            }
            10 => match self.sweeping.take() {
                None => {
                    let unswept = self.outcomes.keys().find(|id| !self.swept.contains(id));
                    self.sweeping = unswept.map(|id| (*id, 0));
                }
                Some((id, LEAVES)) => drop(self.swept.insert(id)),
                Some((id, leaf)) => {
                    self.fold(leaf * 2, true);
                    self.fold(leaf * 2 + 1, true);
                    self.sweeping = Some((id, leaf + 1));
                }
            },
            11 if self.checkpoint.is_none() => {
                let start = self.log.len();
                let swept = match self.fault {
                    Fault::StatusForgottenEarly => self.outcomes.keys().copied().collect(),
                    _ => self.swept.clone(),
                };
                self.epoch += 1;
                let epoch = self.epoch;
                let left = (0..LEAVES).collect();
                self.checkpoint = Some(Checkpoint { start, epoch, left, swept });
            }
            12 | 13 => {
                let Some(checkpoint) = &mut self.checkpoint else { return };
                let epoch = checkpoint.epoch;
                if let Some(leaf) = checkpoint.left.pop() {
                    let due = self.leaves[leaf].dirty_epoch;
                    if due != 0 && due < epoch {
                        self.image(leaf);
                    }
                    return;
                }
                let Checkpoint { start, swept, .. } = self.checkpoint.take().unwrap();
                let stored = self.outcomes.iter().filter(|(id, _)| !swept.contains(id));
                let stored = stored.map(|(id, lsn)| (*id, *lsn)).collect();
                self.durable = self.log.len();
                self.installed = Directory {
                    start,
                    end: self.log.len(),
                    images: self.leaves.map(|leaf| leaf.image),
                    outcomes: stored,
                    next: if self.fault == Fault::NumberGivenTwice { 1 } else { self.next },
                };
                if self.fault == Fault::StatusesNotStored {
                    self.installed.outcomes.clear();
                }
                self.outcomes.retain(|id, _| !swept.contains(id));
                self.swept.retain(|id| !swept.contains(id));
            }
            14 => self.durable = self.log.len(),
            _ => {}
        }
    }

    /// Recovery from what a power cut leaves: some of the log, and the installed directory.
    fn recovered(&self, cut: usize) -> World {
        let mut log = self.log[..cut].to_vec();
        let Directory { start, images, outcomes, next, .. } = self.installed.clone();
        let mut world = World::new(self.fault);
        (world.installed, world.next, world.recovering) = (self.installed.clone(), next, true);
        world.leaves = images.map(|image| Leaf { image, ..Leaf::default() });
        // The log has the outcomes that came behind C, and pieces before them.
        let early = self.fault == Fault::VerdictBeforePieces;
        world.outcomes = outcomes.into_iter().filter(|(_, lsn)| early || *lsn <= start).collect();
        if self.fault == Fault::CommitNotLogged {
            log.retain(|record| !matches!(record, Record::Commit(_)));
        }
        for (at, record) in log.iter().enumerate().skip(start) {
            let lsn = at + 1;
            match *record {
                Record::Piece(id, ..) if self.fault == Fault::PieceNotRedone => {
                    world.next = world.next.max(id + 1);
                }
                Record::TakeBack(..) if self.fault == Fault::TakeBackNotRedone => {}
                Record::Row(key, value) => {
                    world.fold(key, true);
                    let cell = world.load(key);
                    if cell.row.is_none_or(|(known, _)| known < lsn) {
                        cell.row = value.map(|value| (lsn, value));
                        world.dirty(key / 2);
                    }
                }
                Record::Piece(id, key, value) => {
                    world.next = world.next.max(id + 1);
                    world.fold(key, true);
                    if world.load(key).row.is_none_or(|(known, _)| known < lsn) {
                        world.load(key).intent = Some((id, value));
                        world.dirty(key / 2);
                    }
                }
                Record::TakeBack(id, key) => {
                    world.fold(key, true);
                    if world.load(key).intent.is_some_and(|(owner, _)| owner == id) {
                        world.load(key).intent = None;
                        world.dirty(key / 2);
                    }
                }
                Record::Commit(id) => {
                    // It may have no piece behind C, or none at all.
                    world.next = world.next.max(id + 1);
                    world.outcomes.insert(id, lsn);
                }
            }
        }
        world.log = self.log[..cut].to_vec();
        (world.durable, world.recovering) = (cut, false);
        world
    }

    fn check(&mut self) -> Result<(), String> {
        let expected = told(&self.log);
        let seen: State = std::array::from_fn(|key| self.seen(key));
        if seen == expected {
            Ok(())
        } else {
            Err(format!("{seen:?} is seen, {expected:?} is logged"))
        }
    }
}

fn run(seed: u64, fault: Fault) -> Result<(), String> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut world = World::new(fault);
    for _ in 0..4 {
        for _ in 0..random.below(120) {
            world.step(&mut random);
            world.check()?;
            if random.below(8) == 0 {
                let least = world.durable.max(world.installed.end);
                let cut = least + random.below((world.log.len() - least + 1) as u64) as usize;
                world.recovered(cut).check().map_err(|found| format!("after a crash: {found}"))?;
            }
        }
        let least = world.durable.max(world.installed.end);
        let cut = least + random.below((world.log.len() - least + 1) as u64) as usize;
        world = world.recovered(cut);
        world.check()?;
    }
    Ok(())
}

fn main() {
    let runs = std::env::args().nth(1).and_then(|runs| runs.parse().ok()).unwrap_or(100_000);
    for seed in 1..=runs {
        if let Err(found) = run(seed, Fault::None) {
            println!("schedule {seed}: {found}");
            std::process::exit(1);
        }
    }
    println!("{runs} schedules without a fault: nothing found");
    let mut missed = 0;
    for fault in FAULTS {
        match (1..=runs).find_map(|seed| Some((seed, run(seed, fault).err()?))) {
            Some((seed, found)) => println!("{fault:?}: schedule {seed}: {found}"),
            None => {
                println!("{fault:?}: not found");
                missed += 1;
            }
        }
    }
    std::process::exit(missed);
}
