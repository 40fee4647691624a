//! A session in a process that is killed: who looks afterwards makes its commits again by their numbers.

use crate::history::{Bounds, Expected};

/// What is known of a session's commits, which have the numbers from 1 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Known {
    /// The last that was begun.
    pub begun: u64,
    /// The last that was acknowledged.
    pub acknowledged: u64,
    /// The last that must survive: it was acknowledged as durable, or an answer rested on it.
    pub required: u64,
}

impl Known {
    /// How many of its commits a crash must leave, and how many it may.
    pub fn bounds(self) -> Bounds {
        (self.required as usize, self.begun as usize)
    }

    /// How many of the acknowledged ones are lost where so many are there.
    pub fn lost(self, kept: u64) -> u64 {
        self.acknowledged.saturating_sub(kept)
    }
}

/// Goes on from `state`, which is that after `first` commits: the most commits within the bounds after which it looked
/// like `found`, and the state then. `changes` says what a commit does, by its number and the state before it.
pub fn follow<S: Expected>(
    mut state: S,
    first: u64,
    (least, most): Bounds,
    found: &S::Print,
    changes: impl Fn(&S, u64) -> Vec<S::Change>,
) -> Option<(u64, S)> {
    let mut kept = None;
    for number in first..=most as u64 {
        if number > first {
            changes(&state, number).iter().for_each(|change| state.apply(change));
        }
        if number >= least as u64 && state.print() == *found {
            kept = Some((number, state.clone()));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// After two commits that are there; the third changes nothing.
    fn kept(known: Known, found: &[u64]) -> Option<u64> {
        let changes = |_: &_, number| match number {
            3 => Vec::new(),
            _ => vec![(number, Some(()))],
        };
        let (base, found) = (BTreeMap::from([(2, ())]), found.iter().map(|key| (*key, ())));
        follow(base, 2, known.bounds(), &found.collect(), changes).map(|(kept, _)| kept)
    }

    #[test]
    fn what_is_required_is_there_and_what_was_not_begun_is_not() {
        let known = Known { begun: 4, acknowledged: 4, required: 3 };
        assert_eq!((kept(known, &[2]), kept(known, &[2, 4])), (Some(3), Some(4)));
        assert_eq!((kept(known, &[]), kept(known, &[2, 4, 5])), (None, None));
        assert_eq!(kept(Known { required: 4, ..known }, &[2]), None);
        assert_eq!((known.lost(3), known.lost(5)), (1, 0));
    }
}
