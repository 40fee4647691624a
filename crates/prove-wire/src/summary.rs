//! What was done, in numbers.

use std::fmt;

/// Counts of rounds, statements and cuts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Seeds.
    pub rounds: u64,
    /// Statements that were sent.
    pub statements: u64,
    /// Those that the server refused as not possible there.
    pub refused: u64,
    /// Those in the middle of checkpoints.
    pub visits: u64,
    /// Those while the log was being written.
    pub overtaken: u64,
    /// Those that were left waiting for their commits while others went on.
    pub left_waiting: u64,
    /// States of the model.
    pub commits: u64,
    /// Boundaries of the rounds.
    pub boundaries: u64,
    /// Power cuts at them that were judged.
    pub cuts: u64,
    /// Servers that were started on what they left: disks with different bytes.
    pub starts: u64,
    /// Of these, those that were refused as damaged, on a disk that lies.
    pub broken: u64,
    /// Cuts in such starts.
    pub nested: u64,
    /// Disks that were checked before anybody opened them.
    pub checks: u64,
    /// Processes that were killed.
    pub kills: u64,
    /// Seeds with a violation.
    pub failed: u64,
}

impl Summary {
    /// Adds what was done elsewhere.
    pub fn add(&mut self, other: &Summary) {
        let Summary {
            rounds,
            statements,
            refused,
            visits,
            overtaken,
            left_waiting,
            commits,
            boundaries,
            cuts,
            starts,
            broken,
            nested,
            checks,
            kills,
            failed,
        } = other;
        self.rounds += rounds;
        self.statements += statements;
        self.refused += refused;
        self.visits += visits;
        self.overtaken += overtaken;
        self.left_waiting += left_waiting;
        self.commits += commits;
        self.boundaries += boundaries;
        self.cuts += cuts;
        self.starts += starts;
        self.broken += broken;
        self.nested += nested;
        self.checks += checks;
        self.kills += kills;
        self.failed += failed;
    }

    /// For other programs.
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "rounds": self.rounds,
            "statements": self.statements,
            "refused": self.refused,
            "visits": self.visits,
            "overtaken": self.overtaken,
            "left_waiting": self.left_waiting,
            "commits": self.commits,
            "boundaries": self.boundaries,
            "cuts": self.cuts,
            "starts": self.starts,
            "broken": self.broken,
            "nested": self.nested,
            "checks": self.checks,
            "kills": self.kills,
            "failed": self.failed,
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} rounds, {} statements ({} refused, {} inside checkpoints, {} while the log was written, {} left \
             waiting), {} commits; {} boundaries, {} cuts, {} different disks started, {} that a lie had broken, \
             {} cuts in starts, {} checks; {} kills; {} failed",
            self.rounds,
            self.statements,
            self.refused,
            self.visits,
            self.overtaken,
            self.left_waiting,
            self.commits,
            self.boundaries,
            self.cuts,
            self.starts,
            self.broken,
            self.nested,
            self.checks,
            self.kills,
            self.failed
        )
    }
}
