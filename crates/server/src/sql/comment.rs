//! COMMENT ON TABLE and COMMENT ON COLUMN.

use sqlparser::ast::{CommentObject, ObjectName, Statement};

use super::plan;
use super::{Planner, names};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;
use crate::{schemas, views};

/// What is said of a table or column.
#[derive(Clone, Debug)]
pub(crate) struct CommentPlan {
    pub(crate) table: String,
    /// Empty: the table itself.
    pub(crate) column: String,
    /// None takes it away.
    pub(crate) text: Option<String>,
}

pub(super) fn plan(planner: &Planner<'_>, statement: &Statement) -> Result<DefinitionPlan> {
    let Statement::Comment { object_type, object_name, comment, if_exists: false } = statement
    else {
        return Err(SqlError::not_supported(statement, FORMS));
    };
    let (table, column) = match object_type {
        CommentObject::Table | CommentObject::Sequence | CommentObject::View => {
            (planner.lookup().table_named(object_name)?, None)
        }
        CommentObject::Column => {
            let mut table = object_name.clone();
            let column = names::column(&ObjectName(table.0.split_off(table.0.len() - 1)))?;
            if table.0.is_empty() {
                let message = "a column has the name of its table in front";
                return Err(SqlError::new(state::SYNTAX_ERROR, message));
            }
            (planner.lookup().table_named(&table)?, Some(column))
        }
        other => return Err(SqlError::not_supported(format!("COMMENT ON {other}"), FORMS)),
    };
    let known = plan::table(planner, &table)?;
    let wanted = match object_type {
        CommentObject::Sequence => "sequence",
        CommentObject::View => "view",
        _ => "table",
    };
    if column.is_none() && views::kind(known.definition()) != wanted {
        let message = format!("{:?} is not a {wanted}", schemas::own_name(&table));
        return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message));
    }
    if let Some(column) = &column {
        known.definition().shown_column_index(column)?;
    }
    // As in PostgreSQL, an empty comment is none.
    let text = comment.clone().filter(|text| !text.is_empty());
    Ok(DefinitionPlan::Comment(CommentPlan { table, column: column.unwrap_or_default(), text }))
}

const FORMS: &str = "There are COMMENT ON TABLE, COMMENT ON VIEW and COMMENT ON SEQUENCE name, and \
     COMMENT ON COLUMN table.column.";
