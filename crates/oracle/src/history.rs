//! Every commit of a run in the order of the log, when it began, and what was promised when.
//!
//! A *boundary* is a number of disk operations: a power cut at boundary N happens after everything that happened at
//! boundaries up to N. Where a process is killed once, everything happens at boundary 0.
//!
//! Invariants
//! 1. What a crash may leave is the state after some prefix of the commits: no shorter than what was acknowledged as
//!    durable by then or what an answer rested on, no longer than what had begun.
//! 2. A commit is noted unless it has certainly not happened; one that failed with an unknown outcome is the last of
//!    its run.

use crate::state::{Effect, State};
use crate::transaction::Changed;

/// What a database holds, or a part of it, and what a change makes of it.
pub trait Expected: Clone {
    /// One change. Several together are a commit.
    type Change: Clone;
    /// The same for two states that look the same.
    type Print: PartialEq + Clone;

    /// Makes a change.
    fn apply(&mut self, change: &Self::Change);

    /// What stands for the state when it is compared.
    fn print(&self) -> Self::Print;
}

/// A state whose changes are about places, in which two transactions can meet.
pub trait Placed: Expected {
    /// A key of a table, for example.
    type Place: Ord + Clone;

    /// Those that a change is about, before it is made; of one of a row its key.
    fn places(&self, change: &Self::Change) -> Vec<Self::Place>;
}

/// How many commits must be there, and how many may.
pub type Bounds = (usize, usize);

/// What must and what may survive a crash, by the boundary at which it happens.
#[derive(Clone, Debug, Default)]
pub struct Promises {
    begun: Vec<(usize, usize)>, // boundary, and how many commits had begun then
    durable: Vec<(usize, usize)>, // boundary, and how many commits must survive since
}

impl Promises {
    /// From `boundary` on the first `commits` commits may be there.
    pub fn begin(&mut self, boundary: usize, commits: usize) {
        self.begun.push((boundary, commits));
    }

    /// From `boundary` on the first `commits` commits must survive.
    pub fn acknowledge(&mut self, boundary: usize, commits: usize) {
        self.durable.push((boundary, commits));
    }

    /// How many commits a crash at `boundary` must leave, and how many it may.
    pub fn bounds(&self, boundary: usize) -> Bounds {
        let most = |known: &[(usize, usize)]| {
            let by_then = known.iter().filter(|(at, _)| *at <= boundary);
            by_then.map(|(_, commits)| *commits).max().unwrap_or(0)
        };
        let least = most(&self.durable);
        (least, most(&self.begun).max(least))
    }
}

/// The longest prefix within the bounds after which the state looked like what was found.
pub fn longest_prefix((least, most): Bounds, is_found: impl Fn(usize) -> bool) -> Option<usize> {
    (least..=most).rev().find(|commits| is_found(*commits))
}

/// See the module.
#[derive(Clone, Debug)]
pub struct History<S: Placed = State> {
    base: S,
    now: S,
    commits: Vec<Vec<S::Change>>,
    prints: Vec<S::Print>, // after so many commits
    promises: Promises,
    /// Who changed what last.
    pub changed: Changed<S::Place>,
}

impl<S: Placed> History<S> {
    /// A run that begins with `base`, which is durable.
    pub fn new(base: S) -> History<S> {
        let prints = vec![base.print()];
        let (promises, changed) = (Promises::default(), Changed::default());
        History { now: base.clone(), base, commits: Vec::new(), prints, promises, changed }
    }

    /// The state after all commits.
    pub fn now(&self) -> &S {
        &self.now
    }

    /// Commits so far.
    pub fn len(&self) -> usize {
        self.commits.len()
    }

    /// Whether there were no commits.
    pub fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    /// Notes a commit that began at `begun_at`. Returns how many there are now.
    pub fn commit(&mut self, begun_at: usize, changes: Vec<S::Change>) -> usize {
        for change in &changes {
            self.changed.note(self.now.places(change), self.commits.len() + 1);
            self.now.apply(change);
        }
        self.prints.push(self.now.print());
        self.commits.push(changes);
        self.promises.begin(begun_at, self.commits.len());
        self.commits.len()
    }

    /// From `boundary` on the first `commits` commits must survive.
    pub fn acknowledge(&mut self, boundary: usize, commits: usize) {
        let before = self.promises.durable.last().map_or(0, |(_, commits)| *commits);
        if commits > before {
            self.promises.acknowledge(boundary, commits);
        }
    }

