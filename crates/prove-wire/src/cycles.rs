//! Isolation, judged from what transactions appended to lists and read of them.
//!
//! A list tells the order of its versions, so reads tell which transaction came before which: `ww` (it appended just
//! before), `wr` (it appended what was read), `rw` (it read what was appended to next). What snapshot isolation forbids
//! is a cycle of these with at most one `rw`; with two it is write skew, which is allowed. The method is Elle's
//! (Kingsbury and Alvaro, 2020).
//!
//! Invariant: a value is appended to a list at most once, by anybody.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// What a transaction did to one list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To this list this value.
    Append(u64, u64),
    /// All of this list.
    Read(u64, Vec<u64>),
}

/// How a transaction has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was acknowledged.
    Committed,
    /// It was rolled back, or refused.
    Aborted,
    /// Nobody knows.
    Unknown,
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Story {
    /// Who ran it; those of one session came one after the other.
    pub session: usize,
    /// In order.
    pub steps: Vec<Step>,
    /// How it ended.
    pub end: End,
}

/// What must not be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// Two reads of a list of which neither begins with the other.
    Diverged(u64),
    /// A value of a transaction that was rolled back was read (G1a).
    Aborted(usize),
    /// A list as it was in the middle of another transaction was read (G1b).
    Intermediate(usize),
    /// A transaction did not find its own appends, or found its snapshot changed.
    Internal(usize),
    /// A cycle of writes (G0).
    WriteCycle(Vec<usize>),
    /// A cycle of writes and reads of them (G1c).
    ReadCycle(Vec<usize>),
    /// A cycle with one read of what was overwritten (G-single): a lost update, or a read that is skewed.
    Skew(Vec<usize>),
}

/// Everything that snapshot isolation forbids and these transactions show.
pub fn anomalies(stories: &[Story]) -> Vec<Anomaly> {
    let mut found = BTreeSet::new();
    let orders = orders(stories, &mut found);
    let writers = writers(stories);
    let mut graph = Graph::default();
    for (list, order) in &orders {
        let by: Vec<Option<usize>> =
            order.iter().map(|value| writers.get(&(*list, *value)).copied()).collect();
        for pair in by.windows(2) {
            if let [Some(before), Some(after)] = pair {
                graph.writes.add(*before, *after);
            }
        }
    }
    for (number, story) in
        stories.iter().enumerate().filter(|(_, story)| story.end == End::Committed)
    {
        reads(number, story, stories, &orders, &writers, &mut graph, &mut found);
    }
    let mut last: BTreeMap<usize, usize> = BTreeMap::new();
    for (number, story) in
        stories.iter().enumerate().filter(|(_, story)| story.end == End::Committed)
    {
        if let Some(before) = last.insert(story.session, number) {
            graph.reads.add(before, number);
        }
    }
    graph.cycles(&mut found);
    found.into_iter().collect()
}

/// Who appended each value to each list.
fn writers(stories: &[Story]) -> BTreeMap<(u64, u64), usize> {
    let mut writers = BTreeMap::new();
    for (number, story) in stories.iter().enumerate() {
        for step in &story.steps {
            if let Step::Append(list, value) = step {
                writers.insert((*list, *value), number);
            }
        }
    }
    writers
}

/// The longest read of each list, with which all others must begin. What a transaction that was rolled back has
/// read of its own is nobody's.
fn orders(stories: &[Story], found: &mut BTreeSet<Anomaly>) -> BTreeMap<u64, Vec<u64>> {
    let mut orders: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let of_committed = stories.iter().filter(|story| story.end == End::Committed);
    for (list, values) in
        of_committed.flat_map(|story| &story.steps).filter_map(|step| match step {
            Step::Read(list, values) => Some((list, values)),
            Step::Append(..) => None,
        })
    {
        let order = orders.entry(*list).or_default();
        let (short, long) = match order.len() < values.len() {
            true => (order.clone(), values.clone()),
            false => (values.clone(), order.clone()),
        };
        if !long.starts_with(&short) {
            found.insert(Anomaly::Diverged(*list));
        }
        *order = long;
    }
    orders
}

