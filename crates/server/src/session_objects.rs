//! The prepared statements and cursors of a client, as `pg_prepared_statements` and `pg_cursors` show them to it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use onrush::{Table, Value};
use onrush_query::clock::unix_micros;
use parking_lot::Mutex;

use crate::error::{Result, SqlError, state};
use crate::schemas;
use crate::sql::KeyedRows;

/// All of them, by name.
#[derive(Default)]
pub(crate) struct SessionObjects {
    pub(crate) statements: Mutex<BTreeMap<String, ShownStatement>>,
    pub(crate) cursors: Mutex<BTreeMap<String, ShownCursor>>,
}

#[derive(Clone)]
pub(crate) struct ShownStatement {
    pub(crate) text: Arc<str>,
    pub(crate) made_micros: i64,
    pub(crate) parameters: Arc<[u32]>,
    /// By PREPARE, not by a message.
    pub(crate) is_from_sql: bool,
}

impl ShownStatement {
    pub(crate) fn new(text: &str, parameters: &Arc<[u32]>, is_from_sql: bool) -> ShownStatement {
        let (text, parameters) = (text.into(), Arc::clone(parameters));
        ShownStatement { text, made_micros: unix_micros(), parameters, is_from_sql }
    }
}

#[derive(Clone)]
pub(crate) struct ShownCursor {
    pub(crate) text: Arc<str>,
    pub(crate) made_micros: i64,
    pub(crate) is_held: bool,
    pub(crate) is_scroll: bool,
    /// None where its rows are no rows of tables.
    pub(crate) keyed: Option<Arc<KeyedRows>>,
    /// What stands behind the columns of the row on which it stands; none where it stands on no row.
    pub(crate) keys: Option<Vec<Value<'static>>>,
}

impl ShownCursor {
    /// Where the key of a table's rows stands.
    fn place(&self, table: &Table) -> Option<Range<usize>> {
        let keyed = self.keyed.as_ref()?;
        let (_, key) = keyed.tables.iter().find(|(own, _)| own.id() == table.id())?;
        Some(key.start - keyed.visible..key.end - keyed.visible)
    }

    /// The row on which it stands is another one now.
    pub(crate) fn follow(&mut self, table: &Table, row: &[Value<'static>]) {
        let Some(place) = self.place(table) else { return };
        let key = table.definition().primary_key().iter().map(|at| row[*at].clone());
        if let Some(known) = self.keys.as_mut().and_then(|keys| keys.get_mut(place)) {
            known.iter_mut().zip(key).for_each(|(known, now)| *known = now);
        }
    }

    /// The key of the row of a table on which the cursor of this name stands.
    ///
    /// # Errors
    /// It stands on none, or its rows are not those of the table.
    pub(crate) fn key(&self, name: &str, table: &Table) -> Result<Vec<Value<'static>>> {
        let Some(place) = self.place(table) else {
            let table = schemas::own_name(table.name());
            let message =
                format!("cursor {name:?} is not a simply updatable scan of table {table:?}");
            return Err(SqlError::new(state::INVALID_CURSOR_STATE, message));
        };
        let key = self.keys.as_ref().and_then(|keys| keys.get(place));
        key.map(<[Value<'static>]>::to_vec).ok_or_else(|| {
            let message = format!("cursor {name:?} is not positioned on a row");
            SqlError::new(state::INVALID_CURSOR_STATE, message)
        })
    }
}
