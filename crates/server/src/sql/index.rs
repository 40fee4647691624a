//! CREATE, ALTER and DROP INDEX, and UNIQUE constraints, which are indexes.

use std::sync::Arc;

use onrush::{
    DeferrableUnique, Deferral, IndexDefinition, Indexed, KeyOrder, NewIndex, NewIndexed,
    RowExpression, Table, TableChange, TableDefinition, TypeError, Uniqueness,
};
use sqlparser::ast::{
    self, AlterIndexOperation, CreateIndex, Expr, Ident, IndexColumn, IndexOption, IndexType,
    NullsDistinctOption, ObjectName, UniqueConstraint,
};

use super::alter::{AlterPlan, Change, PlannedChange};
use super::{Planner, check, create, foreign_key, form, names, sequence, unique_words};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;
use crate::seen::Seen;
use crate::{made_up, schemas};

/// An index as it was written: its table is not looked at yet.
#[derive(Clone, Debug)]
pub(crate) struct IndexPlan {
    /// In the schema of its table; none: one is made up, as PostgreSQL does.
    name: Option<String>,
    columns: Vec<(Key, KeyOrder)>,
    included: Vec<String>,
    /// Which rows are indexed; none: all.
    predicate: Option<Box<Expr>>,
    uniqueness: Uniqueness,
    /// When a constraint is looked at.
    deferral: Deferral,
    pub(crate) is_constraint: bool,
}

/// What an index is ordered by, as it was written.
#[derive(Clone, Debug)]
enum Key {
    Column(String),
    Expression(Box<Expr>),
}

impl Key {
    /// By which PostgreSQL calls it in the made up name of an index.
    fn name(&self) -> String {
        match self {
            Key::Column(name) => name.clone(),
            Key::Expression(expression) => match innermost(expression) {
                Expr::Function(call) => call
                    .name
                    .0
                    .last()
                    .map_or_else(String::new, |part| part.to_string().to_lowercase()),
                _ => "expr".to_owned(),
            },
        }
    }
}

/// Without parentheses around it.
pub(super) fn innermost(expression: &Expr) -> &Expr {
    match expression {
        Expr::Nested(inner) => innermost(inner),
        other => other,
    }
}

impl IndexPlan {
    /// A UNIQUE constraint; `outer` is a name that stands in front of it, `column` the one that it stands behind.
    pub(super) fn of_constraint(
        constraint: &UniqueConstraint,
        outer: Option<&Ident>,
        column: Option<&str>,
    ) -> Result<IndexPlan> {
        let name = constraint.name.as_ref().or(outer).map(names::identifier);
        let columns = match column {
            Some(column) => vec![(Key::Column(column.to_owned()), KeyOrder::ASCENDING)],
            None => constraint.columns.iter().map(indexed_column).collect::<Result<_>>()?,
        };
        if columns.iter().any(|(key, _)| matches!(key, Key::Expression(_))) {
            let message = "a UNIQUE constraint is of columns";
            return Err(SqlError::new(state::SYNTAX_ERROR, message)
                .with_hint("CREATE UNIQUE INDEX takes expressions."));
        }
        let uniqueness = match constraint.nulls_distinct {
            NullsDistinctOption::NotDistinct => Uniqueness::NullsEqual,
            NullsDistinctOption::None | NullsDistinctOption::Distinct => Uniqueness::NullsDistinct,
        };
        let deferral = foreign_key::deferral(constraint.characteristics.as_ref())?;
        let included = unique_words::included_columns(&constraint.index_options)?;
        let (predicate, is_constraint) = (None, true);
        Ok(IndexPlan { name, columns, included, predicate, uniqueness, deferral, is_constraint })
    }

    /// The name that is wanted, if a primary key has it in the schema of the table.
    pub(crate) fn taken_key_name(&self, seen: &Seen, table: &str) -> Option<String> {
        let name = schemas::joined(schemas::parts(table).0, self.name.as_deref()?);
        seen.table_of_key(&name).map(|_| name)
    }

    /// The same, where NULL is a value like others.
    pub(super) fn with_uniqueness(self, uniqueness: Uniqueness) -> IndexPlan {
        IndexPlan { uniqueness, ..self }
    }

