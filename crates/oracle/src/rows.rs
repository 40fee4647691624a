//! The simplest state: rows by key, as a map has them.

use std::collections::BTreeMap;

use crate::history::{Expected, Placed};

impl<K: Ord + Clone, V: Clone + PartialEq> Expected for BTreeMap<K, V> {
    /// What a key has from now on; none where its row is gone.
    type Change = (K, Option<V>);
    type Print = BTreeMap<K, V>;

    fn apply(&mut self, (key, value): &(K, Option<V>)) {
        match value {
            Some(value) => self.insert(key.clone(), value.clone()),
            None => self.remove(key),
        };
    }

    fn print(&self) -> BTreeMap<K, V> {
        self.clone()
    }
}

impl<K: Ord + Clone, V: Clone + PartialEq> Placed for BTreeMap<K, V> {
    type Place = K;

    fn places(&self, (key, _): &(K, Option<V>)) -> Vec<K> {
        vec![key.clone()]
    }
}
