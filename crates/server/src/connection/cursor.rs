//! Cursors: rows that a client asks for by FETCH. They live as long as their transaction.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use super::{Connection, Stop};
use crate::error::{Result, SqlError, state};
use crate::execute::RowStream;
use crate::sql::{FetchPlan, OutputColumn};
use crate::values::Formats;

/// Most cursors of one client.
const CURSORS_MAX: usize = 1000;

/// All cursors of one client.
#[derive(Default)]
pub(super) struct Cursors {
    by_name: HashMap<String, Cursor>,
}

struct Cursor {
    columns: Arc<[OutputColumn]>,
    /// None when all were sent.
    rows: Option<Box<RowStream>>,
}

impl Cursors {
    pub(super) fn columns(&self, name: &str) -> Option<Arc<[OutputColumn]>> {
        self.by_name.get(name).map(|cursor| Arc::clone(&cursor.columns))
    }

    pub(super) fn clear(&mut self) {
        self.by_name.clear();
    }

    fn insert(&mut self, name: String, rows: Box<RowStream>) -> Result<()> {
        if self.by_name.contains_key(&name) {
            let message = format!("cursor {name:?} already exists");
            return Err(SqlError::new(state::DUPLICATE_CURSOR, message));
        }
        if self.by_name.len() >= CURSORS_MAX {
            let message = format!("there are {CURSORS_MAX} cursors already");
            return Err(SqlError::new(state::LIMIT_EXCEEDED, message).with_hint("CLOSE some."));
        }
        let columns = Arc::clone(rows.columns());
        self.by_name.insert(name, Cursor { columns, rows: Some(rows) });
        Ok(())
    }

    fn take(&mut self, name: &str) -> Result<Cursor> {
        self.by_name.remove(name).ok_or_else(|| {
            let message = format!("cursor {name:?} does not exist");
            SqlError::new(state::UNKNOWN_PORTAL, message)
                .with_hint("DECLARE makes one, for as long as its transaction.")
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) fn declare(&mut self, name: String, rows: Box<RowStream>) -> Result<()> {
        self.cursors.insert(name, rows)?;
        self.complete("DECLARE CURSOR".into());
        Ok(())
    }

    /// CLOSE, of one or of all.
    pub(super) fn close_cursor(&mut self, name: Option<&str>) -> Result<()> {
        match name {
            Some(name) => {
                self.cursors.take(name)?;
                self.complete("CLOSE CURSOR".into());
            }
            None => {
                self.cursors.clear();
                self.complete("CLOSE CURSOR ALL".into());
            }
        }
        Ok(())
    }

    /// Sends the next rows. One that fails is gone, with its transaction.
    pub(super) async fn fetch(
        &mut self,
        fetch: &FetchPlan,
        formats: &Formats,
    ) -> std::result::Result<(), Stop> {
        let mut cursor = self.cursors.take(&fetch.name)?;
        let mut count = 0;
        if let Some(rows) = &mut cursor.rows {
            let before = rows.sent();
            let has_more = self.rows(rows, formats, fetch.rows_max).await?;
            count = rows.sent() - before;
            if !has_more {
                cursor.rows = None;
            }
        }
        self.cursors.by_name.insert(fetch.name.clone(), cursor);
        self.complete(format!("FETCH {count}").into());
        Ok(())
    }
}
