//! What was sent, what was acknowledged, and when: and so what a power cut may leave.
//!
//! What must hold is what [`onrush_oracle`] says. The states are those of this crate: what clients can see of names,
//! columns, grants and comments by SQL, not bytes of rows.

use std::fmt;
use std::sync::Arc;

use onrush_oracle::violation;
use onrush_oracle::{Bounds, History as Commits, Promises};
pub use onrush_oracle::{Checked, Violation};

use crate::state::State;

/// One request of a client.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Who sent it.
    pub client: usize,
    /// As SQL.
    pub text: String,
    /// Operations of the disk when it was sent.
    pub sent_at: usize,
    /// And when all of its answer had come.
    pub answered_at: Option<usize>,
    /// What came.
    pub answer: String,
    /// The newest state that the answer rests on.
    pub rests_on: usize,
    /// The newest state that it can have made.
    pub made: usize,
}

/// A round's record.
#[derive(Clone, Debug)]
pub struct History {
    /// What was committed.
    pub commits: Commits<State>,
    /// In the order in which they were sent.
    pub marks: Vec<Mark>,
}

impl History {
    /// The oldest and the newest state that a cut at a boundary may leave.
    pub fn bounds(&self, boundary: usize) -> Bounds {
        let mut promises = Promises::default();
        for mark in &self.marks {
            promises.begin(mark.sent_at, mark.made);
            if let Some(answered_at) = mark.answered_at {
                promises.acknowledge(answered_at, mark.rests_on);
            }
        }
        promises.bounds(boundary)
    }

    /// Finds what was found among the states that may be there.
    ///
    /// # Errors
    /// It is none of them; says how it differs from the nearest one.
    pub fn judge(&self, boundary: usize, found: &[String]) -> Checked<usize> {
        self.judge_within(self.bounds(boundary), boundary, found)
    }

    /// The same on a disk that lies: what was acknowledged may be lost, but only from the end.
    ///
    /// # Errors
    /// It is no state that there ever was.
    pub fn judge_after_lies(&self, boundary: usize, found: &[String]) -> Checked<usize> {
        self.judge_within((0, self.bounds(boundary).1), boundary, found)
    }

    fn judge_within(
        &self,
        (oldest, newest): Bounds,
        boundary: usize,
        found: &[String],
    ) -> Checked<usize> {
        let find = |bounds| self.commits.prefix_of(&Arc::new(found.to_vec()), bounds);
        if let Some(at) = find((oldest, newest)) {
            return Ok(at);
        }
        let (nearest, lines) = nearest(&self.commits, (oldest, newest), found);
        let older = find((0, oldest));
        let lost = older.map_or_else(String::new, |at| {
            let rests = self.marks.iter().find(|mark| {
                mark.rests_on > at && mark.answered_at.is_some_and(|answered| answered <= boundary)
            });
            let told = rests.map_or_else(String::new, |mark| format!(", which {mark} rested on"));
            format!("; it is the older state {at}: a commit is lost{told}")
        });
        violation!(
            "what is there is none of the states {oldest} to {newest}{lost}; it differs from state {nearest} by (- \
             missing, + too much)\n    {lines}"
        )
    }
}

/// Which of the states that may be there is the nearest to `found`, and how it differs.
pub fn nearest(
    commits: &Commits<State>,
    (oldest, newest): Bounds,
    found: &[String],
) -> (usize, String) {
    let lines = |at| difference(commits.print_after(at), found);
    let nearest = (oldest..=newest).min_by_key(|at| lines(*at).len()).unwrap_or(oldest);
    (nearest, lines(nearest).join("\n    "))
}

/// `-` and what is missing in `found`, `+` and what is too much.
pub fn difference(wanted: &[String], found: &[String]) -> Vec<String> {
    let missing =
        wanted.iter().filter(|line| !found.contains(line)).map(|line| format!("- {line}"));
    let more = found.iter().filter(|line| !wanted.contains(line)).map(|line| format!("+ {line}"));
    missing.chain(more).collect()
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mark { client, text, sent_at, answer, rests_on, made, .. } = self;
        let answered = self.answered_at.map_or_else(|| "-".into(), |at| at.to_string());
        write!(
            f,
            "[{sent_at}..{answered}] client {client}: {text} => {answer} (state {made}, rests on {rests_on})"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Change;

    fn lines(roles: &[&str]) -> Vec<String> {
        roles.iter().map(|role| format!("role {role}")).collect()
    }

    fn mark(sent_at: usize, answered_at: Option<usize>, rests_on: usize, made: usize) -> Mark {
        let (text, answer) = (String::new(), String::new());
        Mark { client: 0, text, sent_at, answered_at, answer, rests_on, made }
    }

    /// One commit is answered at boundary 5, one is sent at 7 and never answered.
    fn history() -> History {
        let mut commits = Commits::new(State::default());
        for role in ["a", "b"] {
            commits.commit(0, vec![Change::CreateRole(role.to_owned())]);
        }
        History { commits, marks: vec![mark(2, Some(5), 1, 1), mark(7, None, 0, 2)] }
    }

    #[test]
    fn what_an_answer_of_another_rested_on_must_be_there() {
        let mut history = history();
        assert!(history.judge(8, &lines(&["a"])).is_ok(), "sent, and not answered");
        assert!(history.judge(8, &lines(&[])).is_err(), "answered, and lost");
        history.marks.push(mark(8, Some(8), 2, 2));
        assert!(history.judge(9, &lines(&["a"])).is_err());
        assert!(history.judge(9, &lines(&["a", "b"])).is_ok());
    }
}
