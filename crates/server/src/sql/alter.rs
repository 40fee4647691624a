//! ALTER TABLE: columns added, dropped, renamed and made others, CHECK, UNIQUE and FOREIGN KEY constraints added,
//! dropped and renamed, and tables renamed and moved to other schemas.

use onrush::{ColumnDefinition, ColumnDomain, DataType, DefaultValue, Table, TableChange};
use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, DropBehavior, Expr, GeneratedAs,
    RenameTableNameKind, Statement, TableConstraint,
};

use super::check::NewCheck;
use super::create::{self, Column, NewKey};
use super::foreign_key::ForeignKeyPlan;
use super::generated::NewGenerated;
use super::identity_words;
use super::index::IndexPlan;
use super::names::{self, TableName};
use super::sequence::{self, IdentitySource, SequenceChange, SequencePlan};
use super::{Planner, default, schema};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;
use crate::{rewrite, schemas, views};

/// A table to be altered.
#[derive(Clone, Debug)]
pub(crate) struct AlterPlan {
    pub(crate) table: String,
    /// It need not be there.
    pub(crate) if_exists: bool,
    pub(crate) changes: Vec<PlannedChange>,
    /// What becomes of the primary key; then there are no other changes.
    pub(crate) key: Option<KeyChange>,
}

/// What becomes of a primary key.
#[derive(Clone, Debug)]
pub(crate) enum KeyChange {
    /// There was none. It gets a name if it has none yet.
    Add(NewKey),
    /// It has this name. With `CASCADE`, foreign keys that reference it go, too.
    Drop { name: String, cascades: bool },
}

/// One change.
#[derive(Clone, Debug)]
pub(crate) struct PlannedChange {
    pub(crate) change: Change,
    /// `IF EXISTS` or `IF NOT EXISTS`: nothing is done where there is nothing to do.
    pub(crate) if_needed: bool,
    /// `CASCADE`: what depends on it goes, too.
    pub(crate) cascades: bool,
}

/// What is changed.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A new column, with constraints of its own.
    AddColumn(ColumnDefinition, Vec<NewCheck>, Vec<IndexPlan>, Vec<ForeignKeyPlan>),
    /// A column that is computed of others.
    AddGenerated(ColumnDefinition, NewGenerated),
    AddCheck(NewCheck),
    AddUnique(IndexPlan),
    AddForeignKey(ForeignKeyPlan),
    /// The rows that are there are looked at.
    Validate(String),
    /// Of the column of this name, which has the rows written anew.
    Column(String, ColumnChange),
    Other(TableChange),
}

/// What becomes of a column that is there.
#[derive(Clone, Debug)]
pub(crate) enum ColumnChange {
    Default(DefaultValue),
    NotNull(bool),
    /// No counter gives the values any more; one that gave none is passed over, `if_exists`.
    NoIdentity {
        if_exists: bool,
    },
    /// Whether statements leave the values of the identity to be made.
    AlwaysGenerated(bool),
    /// A counter, which begins here, gives the values from now on.
    Identity {
        start: i64,
        is_always: bool,
    },
    Type {
        data_type: DataType,
        /// The domain that it is of from now on.
        domain: Option<ColumnDomain>,
        /// What the values are made of; none: of those that are there, as PostgreSQL casts by itself.
        using: Option<Box<Expr>>,
    },
}

/// Plans an ALTER TABLE.
pub(super) fn plan(planner: &Planner<'_>, statement: &AlterTable) -> Result<DefinitionPlan> {
    let AlterTable {
        name, if_exists, only: _, operations, location, on_cluster, table_type, ..
    } = statement;
    if location.is_some() || on_cluster.is_some() || table_type.is_some() {
        return Err(SqlError::not_supported(statement, FORMS));
    }
    let table = planner.lookup().table_that_may_be(name, *if_exists)?;
    planner.lookup().check_is_no_type(&table)?;
    let is_sequence =
        planner.seen.table(&table).is_ok_and(|it| it.definition().sequence().is_some());
    if is_sequence {
        return of_sequence(planner, table, operations);
    }
    if let Ok(view) = planner.seen.table(&table)
        && view.definition().any_view().is_some()
    {
        operations.iter().try_for_each(|operation| check_is_of_views(&view, operation))?;
    }
    if let [operation] = operations.as_slice()
        && let Some(key) = key_change(planner, &table, operation)?
    {
        let (if_exists, changes, key) = (*if_exists, Vec::new(), Some(key));
        return Ok(DefinitionPlan::AlterTable(AlterPlan { table, if_exists, changes, key }));
    }
    let changes = operations.iter().map(|operation| change(planner, &table, operation));
    let changes = changes.collect::<Result<Vec<Vec<PlannedChange>>>>()?.concat();
    let is_of_column = |planned: &PlannedChange| matches!(planned.change, Change::Column(..));
    if changes.iter().any(is_of_column) && !changes.iter().all(is_of_column) {
        return Err(SqlError::not_supported(
            "ALTER COLUMN beside other changes",
            "Give it a statement of its own.",
        ));
    }
    Ok(DefinitionPlan::AlterTable(AlterPlan { table, if_exists: *if_exists, changes, key: None }))
}

