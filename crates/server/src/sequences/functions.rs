//! `nextval` and the like, and a sequence read as a table.

use std::fmt;
use std::sync::Arc;

use onrush::{DataType, Table, Value};
use onrush_query::{ColumnType, MadeRows, QueryError, Statement, SystemFunction};

use super::client::{ClientSequences, caller};
use super::identity::ValueSource;
use super::store::table_with_id;
use super::{Sequences, client};
use crate::catalog;
use crate::error::{Report, Result, SqlError, state};
use crate::execute::{caller_of, seen_by};
use crate::schemas;
use crate::seen::Seen;
use crate::sql::Lookup;

/// How often a sequence is looked up again that others alter meanwhile.
const TRIES: usize = 100;

const NUMBER: ColumnType = ColumnType::Stored(DataType::Int64);

/// What a function does for a client.
type Call = fn(&Asking<'_>, &[Value<'_>]) -> Result<Value<'static>>;

/// All of them, for one server.
pub(crate) fn functions(sequences: &Arc<Sequences>) -> Vec<SystemFunction> {
    let functions: [(&'static str, Call); 4] = [
        ("nextval", |asking, given| {
            asking.of_sequence(given, 1..=1, |client, source| client.next(source))
        }),
        ("currval", |asking, given| {
            asking.of_sequence(given, 1..=1, |client, source| client.current(source))
        }),
        ("setval", |asking, given| {
            let is_called = given.get(2) != Some(&Value::Boolean(false));
            asking.of_sequence(given, 2..=3, |client, source| {
                let value = given[1].as_i64().ok_or_else(|| no_function("setval", given))?;
                client.set(source, value, is_called)?;
                Ok(value)
            })
        }),
        ("lastval", |asking, given| match given {
            [] => Ok(Value::Int64(asking.session.newest()?)),
            _ => Err(no_function("lastval", given)),
        }),
    ];
    let function = |(name, call): (&'static str, Call)| {
        let sequences = Arc::clone(sequences);
        let of_client = SystemFunction::fallible_of_client(name, NUMBER, move |client, given| {
            let session = caller_of(client);
            let Some(session) = session else { return Err(refused(nobody(name))) };
            let seen = seen_by(client, &sequences.database);
            let asking = Asking { name, session: &session, seen: &seen, path: &client.schemas() };
            let settings = client.settings.as_ref();
            let read_only = settings.and_then(|it| it.setting("transaction_read_only"));
            asking.check_read_only(read_only.as_deref() == Some("on"), given).map_err(refused)?;
            call(&asking, given).map_err(refused)
        });
        // In defaults, which name sequences by their numbers.
        of_client.volatile(move |given| {
            let Some(session) = caller() else { return Err(refused(nobody(name))) };
            let seen = Seen::committed(&session.shared.database);
            let asking = Asking { name, session: &session, seen: &seen, path: &[] };
            call(&asking, given).map_err(refused)
        })
    };
    functions.into_iter().map(function).collect()
}

/// What a name means to a client that asks for the next value; none where it is NULL.
pub(crate) fn source_named(
    session: &Arc<ClientSequences>,
    (seen, path): (&Seen, &[String]),
    name: &Value<'_>,
    is_read_only: bool,
) -> Result<Option<ValueSource>> {
    if name.is_null() {
        return Ok(None);
    }
    let asking = Asking { name: "nextval", session, seen, path };
    asking.check_read_only(is_read_only, &[name.borrowed()])?;
    asking.source(name).map(Some)
}

/// `nextval` of the sequence of a name, as a client sees it.
pub(crate) fn next_named(
    session: &Arc<ClientSequences>,
    (seen, path): (&Seen, &[String]),
    name: &Value<'_>,
) -> Result<Value<'static>> {
    let asking = Asking { name: "nextval", session, seen, path };
    asking.of_sequence(&[name.borrowed()], 1..=1, |client, source| client.next(source))
}

/// The value of a default that is the next one of a sequence, by the number of its table.
pub(crate) fn next_of(number: u32) -> Result<i64> {
    let Some(session) = caller() else { return Err(nobody("nextval")) };
    session.retried(|| {
        let table = session.table(number);
        let source =
            table.map(ValueSource::Sequence).ok_or_else(|| unknown(&number.to_string()))?;
        session.next(&source)
    })
}

/// Who asks, and what is seen.
struct Asking<'a> {
    name: &'static str,
    session: &'a Arc<ClientSequences>,
    seen: &'a Seen,
    path: &'a [String],
}

