//! Plans by the text they were made of. Many drivers prepare the statement of each call anew, and some
//! prepare one text under many names: all of these share a plan, which is then in the processor's caches.

use std::collections::HashMap;
use std::sync::Arc;

use super::extended::Prepared;

/// Most plans that are remembered for one client.
const PLANS_MAX: usize = 32;

/// Longer texts are planned each time, so that what is remembered stays small.
const TEXT_BYTES_MAX: usize = 2048;

/// Of one client: a plan depends on the path on which it looks for tables.
#[derive(Default)]
pub(super) struct KnownPlans {
    by_text: HashMap<Box<str>, Known>,
}

struct Known {
    /// The types of parameters that the client declared.
    oids: Vec<u32>,
    /// Of the definitions of all tables, when the plan was made.
    version: u64,
    prepared: Arc<Prepared>,
}

impl KnownPlans {
    pub(super) fn get(&self, text: &str, oids: &[u32], version: u64) -> Option<&Arc<Prepared>> {
        let known = self.by_text.get(text)?;
        (known.oids == oids && known.version == version).then_some(&known.prepared)
    }

    pub(super) fn insert(
        &mut self,
        text: &str,
        oids: Vec<u32>,
        version: u64,
        prepared: &Arc<Prepared>,
    ) {
        if text.len() > TEXT_BYTES_MAX || tells_the_day(text) {
            return;
        }
        if self.by_text.len() >= PLANS_MAX && !self.by_text.contains_key(text) {
            self.clear();
        }
        let prepared = Arc::clone(prepared);
        self.by_text.insert(text.into(), Known { oids, version, prepared });
    }

    /// What they take in memory, about.
    pub(super) fn bytes(&self) -> usize {
        self.by_text.values().map(|known| known.prepared.bytes()).sum()
    }

    pub(super) fn clear(&mut self) {
        self.by_text.clear();
    }
}

/// Whether a constant may have been read by the clock, so that it means something else later.
fn tells_the_day(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["'now", "today", "tomorrow", "yesterday"].iter().any(|word| lower.contains(word))
}