/// What the reads of one transaction tell.
fn reads(
    number: usize,
    story: &Story,
    stories: &[Story],
    orders: &BTreeMap<u64, Vec<u64>>,
    writers: &BTreeMap<(u64, u64), usize>,
    graph: &mut Graph,
    found: &mut BTreeSet<Anomaly>,
) {
    let mut own: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut seen: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for step in &story.steps {
        let (list, values) = match step {
            Step::Append(list, value) => {
                own.entry(*list).or_default().push(*value);
                continue;
            }
            Step::Read(list, values) => (*list, values),
        };
        let mine = own.get(&list).map_or(&[][..], Vec::as_slice);
        let Some(others) = values.strip_suffix(mine) else {
            found.insert(Anomaly::Internal(number));
            continue;
        };
        if seen.get(&list).is_some_and(|before| before != others) {
            found.insert(Anomaly::Internal(number));
        }
        seen.insert(list, others.to_vec());
        for value in others {
            match writers.get(&(list, *value)).map(|writer| stories[*writer].end) {
                Some(End::Committed | End::Unknown) => {}
                Some(End::Aborted) | None => drop(found.insert(Anomaly::Aborted(number))),
            }
        }
        if let Some(last) = others.last()
            && let Some(writer) = writers.get(&(list, *last))
        {
            let is_of_list = |step: &&Step| matches!(step, Step::Append(of, _) if *of == list);
            let newest = stories[*writer].steps.iter().rfind(is_of_list);
            if newest != Some(&Step::Append(list, *last)) {
                found.insert(Anomaly::Intermediate(number));
            }
            graph.reads.add(*writer, number);
        }
        let next = orders.get(&list).and_then(|order| order.get(others.len()));
        if let Some(writer) = next.and_then(|next| writers.get(&(list, *next))) {
            graph.overwritten.add(number, *writer);
        }
    }
}

/// Who came before whom.
#[derive(Debug, Default)]
struct Edges(BTreeMap<usize, BTreeSet<usize>>);

impl Edges {
    fn add(&mut self, before: usize, after: usize) {
        if before != after {
            self.0.entry(before).or_default().insert(after);
        }
    }

    fn after(&self, number: usize) -> impl Iterator<Item = usize> {
        self.0.get(&number).into_iter().flatten().copied()
    }
}

#[derive(Debug, Default)]
struct Graph {
    writes: Edges,
    reads: Edges,
    overwritten: Edges,
}

impl Graph {
    fn cycles(&self, found: &mut BTreeSet<Anomaly>) {
        let writes = |number: usize| self.writes.after(number).collect::<Vec<_>>();
        let both = |number: usize| {
            self.writes.after(number).chain(self.reads.after(number)).collect::<Vec<_>>()
        };
        let edges = |edges: &Edges| -> Vec<(usize, usize)> {
            edges
                .0
                .iter()
                .flat_map(|(before, after)| after.iter().map(|after| (*before, *after)))
                .collect()
        };
        for (before, after) in edges(&self.writes) {
            if let Some(path) = path(after, before, writes) {
                found.insert(Anomaly::WriteCycle(path));
                return;
            }
        }
        for (before, after) in edges(&self.reads) {
            if let Some(path) = path(after, before, both) {
                found.insert(Anomaly::ReadCycle(path));
                return;
            }
        }
        for (before, after) in edges(&self.overwritten) {
            if let Some(path) = path(after, before, both) {
                found.insert(Anomaly::Skew(path));
                return;
            }
        }
    }
}