    /// How many commits a crash at `boundary` must leave, and how many it may.
    pub fn bounds(&self, boundary: usize) -> Bounds {
        self.promises.bounds(boundary)
    }

    /// How many commits a state that looks like `found` shows, if that is allowed.
    pub fn prefix_of(&self, found: &S::Print, bounds: Bounds) -> Option<usize> {
        longest_prefix(bounds, |commits| self.prints.get(commits) == Some(found))
    }

    /// The states after no commit, after one, and so on.
    pub fn states(&self) -> impl Iterator<Item = S> {
        let next = |state: &mut S, changes: &Vec<S::Change>| {
            changes.iter().for_each(|change| state.apply(change));
            Some(state.clone())
        };
        std::iter::once(self.base.clone()).chain(self.commits.iter().scan(self.base.clone(), next))
    }

    /// The state after `commits` commits.
    pub fn state_after(&self, commits: usize) -> S {
        let mut state = self.base.clone();
        self.commits[..commits].iter().flatten().for_each(|change| state.apply(change));
        state
    }

    /// What the state after `commits` commits looked like.
    pub fn print_after(&self, commits: usize) -> &S::Print {
        &self.prints[commits]
    }

    /// Goes on after the first `commits` commits: the others are gone, as they may be.
    pub fn go_back_to(&mut self, commits: usize) {
        self.now = self.state_after(commits);
        self.commits.truncate(commits);
        self.prints.truncate(commits + 1);
        self.promises.begun.truncate(commits);
        self.changed.retain(|_, number| number <= commits);
    }
}

impl History {
    /// The database was opened again: rows that are not logged are gone.
    pub fn reopen(&mut self, boundary: usize) {
        let effects: Vec<Effect> = self.now.clone().forget_unlogged();
        if !effects.is_empty() {
            self.commit(boundary, effects);
        }
    }

    /// Why `found` is none of the states that are allowed.
    pub fn explain(&self, found: &State, (least, most): Bounds) -> String {
        let anywhere = self.prints.iter().position(|print| *print == found.digest());
        let place = match anywhere {
            Some(count) if count < least => format!(
                "it is the state after {count} commits: {} acknowledged ones are lost",
                least - count
            ),
            Some(count) => format!("it is the state after {count} commits, which had not begun"),
            None => "it is the state after no prefix of the commits".to_owned(),
        };
        let newest = self.state_after(most);
        format!(
            "expected the state after {least} to {most} of {} commits; {place}\n\
             compared with the state after {most}:\n{}\
             compared with the state after {least}:\n{}",
            self.commits.len(),
            newest.differences(found),
            self.state_after(least).differences(found)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    type Rows = BTreeMap<u32, ()>;

    fn puts(keys: &[u32]) -> Vec<(u32, Option<()>)> {
        keys.iter().map(|key| (*key, Some(()))).collect()
    }

    fn rows(keys: &[u32]) -> Rows {
        keys.iter().map(|key| (*key, ())).collect()
    }

    /// Two commits that began at boundaries 2 and 7; the first is acknowledged at 5.
    fn history() -> History<Rows> {
        let mut history = History::new(Rows::new());
        history.commit(2, puts(&[1]));
        history.acknowledge(5, 1);
        history.commit(7, puts(&[2, 3]));
        history
    }

    fn at(boundary: usize, found: &[u32]) -> Option<usize> {
        let history = history();
        history.prefix_of(&rows(found), history.bounds(boundary))
    }

    #[test]
    fn what_is_in_flight_may_be_there_or_not() {
        assert_eq!(at(1, &[1]), None, "it had not begun");
        assert_eq!((at(3, &[]), at(3, &[1])), (Some(0), Some(1)));
        assert_eq!((at(8, &[1]), at(8, &[1, 2, 3])), (Some(1), Some(2)));
    }

    #[test]
    fn what_was_acknowledged_must_be_there_and_half_a_commit_never_is() {
        assert_eq!((at(4, &[]), at(5, &[])), (Some(0), None));
        assert_eq!((at(8, &[1, 2]), at(8, &[2, 3])), (None, None));
    }

    #[test]
    fn after_going_back_the_lost_commits_are_no_state_any_more() {
        let mut history = history();
        history.go_back_to(1);
        history.commit(9, puts(&[4]));
        let bounds = history.bounds(9);
        assert_eq!(bounds, (1, 2));
        assert_eq!(history.prefix_of(&rows(&[1, 2, 3]), bounds), None);
        assert_eq!(history.prefix_of(&rows(&[1, 4]), bounds), Some(2));
    }
}
