//! What stands in FROM.

use datafusion::sql::sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, TableAlias, TableAliasColumnDef, TableFactor,
    TableFunctionArgs, TableWithJoins,
};

use super::{Checked, none};

pub(super) fn check_alias(alias: &TableAlias) -> Checked {
    // AS may be left out.
    let TableAlias { explicit: _spelling, name: _is_taken, columns, at } = alias;
    none(at.is_some(), "AT behind a relation's name")?;
    columns.iter().try_for_each(|column| {
        let TableAliasColumnDef { name: _is_taken, data_type } = column;
        none(data_type.is_some(), "a type behind a column's name in FROM")
    })
}

pub(super) fn check_relation(relation: &TableFactor) -> Checked {
    let alias = match relation {
        TableFactor::Table {
            name: _is_taken,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            if let Some(TableFunctionArgs { args: _are_visited, settings }) = args {
                none(settings.is_some(), "SETTINGS")?;
            }
            none(!with_hints.is_empty(), "WITH (...) behind a table")?;
            none(version.is_some(), "FOR SYSTEM_TIME")?;
            none(*with_ordinality, "WITH ORDINALITY")?;
            none(!partitions.is_empty(), "PARTITION behind a table")?;
            none(json_path.is_some(), "a path into a table")?;
            none(sample.is_some(), "TABLESAMPLE")?;
            none(!index_hints.is_empty(), "USE, IGNORE and FORCE INDEX")?;
            alias
        }
        TableFactor::Derived { lateral: _is_taken, subquery: _is_visited, alias, sample } => {
            none(sample.is_some(), "TABLESAMPLE")?;
            alias
        }
        TableFactor::Function {
            lateral: _is_taken,
            name: _name_is_taken,
            args: _are_visited,
            with_ordinality,
            alias,
        } => {
            none(*with_ordinality, "WITH ORDINALITY")?;
            alias
        }
        TableFactor::UNNEST {
            alias,
            array_exprs: _are_visited,
            with_offset,
            with_offset_alias,
            with_ordinality,
        } => {
            none(*with_offset || with_offset_alias.is_some(), "WITH OFFSET")?;
            none(*with_ordinality, "WITH ORDINALITY")?;
            alias
        }
        TableFactor::NestedJoin { table_with_joins, alias } => {
            check_joined(table_with_joins)?;
            alias
        }
        other => return Err(format!("{other} in FROM")),
    };
    alias.as_ref().map_or(Ok(()), check_alias)
}

pub(super) fn check_joined(item: &TableWithJoins) -> Checked {
    let TableWithJoins { relation: _is_visited, joins } = item;
    for join in joins {
        let Join { relation: _is_visited, global, join_operator } = join;
        none(*global, "GLOBAL JOIN")?;
        match join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint) => match constraint {
                JoinConstraint::On(_) | JoinConstraint::Using(_) | JoinConstraint::Natural => {}
                JoinConstraint::None => return Err("JOIN without ON or USING".to_owned()),
            },
            JoinOperator::CrossJoin(JoinConstraint::None) => {}
            JoinOperator::CrossJoin(_) => return Err("CROSS JOIN with a condition".to_owned()),
            other => return Err(format!("the join {other:?}")),
        }
    }
    Ok(())
}
