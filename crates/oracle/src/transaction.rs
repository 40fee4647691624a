//! A transaction sees the state of its beginning with its own changes; of two that change one place the first that
//! commits wins.
//!
//! Invariant: a row that a transaction has inserted and deleted again was never there, and overtakes nobody.

use std::collections::BTreeMap;

use crate::history::{History, Placed};

/// The commit that changed each place last.
#[derive(Clone, Debug)]
pub struct Changed<P>(BTreeMap<P, usize>);

impl<P> Default for Changed<P> {
    fn default() -> Self {
        Changed(BTreeMap::new())
    }
}

impl<P: Ord> Changed<P> {
    /// Commit `number` has changed these.
    pub(crate) fn note(&mut self, places: impl IntoIterator<Item = P>, number: usize) {
        self.0.extend(places.into_iter().map(|place| (place, number)));
    }

    /// The commit that changed a place last.
    pub fn last(&self, place: &P) -> Option<usize> {
        self.0.get(place).copied()
    }

    /// Whether a place was changed after the first `commits` commits.
    pub fn is_since(&self, place: &P, commits: usize) -> bool {
        self.last(place).is_some_and(|number| number > commits)
    }

    /// All places, each with the commit that changed it last.
    pub fn iter(&self) -> impl Iterator<Item = (&P, usize)> {
        self.0.iter().map(|(place, number)| (place, *number))
    }

    /// Places that have another name now are known under both.
    pub fn rename(&mut self, renamed: impl Fn(&P) -> Option<P>) {
        let places = self.iter().filter_map(|(place, number)| Some((renamed(place)?, number)));
        let places: Vec<(P, usize)> = places.collect();
        self.0.extend(places);
    }

    /// Forgets places, by the commit that changed them last.
    pub fn retain(&mut self, keep: impl Fn(&P, usize) -> bool) {
        self.0.retain(|place, number| keep(place, *number));
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Transaction<S: Placed> {
    view: S,
    since: usize,
    /// What is left of its changes, and whether it has inserted the row itself.
    writes: BTreeMap<S::Place, (S::Change, bool)>,
}

impl<S: Placed> Transaction<S> {
    /// Begins after all commits so far.
    pub fn begin(history: &History<S>) -> Transaction<S> {
        let (view, since) = (history.now().clone(), history.len());
        Transaction { view, since, writes: BTreeMap::new() }
    }

    /// What it sees.
    pub fn view(&self) -> &S {
        &self.view
    }

    /// A row where it sees none.
    pub fn insert(&mut self, change: S::Change) {
        self.write(change, |before| before.unwrap_or(true));
    }

    /// Another row where it sees one.
    pub fn update(&mut self, change: S::Change) {
        self.write(change, |before| before.unwrap_or(false));
    }

    /// A row, whether it sees one or not.
    pub fn upsert(&mut self, change: S::Change) {
        self.write(change, |_| false);
    }

    /// No row where it sees one.
    pub fn delete(&mut self, change: S::Change) {
        if self.write(change.clone(), |_| false) == Some(true) {
            let places = self.view.places(&change);
            places.iter().for_each(|place| drop(self.writes.remove(place)));
        }
    }

    /// Returns whether the row was its own before, if it has written it.
    fn write(&mut self, change: S::Change, is_own: fn(Option<bool>) -> bool) -> Option<bool> {
        let place = self.view.places(&change).pop()?;
        self.view.apply(&change);
        let before = self.writes.get(&place).map(|(_, is_own)| *is_own);
        self.writes.insert(place, (change, is_own(before)));
        before
    }

    /// Where it has changed something.
    pub fn places(&self) -> impl ExactSizeIterator<Item = &S::Place> {
        self.writes.keys()
    }

    /// How many commits it sees.
    pub fn since(&self) -> usize {
        self.since
    }

    /// Whether another one has committed a change of something that it has changed.
    pub fn is_overtaken(&self, history: &History<S>) -> bool {
        self.places().any(|place| history.changed.is_since(place, self.since))
    }

    /// What its commit does.
    pub fn into_changes(self) -> Vec<S::Change> {
        self.writes.into_values().map(|(change, _)| change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rows = BTreeMap<u32, char>;

    #[test]
    fn a_row_of_its_own_that_is_gone_again_was_never_there() {
        let mut transaction = Transaction::begin(&History::new(Rows::from([(1, 'a')])));
        transaction.insert((2, Some('b')));
        transaction.update((2, Some('c')));
        transaction.delete((1, None));
        transaction.insert((1, Some('d')));
        assert_eq!(*transaction.view(), Rows::from([(1, 'd'), (2, 'c')]));
        transaction.delete((2, None));
        transaction.delete((1, None));
        assert!(transaction.view().is_empty());
        assert_eq!(transaction.into_changes(), [(1, None)]);
    }

    #[test]
    fn the_first_that_commits_wins() {
        let mut history = History::new(Rows::new());
        history.commit(0, vec![(1, Some('a'))]);
        let mut transaction = Transaction::begin(&history);
        transaction.upsert((1, Some('b')));
        assert!(!transaction.is_overtaken(&history));
        history.commit(0, vec![(1, Some('c'))]);
        assert!(transaction.is_overtaken(&history));
    }
}