    /// An index as a table has it, for another table of the same columns.
    pub(super) fn like(index: &IndexDefinition, table: &TableDefinition) -> Result<IndexPlan> {
        let written =
            |of: &RowExpression| check::with_quoted_names(table, &of.expression).map(Box::new);
        let name = |number: u16| {
            let column = table.column_with_number(number);
            column.map(|column| table.columns()[column].name.clone())
        };
        let mut columns = Vec::new();
        for column in &index.columns {
            let key = match column.of {
                Indexed::Column(number) => name(number).map(Key::Column),
                Indexed::Expression(at) => {
                    let expression = index.expressions.get(usize::from(at));
                    expression.map(|it| written(&it.of)).transpose()?.map(Key::Expression)
                }
            };
            columns.extend(key.map(|key| (key, column.order)));
        }
        Ok(IndexPlan {
            name: None,
            columns,
            included: index.included.iter().filter_map(|number| name(*number)).collect(),
            predicate: index.predicate.as_ref().map(written).transpose()?,
            uniqueness: match index.deferrable {
                None => index.uniqueness,
                Some(of) if of.nulls_equal => Uniqueness::NullsEqual,
                Some(_) => Uniqueness::NullsDistinct,
            },
            deferral: match index.deferrable {
                None => Deferral::NotDeferrable,
                Some(of) if of.is_deferred => Deferral::InitiallyDeferred,
                Some(_) => Deferral::InitiallyImmediate,
            },
            is_constraint: index.is_constraint,
        })
    }

    /// The same index under the same name, for the table that takes the place of its own.
    pub(crate) fn again(index: &IndexDefinition, table: &TableDefinition) -> Result<IndexPlan> {
        let name = Some(schemas::own_name(&index.name).to_owned());
        Ok(IndexPlan { name, ..IndexPlan::like(index, table)? })
    }

    /// What the engine makes, under a name that `is_free`.
    pub(crate) fn new_index(
        &self,
        table: &TableDefinition,
        is_free: impl Fn(&str) -> bool,
    ) -> Result<NewIndex> {
        let schema = schemas::parts(table.name()).0;
        let column = |(key, _): &'_ (Key, KeyOrder)| match key {
            Key::Column(name) => Some(name.clone()),
            Key::Expression(_) => None,
        };
        let named: Vec<String> = self.columns.iter().filter_map(column).collect();
        for column in named.iter().chain(&self.included) {
            table.shown_column_index(column).map_err(|error| match self.is_constraint {
                true => {
                    let message = format!("column {column:?} named in key does not exist");
                    SqlError::new(state::UNDEFINED_COLUMN, message)
                }
                false => {
                    let message = format!("column {column:?} does not exist");
                    SqlError::new(state::UNDEFINED_COLUMN, message).with_hint(error.to_string())
                }
            })?;
        }
        let own = match &self.name {
            Some(name) => name.clone(),
            None => self.made_up_name(table, |name| is_free(&schemas::joined(schema, name))),
        };
        let mut columns = Vec::new();
        for (key, order) in &self.columns {
            let indexed = match key {
                Key::Column(name) => NewIndexed::Column(name.clone()),
                Key::Expression(expression) => {
                    NewIndexed::Expression(indexed_expression(expression, table)?)
                }
            };
            columns.push((indexed, *order));
        }
        let predicate = self.predicate.as_deref().map(|it| predicate(it, table)).transpose()?;
        let new = NewIndex {
            name: schemas::joined(schema, &own),
            columns,
            included: self.included.clone(),
            predicate,
            uniqueness: self.uniqueness,
            deferrable: None,
            is_constraint: self.is_constraint,
            made_of: Some(Arc::new(table.clone())),
        };
        Ok(match self.deferral {
            Deferral::NotDeferrable => new,
            deferral => new.unique_at_last(DeferrableUnique {
                is_deferred: deferral == Deferral::InitiallyDeferred,
                nulls_equal: self.uniqueness == Uniqueness::NullsEqual,
            }),
        })
    }

    /// As PostgreSQL: table and columns, a word for the kind, and a number where that is taken.
    fn made_up_name(&self, table: &TableDefinition, is_free: impl Fn(&str) -> bool) -> String {
        let columns: Vec<String> = self.columns.iter().map(|(key, _)| key.name()).collect();
        let columns = columns.iter().chain(&self.included).map(String::as_str);
        let columns = made_up::joined(columns);
        let kind = if self.is_constraint { "key" } else { "idx" };
        made_up::free_name(schemas::own_name(table.name()), Some(&columns), kind, is_free)
    }
}

