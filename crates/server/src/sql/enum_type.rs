//! CREATE and ALTER TYPE of enumerated types.

use onrush::{EnumLabels, LabelFault, NewLabel, TypeError};
use sqlparser::ast::{
    AlterType, AlterTypeAddValuePosition, AlterTypeOperation, Ident, ObjectName,
    UserDefinedTypeRepresentation,
};

use super::{CompositePlan, DomainChange, DomainPlan, Planner, composite_type, names};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;
use crate::schemas;

/// What becomes of enumerated types.
#[derive(Clone, Debug)]
pub(crate) enum EnumPlan {
    Create { name: String, labels: EnumLabels },
    Alter { name: String, change: EnumChange },
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
        }
    }
}

/// Plans a CREATE TYPE.
pub(super) fn create(
    planner: &Planner<'_>,
    name: &ObjectName,
    representation: Option<&UserDefinedTypeRepresentation>,
) -> Result<DefinitionPlan> {
    let labels = match representation {
        Some(UserDefinedTypeRepresentation::Enum { labels }) => labels,
        Some(UserDefinedTypeRepresentation::Composite { attributes }) => {
            return composite_type::create(planner, name, attributes);
        }
        _ => {
            return Err(SqlError::not_supported(
                "CREATE TYPE of another kind than AS ENUM and AS (...)",
                "Write CREATE TYPE name AS ENUM ('label', ...) or AS (name type, ...).",
            ));
        }
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
    let of = planner.lookup().own_type_named(&parts);
    let of = of.ok_or_else(|| missing(&parts.join(".")))?;
    let name = of.name().to_owned();
    if of.definition().domain().is_some() {
        let AlterTypeOperation::Rename(to) = operation else {
            let message = format!("{} is not an enum", parts.join("."));
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message));
        };
        let to = names::identifier(&to.new_name);
        let change = DomainChange::Rename(schemas::joined(schemas::parts(&name).0, &to));
        let plan = DomainPlan::Alter { name, change, tag: "ALTER TYPE" };
        return Ok(DefinitionPlan::Domain(plan));
    }
    if of.definition().is_composite() {
        let AlterTypeOperation::Rename(to) = operation else {
            let message = format!("{} is not an enum", parts.join("."));
            return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message));
        };
        let to = names::identifier(&to.new_name);
        let to = schemas::joined(schemas::parts(&name).0, &to);
        return Ok(DefinitionPlan::Composite(CompositePlan::Rename { name, to }));
    }
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
