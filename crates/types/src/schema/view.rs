//! Views as definitions keep them: a table whose columns are those of a query over other tables. It has no rows; or, if
//! it is materialized, those that the query gave when the view was last refreshed.
//!
//! Invariant: a view names what it reads by numbers, so that other names of that change nothing of it.

use super::{TableBuilder, TableDefinition};
use crate::TypeError;

/// Longest query of a view, in bytes.
pub const VIEW_BYTES_MAX: usize = 64_000;

/// A table that a view reads, or another view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewSource {
    /// The number of the table.
    pub table: u32,
    /// The numbers of the columns that it had when the view was made, in their order. Columns that it got since are
    /// not seen by the view.
    pub columns: Vec<u16>,
    /// Of these the ones that the query names.
    pub used: Vec<u16>,
}

/// What a column of a view is, where that is a type that columns of tables cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewColumnKind {
    /// The number of a thing of the catalogue; the column is a bigint.
    Oid,
    /// The name of a thing of the catalogue; the column is a text.
    Name,
    /// One byte of the catalogue; the column is a text.
    Char,
    /// An interval; the column is a text.
    Interval,
    /// An array of values of the column's type.
    Array,
    /// Such an array that is shown with blanks between its values.
    Vector,
}

/// The rows that a view keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ViewRows {
    /// None: whoever reads it asks its query.
    #[default]
    None,
    /// Those of its query: it is materialized.
    Kept,
    /// It is materialized, and was not refreshed yet: nobody can read it.
    Missing,
}

/// What a view is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewDefinition {
    /// The query. It names its sources by their places among them.
    pub query: String,
    /// What the query reads.
    pub sources: Vec<ViewSource>,
    /// Columns that are more than their type says, by number.
    pub kinds: Vec<(u16, ViewColumnKind)>,
    /// The rows that it keeps.
    pub rows: ViewRows,
}

impl ViewDefinition {
    /// Whether the query reads a table; where a column's number is given, whether it names that.
    #[must_use]
    pub fn uses(&self, table: u32, column: Option<u16>) -> bool {
        self.sources.iter().any(|source| {
            source.table == table && column.is_none_or(|column| source.used.contains(&column))
        })
    }

    fn fault(&self) -> Option<&'static str> {
        let is_shown =
            |source: &ViewSource| source.used.iter().all(|column| source.columns.contains(column));
        if self.query.is_empty() || self.query.len() > VIEW_BYTES_MAX {
            Some("the query of a view is empty or too long")
        } else if !self.sources.iter().all(is_shown) {
            Some("a view names a column that it does not see")
        } else {
            None
        }
    }
}

impl TableBuilder {
    /// Makes the table a view, with the key of a table [without one](Self::keyed_by_row_id).
    #[must_use]
    pub fn view(mut self, view: ViewDefinition) -> TableBuilder {
        self.view = Some(view);
        self.keyed_by_row_id()
    }
}

impl TableDefinition {
    /// What makes the table a view without rows; none for one that is not.
    pub fn view(&self) -> Option<&ViewDefinition> {
        self.view.as_ref().filter(|view| view.rows == ViewRows::None)
    }

    /// What makes the table a view that keeps rows; none for one that is not.
    pub fn materialized_view(&self) -> Option<&ViewDefinition> {
        self.view.as_ref().filter(|view| view.rows != ViewRows::None)
    }

    /// What makes the table a view, whether it keeps rows or not.
    pub fn any_view(&self) -> Option<&ViewDefinition> {
        self.view.as_ref()
    }

    /// Whether it has rows, which neither sequences nor types have, nor views but materialized ones.
    pub fn is_table(&self) -> bool {
        self.view().is_none() && self.sequence().is_none() && !self.is_type()
    }

    pub(super) fn check_view(&self) -> Result<(), TypeError> {
        match self.view.as_ref().and_then(ViewDefinition::fault) {
            Some(reason) => Err(TypeError::DefinitionDamaged { at: 0, reason }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnDefinition, DataType};

    fn view() -> ViewDefinition {
        let source = ViewSource { table: 70_000, columns: vec![0, 2, 3], used: vec![2] };
        ViewDefinition {
            query: "SELECT x FROM y".into(),
            sources: vec![source],
            kinds: vec![(0, ViewColumnKind::Array), (1, ViewColumnKind::Interval)],
            rows: ViewRows::None,
        }
    }

    #[test]
    fn a_view_comes_back_from_its_bytes() -> Result<(), TypeError> {
        let table = TableDefinition::builder("v")
            .column(ColumnDefinition::new("a", DataType::Int32))
            .column(ColumnDefinition::new("b", DataType::Text))
            .view(view())
            .build()?;
        assert_eq!(TableDefinition::from_bytes(&table.to_bytes())?, table);
        assert_eq!(table.shown_columns().collect::<Vec<_>>(), [0, 1]);
        assert!(!table.is_table());
        Ok(())
    }

    #[test]
    fn a_materialized_view_comes_back_from_its_bytes() -> Result<(), TypeError> {
        for rows in [ViewRows::Kept, ViewRows::Missing] {
            let table = TableDefinition::builder("v")
                .column(ColumnDefinition::new("a", DataType::Int32))
                .column(ColumnDefinition::new("b", DataType::Text))
                .view(ViewDefinition { rows, ..view() })
                .build()?;
            let again = TableDefinition::from_bytes(&table.to_bytes())?;
            assert_eq!(again, table);
            assert!(again.is_table() && again.view().is_none());
            assert_eq!(again.materialized_view().map(|view| view.rows), Some(rows));
        }
        Ok(())
    }

    #[test]
    fn a_view_uses_columns_that_its_query_names() {
        let view = view();
        assert!(view.uses(70_000, None) && view.uses(70_000, Some(2)));
        assert!(!view.uses(70_000, Some(3)) && !view.uses(7, None));
    }

    #[test]
    fn a_view_that_names_what_it_does_not_see_is_refused() {
        let mut view = view();
        view.sources[0].used.push(9);
        assert!(TableDefinition::builder("v").view(view).build().is_err());
    }
}