/// What an operation does to the primary key; none if it has the rows as they are.
fn key_change(
    planner: &Planner<'_>,
    table: &str,
    operation: &AlterTableOperation,
) -> Result<Option<KeyChange>> {
    match operation {
        AlterTableOperation::AddConstraint {
            constraint: TableConstraint::PrimaryKey(primary),
            not_valid: false,
        } => {
            let mut key = NewKey::of_constraint(primary)?;
            key.name = Some(key.free_name(planner, table)?);
            Ok(Some(KeyChange::Add(key)))
        }
        AlterTableOperation::DropConstraint { name, drop_behavior, if_exists: _it_is_there } => {
            let name = names::identifier(name);
            let cascades = *drop_behavior == Some(DropBehavior::Cascade);
            let is_key = is_key(planner, table, &name);
            Ok(is_key.then_some(KeyChange::Drop { name, cascades }))
        }
        _ => Ok(None),
    }
}

/// Whether the primary key of a table has this name.
fn is_key(planner: &Planner<'_>, table: &str, constraint: &str) -> bool {
    let known = planner.seen.table(table);
    known.is_ok_and(|known| schemas::has_key_named(known.definition(), constraint))
}

/// Plans an ALTER TABLE ... SET SCHEMA, whose schema stands where a new name would.
pub(super) fn plan_set_schema(
    planner: &Planner<'_>,
    statement: &Statement,
) -> Result<DefinitionPlan> {
    let Statement::AlterTable(alter) = statement else {
        return Err(SqlError::not_supported(statement, FORMS));
    };
    super::clauses::check(planner, statement)?;
    let [AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(to) }] =
        alter.operations.as_slice()
    else {
        return Err(SqlError::not_supported("SET SCHEMA beside other changes", FORMS));
    };
    let if_exists = alter.if_exists;
    let table = planner.lookup().table_that_may_be(&alter.name, if_exists)?;
    planner.lookup().check_is_no_type(&table)?;
    if schemas::has_temporary(&table) {
        return Err(schema::moves_temporary());
    }
    let to = schemas::joined(&schema::target(planner, to)?, schemas::own_name(&table));
    if planner.seen.table(&table).is_ok_and(|it| it.definition().sequence().is_some()) {
        return Ok(renamed_sequence(table, to));
    }
    let change = Change::Other(TableChange::Rename { to });
    let changes = vec![PlannedChange { change, if_needed: false, cascades: false }];
    Ok(DefinitionPlan::AlterTable(AlterPlan { table, if_exists, changes, key: None }))
}

/// Of a view and its columns there are other names.
fn check_is_of_views(view: &Table, operation: &AlterTableOperation) -> Result<()> {
    use AlterTableOperation::{AddConstraint, AlterColumn, RenameColumn, RenameTable};
    let kind = views::kind(view.definition());
    if matches!(operation, RenameColumn { .. } | RenameTable { .. }) {
        return Ok(());
    }
    let is_default =
        matches!(operation, AlterColumn { op: AlterColumnOperation::SetDefault { .. }, .. });
    if is_default && kind == "view" {
        return Err(SqlError::not_supported(
            "a default of a view's column",
            "The defaults are those of the table that it reads.",
        ));
    }
    let first = |text: String, count: usize| {
        text.split_whitespace().take(count).collect::<Vec<_>>().join(" ")
    };
    let words = match operation {
        AddConstraint { .. } => "ADD CONSTRAINT".to_owned(),
        AlterColumn { op, .. } => format!("ALTER COLUMN ... {}", first(op.to_string(), 3)),
        other => first(other.to_string(), 2),
    };
    let name = schemas::own_name(view.name());
    let message = format!("ALTER action {words} cannot be performed on relation {name:?}");
    Err(SqlError::new(state::WRONG_OBJECT_TYPE, message)
        .with_detail(format!("This operation is not supported for {kind}s.")))
}

