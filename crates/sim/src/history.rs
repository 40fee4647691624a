//! Every commit of a run in the order of the log, when it began, and what was acknowledged when.
//!
//! A *moment* is a number of disk operations: a power cut at boundary N happens after everything
//! of a moment up to N.
//!
//! Invariants
//! 1. What a power cut may leave is the state after some prefix of the commits: no shorter than
//!    what was acknowledged as durable by then, no longer than what had begun.
//! 2. A commit is noted unless it has certainly not happened; one that failed with an unknown
//!    outcome is the last of its run.

use std::fmt;

use crate::model::{Effect, State};

/// One transaction, or one change of the tables.
#[derive(Clone, Debug)]
struct Commit {
    effects: Vec<Effect>,
    begun_at: usize,
}

/// Something is not as it must be: a power cut, for example, left what it must not leave.
#[derive(Clone, Debug)]
pub struct Violation(pub String);

impl Violation {
    /// The violation, and the command that has it again.
    pub fn with_command(&self, mode: &str, seed: impl fmt::Display) -> String {
        let command = "cargo run -p onrush-sim --release --bin simulate --";
        format!("{}\nagain: {command} {mode} --seed {seed} --seeds 1", self.0)
    }
}

/// What everything returns that can find one.
pub type Checked<T> = Result<T, Violation>;

/// Fails with a text.
#[macro_export]
macro_rules! violation {
    ($($text:tt)*) => { return Err($crate::history::Violation(format!($($text)*))) };
}

/// See the module.
#[derive(Clone, Debug)]
pub struct History {
    base: State,
    now: State,
    commits: Vec<Commit>,
    digests: Vec<u128>,           // after so many commits
    durable: Vec<(usize, usize)>, // timestamp, and how many commits were durable then
}

impl History {
    /// A run that begins with `base`, which is durable.
    pub fn new(base: State) -> History {
        let digests = vec![base.digest()];
        History { now: base.clone(), base, commits: Vec::new(), digests, durable: Vec::new() }
    }

    /// The state after all commits.
    pub fn now(&self) -> &State {
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
    pub fn commit(&mut self, begun_at: usize, effects: Vec<Effect>) -> usize {
        for effect in &effects {
            self.now.apply(effect);
        }
        self.digests.push(self.now.digest());
        self.commits.push(Commit { effects, begun_at });
        self.commits.len()
    }

    /// From `timestamp` on the first `commits` commits must survive.
    pub fn acknowledge(&mut self, timestamp: usize, commits: usize) {
        let before = self.durable.last().map_or(0, |(_, commits)| *commits);
        if commits > before {
            self.durable.push((timestamp, commits));
        }
    }

    /// How many commits a power cut at `boundary` must leave, and how many it may.
    pub fn bounds(&self, boundary: usize) -> (usize, usize) {
        let known = self.durable.partition_point(|(timestamp, _)| *timestamp <= boundary);
        let least = known.checked_sub(1).map_or(0, |index| self.durable[index].1);
        let most = self.commits.partition_point(|commit| commit.begun_at <= boundary);
        (least, most.max(least))
    }

    /// How many commits a state with this digest shows, if that is allowed.
    pub fn prefix_of(&self, digest: u128, (least, most): (usize, usize)) -> Option<usize> {
        (least..=most).rev().find(|count| self.digests[*count] == digest)
    }

    /// The state after `commits` commits.
    pub fn state_after(&self, commits: usize) -> State {
        let mut state = self.base.clone();
        for commit in &self.commits[..commits] {
            for effect in &commit.effects {
                state.apply(effect);
            }
        }
        state
    }

    /// Goes on after the first `commits` commits: the others are gone, as they may be.
    pub fn go_back_to(&mut self, commits: usize) {
        self.now = self.state_after(commits);
        self.commits.truncate(commits);
        self.digests.truncate(commits + 1);
    }

    /// The database was opened again: rows that are not logged are gone.
    pub fn reopen(&mut self, timestamp: usize) {
        let effects = self.now.clone().forget_unlogged();
        if !effects.is_empty() {
            self.commit(timestamp, effects);
        }
    }

    /// Why `found` is none of the states that are allowed.
    pub fn explain(&self, found: &State, (least, most): (usize, usize)) -> String {
        let anywhere = self.digests.iter().position(|digest| *digest == found.digest());
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
