//! A model of databases that are restored from each other and drain into one table: all states that few steps reach.
//!
//! A step is a row, a backup that is restored as another node, a look at the marks, a claim, or an append. Claims and
//! appends are applied to the table as it is then, as its swap sees to. In every state no row is in the table twice,
//! and all rows below the mark of a database that may still append are.

use std::collections::{BTreeMap, BTreeSet};

use super::{Claimant, ExpectedMark, LostNode, Step, next_step, start_after};
use crate::mark::{Mark, NodeId};

/// Databases at most, and rows of one.
const DATABASES: usize = 3;
const END_MAX: u64 = 4;
/// The LSN of the first row.
const FIRST: u64 = 1;

/// A mistake that the model must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plant {
    None,
    /// The lost nodes are left open.
    LeftOpen,
    /// Only the last of them is closed.
    OldestLeftOpen,
    /// The new node goes on at the mark of the youngest lost node.
    AtMark,
    /// It goes on where it was restored to.
    AtEnd,
    /// It goes on where the marks were when it looked.
    OldLook,
    /// Whoever closed a lost node before is no hindrance.
    TakenTwice,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Database {
    /// Number and history alike.
    number: u32,
    /// The databases that it was restored from.
    lost: Vec<(u32, u64)>,
    /// Its rows are below.
    end: u64,
    /// Where it would begin, by the marks that it looked at.
    start: Option<u64>,
    mark: Option<u64>,
}

impl Database {
    fn lost(&self) -> Vec<LostNode> {
        let lost = |(number, restored_to): &(u32, u64)| LostNode {
            node: NodeId(*number),
            history: (*number).into(),
            restored_to: *restored_to,
        };
        self.lost.iter().map(lost).collect()
    }