/// ALTER TABLE of a sequence, which can give it another name.
fn of_sequence(
    planner: &Planner<'_>,
    name: String,
    operations: &[AlterTableOperation],
) -> Result<DefinitionPlan> {
    if let [operation @ AlterTableOperation::RenameTable { .. }] = operations
        && let [PlannedChange { change: Change::Other(TableChange::Rename { to }), .. }] =
            change(planner, &name, operation)?.as_slice()
    {
        return Ok(renamed_sequence(name, to.clone()));
    }
    let message =
        format!("ALTER action cannot be performed on relation {:?}", schemas::own_name(&name));
    Err(SqlError::new(state::WRONG_OBJECT_TYPE, message)
        .with_detail("This operation is not supported for sequences."))
}

fn renamed_sequence(name: String, to: String) -> DefinitionPlan {
    let change = SequenceChange::Rename(to);
    DefinitionPlan::Sequence(SequencePlan::Alter { name, if_exists: false, change })
}

/// What there is of ALTER TABLE.
const FORMS: &str = "There are ADD, DROP and RENAME COLUMN, ALTER COLUMN with TYPE, SET and DROP NOT NULL and \
                     DEFAULT, RENAME TO, SET SCHEMA, ADD PRIMARY KEY, and ADD, DROP, RENAME and VALIDATE \
                     CONSTRAINT for UNIQUE, FOREIGN KEY and CHECK constraints; for all else create a new table and \
                     INSERT ... SELECT the rows.";

fn change(
    planner: &Planner<'_>,
    table: &str,
    operation: &AlterTableOperation,
) -> Result<Vec<PlannedChange>> {
    let one = |change, if_needed| Ok(vec![PlannedChange { change, if_needed, cascades: false }]);
    match operation {
        AlterTableOperation::AddColumn {
            if_not_exists, column_def, column_position: None, ..
        } => {
            let Column { definition, key, checks, indexes, foreign_keys, sequence, generated } =
                create::column_of(planner, table, column_def, false)?;
            if sequence.is_some() {
                return Err(SqlError::not_supported(
                    format!("an identity with such options on the new column {}", definition.name),
                    "CREATE SEQUENCE makes what gives its values: DEFAULT nextval('name').",
                ));
            }
            if key.is_some() {
                let known = planner.seen.table(table).ok();
                if known.is_some_and(|known| known.definition().row_id().is_none()) {
                    return Err(rewrite::has_key_already(table));
                }
                return Err(SqlError::not_supported(
                    format!("PRIMARY KEY on the new column {}", definition.name),
                    "Add the column, fill it, and then ALTER TABLE ... ADD PRIMARY KEY.",
                ));
            }
            if let Some(generated) = generated {
                if !(checks.is_empty() && indexes.is_empty() && foreign_keys.is_empty()) {
                    return Err(SqlError::not_supported(
                        format!("constraints on the new generated column {}", definition.name),
                        "Add the column, and the constraints after it.",
                    ));
                }
                return one(Change::AddGenerated(definition, generated), *if_not_exists);
            }
            let column = Change::AddColumn(definition, checks, indexes, foreign_keys);
            one(column, *if_not_exists)
        }
        AlterTableOperation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
            let cascades = *drop_behavior == Some(DropBehavior::Cascade);
            let drop = |name| {
                let name = names::own_column(name)?;
                let change = Change::Other(TableChange::DropColumn { name });
                Ok(PlannedChange { change, if_needed: *if_exists, cascades })
            };
            column_names.iter().map(drop).collect()
        }
        AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
            let (from, to) =
                (names::own_column(old_column_name)?, names::new_column(new_column_name)?);
            one(Change::Other(TableChange::RenameColumn { from, to }), false)
        }
        AlterTableOperation::AlterColumn { column_name, op } => {
            let name = names::own_column(column_name)?;
            let change = column_change(planner, table, &name, op)?;
            one(Change::Column(name, change), false)
        }
        AlterTableOperation::RenameTable { table_name: RenameTableNameKind::To(name) } => {
            match (name.0.len(), names::table(name)?) {
                (1, TableName::User { table: to, .. }) => {
                    let to = schemas::joined(schemas::parts(table).0, &to);
                    one(Change::Other(TableChange::Rename { to }), false)
                }
                _ => Err(SqlError::new(state::SYNTAX_ERROR, "a new name has no schema in front")),
            }
        }
        AlterTableOperation::AddConstraint {
            constraint: TableConstraint::Check(check),
            not_valid,
        } => one(Change::AddCheck(NewCheck::new(check, None)?.or_not_valid(*not_valid)), false),
        AlterTableOperation::AddConstraint {
            constraint: TableConstraint::Unique(unique),
            not_valid: false,
        } => one(Change::AddUnique(IndexPlan::of_constraint(unique, None, None)?), false),
        AlterTableOperation::AddConstraint {
            constraint: TableConstraint::ForeignKey(written),
            not_valid,
        } => {
            let foreign_key = ForeignKeyPlan::new(planner, table, written, (None, None))?;
            one(Change::AddForeignKey(foreign_key.or_not_valid(*not_valid)), false)
        }
        AlterTableOperation::ValidateConstraint { name } => {
            one(Change::Validate(names::identifier(name)), false)
        }
        AlterTableOperation::AddConstraint {
            constraint: TableConstraint::PrimaryKey(_), ..
        } => Err(SqlError::not_supported(
            "ADD PRIMARY KEY beside other changes",
            "Give it a statement of its own.",
        )),
        AlterTableOperation::DropConstraint { if_exists, name, drop_behavior } => {
            let name = names::identifier(name);
            if is_key(planner, table, &name) {
                return Err(SqlError::not_supported(
                    "dropping the primary key beside other changes",
                    "Give it a statement of its own.",
                ));
            }
            let change = Change::Other(TableChange::DropCheck { name });
            let cascades = *drop_behavior == Some(DropBehavior::Cascade);
            Ok(vec![PlannedChange { change, if_needed: *if_exists, cascades }])
        }
        AlterTableOperation::RenameConstraint { old_name, new_name } => {
            let (from, to) = (names::identifier(old_name), names::identifier(new_name));
            if is_key(planner, table, &from) {
                return one(Change::Other(TableChange::RenameKey { to }), false);
            }
            one(Change::Other(TableChange::RenameCheck { from, to }), false)
        }
        other => Err(SqlError::not_supported(format!("ALTER TABLE ... {other}"), FORMS)),
    }
}