/// Plans a CREATE INDEX.
pub(super) fn create(planner: &Planner<'_>, statement: &CreateIndex) -> Result<DefinitionPlan> {
    let CreateIndex {
        name,
        table_name,
        using,
        columns,
        unique,
        concurrently,
        if_not_exists,
        include,
        nulls_distinct,
        with,
        predicate,
        index_options,
        alter_options,
    } = statement;
    check_method(using.as_ref())?;
    for option in index_options {
        match option {
            IndexOption::Using(method) => check_method(Some(method))?,
            IndexOption::Comment(_) => {
                return Err(SqlError::not_supported("COMMENT in CREATE INDEX", FORM));
            }
        }
    }
    if !alter_options.is_empty() {
        return Err(SqlError::not_supported("an option of CREATE INDEX", FORM));
    }
    with.iter().try_for_each(check_setting)?;
    let name = name.as_ref().map(own_name).transpose()?;
    if name.is_none() && *if_not_exists {
        let message = "CREATE INDEX IF NOT EXISTS needs a name";
        return Err(SqlError::new(state::SYNTAX_ERROR, message));
    }
    let table = planner.lookup().table_named(table_name)?;
    let is_materialized = |known: Table| known.definition().materialized_view().is_some();
    if !planner.seen.table(&table).is_ok_and(is_materialized) {
        sequence::check_is_table(planner, &table, |name| {
            format!("cannot create index on relation {name:?}")
        })?;
    }
    let columns = columns.iter().map(indexed_column).collect::<Result<Vec<_>>>()?;
    let included = include.iter().map(names::own_column).collect::<Result<Vec<_>>>()?;
    let uniqueness = match (unique, nulls_distinct) {
        (false, _) => Uniqueness::NotUnique,
        (true, Some(false)) => Uniqueness::NullsEqual,
        (true, _) => Uniqueness::NullsDistinct,
    };
    let predicate = predicate.clone().map(Box::new);
    let (deferral, is_constraint) = (Deferral::NotDeferrable, false);
    let index =
        IndexPlan { name, columns, included, predicate, uniqueness, deferral, is_constraint };
    Ok(DefinitionPlan::CreateIndex {
        table,
        index,
        if_not_exists: *if_not_exists,
        is_concurrent: *concurrently,
    })
}

const FORM: &str = "Write CREATE [UNIQUE] INDEX [CONCURRENTLY] [IF NOT EXISTS] [name] ON table \
                    (columns or expressions) [INCLUDE (columns)] [NULLS [NOT] DISTINCT] [WHERE condition].";

/// Plans an ALTER INDEX.
pub(super) fn alter(
    planner: &Planner<'_>,
    name: &ObjectName,
    operation: &AlterIndexOperation,
) -> Result<DefinitionPlan> {
    let AlterIndexOperation::RenameIndex { index_name } = operation;
    let index = found(planner, name)?;
    let to = own_name(index_name)?;
    if let Some(table) = planner.seen.table_of_key(&index) {
        let change = Change::Other(TableChange::RenameKey { to });
        let changes = vec![PlannedChange { change, if_needed: false, cascades: false }];
        let (table, if_exists, key) = (table.name().to_owned(), false, None);
        return Ok(DefinitionPlan::AlterTable(AlterPlan { table, if_exists, changes, key }));
    }
    let to = schemas::joined(schemas::parts(&index).0, &to);
    Ok(DefinitionPlan::RenameIndex { index, to })
}

