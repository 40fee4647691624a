//! Three nodes, predecessors that live on, and a catalogue that fails at random: at any time the
//! table holds exactly the rows below the marks.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use iceberg::spec::DataFile;
use onrush_lake::{Confirmed, ExpectedMark, LakeError, NodeId, Verdict};
use world::*;

const SEEDS: u64 = 8;
const STEPS: usize = 60;
/// Reading the whole table takes longer than a step.
const STEPS_UNTIL_CHECK: usize = 12;
const NODES: u32 = 3;
/// Shorter than what [`AWAY_LOADS`] failures take.
const IMPATIENCE: Duration = Duration::from_secs(2);
const AWAY_LOADS: u64 = 12;

/// SplitMix64: a seed is a schedule.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn fault(&mut self) -> Fault {
        match self.below(12) {
            0 => Fault::LoseRequest,
            1 => Fault::LoseAnswer,
            2 => Fault::Twice,
            3 => Fault::Delay,
            4 => Fault::AfterDelayed,
            5 => Fault::Lie,
            6 => Fault::Hang,
            _ => Fault::None,
        }
    }
}

/// A process, and the round that it has not heard the end of.
struct Running {
    process: Process,
    pending: Option<Pending>,
}

struct Pending {
    to_lsn: u64,
    files: Vec<DataFile>,
    /// The verdict must be asked for before anything else.
    is_unknown: bool,
}

struct Run {
    catalogue: Arc<FaultyCatalogue>,
    chance: Chance,
    running: BTreeMap<u32, Running>,
    predecessors: Vec<Running>,
    /// What each node noted, first to last. A crash may lose the last notes.
    notes: BTreeMap<u32, Vec<Confirmed>>,
    rounds: usize,
}

impl Run {
    async fn new(seed: u64) -> Run {
        let catalogue = Arc::new(FaultyCatalogue::new());
        let (mut running, mut notes) = (BTreeMap::new(), BTreeMap::new());
        for node in 0..NODES {
            let process = start(&catalogue, node).await;
            notes.insert(node, vec![process.confirmed]);
            running.insert(node, Running { process, pending: None });
        }
        let (chance, predecessors) = (Chance(seed), Vec::new());
        Run { catalogue, chance, running, predecessors, notes, rounds: 0 }
    }

    async fn step(&mut self) {
        let node = self.chance.below(NODES.into()) as u32;
        match self.chance.below(20) {
            0..10 => self.round(node, true).await,
            10..13 => self.replace(node).await,
            13..16 => self.predecessor().await,
            16..18 => drop(self.catalogue.release().await),
            18 => expire(&self.catalogue).await,
            _ => {
                let base = table(&self.catalogue).await;
                commit_blindly(&*self.catalogue, &base, &[], None).await.unwrap();
            }
        }
    }

    async fn round(&mut self, node: u32, may_fail: bool) {
        let running = self.running.get_mut(&node).unwrap();
        if may_fail {
            self.catalogue.fail_commits([self.chance.fault()]).await;
            if self.chance.below(6) == 0 {
                let loads = self.chance.below(AWAY_LOADS) as usize;
                self.catalogue.fail_loads_after_commit(loads).await;
            }
        }
        let rows = 1 + self.chance.below(6);
        match running.attempt(rows).await {
            Ok(Some(confirmed)) => {
                self.rounds += 1;
                self.notes.get_mut(&node).unwrap().push(confirmed);
            }
            Ok(None) | Err(LakeError::Away { .. }) => {}
            Err(error) => panic!("the only process of node {node} stopped: {error}"),
        }
        self.catalogue.heal().await;
    }

    /// A node is opened again while the process before lives on.
    async fn replace(&mut self, node: u32) {
        let notes = self.notes.get_mut(&node).unwrap();
        let expected = match self.chance.below(4) {
            0 => ExpectedMark::start(START),
            1 if notes.len() > 1 => {
                notes.pop();
                ExpectedMark::Confirmed(notes[notes.len() - 1])
            }
            _ => ExpectedMark::Confirmed(notes[notes.len() - 1]),
        };
        self.catalogue.fail_commits([self.chance.fault()]).await;
        let process = claim(&self.catalogue, node, expected).await;
        self.catalogue.heal().await;
        // A claim that hangs has used up its time, and is simply made again.
        let process = match process {
            Err(LakeError::Away { .. }) => claim(&self.catalogue, node, expected).await,
            other => other,
        };
        let process = process.unwrap();
        notes.push(process.confirmed);
        let before = self.running.insert(node, Running { process, pending: None });
        self.predecessors.extend(before);
    }

    async fn predecessor(&mut self) {
        let Some(last) = self.predecessors.len().checked_sub(1) else { return };
        let place = self.chance.below(last as u64 + 1) as usize;
        let rows = 1 + self.chance.below(6);
        self.catalogue.fail_commits([self.chance.fault()]).await;
        let result = self.predecessors[place].attempt(rows).await;
        self.catalogue.heal().await;
        assert!(matches!(result, Err(LakeError::Fenced { .. })), "it goes on: {result:?}");
    }
}

impl Running {
    /// Goes on with the round that is pending, or begins another.
    async fn attempt(&mut self, rows: u64) -> Result<Option<Confirmed>, LakeError> {
        let Process { target, node, mark, .. } = &self.process;
        let pending = match &mut self.pending {
            Some(pending) => pending,
            none => {
                let to_lsn = mark.lsn + rows;
                let files = self.process.stage(to_lsn).await;
                none.insert(Pending { to_lsn, files, is_unknown: false })
            }
        };
        let to = mark.at(pending.to_lsn);
        let verdict = if pending.is_unknown {
            target.verdict(*node, mark, &to, IMPATIENCE).await
        } else {
            pending.is_unknown = true;
            target.append(*node, mark, &to, &pending.files, IMPATIENCE).await
        };
        match verdict? {
            Verdict::Applied(confirmed) => {
                self.pending = None;
                self.process.confirm(confirmed);
                Ok(Some(confirmed))
            }
            Verdict::NotApplied { .. } => {
                pending.is_unknown = false;
                Ok(None)
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn any_schedule_is_exact() {
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let mut run = Run::new(seed).await;
        for step in 0..STEPS {
            run.step().await;
            if step % STEPS_UNTIL_CHECK == 0 {
                check_exact(&run.catalogue).await;
            }
        }
        // Whatever is still on its way arrives, and every node comes to its end.
        while run.catalogue.release().await.is_some() {}
        let mut ends = BTreeMap::new();
        for node in 0..NODES {
            let end = run.running[&node].process.mark.lsn + 20;
            while run.running[&node].process.mark.lsn < end {
                run.round(node, false).await;
            }
            ends.insert(node, run.running[&node].process.mark);
        }
        check_exact(&run.catalogue).await;
        let rows = rows(&table(&run.catalogue).await).await;
        for (node, mark) in ends {
            assert_eq!(rows[&node], (START..mark.lsn).collect::<Vec<_>>());
            let state = run.running[&node].process.target.load(PATIENCE).await.unwrap();
            assert_eq!(state.marks[&NodeId(node)], mark);
        }
        assert!(run.rounds > 10, "hardly anything was drained: {} rounds", run.rounds);
    }
}
