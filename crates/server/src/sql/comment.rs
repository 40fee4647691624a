//! COMMENT ON TABLE, VIEW, MATERIALIZED VIEW, SEQUENCE, TYPE, DOMAIN, COLUMN, INDEX and CONSTRAINT.

use sqlparser::ast::{CommentObject, ObjectName, Statement};

use super::{Planner, domain, enum_type, names, plan, storage};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;
use crate::{schemas, views};

/// What is said of a table or of something that it has.
#[derive(Clone, Debug)]
pub(crate) struct CommentPlan {
    pub(crate) table: String,
    pub(crate) part: Part,
    /// None takes it away.
    pub(crate) text: Option<String>,
}

/// What of a table a comment is of, by its name.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Whole,
    Column(String),
    Index(String),
    Constraint(String),
}

pub(super) fn plan(planner: &Planner<'_>, statement: &Statement) -> Result<DefinitionPlan> {
    let Statement::Comment { object_type, object_name, comment, if_exists: false } = statement
    else {
        return Err(SqlError::not_supported(statement, FORMS));
    };
    // As in PostgreSQL, an empty comment is none.
    let text = comment.clone().filter(|text| !text.is_empty());
    let (table, column) = match object_type {
        CommentObject::Index => {
            let mut parts = names::parts(object_name)?;
            let index = parts.pop().unwrap_or_default();
            let schema = parts.pop();
            let Some(table) = storage::table_of_index(planner, schema.as_deref(), &index)? else {
                let message = format!("relation \"{index}\" does not exist");
                return Err(SqlError::new(state::UNDEFINED_TABLE, message));
            };
            let (table, part) = (table.name().to_owned(), Part::Index(index));
            return Ok(DefinitionPlan::Comment(CommentPlan { table, part, text }));
        }
        CommentObject::Table
        | CommentObject::Sequence
        | CommentObject::View
        | CommentObject::MaterializedView => (planner.lookup().table_named(object_name)?, None),
        CommentObject::Domain => (domain::named(planner, object_name)?.name().to_owned(), None),
        CommentObject::Type => {
            let parts = names::parts(object_name)?;
            let found = planner.lookup().own_type_named(&parts);
            let found = found.ok_or_else(|| enum_type::missing(&parts.join(".")))?;
            (found.name().to_owned(), None)
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
    if matches!(object_type, CommentObject::Domain | CommentObject::Type) {
        let part = Part::Whole;
        return Ok(DefinitionPlan::Comment(CommentPlan { table, part, text }));
    }
    let known = plan::table(planner, &table)?;
    let wanted = match object_type {
        CommentObject::Sequence => "sequence",
        CommentObject::View => "view",
        CommentObject::MaterializedView => "materialized view",
        _ => "table",
    };
    if column.is_none() && views::kind(known.definition()) != wanted {
        let message = format!("{:?} is not a {wanted}", schemas::own_name(&table));
        return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message));
    }
    if let Some(column) = &column {
        known.definition().shown_column_index(column)?;
    }
    let part = column.map_or(Part::Whole, Part::Column);
    Ok(DefinitionPlan::Comment(CommentPlan { table, part, text }))
}

/// Plans a COMMENT ON CONSTRAINT of which the name of the constraint was read.
pub(super) fn of_constraint(
    planner: &Planner<'_>,
    constraint: &str,
    statement: &Statement,
) -> Result<DefinitionPlan> {
    let planned = plan(planner, statement)?;
    let DefinitionPlan::Comment(plan) = planned else { return Ok(planned) };
    let part = Part::Constraint(constraint.to_owned());
    Ok(DefinitionPlan::Comment(CommentPlan { part, ..plan }))
}

const FORMS: &str = "There are COMMENT ON TABLE, VIEW, SEQUENCE, TYPE, DOMAIN and INDEX name, COMMENT ON \
     COLUMN table.column and COMMENT ON CONSTRAINT name ON table or ON DOMAIN name.";
