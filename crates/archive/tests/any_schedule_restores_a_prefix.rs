//! Random inserts, steps of the archive, failures of the store, restarts and losses of the machine: what comes back is
//! the commits up to one of them, and at least what was said to be safe.

#![allow(clippy::unwrap_used)]

mod world;

use onrush::Lsn;
use onrush_archive::{ArchiveError, Archiver, FromArchive};
use proptest::prelude::*;
use world::*;

#[derive(Clone, Copy, Debug)]
enum Action {
    Insert(i64),
    Checkpoint,
    Step,
    BackUp,
    Restart,
    Close,
    Lose,
    Plan(Fault),
    Delayed,
}

fn action() -> impl Strategy<Value = Action> {
    let fault = prop_oneof![
        Just(Fault::LoseRequest),
        Just(Fault::LoseAnswer),
        Just(Fault::Twice),
        Just(Fault::Delay),
        Just(Fault::Lie),
    ];
    prop_oneof![
        8 => (1_i64..60).prop_map(Action::Insert),
        2 => Just(Action::Checkpoint),
        8 => Just(Action::Step),
        2 => Just(Action::BackUp),
        2 => Just(Action::Restart),
        1 => Just(Action::Close),
        2 => Just(Action::Lose),
        3 => fault.prop_map(Action::Plan),
        1 => Just(Action::Delayed),
    ]
}

/// A machine, its archiver, and the ends of the commits of its history.
struct World {
    machine: Machine,
    archiver: Archiver,
    next: i64,
    /// How many numbers are below an end.
    commits: Vec<(Lsn, i64)>,
    safe: Lsn,
    /// How often archivers before this one have let go of log that was not archived.
    earlier_gaps: u64,
}

impl World {
    fn new(machine: Machine, store: &std::sync::Arc<FaultyStore>, next: i64) -> World {
        let archiver = machine.archiver(store);
        World { machine, archiver, next, commits: Vec::new(), safe: Lsn::ZERO, earlier_gaps: 0 }
    }

    fn note(&mut self) {
        assert!(self.archiver.safe_lsn() <= self.machine.db.durable_lsn());
        self.safe = self.safe.max(self.archiver.safe_lsn());
    }

    /// The process is killed and started again.
    fn restart(&mut self, store: &std::sync::Arc<FaultyStore>) {
        self.earlier_gaps = self.gaps();
        self.machine = self.machine.restarted();
        self.archiver = self.machine.archiver(store);
    }

    /// How often log was let go before it was archived, because it took too much space.
    fn gaps(&self) -> u64 {
        self.earlier_gaps + self.archiver.totals().gaps
    }

    /// How many numbers are safe.
    fn safe_numbers(&self) -> i64 {
        let safe = self.commits.iter().filter(|(end, _)| *end <= self.safe);
        safe.map(|(_, numbers)| *numbers).max().unwrap_or(0)
    }
}

async fn run(actions: Vec<Action>) {
    let store = FaultyStore::new();
    let mut world = World::new(Machine::new(), &store, 0);
    for action in actions.into_iter().chain([Action::Step, Action::Lose]) {
        match action {
            Action::Insert(count) => {
                for _ in 0..count {
                    let end = world.machine.insert(world.next..world.next + 1);
                    world.next += 1;
                    world.commits.push((end, world.next));
                }
            }
            Action::Checkpoint => {
                world.machine.db.checkpoint().unwrap();
            }
            Action::Step => match world.archiver.step().await {
                Ok(_) | Err(ArchiveError::Away(_)) => world.note(),
                Err(error) => panic!("{error}"),
            },
            Action::BackUp => match world.archiver.back_up().await {
                Ok(_) | Err(ArchiveError::Away(_)) => world.note(),
                Err(error) => panic!("{error}"),
            },
            Action::Restart | Action::Close => {
                if matches!(action, Action::Close) {
                    world.machine.db.clone().close().unwrap();
                    let _ = world.archiver.note();
                }
                world.restart(&store);
            }
            Action::Lose => {
                let (history, safe) = (world.machine.db.id(), world.safe_numbers());
                let place = store.place().of_history(history);
                let mut options = FromArchive::default();
                let successor = loop {
                    match try_restored_of(&place, &options) {
                        Ok((successor, _)) => break Some(successor),
                        Err(ArchiveError::Away(_)) => {}
                        Err(ArchiveError::Incomplete { .. }) if !options.as_far_as_possible => {
                            assert!(world.gaps() > 0, "all log was archived");
                            options.as_far_as_possible = true;
                        }
                        Err(ArchiveError::NoArchive { .. } | ArchiveError::NoBackup { .. }) => {
                            break None;
                        }
                        Err(error) => panic!("{error}"),
                    }
                };
                let Some(successor) = successor else {
                    assert_eq!(world.safe, Lsn::ZERO);
                    continue;
                };
                let numbers = successor.numbers();
                let count = i64::try_from(numbers.len()).unwrap();
                assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "a prefix");
                assert!(count >= safe, "{count} of {safe} that were safe");
                assert!(count <= world.next);
                // Who was thought lost is refused as soon as it would archive anything.
                world.machine.insert(1_000_000..1_000_001);
                let mut refused = world.archiver.step().await;
                while matches!(refused, Ok(_) | Err(ArchiveError::Away(_))) {
                    refused = world.archiver.step().await;
                }
                assert!(matches!(refused, Err(ArchiveError::Fenced { .. })), "{refused:?}");
                world = World::new(successor, &store, count);
            }
            Action::Plan(fault) => store.plan([fault]),
            Action::Delayed => store.let_delayed_go().await,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn of_inserts_steps_failures_and_losses(actions in prop::collection::vec(action(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(run(actions));
    }
}
