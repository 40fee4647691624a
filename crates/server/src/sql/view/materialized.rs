//! Materialized views: tables of the rows that their query gave, until they are told to ask it again.
//!
//! ```text
//! CREATE MATERIALIZED VIEW [IF NOT EXISTS] name [(column, ...)] AS query [WITH [NO] DATA]
//! REFRESH MATERIALIZED VIEW [CONCURRENTLY] name [WITH [NO] DATA]
//! ```

use std::sync::Arc;

use onrush::{
    IndexDefinition, Table, TableBuilder, TableDefinition, Uniqueness, ViewDefinition, ViewRows,
};
use sqlparser::ast::CreateView;
use sqlparser::tokenizer::Token;

use super::stored::{self, Stored};
use super::{check_query, is_temporary};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;
use crate::sql::constraints::{lower, name};
use crate::sql::create::{self, Kind, built};
use crate::sql::create_as::{CreateAsPlan, columns_of};
use crate::sql::operand::Parameters;
use crate::sql::{Planner, QueryPlan, names, own_types, plan};
use crate::{schemas, views};

/// A REFRESH, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefreshStatement {
    /// Behind that of its schema.
    name: (Option<String>, String),
    is_concurrent: bool,
    has_data: bool,
}

/// A view whose rows are to be found again.
pub(crate) struct RefreshPlan {
    pub(crate) view: Table,
    /// What gives the rows; none takes them away.
    pub(crate) query: Option<QueryPlan>,
}

/// Reads a REFRESH whose words these are. None if it is none.
pub(in crate::sql) fn read(words: &[&Token]) -> Option<RefreshStatement> {
    let spelled: Vec<String> = words.iter().map(|word| lower(word)).collect();
    let spelled: Vec<&str> = spelled.iter().map(String::as_str).collect();
    let ["refresh", "materialized", "view", rest @ ..] = spelled.as_slice() else { return None };
    let is_concurrent = rest.len() > 1 && rest[0] == "concurrently";
    let (has_data, end) = match rest {
        [.., "with", "no", "data"] => (false, 3),
        [.., "with", "data"] => (true, 2),
        _ => (true, 0),
    };
    let start = 3 + usize::from(is_concurrent);
    let name = name(words.get(start..words.len() - end)?)?;
    Some(RefreshStatement { name, is_concurrent, has_data })
}

/// Plans a CREATE MATERIALIZED VIEW.
pub(super) fn create(
    planner: &Planner<'_>,
    statement: &CreateView,
    has_data: bool,
    parameters: &mut Parameters,
) -> Result<DefinitionPlan> {
    let CreateView { name: written, columns, query, options, if_not_exists, .. } = statement;
    check_query(query)?;
    if create::settings(options)? != create::Settings::default() {
        let message = "materialized views cannot be unlogged, and have no identity";
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    let (name, _) = create::place(planner, written, Kind::Logged)?;
    let Stored { text, sources } = stored::stored(planner, query)?;
    if sources.iter().any(|source| is_temporary(planner, source)) {
        let message = "materialized views must not use temporary tables or views";
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    let rows = if has_data { ViewRows::Kept } else { ViewRows::Missing };
    let view = ViewDefinition { query: text, sources, kinds: Vec::new(), rows };
    // A REFRESH is to find what it needs; who makes the view needs the right to read it.
    QueryPlan::of_view(planner, &view)?;
    let types = own_types::of_columns(planner, query);
    let mut query = (**query).clone();
    own_types::note_names(planner, &mut query)?;
    let query = QueryPlan::new(planner, query, parameters)?;
    let given: Vec<String> =
        columns.iter().map(|column| names::own_column(&column.name)).collect::<Result<_>>()?;
    let columns = columns_of(&query, &given)?;
    let builder = TableDefinition::builder(&name).view(view);
    let definition = built(columns.into_iter().fold(builder, TableBuilder::column))?;
    Ok(DefinitionPlan::CreateAs(Arc::new(CreateAsPlan {
        definition,
        if_not_exists: *if_not_exists,
        on_commit: None,
        query,
        has_data,
        types,
    })))
}

/// Plans a REFRESH.
pub(in crate::sql) fn refresh(
    planner: &Planner<'_>,
    statement: &RefreshStatement,
) -> Result<DefinitionPlan> {
    let RefreshStatement { name: (schema, name), is_concurrent, has_data } = statement;
    let view = plan::table_in(planner, schema.as_deref(), name)?;
    let definition = view.definition();
    let Some(kept) = definition.materialized_view() else {
        return Err(match views::kind(definition) {
            "table" => SqlError::new(
                state::FEATURE_NOT_SUPPORTED,
                format!("{name:?} is not a materialized view"),
            ),
            _ => SqlError::new(
                state::WRONG_OBJECT_TYPE,
                format!("{name:?} is not a table or materialized view"),
            ),
        });
    };
    if *is_concurrent {
        check_concurrent(&view, kept.rows, *has_data)?;
    }
    let query = has_data.then(|| QueryPlan::of_view(planner, kept)).transpose()?;
    Ok(DefinitionPlan::Refresh(Arc::new(RefreshPlan { view, query })))
}

/// Readers go on beside every REFRESH here. That one needs a key to be CONCURRENTLY is said as it is elsewhere.
fn check_concurrent(view: &Table, rows: ViewRows, has_data: bool) -> Result<()> {
    if !has_data {
        let message = "CONCURRENTLY and WITH NO DATA options cannot be used together";
        return Err(SqlError::new(state::SYNTAX_ERROR, message));
    }
    if rows == ViewRows::Missing {
        let message = "CONCURRENTLY cannot be used when the materialized view is not populated";
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    let indexes = view.definition().indexes();
    let is_key =
        |index: &IndexDefinition| index.uniqueness != Uniqueness::NotUnique && index.is_plain();
    if !indexes.iter().any(is_key) {
        let (schema, own) = schemas::parts(view.name());
        let message = format!("cannot refresh materialized view \"{schema}.{own}\" concurrently");
        return Err(SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message).with_hint(
            "Create a unique index with no WHERE clause on one or more columns of the materialized view.",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Option<RefreshStatement> {
        let tokens = crate::sql::tokens(text).expect("words");
        let words = tokens.iter().map(|token| &token.token);
        read(&words.filter(|token| !matches!(token, Token::Whitespace(_))).collect::<Vec<_>>())
    }

    #[test]
    fn every_form_is_read() {
        let plain = |schema: Option<&str>, name: &str| RefreshStatement {
            name: (schema.map(str::to_owned), name.to_owned()),
            is_concurrent: false,
            has_data: true,
        };
        assert_eq!(read_text("REFRESH MATERIALIZED VIEW s.\"M\""), Some(plain(Some("s"), "M")));
        assert_eq!(
            read_text("refresh materialized view Concurrently m with data"),
            Some(RefreshStatement { is_concurrent: true, ..plain(None, "m") })
        );
        assert_eq!(
            read_text("REFRESH MATERIALIZED VIEW m WITH NO DATA"),
            Some(RefreshStatement { has_data: false, ..plain(None, "m") })
        );
        for text in ["REFRESH MATERIALIZED VIEW", "REFRESH VIEW m", "SELECT 1"] {
            assert_eq!(read_text(text), None, "{text}");
        }
    }
}
