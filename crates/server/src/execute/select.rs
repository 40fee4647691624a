//! SELECT the short way: the row with a key, and values without a table.

use std::sync::Arc;

use onrush::{Row, ScanOptions, Table, Value};
use onrush_query::clock::{now_micros, statement_micros};

use super::rows::Source;
use super::transaction::Work;
use super::{Answer, Backend, DATABASE, RowStream, VERSION, in_failed_transaction};
use crate::access::Right;
use crate::error::{Result, SqlError};
use crate::sequences::{Identity, ValueSource, next_named, source_named};
use crate::sql::{
    Bound, CopyPlan, Function, GetPlan, Operand, OutputColumn, Scalar, SettingChange, count_of,
    key_of,
};

impl Backend {
    pub(super) fn get(&mut self, plan: &GetPlan, bound: &Bound) -> Result<RowStream> {
        let rows = self.found(plan, bound)?.into_iter().collect();
        Ok(RowStream::of_rows(Arc::clone(&plan.columns), rows, "SELECT"))
    }

    /// The row with the key, if it is there and wanted.
    pub(super) fn found(&mut self, plan: &GetPlan, bound: &Bound) -> Result<Option<Row>> {
        let limit = match &plan.limit {
            Some(limit) => count_of(&limit.value(bound)?, "LIMIT")?,
            None => None,
        };
        match key_of(&plan.key, bound)? {
            Some(key) if limit != Some(0) => self.row_with_key(&plan.table, &key),
            _ => Ok(None),
        }
    }

    fn row_with_key(&mut self, table: &Table, key: &[Value<'_>]) -> Result<Option<Row>> {
        match &mut self.work {
            Work::Idle(session) => Ok(session.get(table, key)?),
            Work::Open(open) => open.with_dependent_mut(|_, transaction| {
                let transaction = transaction.as_mut().ok_or_else(in_failed_transaction)?;
                Ok(transaction.get(table, key)?)
            }),
            _ => Err(in_failed_transaction()),
        }
    }

    /// All rows of a table, for COPY.
    pub(super) fn copy_out(&mut self, copy: &CopyPlan) -> Result<Answer> {
        let options = ScanOptions::default();
        let scan = match &mut self.work {
            Work::Idle(session) => session.scan(&copy.table, &options)?,
            Work::Open(open) => open.with_dependent_mut(|_, transaction| {
                let transaction = transaction.as_mut().ok_or_else(in_failed_transaction)?;
                Ok::<_, crate::error::SqlError>(transaction.scan(&copy.table, &options)?)
            })?,
            _ => return Err(in_failed_transaction()),
        };
        let all = copy.table.definition().columns();
        let column = |source: &usize| OutputColumn {
            name: all[*source].name.clone(),
            column_type: all[*source].data_type.into(),
            source: *source,
        };
        let columns: Arc<[OutputColumn]> = copy.columns.iter().map(column).collect();
        let stream =
            RowStream::new(columns, Source::Scan(Box::new(scan), copy.table.clone()), "COPY");
        Ok(Answer::CopyOut(copy.format.clone(), Box::new(stream)))
    }

    /// One row of values without a table.
    pub(super) fn scalars(
        &mut self,
        columns: &Arc<[OutputColumn]>,
        scalars: &[Scalar],
        bound: &Bound,
    ) -> Result<RowStream> {
        let mut row = Vec::with_capacity(scalars.len());
        for scalar in scalars {
            row.push(match scalar {
                Scalar::Value(operand) => operand.value(bound)?.into_owned(),
                Scalar::Function(function) => self.function(*function)?,
                Scalar::NextValue(name) => self.next_value(&name.value(bound)?)?,
                Scalar::Setting(name, may_lack) => {
                    let name = name.value(bound)?;
                    let may_lack = may_lack.as_ref().map(|may_lack| may_lack.value(bound));
                    match (name.as_str(), may_lack.transpose()?) {
                        (None, _) | (_, Some(Value::Null)) => Value::Null,
                        (Some(name), may_lack) => match self.settings.show(name) {
                            Err(_) if may_lack == Some(Value::Boolean(true)) => Value::Null,
                            shown => shown?.into(),
                        },
                    }
                }
                Scalar::SetSetting(given) => self.set_setting(given, bound)?,
            });
        }
        Ok(RowStream::of_rows(Arc::clone(columns), vec![row], "SELECT"))
    }

    /// `nextval`. Of an identity it is the one that the client's next row would get.
    fn next_value(&mut self, name: &Value<'_>) -> Result<Value<'static>> {
        let sight = (&self.seen, &self.settings.path[..]);
        let is_read_only = self.settings.is_read_only;
        let identity = match source_named(&self.sequences, sight, name, is_read_only)? {
            None => return Ok(Value::Null),
            Some(ValueSource::Sequence(_)) => return next_named(&self.sequences, sight, name),
            Some(ValueSource::Identity(identity)) => identity,
        };
        self.sequences.check(&[Right::Insert], &identity.table)?;
        let Identity { table, column, .. } = &identity;
        let value = match &mut self.work {
            Work::Idle(session) => session.next_identity(table, *column)?,
            Work::Open(open) => open.with_dependent_mut(|_, transaction| {
                let transaction = transaction.as_mut().ok_or_else(in_failed_transaction)?;
                Ok::<_, SqlError>(transaction.next_identity(table, *column)?)
            })?,
            _ => return Err(in_failed_transaction()),
        };
        Ok(value.map_or(Value::Null, Value::Int64))
    }

    /// `set_config`, which gives the new value.
    fn set_setting(&mut self, given: &[Operand; 3], bound: &Bound) -> Result<Value<'static>> {
        let [name, value, is_local] = given;
        let (name, value) = (name.value(bound)?, value.value(bound)?);
        let change = SettingChange {
            name: Some(name.as_str().unwrap_or_default().to_owned()),
            value: value.as_str().map(str::to_owned),
            is_local: is_local.value(bound)? == Value::Boolean(true),
            is_reset: false,
        };
        // For a transaction that is over with this statement there is nothing to set.
        if !change.is_local || self.is_in_transaction() {
            self.set(&change)?;
        }
        Ok(self.settings.show(name.as_str().unwrap_or_default())?.into())
    }

    fn function(&mut self, function: Function) -> Result<Value<'static>> {
        Ok(match function {
            Function::Now => Value::TimestampTz(now_micros()),
            Function::Clock => Value::TimestampTz(statement_micros()),
            Function::RandomUuid => Value::Uuid(onrush::Uuid::new_v4()),
            Function::WaitDurable => {
                self.newest = Some(self.idle_for_barrier()?.newest_token());
                Value::Null
            }
            Function::BackendNumber => Value::Int32(self.client.number),
            Function::Version => VERSION.into(),
            Function::CurrentDatabase => DATABASE.into(),
            Function::CurrentUser => Value::from(self.client.user.to_string()),
            Function::SessionUser => Value::from(self.client.session_user.to_string()),
            Function::CurrentSchema => {
                let schema = self.planner().lookup().current()?;
                schema.map_or(Value::Null, |schema| Value::from(schema.to_owned()))
            }
            Function::UnlockAll => {
                self.locks.locks.unlock_all();
                "".into()
            }
            Function::Key(_) | Function::OwnNodeOffset => Value::Null,
        })
    }

    fn idle_for_barrier(&mut self) -> Result<&mut onrush::Session> {
        self.outside_transaction("onrush.wait_durable()")?;
        self.idle()
    }
}
