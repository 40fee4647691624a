//! Faults put back into engine, log and server: clients' own record notices each.
#![cfg(feature = "planted-faults")]

use onrush::{Fault, plant};
use onrush_prove_wire::cuts::Budget;
use onrush_prove_wire::kinds::{Kind, Kinds};
use onrush_prove_wire::prove;
use onrush_prove_wire::round::Plan;
use onrush_prove_wire::summary::Summary;

/// Rounds after which a fault counts as missed.
const ROUNDS_MAX: u64 = 10;

/// What there is to be found, and the kinds of statements that meet it.
fn faults() -> Vec<(Fault, Kinds)> {
    use Kind::{Checkpoints, Columns, Names, Tables, Transactional, Transactions, Truncate};
    let rows = Kinds::of(&[Tables]);
    vec![
        (Fault::AnswerNotAwaited, rows),
        (Fault::DefinitionsApart, Kinds::of(&[Tables, Transactions, Transactional])),
        (Fault::AlterNotRedone, Kinds::of(&[Tables, Names, Columns])),
        (Fault::TruncateNotRedone, Kinds::of(&[Tables, Truncate, Checkpoints])),
        (Fault::RemoveNotRedone, rows),
        (Fault::LogNotSynced, rows),
        (Fault::SuperblockNotSynced, Kinds::of(&[Tables, Checkpoints])),
        (Fault::NoDataSync, Kinds::of(&[Tables, Checkpoints])),
    ]
}

fn rounds_until_found(fault: Fault, kinds: Kinds) -> Option<u64> {
    plant(fault);
    let budget = Budget { cuts: 200, ..Budget::default() };
    let mut summary = Summary::default();
    let mut rounds = 1..=ROUNDS_MAX;
    let found = rounds.find(|seed| prove(Plan::new(*seed, kinds), budget, &mut summary).is_err());
    plant(Fault::None);
    found
}

#[test]
fn every_fault_that_is_put_back_is_noticed() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for (fault, kinds) in faults() {
        let begun = std::time::Instant::now();
        match rounds_until_found(fault, kinds) {
            Some(rounds) => {
                println!("{fault:?}: {rounds} rounds, {:.0} s", begun.elapsed().as_secs_f64());
            }
            None => missed.push(fault),
        }
    }
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not noticed within {ROUNDS_MAX} rounds: {missed:?}");
}
