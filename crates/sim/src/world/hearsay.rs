//! Answers that rest on what others have done: one session changes a row and does not wait, a durable
//! one is told of it at once. A power cut may take the change only if nobody durable was told.

use onrush::Durability;

use super::{Place, World};
use onrush_oracle::Checked;

impl World {
    /// A row comes or goes by a delayed session; then a durable one inserts the key that is taken, or
    /// deletes the row that is gone.
    pub(super) fn hearsay(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        let teller = self.some_session();
        let before = self.set_durability(teller, Durability::Delayed);
        let goes = self.random.chance(1, 2);
        let told = match self.some_key(table).filter(|_| goes) {
            Some(key) => self.delete_by(teller, table, key),
            None => self.insert_by(teller, table, false),
        };
        self.set_durability(teller, before);
        told?;
        let Some(place) = self.changed_last(table).filter(|_| self.stopped.is_none()) else {
            return Ok(());
        };
        let asker = self.some_session();
        let before = self.set_durability(asker, Durability::Durable);
        let asked = if self.has(&place) {
            self.insert_taken_by(asker, table, &place.1)
        } else {
            self.delete_missing_by(asker, table, &place.1)
        };
        self.set_durability(asker, before);
        asked
    }

    fn set_durability(&mut self, session: usize, durability: Durability) -> Durability {
        let before = self.sessions[session].durability();
        self.sessions[session].set_durability(durability);
        before
    }

    /// The key of this table that the newest commit changed, of those in this run.
    fn changed_last(&self, table: usize) -> Option<Place> {
        let name = self.tables[table].name();
        let changed = self.history.changed.iter().filter(|(place, _)| place.0 == name);
        changed.max_by_key(|(place, commit)| (*commit, *place)).map(|(place, _)| place.clone())
    }
}
