//! The runs of a range as if they were one: of the rows of a key that of the newest run counts, if no intent on it does
//! that is in the same run or in a newer one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::decode::image::{Entry, Intent};
use crate::steps::catalogue::Catalogue;
use crate::steps::large::LargeStatuses;
use crate::steps::rows::Counted;
use crate::steps::runs::RunReader;
use crate::store::Store;

/// What intents of large transactions in runs mean.
#[derive(Clone, Copy)]
pub(crate) struct IntentMeanings<'a> {
    pub(crate) store: &'a Store<'a>,
    pub(crate) catalogue: &'a Catalogue,
    /// Of directory and log; None: as the directory says.
    pub(crate) statuses: Option<&'a LargeStatuses>,
    pub(crate) object: u32,
}

impl IntentMeanings<'_> {
    /// By the directory alone, as images are counted.
    fn is_committed(&self, intent: Intent) -> bool {
        self.catalogue.large.has_committed(intent.id, self.store.superblock.start.lsn)
    }

    fn counts(&self, intent: Intent, key: &[u8]) -> bool {
        match self.statuses {
            Some(statuses) => statuses.intent_counts(intent, self.object, key),
            None => self.is_committed(intent),
        }
    }
}

/// See the module.
pub(crate) struct Merge<'a> {
    /// The newest first.
    runs: Vec<RunReader<'a>>,
    standing: BinaryHeap<Reverse<Standing>>,
    /// Where the entry that was taken last is.
    taken: Option<Standing>,
    /// The key that is looked at.
    key: Vec<u8>,
    intents: IntentMeanings<'a>,
    /// Of all keys so far that lie in the range, by the directory.
    pub(crate) counted: Counted,
}

/// Where a run stands: at a key; the newest run first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    key: Vec<u8>,
    run: usize,
}

impl<'a> Merge<'a> {
    /// Of runs, the newest first.
    pub(crate) fn new(runs: Vec<RunReader<'a>>, intents: IntentMeanings<'a>) -> Merge<'a> {
        let count = runs.len();
        let (standing, counted) = (BinaryHeap::with_capacity(count), Counted::default());
        let (taken, key) = (None, Vec::new());
        let mut merge = Merge { runs, standing, taken, key, intents, counted };
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

    /// What counts of the next key of which anything does: a row or an intent, or that it is gone. Of keys for which
    /// `is_in` does not hold nothing is counted.
    pub(crate) fn next(&mut self, is_in: impl Fn(&[u8]) -> bool) -> Option<Entry<'_>> {
        if let Some(taken) = self.taken.take() {
            self.leave(taken);
        }
        while self.taken.is_none() {
            let Reverse(first) = self.standing.pop()?;
            self.key.clone_from(&first.key);
            let mut is_counted = !is_in(&first.key);
            self.look_at(first, &mut is_counted);
            while self.standing.peek().is_some_and(|Reverse(other)| other.key == self.key) {
                let Reverse(other) = self.standing.pop()?;
                self.look_at(other, &mut is_counted);
            }
        }
        self.runs[self.taken.as_ref()?.run].entry()
    }

    /// Goes on behind the key.
    fn leave(&mut self, standing: Standing) {
        if self.runs[standing.run].intent_on().is_some() {
            self.runs[standing.run].advance();
        }
        self.advance(standing);
    }

    /// Takes what a run has of its key, if it counts and nothing of a newer run does.
    fn look_at(&mut self, standing: Standing, is_counted: &mut bool) {
        let run = &mut self.runs[standing.run];
        let Some(entry) = run.entry() else { return };
        let (intent, decided) = match entry.intent() {
            Some(intent) => (Some(intent), None),
            None => (run.intent_on(), Some(u64::from(!entry.is_removal()))),
        };
        if let Some(intent) = intent.filter(|_| !*is_counted) {
            *is_counted = self.intents.is_committed(intent);
            match *is_counted {
                true => self.counted.rows += u64::from(!intent.removes),
                false => self.counted.undecided += 1,
            }
        }
        if let Some(rows) = decided.filter(|_| !*is_counted) {
            *is_counted = true;
            self.counted.rows += rows;
        }
        let intent_counts = intent.is_some_and(|it| self.intents.counts(it, &standing.key));
        if self.taken.is_some() || !intent_counts && decided.is_none() {
            return self.leave(standing);
        }
        if intent_counts && decided.is_some() {
            run.advance();
        }
        self.taken = Some(standing);
    }

    /// The runs, which were read to the end.
    pub(crate) fn into_runs(self) -> Vec<RunReader<'a>> {
        self.runs
    }
}
