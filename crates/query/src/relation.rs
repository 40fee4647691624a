//! What a name in FROM can stand for.

use std::fmt::Debug;
use std::sync::Arc;

use onrush::{Row, Table};

use crate::cold::ColdRows;
use crate::error::Result;
use crate::statement::Statement;
use crate::types::ColumnType;
use crate::view::View;

/// Something with rows.
#[derive(Clone)]
pub enum Relation {
    /// A table of the database, with the columns that SQL shows.
    Table(Table),
    /// A table of the database with all its columns, for a statement that must know which row is which.
    TableWithRowIds(Table),
    /// A table of the database with the columns at these positions.
    Columns(Table, Vec<usize>),
    /// A query that stands here.
    View(Arc<View>),
    /// A table of the database, and rows of it and of others like it in files elsewhere.
    Cold(Arc<dyn ColdRows>),
    /// Rows that are made when a statement asks for them.
    Made(Arc<dyn MadeRows>),
}

/// Finds relations by name, for one statement.
pub trait Relations {
    /// The relation of this name, in the schema where one is given.
    ///
    /// # Errors
    /// [`QueryError::Refused`](crate::QueryError::Refused), where there is none.
    fn find(&self, schema: Option<&str>, name: &str) -> Result<Relation>;

    /// Whether it is a relation that never has rows.
    fn is_always_empty(&self, schema: Option<&str>, name: &str) -> bool;
}

/// A view of the system, whose rows stand nowhere.
pub trait MadeRows: Debug + Send + Sync {
    /// Name and type of each column.
    fn columns(&self) -> Vec<(&str, ColumnType)>;

    /// The rows as things are now, with a value for each column.
    fn rows(&self, statement: &Statement) -> Vec<Row>;
}