impl Asking<'_> {
    fn of_sequence(
        &self,
        given: &[Value<'_>],
        counts: std::ops::RangeInclusive<usize>,
        call: impl Fn(&ClientSequences, &ValueSource) -> Result<i64>,
    ) -> Result<Value<'static>> {
        if !counts.contains(&given.len()) {
            return Err(no_function(self.name, given));
        }
        if given.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        let done = self.session.retried(|| call(self.session, &self.source(&given[0])?))?;
        Ok(Value::Int64(done))
    }

    /// The sequence that an argument names, or has the number of.
    fn source(&self, given: &Value<'_>) -> Result<ValueSource> {
        let number = match given {
            Value::Text(name) => match name.parse::<i64>() {
                Ok(number) => number,
                Err(_) => {
                    let lookup = Lookup { seen: self.seen, path: self.path };
                    if let Some(found) = lookup.written(name) {
                        return Ok(ValueSource::Sequence(self.seen.table(&found)?));
                    }
                    let identity = lookup.written_identity(name).map(ValueSource::Identity);
                    return identity.ok_or_else(|| unknown(name));
                }
            },
            other => other.as_i64().ok_or_else(|| no_function(self.name, &[given.borrowed()]))?,
        };
        let known = catalog::number_of(number).and_then(|number| self.session.table(number));
        let seen = known.filter(|table| self.seen.is_current(table));
        let found =
            seen.or_else(|| catalog::table_with(self.seen, number)).map(ValueSource::Sequence);
        let identity = || catalog::identity_with(self.seen, number).map(ValueSource::Identity);
        found.or_else(identity).ok_or_else(|| unknown(&number.to_string()))
    }

    /// Refuses to change a sequence in a transaction that only reads.
    fn check_read_only(&self, is_read_only: bool, given: &[Value<'_>]) -> Result<()> {
        if !is_read_only || !matches!(self.name, "nextval" | "setval") {
            return Ok(());
        }
        let source = given.first().and_then(|given| self.source(given).ok());
        let is_temporary = match source {
            Some(ValueSource::Sequence(table)) => schemas::has_temporary(table.name()),
            Some(ValueSource::Identity(identity)) => schemas::has_temporary(identity.table.name()),
            None => false,
        };
        if is_temporary {
            return Ok(());
        }
        let message = format!("cannot execute {}() in a read-only transaction", self.name);
        Err(SqlError::new(state::READ_ONLY_TRANSACTION, message))
    }
}

impl ClientSequences {
    /// Does `work` again where somebody has altered what it was about.
    fn retried<T>(&self, work: impl Fn() -> Result<T>) -> Result<T> {
        let mut tries = 0;
        loop {
            tries += 1;
            match work() {
                Err(error) if error.is_table_changed() && tries < TRIES => {}
                Err(error) if error.is_interrupted() => break Err(self.given_up()),
                other => break other,
            }
        }
    }

    /// The table with a number, as the client sees it.
    pub(super) fn table(&self, number: u32) -> Option<Table> {
        if let Some(own) = self.own_table(number) {
            return Some(own);
        }
        if let Some(known) = self.shared.known(number) {
            return Some(known);
        }
        let found = table_with_id(&self.shared.database, number)?;
        self.shared.keep(&found);
        Some(found)
    }
}

/// There is nobody whose values they could be.
fn nobody(function: &str) -> SqlError {
    SqlError::not_supported(format!("{function} where no client asks"), "Give a value.")
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(state::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"))
}

fn no_function(name: &str, given: &[Value<'_>]) -> SqlError {
    let kind = |value: &Value<'_>| match value {
        Value::Text(_) => "unknown".to_owned(),
        other => other.kind().to_string(),
    };
    let given: Vec<String> = given.iter().map(kind).collect();
    let message = format!("function {name}({}) does not exist", given.join(", "));
    SqlError::new(state::UNDEFINED_FUNCTION, message)
}

/// An error as the query engine passes it on.
pub(crate) fn refused(error: SqlError) -> QueryError {
    let Report { state, message, hint, .. } = error.into_report();
    let refused = QueryError::refused(state, message);
    match hint {
        Some(hint) => refused.hint(hint),
        None => refused,
    }
}

/// A sequence as it is read: where it stands.
pub(crate) struct Row(pub(crate) ValueSource);

impl fmt::Debug for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ValueSource::Sequence(table) => formatter.write_str(table.name()),
            ValueSource::Identity(identity) => formatter.write_str(&identity.name()),
        }
    }
}

impl MadeRows for Row {
    fn columns(&self) -> Vec<(&str, ColumnType)> {
        let flag = ColumnType::Stored(DataType::Boolean);
        vec![("last_value", NUMBER), ("log_cnt", NUMBER), ("is_called", flag)]
    }

    fn rows(&self, statement: &Statement) -> Vec<onrush::Row> {
        let Some(client) = caller_of(&statement.client) else { return Vec::new() };
        // Of a database that has stopped nothing is told.
        let Ok(position) = client.position(&self.0) else { return Vec::new() };
        vec![position.row().into_iter().take(3).collect()]
    }
}

/// Refuses what is no sequence.
pub(crate) fn check_is_sequence(table: &Table) -> Result<()> {
    client::definition(table).map(drop)
}
