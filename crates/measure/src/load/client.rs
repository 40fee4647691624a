//! A session that brings the keys of its rows, and between two inserts reads and updates rows of its own.

use onrush::{Session, Table, Value};

use super::client_keys::{ClientKeys, Key};
use super::ledger::Ledger;
use super::mix::{Mix, Mixer, Operation};
use super::{ClientLoad, LoadPlan};
use crate::classic_table::classic_row;
use crate::error::MeasureError;
use crate::stand::unix_micros;

/// One such session.
pub(super) struct Client<'n> {
    keys: ClientKeys<'n>,
    mix: Mix,
    mixer: Mixer<Key>,
}

impl<'n> Client<'n> {
    pub(super) fn new(load: ClientLoad, plan: &LoadPlan<'n>) -> Result<Client<'n>, MeasureError> {
        let keys =
            ClientKeys::new(load.key, load.spread, plan.numbers).map_err(onrush::Error::from)?;
        Ok(Client { keys, mix: load.mix, mixer: Mixer::new(load.mix) })
    }

    /// Inserts one row in a commit of its own; then makes the reads and updates that are due.
    #[inline]
    pub(super) fn commit(
        &mut self,
        table: &Table,
        session: &mut Session,
        ledger: &mut Ledger,
    ) -> Result<(), MeasureError> {
        let key = self.keys.draw().map_err(onrush::Error::from)?;
        let timer = ledger.start_commit();
        session.insert(table, &classic_row(key.value(), unix_micros()))?;
        ledger.committed(timer, 1);
        if self.mix.updates_per_100_rows == 0 {
            let (key, value) = session.last_row();
            ledger.acknowledged(key, value);
        }
        self.mixer.inserted(key);
        while let Some((operation, key)) = self.mixer.due() {
            let key = [key.value()];
            let is_there = match operation {
                Operation::Read => session.get_raw(table, &key, |_, _| ())?.is_some(),
                Operation::Update => {
                    let now = Value::Timestamp(unix_micros());
                    session.update(table, &key, &[("c2", now)])?
                }
            };
            if !is_there {
                return Err(MeasureError::RowMissing { key: key[0].to_string() });
            }
        }
        Ok(())
    }
}
