//! `pg_advisory_lock` and its kin: locks of numbers that programs agree on.

use std::sync::Arc;

use onrush::{AdvisoryLocks, AdvisoryScope, DataType, Value};
use onrush_query::{ColumnType, SystemFunction};

use crate::error::{Result, SqlError, state};
use crate::execute::{Patience, locks_of};
use crate::sequences::refused;

/// The locks of one client.
pub(crate) struct ClientLocks {
    pub(crate) locks: AdvisoryLocks,
    pub(crate) patience: Patience,
}

/// What a function does.
#[derive(Clone, Copy)]
enum Call {
    Lock(AdvisoryScope),
    TryLock(AdvisoryScope),
    Unlock,
}

const FUNCTIONS: [(&str, &str, Call); 5] = [
    ("pg_advisory_lock", "pg_advisory_lock_shared", Call::Lock(AdvisoryScope::Session)),
    (
        "pg_advisory_xact_lock",
        "pg_advisory_xact_lock_shared",
        Call::Lock(AdvisoryScope::Transaction),
    ),
    ("pg_try_advisory_lock", "pg_try_advisory_lock_shared", Call::TryLock(AdvisoryScope::Session)),
    (
        "pg_try_advisory_xact_lock",
        "pg_try_advisory_xact_lock_shared",
        Call::TryLock(AdvisoryScope::Transaction),
    ),
    ("pg_advisory_unlock", "pg_advisory_unlock_shared", Call::Unlock),
];

/// All of them, but for `pg_advisory_unlock_all`, which stands alone in a statement.
pub(crate) fn functions() -> Vec<SystemFunction> {
    let both = FUNCTIONS.into_iter().flat_map(|(exclusive, shared, call)| {
        [function(exclusive, call, false), function(shared, call, true)]
    });
    both.collect()
}

fn function(name: &'static str, call: Call, is_shared: bool) -> SystemFunction {
    let returns = match call {
        Call::Lock(_) => DataType::Text,
        Call::TryLock(_) | Call::Unlock => DataType::Boolean,
    };
    let returns = ColumnType::Stored(returns);
    let of_client = SystemFunction::fallible_of_client(name, returns, move |client, given| {
        let locks = locks_of(client).ok_or_else(|| refused(nobody(name)))?;
        locks.call(name, call, is_shared, given).map_err(refused)
    });
    of_client.volatile(move |_| Err(refused(nobody(name))))
}

impl ClientLocks {
    fn call(
        self: &Arc<Self>,
        name: &str,
        call: Call,
        is_shared: bool,
        given: &[Value<'_>],
    ) -> Result<Value<'static>> {
        if given.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        let key = key_of(given).ok_or_else(|| {
            let message = format!("function {name} takes a bigint, or two integers");
            SqlError::new(state::UNDEFINED_FUNCTION, message)
        })?;
        match call {
            Call::Lock(scope) => {
                match self.locks.lock(&key, is_shared, scope).map_err(SqlError::from) {
                    Ok(()) => Ok(Value::from("")),
                    Err(error) if error.is_interrupted() => Err(self.patience.given_up()),
                    Err(error) => Err(error),
                }
            }
            Call::TryLock(scope) => Ok(Value::Boolean(self.locks.try_lock(&key, is_shared, scope))),
            Call::Unlock => Ok(Value::Boolean(self.locks.unlock(&key, is_shared))),
        }
    }
}

/// One number, or two, which are others than all single ones.
fn key_of(given: &[Value<'_>]) -> Option<Vec<u8>> {
    let numbers: Vec<i64> = given.iter().map(Value::as_i64).collect::<Option<_>>()?;
    if !matches!(numbers.len(), 1 | 2) {
        return None;
    }
    Some(numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
}

fn nobody(function: &str) -> SqlError {
    SqlError::not_supported(format!("{function} where no client asks"), "Ask in a query.")
}
