//! A session that brings the keys of its rows, and between two inserts reads and updates rows of its own.

use onrush::{Error, Session, Table, Value};

use super::client_keys::{ClientKeys, Key};
use super::crowd::Shared;
use super::ledger::Ledger;
use super::mix::{Mix, Mixer, Operation};
use super::{ClientLoad, LoadPlan};
use crate::classic_table::{NumberColumns, classic_row};
use crate::error::MeasureError;
use crate::stand::unix_micros;

/// One such session.
pub(super) struct Client<'n> {
    keys: ClientKeys<'n>,
    numbers: NumberColumns,
    mix: Mix,
    mixer: Mixer<Key>,
}

impl<'n> Client<'n> {
    pub(super) fn new(load: ClientLoad, plan: &LoadPlan<'n>) -> Result<Client<'n>, Error> {
        let keys = ClientKeys::new(load.key, load.spread, plan.numbers)?;
        let ClientLoad { numbers, mix, .. } = load;
        Ok(Client { keys, numbers, mix, mixer: Mixer::new(mix) })
    }

    /// Inserts one row in a commit of its own.
    #[inline]
    pub(super) fn commit(
        &mut self,
        table: &Table,
        session: &mut Session,
        ledger: &mut Ledger,
    ) -> Result<(), Error> {
        let key = self.keys.draw()?;
        let timer = ledger.start_commit();
        session.insert(table, &classic_row(key, self.numbers, unix_micros()))?;
        ledger.committed(timer, 1);
        let (key_bytes, value) = session.last_row();
        match self.mix.updates_per_100_rows {
            0 => ledger.acknowledged(key_bytes, value),
            _ => ledger.keys.offer(key_bytes), // its value will be another one
        }
        self.mixer.inserted(key);
        Ok(())
    }

    /// Makes the reads and updates that are due, unless all are to stop.
    #[inline]
    pub(super) fn read_and_update(
        &mut self,
        table: &Table,
        session: &mut Session,
        shared: &Shared,
        failed: impl Fn(Error) -> MeasureError,
    ) -> Result<(), MeasureError> {
        while let Some((operation, key)) = self.mixer.due() {
            if shared.is_stopped() {
                return Ok(());
            }
            let key = [key.value()];
            let is_there = match operation {
                Operation::Read => session.get_raw(table, &key, |_, _| ()).map(|row| row.is_some()),
                Operation::Update => {
                    let now = Value::Timestamp(unix_micros());
                    session.update(table, &key, &[("c2", now)])
                }
            };
            if !is_there.map_err(&failed)? {
                return Err(MeasureError::RowMissing { key: key[0].to_string() });
            }
        }
        Ok(())
    }
}
