//! CREATE, ALTER and DROP TYPE of enumerated types, and statements that name one.
//!
//! Below the planner a type goes by its [note](EnumType::note), which is a name that is read like those of other
//! types. What is kept of a statement names it by its number, so that it stays the same type under another name.

use std::ops::ControlFlow;

use onrush::{EnumLabels, EnumType, LabelFault, NewLabel, TypeError};
use sqlparser::ast::{
    self, AlterColumnOperation, AlterTableOperation, AlterType, AlterTypeAddValuePosition,
    AlterTypeOperation, ArrayElemTypeDef, ColumnDef, ColumnOption, Expr, Ident, ObjectName,
    Statement, UserDefinedTypeRepresentation, VisitMut, visit_expressions, visit_expressions_mut,
};

use super::{Planner, names};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;
use crate::{enum_types, schemas};

/// Begins the name of a type in what is kept, in front of its number.
const KEPT: &str = "onrush_type_";

/// What becomes of enumerated types.
#[derive(Clone, Debug)]
pub(crate) enum EnumPlan {
    Create {
        name: String,
        labels: EnumLabels,
    },
    Alter {
        name: String,
        change: EnumChange,
    },
    Drop {
        names: Vec<String>,
        /// Those that are not there, where they need not be.
        missing: Vec<SqlError>,
        cascades: bool,
    },
}

/// What becomes of a type.
#[derive(Clone, Debug)]
pub(crate) enum EnumChange {
    /// It is called so by the engine from now on.
    Rename(String),
    AddLabel {
        label: String,
        place: Place,
        if_not_exists: bool,
    },
    RenameLabel {
        from: String,
        to: String,
    },
}

/// Where a new label comes.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Last,
    Before(String),
    After(String),
}

impl Place {
    pub(crate) fn borrowed(&self) -> NewLabel<'_> {
        match self {
            Place::Last => NewLabel::Last,
            Place::Before(other) => NewLabel::Before(other),
            Place::After(other) => NewLabel::After(other),
        }
    }
}

impl EnumPlan {
    /// As it stands in the answer.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            EnumPlan::Create { .. } => "CREATE TYPE",
            EnumPlan::Alter { .. } => "ALTER TYPE",
            EnumPlan::Drop { .. } => "DROP TYPE",
        }
    }
}

/// Plans a CREATE TYPE.
pub(super) fn create(
    planner: &Planner<'_>,
    name: &ObjectName,
    representation: Option<&UserDefinedTypeRepresentation>,
) -> Result<DefinitionPlan> {
    let Some(UserDefinedTypeRepresentation::Enum { labels }) = representation else {
        return Err(SqlError::not_supported(
            "CREATE TYPE of another kind than AS ENUM",
            "Write CREATE TYPE name AS ENUM ('label', ...).",
        ));
    };
    let name = planner.lookup().new_table_named(name)?;
    names::check_reserved(&name)?;
    let labels = EnumLabels::new(labels.iter().map(|label| &label.value));
    let labels = labels.map_err(|error| match error {
        // There it is the catalogue that says so.
        TypeError::BadLabel { fault: LabelFault::Exists, .. } => SqlError::new(
            state::UNIQUE_VIOLATION,
            "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"",
        ),
        other => bad_label(other),
    })?;
    Ok(DefinitionPlan::Enum(EnumPlan::Create { name, labels }))
}

/// Plans an ALTER TYPE.
pub(super) fn alter(planner: &Planner<'_>, statement: &AlterType) -> Result<DefinitionPlan> {
    let AlterType { name, operation } = statement;
    let parts = names::parts(name)?;
    let of = planner.lookup().type_named(&parts).ok_or_else(|| missing(&parts.join(".")))?;
    let name = of.name().to_owned();
    let text = |label: &Ident| label.value.clone();
    let change = match operation {
        AlterTypeOperation::Rename(to) => {
            let to = names::identifier(&to.new_name);
            EnumChange::Rename(schemas::joined(schemas::parts(&name).0, &to))
        }
        AlterTypeOperation::AddValue(add) => EnumChange::AddLabel {
            label: text(&add.value),
            place: match &add.position {
                None => Place::Last,
                Some(AlterTypeAddValuePosition::Before(other)) => Place::Before(text(other)),
                Some(AlterTypeAddValuePosition::After(other)) => Place::After(text(other)),
            },
            if_not_exists: add.if_not_exists,
        },
        AlterTypeOperation::RenameValue(rename) => {
            EnumChange::RenameLabel { from: text(&rename.from), to: text(&rename.to) }
        }
    };
    Ok(DefinitionPlan::Enum(EnumPlan::Alter { name, change }))
}

/// What is wrong with a label, in PostgreSQL's words.
pub(crate) fn bad_label(error: TypeError) -> SqlError {
    let TypeError::BadLabel { label, fault } = &error else { return error.into() };
    let (state, message) = match fault {
        LabelFault::Exists => {
            (state::DUPLICATE_OBJECT, format!("enum label \"{label}\" already exists"))
        }
        LabelFault::Missing => {
            let message = format!("\"{label}\" is not an existing enum label");
            (state::INVALID_PARAMETER_VALUE, message)
        }
        LabelFault::TooLong => {
            let message = format!("invalid enum label \"{label}\"");
            return SqlError::new(state::INVALID_NAME, message)
                .with_detail("Labels must be 63 bytes or less.");
        }
        LabelFault::TooMany | LabelFault::NoSpace => (state::LIMIT_EXCEEDED, error.to_string()),
    };
    SqlError::new(state, message)
}

