//! The rows of a cold key range on the disk: one large sorted *base*, and small sorted *fragments*, each newer than
//! those before it. A stock is never changed, but replaced as a whole, and readers keep the one that they have.
//!
//! Invariants
//! 1. Of the rows and removals of one key that of the newest run counts; only a compaction of all runs drops a removal.
//!    Of intents of large transactions those count that stand on it, or are in newer runs.
//! 2. Filter and locators miss no key of their runs: what they do not find is not there.
//! 3. Every change of the range below `flushed_below` is in the stock.

use std::sync::Arc;

use onrush_filter::locator::FRAGMENTS_MAX;
use onrush_filter::{Filter, Locator};
use onrush_log::Lsn;

use super::run::{Run, RunKeys, short_hash};
use crate::fault::{Fault, planted};

/// See the module.
#[derive(Clone, Default, Debug)]
pub(crate) struct Stock {
    base: Option<Arc<Base>>,
    /// From the oldest on.
    fragments: Vec<Arc<Run>>,
    groups: Vec<Group>,
    flushed_below: Lsn,
}

#[derive(Debug)]
struct Base {
    run: Arc<Run>,
    filter: Filter,
}

/// Fragments that share a locator.
#[derive(Clone, Debug)]
struct Group {
    locator: Arc<Locator>,
    first: usize,
    fragments: usize,
    keys: usize,
}

/// A hash as locators know it: its bits are asked for at both ends.
fn locator_hash(short: u32) -> u64 {
    u64::from(short) << 32 | u64::from(short)
}

impl Stock {
    /// One that has a base only. None: an empty one.
    pub(crate) fn of_base(base: Option<(Run, RunKeys)>, flushed_below: Lsn) -> Stock {
        let stock = Stock { flushed_below, ..Stock::default() };
        base.map_or(stock.clone(), |(run, keys)| stock.with(run, keys, flushed_below))
    }

    /// The same with one more run: the base, if it is one, else the newest fragment.
    pub(crate) fn with(&self, run: Run, keys: RunKeys, flushed_below: Lsn) -> Stock {
        let mut stock = Stock { flushed_below, ..self.clone() };
        let run = Arc::new(run);
        match keys {
            RunKeys::Base(filter) => {
                stock.base = Some(Arc::new(Base { run, filter }));
            }
            RunKeys::Fragment(hashes) => {
                stock.locate(&run, &hashes);
                stock.fragments.push(run);
            }
        }
        stock
    }

    /// The same, with all changes below `flushed_below` in it.
    pub(crate) fn flushed_to(&self, flushed_below: Lsn) -> Stock {
        Stock { flushed_below: self.flushed_below.max(flushed_below), ..self.clone() }
    }

    /// Makes the keys of the next fragment known.
    fn locate(&mut self, run: &Run, hashes: &[u32]) {
        let has_space = |group: &Group| {
            group.fragments < FRAGMENTS_MAX && group.keys + hashes.len() <= group.locator.keys_max()
        };
        if !self.groups.last().is_some_and(has_space) {
            let keys = self.keys_expected(run).max(hashes.len());
            let (locator, first) = (Arc::new(Locator::new(keys)), self.fragments.len());
            self.groups.push(Group { locator, first, fragments: 0, keys: 0 });
        }
        let Some(group) = self.groups.last_mut() else { return };
        let hashes = if planted(Fault::FragmentNotLocated) { &[] } else { hashes };
        hashes.iter().for_each(|hash| group.locator.add(locator_hash(*hash), group.fragments));
        group.fragments += 1;
        group.keys += hashes.len();
    }

    /// Keys that the fragments from `run` on will have before they are compacted, or as many as share a locator.
    fn keys_expected(&self, run: &Run) -> usize {
        let base_rows = self.base.as_ref().map_or(0, |base| base.run.totals().rows);
        let rows: u64 = self.fragments.iter().map(|run| run.totals().rows).sum();
        let expected = (base_rows + base_rows / 4).saturating_sub(rows);
        (run.totals().rows * FRAGMENTS_MAX as u64).min(expected) as usize
    }

    /// The planted fault: one fragment fewer.
    pub(crate) fn without_newest(&self) -> Stock {
        let mut stock = self.clone();
        stock.fragments.pop();
        stock
    }

    /// Whether a run may have the key with this hash; false is certain.
    #[inline]
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        let short = locator_hash(short_hash(hash));
        self.base.as_ref().is_some_and(|base| base.filter.may_contain(hash))
            || self.groups.iter().any(|group| !group.locator.find(short).is_empty())
    }

    /// The runs that may have the key with this hash, the newest first.
    pub(crate) fn candidates(&self, hash: u64) -> impl Iterator<Item = &Arc<Run>> {
        let short = locator_hash(short_hash(hash));
        let fragments = self.groups.iter().rev().flat_map(move |group| {
            let known = move |number: &usize| *number < group.fragments;
            let numbers = group.locator.find(short).newest_first().filter(known);
            numbers.map(move |number| &self.fragments[group.first + number])
        });
        let base = self.base.iter().filter(move |base| base.filter.may_contain(hash));
        fragments.chain(base.map(|base| &base.run))
    }

    /// All runs, the newest first.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.fragments.iter().rev().chain(self.base.iter().map(|base| &base.run))
    }

    pub(crate) fn flushed_below(&self) -> Lsn {
        self.flushed_below
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.base.is_none() && self.fragments.is_empty()
    }

    pub(crate) fn fragments(&self) -> usize {
        self.fragments.len()
    }

    /// Bytes of the entries of the base, and of all fragments.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let base = self.base.as_ref().map_or(0, |base| base.run.totals().bytes);
        (base, self.fragments.iter().map(|run| run.totals().bytes).sum())
    }

    /// No row of it, and no removal, is of a later LSN; of one with intents nobody knows.
    pub(crate) fn newest(&self) -> Lsn {
        match self.has_intents() {
            true => Lsn::MAX,
            false => self.runs().map(|run| run.totals().newest).max().unwrap_or_default(),
        }
    }

    pub(crate) fn has_intents(&self) -> bool {
        self.runs().any(|run| !run.owners().is_empty())
    }

    /// Numbers of the large transactions whose intents it has, some more than once.
    pub(crate) fn owners(&self) -> impl Iterator<Item = u64> {
        self.runs().flat_map(|run| run.owners().iter().copied())
    }

    /// Memory that it takes, about.
    pub(super) fn memory_bytes(&self) -> usize {
        let runs: usize = self.runs().map(|run| run.memory_bytes()).sum();
        let filter = self.base.as_ref().map_or(0, |base| base.filter.memory_bytes());
        let locators: usize = self.groups.iter().map(|group| group.locator.memory_bytes()).sum();
        size_of::<Stock>() + runs + filter + locators
    }
}
