//! In which order the runs of a study are made.
//!
//! All cases once, then all cases again, each round shuffled anew: a device that grows slower or
//! faster during the study does so for everyone, and nobody always runs after the same neighbour.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;

/// One run to make: which case, which repeat of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) case: usize,
    pub(crate) repeat: usize,
}

/// Every run of these cases, the same order for the same seed.
pub(crate) fn turns(cases: &[usize], repeats: usize, seed: u64) -> Vec<Turn> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut turns = Vec::with_capacity(cases.len() * repeats);
    for repeat in 0..repeats {
        let mut round: Vec<Turn> = cases.iter().map(|case| Turn { case: *case, repeat }).collect();
        round.shuffle(&mut random);
        turns.extend(round);
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_every_case_once_and_rounds_differ() {
        let cases: Vec<usize> = (0..20).collect();
        let turns = turns(&cases, 3, 7);
        let rounds: Vec<Vec<usize>> =
            turns.chunks(20).map(|round| round.iter().map(|turn| turn.case).collect()).collect();
        for (repeat, round) in turns.chunks(20).enumerate() {
            assert!(round.iter().all(|turn| turn.repeat == repeat));
            let mut sorted: Vec<usize> = round.iter().map(|turn| turn.case).collect();
            sorted.sort_unstable();
            assert_eq!(sorted, cases);
        }
        assert_ne!(rounds[0], cases);
        assert_ne!(rounds[0], rounds[1]);
    }

    #[test]
    fn the_order_depends_on_the_seed_alone() {
        let cases: Vec<usize> = (0..10).collect();
        assert_eq!(turns(&cases, 2, 1), turns(&cases, 2, 1));
        assert_ne!(turns(&cases, 2, 1), turns(&cases, 2, 2));
    }
}
