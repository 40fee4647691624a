//! The prepared statements and cursors of a client, as `pg_prepared_statements` and `pg_cursors` show them to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use onrush_query::clock::unix_micros;
use parking_lot::Mutex;

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
}
