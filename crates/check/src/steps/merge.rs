//! The runs of a range as if they were one: of the entries of a key that of the newest run counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::decode::image::Entry;
use crate::steps::runs::RunReader;

/// See the module.
pub(crate) struct Merge<'a> {
    /// The newest first.
    runs: Vec<RunReader<'a>>,
    standing: BinaryHeap<Reverse<Standing>>,
    /// Where the entry that was taken last is.
    taken: Option<Standing>,
}

/// Where a run stands: at a key; the newest run first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    key: Vec<u8>,
    run: usize,
}

impl<'a> Merge<'a> {
    /// Of runs, the newest first.
    pub(crate) fn new(runs: Vec<RunReader<'a>>) -> Merge<'a> {
        let count = runs.len();
        let mut merge = Merge { runs, standing: BinaryHeap::with_capacity(count), taken: None };
        (0..count).for_each(|run| merge.advance(Standing { key: Vec::new(), run }));
        merge
    }

    /// Lets a run stand at its next key.
    fn advance(&mut self, mut standing: Standing) {
        let run = &mut self.runs[standing.run];
        if run.advance()
            && let Some(entry) = run.entry()
        {
            standing.key.clear();
            standing.key.extend_from_slice(entry.key);
            self.standing.push(Reverse(standing));
        }
    }

    /// What counts of the next key: a row, or that it is gone.
    pub(crate) fn next(&mut self) -> Option<Entry<'_>> {
        if let Some(taken) = self.taken.take() {
            self.advance(taken);
        }
        let Reverse(first) = self.standing.pop()?;
        while let Some(Reverse(other)) = self.standing.peek()
            && other.key == first.key
        {
            let Reverse(hidden) = self.standing.pop()?;
            self.advance(hidden);
        }
        self.runs[self.taken.insert(first).run].entry()
    }

    /// The runs, which were read to the end.
    pub(crate) fn into_runs(self) -> Vec<RunReader<'a>> {
        self.runs
    }
}
