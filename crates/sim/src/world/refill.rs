//! A table that is emptied and filled again by one transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use onrush::{Error, Session};

use super::World;
use super::tables::encode;
use onrush_oracle::Checked;
use onrush_oracle::Effect;

impl World {
    /// Empties a table and inserts rows, with checkpoints between them; commits, or does not.
    pub(super) fn refill(&mut self) -> Checked<()> {
        let Some(table) = self.some_table() else { return Ok(()) };
        let live = &self.tables[table];
        if live.is_generated() || !live.handle.definition().is_logged() || self.in_visit {
            return Ok(());
        }
        self.snapshots.clear();
        let number = self.some_session();
        let mut sessions = std::mem::take(&mut self.sessions);
        let begun_at = self.timestamp();
        let refilled = self.refill_in(table, &mut sessions[number]);
        self.sessions = sessions;
        match refilled? {
            Some((effects, outcome)) => {
                self.finish_change("refill", number, begun_at, effects, outcome)
            }
            None => Ok(()),
        }
    }

    /// What was committed, and how that ended; none if it was not to be.
    fn refill_in(
        &mut self,
        table: usize,
        session: &mut Session,
    ) -> Checked<Option<(Vec<Effect>, onrush::Result<()>)>> {
        let name = self.tables[table].name().to_owned();
        let begun = session.begin().and_then(|mut transaction| {
            let emptied = transaction.truncate_table(&name)?;
            Ok((transaction, emptied))
        });
        let (mut transaction, emptied) = match begun {
            Ok(begun) => begun,
            Err(error) => return self.failed("empty in a transaction", &error).map(|_| None),
        };
        let mut rows: BTreeMap<Vec<u8>, Arc<[u8]>> = BTreeMap::new();
        for _ in 0..self.random.below(24) {
            let values = self.new_row(table);
            let (key, value) = encode(&emptied, &values)?;
            match transaction.insert(&emptied, &values) {
                Ok(()) => drop(rows.insert(key, value)),
                Err(Error::DuplicateKey { .. }) if rows.contains_key(&key) => {}
                Err(error) => return self.failed("refill", &error).map(|_| None),
            }
            if self.random.chance(1, 8)
                && let Err(error) = self.database()?.checkpoint()
            {
                return self.failed("a checkpoint in a transaction", &error).map(|_| None);
            }
        }
        if self.random.chance(1, 4) {
            transaction.rollback();
            return Ok(None);
        }
        let puts =
            rows.into_iter().map(|(key, value)| Effect::Put { table: name.clone(), key, value });
        let effects = [Effect::Truncate { table: name.clone() }].into_iter().chain(puts).collect();
        Ok(Some((effects, transaction.commit())))
    }
}