/// Plans a DROP INDEX.
pub(super) fn drop(
    planner: &Planner<'_>,
    if_exists: bool,
    given: &[ObjectName],
) -> Result<DefinitionPlan> {
    let (mut names, mut missing) = (Vec::new(), Vec::new());
    for name in given {
        match found(planner, name) {
            Ok(index) => {
                check_is_no_key(planner, &index)?;
                names.push(index);
            }
            Err(error) if if_exists && error.state == state::UNDEFINED_OBJECT => {
                let message = format!("index {:?} does not exist, skipping", shown(name)?);
                missing.push(SqlError::new(state::UNDEFINED_OBJECT, message).notice());
            }
            Err(error) if if_exists && error.state == state::INVALID_SCHEMA => {
                let message = format!("{}, skipping", error.message);
                missing.push(SqlError::new(state::INVALID_SCHEMA, message).notice());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(DefinitionPlan::DropIndexes { names, missing })
}

/// The engine's name of an index.
fn found(planner: &Planner<'_>, name: &ObjectName) -> Result<String> {
    if let Some(found) = planner.lookup().index_named(name)? {
        return Ok(found);
    }
    let table = planner.lookup().table_that_may_be(name, true)?;
    if planner.seen.table(&table).is_ok() {
        let message = format!("{:?} is not an index", shown(name)?);
        let hint = "Use DROP TABLE to remove a table.";
        return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message).with_hint(hint));
    }
    let message = format!("index {:?} does not exist", shown(name)?);
    Err(SqlError::new(state::UNDEFINED_OBJECT, message))
}

fn shown(name: &ObjectName) -> Result<String> {
    Ok(names::parts(name)?.join("."))
}

/// A name of a new index, which is in the schema of its table.
fn own_name(name: &ObjectName) -> Result<String> {
    match names::parts(name)?.as_slice() {
        [own] => Ok(own.clone()),
        _ => Err(SqlError::new(
            state::SYNTAX_ERROR,
            "the name of an index has no schema in front: it is in that of its table",
        )),
    }
}

/// What is computed of each row of a table to be indexed.
fn indexed_expression(expression: &Expr, table: &TableDefinition) -> Result<RowExpression> {
    let kept = RowExpression::new(&in_form(expression, table)?, table);
    let kept = kept.map_err(|error| {
        refused(error, "functions in index expression must be marked IMMUTABLE")
    })?;
    if kept.data_type().is_none() {
        return Err(SqlError::not_supported(
            format!("an index of the expression {expression}, whose type has no length or digits"),
            "Cast it to a type that says them, or to text.",
        ));
    }
    Ok(kept)
}

/// The condition of a partial index.
fn predicate(expression: &Expr, table: &TableDefinition) -> Result<RowExpression> {
    let kept = RowExpression::condition(&in_form(expression, table)?, table);
    kept.map_err(|error| refused(error, "functions in index predicate must be marked IMMUTABLE"))
}

fn in_form(expression: &Expr, table: &TableDefinition) -> Result<onrush::expression::Expression> {
    form::read(expression, table.name()).ok_or_else(|| {
        SqlError::not_supported(
            format!("{expression} in an index"),
            "Expressions of CHECK constraints that the engine evaluates itself can be used: see docs/sql.md.",
        )
    })
}

fn refused(error: TypeError, is_volatile: &str) -> SqlError {
    match error {
        TypeError::Expression { reason } if reason.contains("always the same") => {
            SqlError::new(state::INVALID_OBJECT_DEFINITION, is_volatile)
        }
        TypeError::Expression { reason } if reason.contains("true or false") => {
            SqlError::new(state::DATATYPE_MISMATCH, "argument of WHERE must be type boolean")
        }
        TypeError::UnknownColumn { name, .. } => {
            let message = format!("column {:?} does not exist", name.column);
            SqlError::new(state::UNDEFINED_COLUMN, message)
        }
        other => other.into(),
    }
}

fn indexed_column(column: &IndexColumn) -> Result<(Key, KeyOrder)> {
    let IndexColumn { column: ast::OrderByExpr { expr, options, with_fill }, operator_class } =
        column;
    if let Some(class) = operator_class
        && !class.to_string().ends_with("_ops")
    {
        return Err(SqlError::not_supported(format!("the operator class {class}"), FORM));
    }
    if with_fill.is_some() {
        return Err(SqlError::not_supported("WITH FILL", FORM));
    }
    let mut expr = innermost(expr);
    if let Expr::Collate { expr: collated, collation } = expr {
        create::check_collation(collation)?;
        expr = innermost(collated);
    }
    let key = match expr {
        Expr::Identifier(name) => Key::Column(names::own_column(name)?),
        other => Key::Expression(Box::new(other.clone())),
    };
    let descending = options.asc == Some(false);
    // As in PostgreSQL: NULL is larger than any value.
    let nulls_first = options.nulls_first.unwrap_or(descending);
    Ok((key, KeyOrder { descending, nulls_first }))
}

fn check_method(method: Option<&IndexType>) -> Result<()> {
    match method {
        None | Some(IndexType::BTree) => Ok(()),
        Some(other) => Err(SqlError::not_supported(
            format!("an index USING {other}"),
            "The method there is is btree.",
        )),
    }
}

/// What PostgreSQL's scripts say of its pages says nothing here.
fn check_setting(setting: &Expr) -> Result<()> {
    let name = setting.to_string().to_lowercase();
    let name = name.split(['=', ' ']).next().unwrap_or_default();
    if matches!(name, "fillfactor" | "deduplicate_items" | "fastupdate" | "buffering") {
        return Ok(());
    }
    let message = format!("unrecognized parameter {name:?}");
    Err(SqlError::new(state::INVALID_PARAMETER_VALUE, message))
}

/// The index of a primary key is no index that could go by itself.
fn check_is_no_key(planner: &Planner<'_>, index: &str) -> Result<()> {
    let Some(table) = planner.seen.table_of_key(index) else { return Ok(()) };
    let (own, table) = (schemas::own_name(index), schemas::own_name(table.name()));
    let message =
        format!("cannot drop index {own} because constraint {own} on table {table} requires it");
    Err(SqlError::new(state::DEPENDENT_OBJECTS, message)
        .with_hint(format!("You can drop constraint {own} on table {table} instead.")))
}