pub(super) fn missing(name: &str) -> SqlError {
    SqlError::new(state::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist"))
}

/// The same statement with notes in place of the names of types; none if it names none.
///
/// # Errors
/// A name that only what is kept has.
pub(super) fn noted(planner: &Planner<'_>, statement: &Statement) -> Result<Option<Statement>> {
    let note = |parts: &[String]| planner.lookup().type_named(parts).map(EnumType::note);
    let mut statement = match statement {
        Statement::CreateTable(_) | Statement::AlterTable(_) => statement.clone(),
        Statement::Query(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Explain { .. }
        | Statement::Declare { .. }
        | Statement::Copy { .. }
        | Statement::Prepare { .. }
            if names_own_type(statement) =>
        {
            statement.clone()
        }
        _ => return Ok(None),
    };
    match &mut statement {
        Statement::CreateTable(create) => {
            create.columns.iter_mut().for_each(|column| in_column(column, &note));
            if let Some(query) = &mut create.query {
                in_expressions(&mut **query, &note);
            }
        }
        Statement::AlterTable(alter) => {
            for operation in &mut alter.operations {
                match operation {
                    AlterTableOperation::AddColumn { column_def, .. } => {
                        in_column(column_def, &note);
                    }
                    AlterTableOperation::AlterColumn { op, .. } => match op {
                        AlterColumnOperation::SetDataType { data_type, using, .. } => {
                            in_type(data_type, &note);
                            using.iter_mut().for_each(|using| in_expressions(using, &note));
                        }
                        AlterColumnOperation::SetDefault { value } => in_expressions(value, &note),
                        _ => {}
                    },
                    _ => {}
                }
            }
        }
        Statement::Prepare { data_types, .. } => {
            // What is prepared is looked at when it is planned.
            data_types.iter_mut().for_each(|data_type| in_type(data_type, &note));
        }
        other => in_expressions(other, &note),
    }
    Ok(Some(statement))
}

/// Writes notes in place of the names of types.
pub(super) fn note_names<N: VisitMut>(planner: &Planner<'_>, node: &mut N) {
    in_expressions(node, &|parts: &[String]| {
        planner.lookup().type_named(parts).map(EnumType::note)
    });
}

/// Writes the numbers of types in place of their names, for what is kept.
pub(super) fn numbered<N: VisitMut>(planner: &Planner<'_>, node: &mut N) {
    in_expressions(node, &|parts: &[String]| {
        planner.lookup().type_named(parts).map(|of| format!("{KEPT}{}", of.id()))
    });
}

/// Writes notes in place of the numbers of types in what was kept.
pub(super) fn noted_again<N: VisitMut>(planner: &Planner<'_>, node: &mut N) {
    in_expressions(node, &|parts: &[String]| {
        let table = planner.seen.numbered(number_of(parts)?)?;
        enum_types::of_table(&table).map(EnumType::note)
    });
}

/// Writes names in place of the numbers of types in what was kept, to show it.
pub(super) fn named_again<N: VisitMut>(find: &dyn Fn(u32) -> Option<String>, node: &mut N) {
    in_expressions(node, &|parts: &[String]| find(number_of(parts)?));
}

/// The number of a type that is named by it.
fn number_of(parts: &[String]) -> Option<u32> {
    match parts {
        [own] => own.strip_prefix(KEPT)?.parse().ok(),
        _ => None,
    }
}

/// Whether what was kept names a type of this number.
pub(crate) fn names_number(kept: &str, number: u32) -> bool {
    let name = format!("{KEPT}{number}");
    let is_whole = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_digit());
    kept.split(&name).skip(1).any(is_whole)
}

fn names_own_type(statement: &Statement) -> bool {
    let is_own = |data_type: &ast::DataType| custom(data_type).is_some();
    if let Statement::Prepare { data_types, .. } = statement {
        return data_types.iter().any(is_own);
    }
    let found = visit_expressions(statement, |expression| match type_of(expression) {
        Some(data_type) if is_own(data_type) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

fn type_of(expression: &Expr) -> Option<&ast::DataType> {
    match expression {
        Expr::Cast { data_type, .. } => Some(data_type),
        Expr::TypedString(typed) => Some(&typed.data_type),
        _ => None,
    }
}

/// The name of a type that is none of those that are always there.
fn custom(data_type: &ast::DataType) -> Option<&ObjectName> {
    match data_type {
        ast::DataType::Custom(name, modifiers) if modifiers.is_empty() => Some(name),
        ast::DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => custom(element),
        _ => None,
    }
}

fn in_column(column: &mut ColumnDef, written: &dyn Fn(&[String]) -> Option<String>) {
    in_type(&mut column.data_type, written);
    for option in &mut column.options {
        if let ColumnOption::Default(value) = &mut option.option {
            in_expressions(value, written);
        }
    }
}

fn in_expressions<N: VisitMut>(node: &mut N, written: &dyn Fn(&[String]) -> Option<String>) {
    let _: ControlFlow<()> = visit_expressions_mut(node, |expression| {
        match expression {
            Expr::Cast { data_type, .. } => in_type(data_type, written),
            Expr::TypedString(typed) => in_type(&mut typed.data_type, written),
            _ => {}
        }
        ControlFlow::Continue(())
    });
}

fn in_type(data_type: &mut ast::DataType, written: &dyn Fn(&[String]) -> Option<String>) {
    match data_type {
        ast::DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => {
            in_type(element, written);
        }
        ast::DataType::Custom(name, modifiers) if modifiers.is_empty() => {
            let parts = names::parts(name).ok();
            if let Some(other) = parts.and_then(|parts| written(&parts)) {
                *name = ObjectName::from(vec![Ident::new(other)]);
            }
        }
        _ => {}
    }
}