/// The shortest way, with both ends.
fn path(from: usize, to: usize, after: impl Fn(usize) -> Vec<usize>) -> Option<Vec<usize>> {
    let mut came_from: BTreeMap<usize, usize> = BTreeMap::from([(from, from)]);
    let mut next = std::collections::VecDeque::from([from]);
    while let Some(at) = next.pop_front() {
        if at == to {
            let mut path = vec![to];
            while let Some(last) = path.last().filter(|last| **last != from) {
                path.push(came_from[last]);
            }
            path.reverse();
            return Some(path);
        }
        for other in after(at) {
            if let Entry::Vacant(unseen) = came_from.entry(other) {
                unseen.insert(at);
                next.push_back(other);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Step::{Append, Read};
    use super::*;

    fn committed(session: usize, steps: &[Step]) -> Story {
        Story { session, steps: steps.to_vec(), end: End::Committed }
    }

    fn of(stories: &[Story]) -> Vec<Anomaly> {
        anomalies(stories)
    }

    #[test]
    fn transactions_one_after_the_other_show_nothing() {
        let first = committed(0, &[Append(1, 10), Append(2, 20)]);
        let second = committed(1, &[Read(1, vec![10]), Append(1, 11), Read(1, vec![10, 11])]);
        let third = committed(0, &[Read(1, vec![10, 11]), Read(2, vec![20])]);
        assert_eq!(of(&[first, second, third]), []);
    }

    #[test]
    fn write_skew_is_allowed() {
        let last = committed(2, &[Read(1, vec![10]), Read(2, vec![20])]);
        let one = committed(0, &[Read(1, vec![]), Append(2, 20)]);
        let other = committed(1, &[Read(2, vec![]), Append(1, 10)]);
        assert_eq!(of(&[one, other, last]), []);
    }

    #[test]
    fn a_lost_update_is_found() {
        let one = committed(0, &[Read(1, vec![]), Append(1, 10)]);
        let other = committed(1, &[Read(1, vec![]), Append(1, 11)]);
        let last = committed(2, &[Read(1, vec![10, 11])]);
        assert!(matches!(of(&[one, other, last])[..], [Anomaly::Skew(_)]));
    }

    #[test]
    fn a_skewed_read_is_found() {
        let writer = committed(0, &[Append(1, 10), Append(2, 20)]);
        let reader = committed(1, &[Read(1, vec![10]), Read(2, vec![])]);
        let last = committed(2, &[Read(2, vec![20])]);
        assert!(matches!(of(&[writer, reader, last])[..], [Anomaly::Skew(_)]));
    }

    #[test]
    fn cycles_of_writes_and_of_reads_are_found() {
        let one = committed(0, &[Append(1, 10), Append(2, 20)]);
        let other = committed(1, &[Append(1, 11), Append(2, 21)]);
        let last = committed(2, &[Read(1, vec![10, 11]), Read(2, vec![21, 20])]);
        assert!(matches!(of(&[one, other, last])[..], [Anomaly::WriteCycle(_), ..]));
        let one = committed(0, &[Append(1, 10), Read(2, vec![20])]);
        let other = committed(1, &[Append(2, 20), Read(1, vec![10])]);
        assert!(matches!(of(&[one, other])[..], [Anomaly::ReadCycle(_)]));
    }

    #[test]
    fn reads_of_what_was_never_committed_are_found() {
        let aborted = Story { end: End::Aborted, ..committed(0, &[Append(1, 10)]) };
        assert_eq!(of(&[aborted, committed(1, &[Read(1, vec![10])])]), [Anomaly::Aborted(1)]);
        let twice = committed(0, &[Append(1, 10), Append(1, 11)]);
        let found = of(&[
            twice,
            committed(1, &[Read(1, vec![10])]),
            committed(2, &[Read(1, vec![10, 11])]),
        ]);
        assert!(found.contains(&Anomaly::Intermediate(1)));
    }

    #[test]
    fn a_session_that_does_not_see_its_own_commit_is_found() {
        let stories = [
            committed(0, &[Append(1, 10)]),
            committed(0, &[Read(1, vec![])]),
            committed(1, &[Read(1, vec![10])]),
        ];
        assert!(matches!(of(&stories)[..], [Anomaly::Skew(_)]));
    }

    #[test]
    fn a_snapshot_that_changes_and_lists_that_diverge_are_found() {
        let writer = committed(0, &[Append(1, 10)]);
        let reader = committed(1, &[Read(1, vec![]), Read(1, vec![10])]);
        assert!(of(&[writer.clone(), reader]).contains(&Anomaly::Internal(1)));
        let one = committed(1, &[Read(1, vec![10])]);
        let other = committed(2, &[Read(1, vec![11])]);
        let writers = [writer, committed(3, &[Append(1, 11)]), one, other];
        assert!(of(&writers).contains(&Anomaly::Diverged(1)));
    }
}
