//! The goals of `docs/results/goals.txt`, each held against figures of a study.

/// Figures of one case: of Onrush, and of what it is compared with in the same run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// Part, key, sessions and driver, durability.
    pub(crate) place: [String; 4],
    pub(crate) rows_per_s: f64,
    /// Each baseline with the same settings, and its rows a second.
    pub(crate) baselines: Vec<(String, f64)>,
    /// Onrush with its best key under the same settings.
    pub(crate) best_key_rows_per_s: f64,
}

/// One goal.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    /// What is loaded, in words.
    pub(crate) load: String,
    pub(crate) study: String,
    place: [String; 4],
    clauses: Vec<Clause>,
}

/// A part of a goal, and how it is written.
#[derive(Clone, Debug)]
struct Clause {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// So many times a baseline; None for the best of them.
    Times(f64, Option<String>),
    /// Rows a second, at least.
    Rate(f64),
    /// No further below the best key than this share of it.
    Within(f64),
}

/// The goals in a text such as `goals.txt`: its last paragraph.
pub(crate) fn read(text: &str) -> Result<Vec<Goal>, String> {
    let (_, lines) = text.trim_end().rsplit_once("\n\n").ok_or("goals.txt has no goals")?;
    lines.lines().map(goal).collect()
}

fn goal(line: &str) -> Result<Goal, String> {
    let fields: Vec<&str> = line.split(" | ").collect();
    let [load, study, part, key, driver, durability, goal] = fields[..] else {
        return Err(format!("goals.txt: not seven columns: {line}"));
    };
    Ok(Goal {
        load: load.to_owned(),
        study: study.to_owned(),
        place: [part, key, driver, durability].map(str::to_owned),
        clauses: goal.split("; ").map(clause).collect::<Result<_, _>>()?,
    })
}

fn clause(text: &str) -> Result<Clause, String> {
    let number = |word: &str| word.parse::<f64>().ok();
    let words: Vec<&str> = text.split(' ').collect();
    let kind = match words[..] {
        [times, "times", "the", "best", "baseline"] => number(times).map(|n| Kind::Times(n, None)),
        [times, "times", target] => number(times).map(|n| Kind::Times(n, Some(target.to_owned()))),
        [least, "M", "rows/s"] => number(least).map(|n| Kind::Rate(n * 1e6)),
        [least, "to", most, "M", "rows/s"] => {
            number(most).and(number(least)).map(|n| Kind::Rate(n * 1e6))
        }
        ["within", percent, "%", "of", "the", "best", "key"] => {
            number(percent).map(|n| Kind::Within(n / 100.0))
        }
        _ => None,
    };
    let kind =
        kind.ok_or(format!("goals.txt: a clause that cannot be held against a figure: {text}"))?;
    Ok(Clause { text: text.to_owned(), kind })
}

impl Goal {
    /// Whether it is one of this case.
    pub(crate) fn is_of(&self, figures: &Figures) -> bool {
        let mut pairs = self.place.iter().zip(&figures.place);
        pairs.all(|(wanted, is)| wanted == "*" || wanted == is)
    }

    /// The goal as it is written.
    pub(crate) fn text(&self) -> String {
        let texts: Vec<&str> = self.clauses.iter().map(|clause| clause.text.as_str()).collect();
        texts.join(", ")
    }

    /// The same with what became of each clause.
    pub(crate) fn judged(&self, figures: &Figures) -> String {
        let of = |clause: &Clause| match is_met(&clause.kind, figures) {
            Some(true) => format!("{}: met", clause.text),
            Some(false) => format!("{}: missed", clause.text),
            None => format!("{}: not recorded", clause.text),
        };
        self.clauses.iter().map(of).collect::<Vec<_>>().join(", ")
    }
}

/// None where the run had nothing to hold against.
fn is_met(kind: &Kind, figures: &Figures) -> Option<bool> {
    let rate = figures.rows_per_s;
    match kind {
        Kind::Times(times, target) => {
            let is_it = |(name, _): &&(String, f64)| target.as_ref().is_none_or(|one| one == name);
            let found = figures.baselines.iter().filter(is_it).map(|(_, rate)| *rate);
            found.reduce(f64::max).map(|best| rate >= times * best)
        }
        Kind::Rate(least) => Some(rate >= *least),
        Kind::Within(share) => Some(rate >= figures.best_key_rows_per_s * (1.0 - share)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Words | about | it.\n\n\
        a load | keys | a | * | 24 threads | * | 10 times the best baseline; 6 to 10 M rows/s\n\
        another | keys | b | identity | * | * | 3 times redb; within 5 % of the best key\n";

    fn figures(part: &str, rows_per_s: f64) -> Figures {
        Figures {
            place: [part, "identity", "24 threads", "durable"].map(str::to_owned),
            rows_per_s,
            baselines: vec![("redb".into(), 1e6), ("lmdb".into(), 7e5)],
            best_key_rows_per_s: 4e6,
        }
    }

    #[test]
    fn each_clause_is_held_against_its_figure() {
        let goals = read(TEXT).unwrap();
        assert!(goals[0].is_of(&figures("a", 1.0)) && !goals[0].is_of(&figures("b", 1.0)));
        let first = |rate| goals[0].judged(&figures("a", rate));
        assert_eq!(first(1e7), "10 times the best baseline: met, 6 to 10 M rows/s: met");
        assert_eq!(first(6e6), "10 times the best baseline: missed, 6 to 10 M rows/s: met");
        let second = |rate| goals[1].judged(&figures("b", rate));
        assert_eq!(second(3.9e6), "3 times redb: met, within 5 % of the best key: met");
        assert_eq!(second(2.9e6), "3 times redb: missed, within 5 % of the best key: missed");
    }

    #[test]
    fn a_run_without_the_baseline_says_nothing_of_the_goal() {
        let alone = Figures { baselines: Vec::new(), ..figures("b", 4e6) };
        let judged = read(TEXT).unwrap()[1].judged(&alone);
        assert!(judged.starts_with("3 times redb: not recorded"), "{judged}");
    }

    #[test]
    fn a_goal_that_no_figure_can_meet_or_miss_is_refused() {
        assert!(read("a\n\nb | c | d | * | * | * | as fast as can be\n").is_err());
        assert!(read("a\n\nb | c | d\n").is_err());
    }
}