    /// The row at an LSN: the database that it was written in, and the LSN.
    fn row(&self, lsn: u64) -> (u32, u64) {
        let written_in = self.lost.iter().find(|(_, restored_to)| lsn < *restored_to);
        (written_in.map_or(self.number, |(number, _)| *number), lsn)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct World {
    databases: Vec<Database>,
    /// LSN, and who closed it.
    marks: BTreeMap<u32, (u64, Option<u32>)>,
    rows: BTreeSet<(u32, u64)>,
}

impl World {
    fn new() -> World {
        let first = Database { number: 1, lost: Vec::new(), end: FIRST, start: None, mark: None };
        World { databases: vec![first], marks: BTreeMap::new(), rows: BTreeSet::new() }
    }

    fn marks(&self) -> BTreeMap<NodeId, Mark> {
        let mark = |(number, (lsn, by)): (&u32, &(u64, Option<u32>))| {
            let mark = Mark::new((*number).into(), 0, *lsn);
            (NodeId(*number), Mark { closed_by: by.map(NodeId), ..mark })
        };
        self.marks.iter().map(mark).collect()
    }

    /// The worlds after one more step, or what is wrong with one.
    fn steps(&self, plant: Plant) -> Result<Vec<World>, String> {
        let mut next = Vec::new();
        for at in 0..self.databases.len() {
            let database = &self.databases[at];
            let change = |change: &dyn Fn(&mut Database)| {
                let mut world = self.clone();
                change(&mut world.databases[at]);
                world
            };
            if database.end < END_MAX {
                next.push(change(&|it| it.end += 1));
            }
            if self.databases.len() < DATABASES {
                let mut world = self.clone();
                let number = self.databases.len() as u32 + 1;
                let mut lost = database.lost.clone();
                lost.push((database.number, database.end));
                let end = database.end;
                world.databases.push(Database { number, lost, end, start: None, mark: None });
                next.push(world);
            }
            match (database.mark, database.start) {
                (Some(_), _) => next.extend(self.append(at)?),
                (None, None) => {
                    let (marks, lost) = (self.marks(), database.lost());
                    let start = start_after(&marks, &lost).unwrap_or(FIRST);
                    let youngest = lost.iter().rev().find_map(|it| marks.get(&it.node));
                    let start = match (plant, youngest) {
                        (Plant::AtMark, Some(mark)) => mark.lsn,
                        (Plant::AtEnd, Some(_)) => lost[lost.len() - 1].restored_to,
                        _ => start,
                    };
                    next.push(change(&|it| it.start = Some(start)));
                }
                (None, Some(start)) => next.push(self.claim(at, start, plant)),
            }
        }
        Ok(next)
    }

    fn claim(&self, at: usize, start_lsn: u64, plant: Plant) -> World {
        let mut world = self.clone();
        let database = &mut world.databases[at];
        let (lost, number) = (database.lost(), database.number);
        let by = Claimant { node: NodeId(number), history: number.into(), nonce: 0, lost: &lost };
        let mut marks = self.marks();
        if plant == Plant::TakenTwice {
            for lost in &lost {
                marks.entry(lost.node).and_modify(|mark| mark.closed_by = None);
            }
        }
        database.start = None;
        let is_wrong = matches!(plant, Plant::AtMark | Plant::AtEnd | Plant::OldLook);
        let start = if is_wrong { start_after(&marks, &lost).unwrap_or(FIRST) } else { start_lsn };
        let Ok(Step::Write { own, closed }) = next_step(&marks, &by, &ExpectedMark::start(start))
        else {
            return world;
        };
        let start = if is_wrong { start_lsn } else { own.after.lsn };
        database.mark = Some(start);
        world.marks.insert(number, (start, None));
        let skipped = match plant {
            Plant::LeftOpen => closed.len(),
            Plant::OldestLeftOpen => closed.len().saturating_sub(1),
            _ => 0,
        };
        let skip_from = if plant == Plant::OldestLeftOpen { 0 } else { closed.len() - skipped };
        for (place, change) in closed.iter().enumerate() {
            if !(skip_from..skip_from + skipped).contains(&place) {
                let by = change.after.closed_by.map(|by| by.0);
                world.marks.insert(change.node.0, (change.after.lsn, by));
            }
        }
        world
    }

    /// If its mark is where it left it.
    fn append(&self, at: usize) -> Result<Option<World>, String> {
        let database = &self.databases[at];
        let mark = database.mark.map(|mark| (mark, None));
        let Some((from, _)) = mark.filter(|_| self.marks.get(&database.number) == mark.as_ref())
        else {
            return Ok(None);
        };
        if from == database.end {
            return Ok(None);
        }
        let mut world = self.clone();
        for lsn in from..database.end {
            if !world.rows.insert(database.row(lsn)) {
                return Err(format!("row {:?} comes twice: {self:?}", database.row(lsn)));
            }
        }
        world.databases[at].mark = Some(database.end);
        world.marks.insert(database.number, (database.end, None));
        Ok(Some(world))
    }

    /// All rows below the mark of a database are there.
    fn check(&self) -> Result<(), String> {
        for database in &self.databases {
            let below = FIRST..database.mark.unwrap_or(FIRST);
            for row in below.map(|lsn| database.row(lsn)) {
                if !self.rows.contains(&row) {
                    return Err(format!("row {row:?} is missing: {self:?}"));
                }
            }
        }
        Ok(())
    }
}

/// How many states so many steps reach, or what is wrong with one of them.
fn explore(steps: usize, plant: Plant) -> Result<usize, String> {
    let mut known = BTreeSet::from([World::new()]);
    let mut newest: Vec<World> = known.iter().cloned().collect();
    for _ in 0..steps {
        let mut next = Vec::new();
        for world in &newest {
            for world in world.steps(plant)? {
                if known.insert(world.clone()) {
                    world.check()?;
                    next.push(world);
                }
            }
        }
        newest = next;
    }
    Ok(known.len())
}

#[test]
fn no_row_comes_twice_or_not_at_all_in_all_that_few_steps_reach() {
    let states = explore(11, Plant::None).unwrap();
    assert!(states > 10_000, "only {states} states");
}

#[test]
fn the_model_finds_the_mistakes_that_are_planted() {
    let plants = [
        Plant::LeftOpen,
        Plant::OldestLeftOpen,
        Plant::AtMark,
        Plant::AtEnd,
        Plant::OldLook,
        Plant::TakenTwice,
    ];
    for plant in plants {
        assert!(explore(11, plant).is_err(), "{plant:?} is not found");
    }
}