fn column_change(
    planner: &Planner<'_>,
    table: &str,
    column: &str,
    operation: &AlterColumnOperation,
) -> Result<ColumnChange> {
    match operation {
        AlterColumnOperation::SetNotNull => Ok(ColumnChange::NotNull(true)),
        AlterColumnOperation::DropNotNull => Ok(ColumnChange::NotNull(false)),
        AlterColumnOperation::DropDefault => Ok(ColumnChange::Default(DefaultValue::None)),
        AlterColumnOperation::SetDefault { value }
            if let Some(change) = identity_words::change_of(value) =>
        {
            Ok(change)
        }
        AlterColumnOperation::SetDefault { value } => {
            // Where there is no such table that is told when it is looked for again.
            let known = planner.seen.table(table)?;
            let definition = known.definition();
            let at = definition.shown_column_index(column)?;
            let data_type = definition.columns()[at].data_type;
            let default = default::default_of(planner, value, data_type, false)?;
            Ok(ColumnChange::Default(default))
        }
        AlterColumnOperation::SetDataType { data_type, using, had_set: _spelling } => {
            let place = format!("column {column}");
            let (data_type, domain) = create::column_type(planner, &place, data_type)?;
            Ok(ColumnChange::Type { data_type, domain, using: using.clone().map(Box::new) })
        }
        AlterColumnOperation::AddGenerated {
            generated_as: Some(how @ (GeneratedAs::Always | GeneratedAs::ByDefault)),
            sequence_options,
        } => {
            let known = planner.seen.table(table)?;
            let at = known.definition().shown_column_index(column)?;
            let data_type = known.definition().columns()[at].data_type;
            let options = sequence_options.as_deref().unwrap_or_default();
            match sequence::of_identity(options, data_type)? {
                IdentitySource::Counter { start } => {
                    let is_always = *how == GeneratedAs::Always;
                    Ok(ColumnChange::Identity { start, is_always })
                }
                IdentitySource::Sequence(_) => Err(SqlError::not_supported(
                    "an identity with such options on a column that is there",
                    "CREATE SEQUENCE makes what gives its values: SET DEFAULT nextval('name').",
                )),
            }
        }
        other => Err(SqlError::not_supported(format!("ALTER COLUMN ... {other}"), FORMS)),
    }
}
