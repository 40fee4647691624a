//! CREATE TABLE to a table definition.

use std::sync::Arc;

use onrush::{
    ColumnDefinition, ColumnDomain, DataType, DefaultValue, KeyStrategy, TableBuilder,
    TableDefinition,
};
use onrush_types::{ColumnName, TypeError};
use sqlparser::ast::{
    self, ColumnDef, ColumnOption, CreateTable, CreateTableOptions, Expr, GeneratedAs,
    GeneratedExpressionMode, IndexColumn, ObjectName, PrimaryKeyConstraint, SqlOption,
    TableConstraint,
};

use super::check::NewCheck;
use super::foreign_key::ForeignKeyPlan;
use super::generated::NewGenerated;
use super::index::IndexPlan;
use super::sequence::{self, IdentitySource, SequenceOptions};
use super::{Planner, column_options, composite_type, like, names, unique_words};
use crate::error::{Result, SqlError, state};
use crate::execute::OnCommit;
use crate::execute::plan::DefinitionPlan;
use crate::rewrite::has_key_already;
use crate::{domains, made_up, own_types, schemas, values};

/// What `WITH (...)` says.
#[derive(Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) is_unlogged: bool,
    is_strict: bool,
}

/// A table that is to be made.
pub(crate) struct NewTable {
    pub(crate) definition: TableDefinition,
    /// For its UNIQUE constraints.
    pub(crate) indexes: Vec<IndexPlan>,
    /// For its identity columns, by their names.
    pub(crate) sequences: Vec<(String, SequenceOptions)>,
    pub(crate) foreign_keys: Vec<ForeignKeyPlan>,
    /// What is said of columns, by their names.
    pub(crate) comments: Vec<(String, String)>,
    pub(crate) if_not_exists: bool,
    pub(crate) on_commit: Option<OnCommit>,
}

/// A column as it was written.
pub(super) struct Column {
    pub(super) definition: ColumnDefinition,
    /// It says PRIMARY KEY.
    pub(super) key: Option<NewKey>,
    pub(super) checks: Vec<NewCheck>,
    /// One for each UNIQUE.
    pub(super) indexes: Vec<IndexPlan>,
    /// One for each REFERENCES.
    pub(super) foreign_keys: Vec<ForeignKeyPlan>,
    /// The sequence that its identity is to have, where the engine's counter does not do.
    pub(super) sequence: Option<SequenceOptions>,
    /// What it is computed of.
    pub(super) generated: Option<NewGenerated>,
}

/// A primary key to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewKey {
    /// None: one is made up.
    pub(crate) name: Option<String>,
    pub(crate) columns: Vec<String>,
    /// Columns that the constraint includes: its rows have them anyhow.
    pub(crate) included: Vec<String>,
}

impl NewKey {
    pub(super) fn of_constraint(primary: &PrimaryKeyConstraint) -> Result<NewKey> {
        let name = primary.name.as_ref().map(names::identifier);
        let columns = primary.columns.iter().map(key_column).collect::<Result<_>>()?;
        let included = unique_words::included_columns(&primary.index_options)?;
        Ok(NewKey { name, columns, included })
    }

    /// Its name, which no other index has; the table is called so by the engine.
    ///
    /// # Errors
    /// The given name is taken.
    pub(super) fn free_name(&self, planner: &Planner<'_>, table: &str) -> Result<String> {
        let indexes = planner.seen.index_names();
        let schema = schemas::parts(table).0;
        let is_free = |own: &str| {
            let name = schemas::joined(schema, own);
            name != table && !indexes.contains(&name) && planner.seen.table(&name).is_err()
        };
        match &self.name {
            None => Ok(made_up::free_name(schemas::own_name(table), None, schemas::KEY, is_free)),
            Some(name) if is_free(name) => Ok(name.clone()),
            Some(name) => {
                let message = format!("relation {name:?} already exists");
                Err(SqlError::new(state::DUPLICATE_TABLE, message))
            }
        }
    }
}

/// How long the rows of a table stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Logged,
    /// Until a crash.
    Unlogged,
    /// Until the client goes.
    Temporary,
}

impl Kind {
    pub(super) fn or_temporary(self, is_temporary: bool) -> Kind {
        if is_temporary { Kind::Temporary } else { self }
    }
}

/// The engine's name of a new table, and of which kind it is there.
pub(super) fn place(
    planner: &Planner<'_>,
    name: &ObjectName,
    kind: Kind,
) -> Result<(String, Kind)> {
    let name = match kind {
        Kind::Temporary => planner.lookup().new_temporary_table_named(name)?,
        _ => planner.lookup().new_table_named(name)?,
    };
    names::check_reserved(&name)?;
    let is_temporary = schemas::has_temporary(&name);
    if is_temporary && kind == Kind::Unlogged {
        let message = "only temporary relations may be created in temporary schemas";
        return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, message));
    }
    Ok((name, kind.or_temporary(is_temporary)))
}

/// What becomes of the table when its transaction commits.
pub(super) fn on_commit(written: Option<&ast::OnCommit>, kind: Kind) -> Result<Option<OnCommit>> {
    if written.is_some() && kind != Kind::Temporary {
        let message = "ON COMMIT can only be used on temporary tables";
        return Err(SqlError::new(state::INVALID_TABLE_DEFINITION, message));
    }
    Ok(match written {
        None | Some(ast::OnCommit::PreserveRows) => None,
        Some(ast::OnCommit::DeleteRows) => Some(OnCommit::DeleteRows),
        Some(ast::OnCommit::Drop) => Some(OnCommit::Drop),
    })
}

/// The definition; two columns of one name are told as of a table that is not there yet.
pub(super) fn built(builder: TableBuilder) -> Result<TableDefinition> {
    builder.build().map_err(|error| match error {
        TypeError::DuplicateColumn(ColumnName { column, .. }) => {
            let message = format!("column {column:?} specified more than once");
            SqlError::new(state::DUPLICATE_COLUMN, message)
        }
        other => other.into(),
    })
}

/// Plans a CREATE TABLE.
pub(super) fn plan(
    planner: &Planner<'_>,
    statement: &CreateTable,
    kind: Kind,
) -> Result<DefinitionPlan> {
    let (name, kind) = place(planner, &statement.name, kind.or_temporary(statement.temporary))?;
    let settings = settings(&statement.table_options)?;
    let mut key: Option<NewKey> = None;
    let mut set_key = |new: NewKey| match key.replace(new) {
        None => Ok(()),
        Some(_) => Err(has_key_already(&name)),
    };
    let mut builder = TableDefinition::builder(&name);
    let (mut checks, mut indexes) = (Vec::new(), Vec::new());
    let (mut foreign_keys, mut sequences) = (Vec::new(), Vec::new());
    let (mut comments, mut generated) = (Vec::new(), Vec::new());
    for column in &statement.columns {
        if let Some(copied) = like::of(planner, column)? {
            builder = copied.columns.into_iter().fold(builder, TableBuilder::column);
            checks.extend(copied.checks);
            indexes.extend(copied.indexes);
            sequences.extend(copied.sequences);
            comments.extend(copied.comments);
            generated.extend(copied.generated);
            copied.key.map_or(Ok(()), &mut set_key)?;
            continue;
        }
        let column = column_of(planner, &name, column, settings.is_strict)?;
        let Column { definition, key: its_key, .. } = column;
        sequences.extend(column.sequence.map(|options| (definition.name.clone(), options)));
        checks.extend(column.checks);
        indexes.extend(column.indexes);
        foreign_keys.extend(column.foreign_keys);
        generated.extend(column.generated);
        its_key.map_or(Ok(()), &mut set_key)?;
        builder = builder.column(definition);
    }
    for constraint in &statement.constraints {
        match constraint {
            TableConstraint::PrimaryKey(primary) => {
                set_key(NewKey::of_constraint(primary)?)?;
            }
            TableConstraint::Check(check) => checks.push(NewCheck::new(check, None)?),
            TableConstraint::Unique(unique) => {
                indexes.push(IndexPlan::of_constraint(unique, None, None)?);
            }
            TableConstraint::ForeignKey(written) => {
                foreign_keys.push(ForeignKeyPlan::new(planner, &name, written, (None, None))?);
            }
            other => {
                return Err(SqlError::not_supported(
                    format!("the constraint {other}"),
                    "PRIMARY KEY, UNIQUE, FOREIGN KEY, NOT NULL and CHECK are the constraints there are.",
                ));
            }
        }
    }
    if kind != Kind::Logged || settings.is_unlogged {
        builder = builder.unlogged();
    }
    if let Some(key) = &key {
        let is_column = |name: &String| {
            statement.columns.iter().any(|column| names::identifier(&column.name) == *name)
        };
        if let Some(unknown) = key.included.iter().find(|name| !is_column(name)) {
            let message = format!("column {unknown:?} named in key does not exist");
            return Err(SqlError::new(state::UNDEFINED_COLUMN, message));
        }
    }
    let builder = match key {
        Some(key) => builder
            .key_name(key.free_name(planner, &name)?)
            .primary_key(key.columns)
            .key_included(key.included),
        None => builder.keyed_by_row_id(),
    };
    let mut definition = built(builder.clone())?;
    if !checks.is_empty() {
        let mut kept = Vec::with_capacity(checks.len());
        for check in checks {
            kept.push(check.kept(planner.queries, &definition, &kept)?);
        }
        definition = kept.into_iter().fold(builder, TableBuilder::check_constraint).build()?;
    }
    definition = NewGenerated::applied(&generated, definition)?;
    let on_commit = on_commit(statement.on_commit.as_ref(), kind)?;
    let if_not_exists = statement.if_not_exists;
    let table = NewTable {
        definition,
        indexes,
        sequences,
        foreign_keys,
        comments,
        if_not_exists,
        on_commit,
    };
    Ok(DefinitionPlan::CreateTable(Arc::new(table)))
}

pub(super) fn settings(options: &CreateTableOptions) -> Result<Settings> {
    let mut settings = Settings::default();
    let options = match options {
        CreateTableOptions::None => &[],
        CreateTableOptions::With(options) => options.as_slice(),
        other => return Err(SqlError::not_supported(other, "Write WITH (name = value).")),
    };
    for option in options {
        let SqlOption::KeyValue { key, value } = option else {
            return Err(SqlError::not_supported(option, "Write name = true or name = false."));
        };
        let name = names::identifier(key);
        if is_of_storage(key) {
            continue;
        }
        let on = match value.to_string().trim_matches('\'').to_lowercase().as_str() {
            "true" | "on" | "1" => true,
            "false" | "off" | "0" => false,
            other => {
                let message = format!("{other} is neither true nor false");
                return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, message));
            }
        };
        match name.as_str() {
            "unlogged" => settings.is_unlogged = on,
            "strict_identity" => settings.is_strict = on,
            other => {
                let message = format!("there is no table setting {other}");
                return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, message)
                    .with_hint("There are unlogged and strict_identity."));
            }
        }
    }
    Ok(settings)
}

/// What PostgreSQL's scripts say of its pages and of its vacuum: here leaves fill themselves, and nothing is to be
/// cleaned up.
fn is_of_storage(key: &ast::Ident) -> bool {
    let name = names::identifier(key);
    name.starts_with("autovacuum_")
        || name.starts_with("vacuum_")
        || matches!(
            name.as_str(),
            "fillfactor"
                | "log_autovacuum_min_duration"
                | "parallel_workers"
                | "toast_tuple_target"
        )
}

fn key_column(column: &IndexColumn) -> Result<String> {
    match &column.column.expr {
        Expr::Identifier(name)
            if column.operator_class.is_none()
                && column.column.options == ast::OrderByOptions::default() =>
        {
            Ok(names::identifier(name))
        }
        _ => Err(SqlError::not_supported(column, "A key has columns, in ascending order.")),
    }
}

/// Reads the definition of a column of `table`, as the engine calls it.
pub(super) fn column_of(
    planner: &Planner<'_>,
    table: &str,
    column: &ColumnDef,
    is_strict: bool,
) -> Result<Column> {
    let name = names::new_column(&column.name)?;
    let identity = KeyStrategy::Identity { start: 1, strict: is_strict };
    let (data_type, domain, is_serial) = match serial_type(&column.data_type) {
        Some(data_type) => (data_type, None, true),
        None => {
            let place = format!("column {name}");
            let (data_type, domain) = column_type(planner, &place, &column.data_type)?;
            (data_type, domain, false)
        }
    };
    column_options::check(table, &name, &column.options, is_serial)?;
    let mut definition = ColumnDefinition::new(&name, data_type);
    definition.domain = domain;
    if is_serial {
        definition = definition.not_null().default_key(identity);
    }
    let mut key = None;
    let (mut checks, mut indexes, mut foreign_keys) = (Vec::new(), Vec::new(), Vec::new());
    let (mut its_sequence, mut generated) = (None, None);
    for option in &column.options {
        match &option.option {
            ColumnOption::NotNull => definition = definition.not_null(),
            ColumnOption::Null => {}
            ColumnOption::Collation(collation) => check_collation(collation)?,
            ColumnOption::PrimaryKey(primary) => {
                let own = primary.name.as_ref().or(option.name.as_ref());
                let name = own.map(names::identifier);
                let (columns, included) = (vec![definition.name.clone()], Vec::new());
                if key.replace(NewKey { name, columns, included }).is_some() {
                    return Err(has_key_already(table));
                }
            }
            ColumnOption::Unique(unique) => {
                let outer = option.name.as_ref();
                indexes.push(IndexPlan::of_constraint(unique, outer, Some(&name))?);
            }
            ColumnOption::Comment(comment) if unique_words::uniqueness(comment).is_some() => {
                let uniqueness = unique_words::uniqueness(comment);
                if let (Some(index), Some(uniqueness)) = (indexes.pop(), uniqueness) {
                    indexes.push(index.with_uniqueness(uniqueness));
                }
            }
            ColumnOption::ForeignKey(written) => {
                let place = (option.name.as_ref(), Some(name.as_str()));
                foreign_keys.push(ForeignKeyPlan::new(planner, table, written, place)?);
            }
            ColumnOption::Check(check) => {
                checks.push(NewCheck::new(check, option.name.as_ref())?);
            }
            ColumnOption::Default(value) => {
                definition.default =
                    super::default::default_of(planner, value, data_type, is_strict)?;
                definition = definition.with_own_default();
            }
            ColumnOption::Generated {
                generation_expr: Some(expression),
                generation_expr_mode: Some(GeneratedExpressionMode::Stored),
                ..
            } => {
                definition = definition.with_own_default();
                generated = Some(NewGenerated::new(&name, expression));
            }
            ColumnOption::Generated {
                generated_as: generated_as @ (GeneratedAs::Always | GeneratedAs::ByDefault),
                sequence_options,
                generation_expr: None,
                ..
            } => {
                let options = sequence_options.as_deref().unwrap_or_default();
                check_takes_identity(&definition)?;
                definition = definition.not_null();
                match sequence::of_identity(options, data_type)? {
                    IdentitySource::Counter { start } => {
                        let strategy = KeyStrategy::Identity { start, strict: is_strict };
                        definition = definition.default_key(strategy);
                    }
                    IdentitySource::Sequence(options) => its_sequence = Some(options),
                }
                definition.is_always_generated = *generated_as == GeneratedAs::Always;
            }
            other => {
                return Err(SqlError::not_supported(
                    format!("{other} on column {name}"),
                    "Columns have NOT NULL, DEFAULT, PRIMARY KEY, UNIQUE, REFERENCES, CHECK, GENERATED AS IDENTITY and \
                     GENERATED ALWAYS AS (expression) STORED.",
                ));
            }
        }
    }
    if !definition.nullable
        && matches!(&definition.default, DefaultValue::Constant(value) if value.is_null())
    {
        // A row without a value is refused then, as it is without a default.
        definition.default = DefaultValue::None;
    }
    let sequence = its_sequence;
    Ok(Column { definition, key, checks, indexes, foreign_keys, sequence, generated })
}

/// Text has one collation here, that of its bytes, which has several names.
pub(super) fn check_collation(collation: &ObjectName) -> Result<()> {
    let name = names::parts(collation)?.pop().unwrap_or_default();
    if onrush_query::is_collation_of_bytes(&name) {
        return Ok(());
    }
    let message = format!("collation \"{name}\" for encoding \"UTF8\" does not exist");
    Err(SqlError::new(state::UNDEFINED_OBJECT, message)
        .with_hint("There are default, C, POSIX and ucs_basic, all of which compare bytes."))
}

fn serial_type(data_type: &ast::DataType) -> Option<DataType> {
    match data_type.to_string().to_lowercase().as_str() {
        "smallserial" | "serial2" => Some(DataType::Int16),
        "serial" | "serial4" => Some(DataType::Int32),
        "bigserial" | "serial8" => Some(DataType::Int64),
        _ => None,
    }
}

fn check_takes_identity(column: &ColumnDefinition) -> Result<()> {
    match column.domain {
        None => Ok(()),
        Some(_) => {
            let message = "identity column type must be smallint, integer, or bigint";
            Err(SqlError::new(state::INVALID_PARAMETER_VALUE, message))
        }
    }
}

/// The type of a column, and the domain that it is of, which gives it its default.
pub(super) fn column_type(
    planner: &Planner<'_>,
    place: &str,
    written: &ast::DataType,
) -> Result<(DataType, Option<ColumnDomain>)> {
    if let ast::DataType::Custom(name, modifiers) = written
        && modifiers.is_empty()
        && let Some(own) = planner.lookup().own_type_named(&names::parts(name)?)
    {
        return Ok(match own_types::of_table(&own) {
            Some(of) => {
                composite_type::check_column(place, of)?;
                (of, None)
            }
            None => {
                let data_type = own.definition().columns()[0].data_type;
                (data_type, Some(domains::of_column(&own, true)))
            }
        });
    }
    let data_type = data_type(place, written)?;
    composite_type::check_column(place, data_type)?;
    Ok((data_type, None))
}

/// The type of a column or a cast; `place` says where, for messages.
pub(super) fn data_type(place: &str, written: &ast::DataType) -> Result<DataType> {
    use ast::DataType::{Dec, Decimal, Numeric};
    if let Some(data_type) = onrush_query::time_type(written) {
        return Ok(data_type);
    }
    if let Numeric(digits) | Decimal(digits) | Dec(digits) = written {
        return Ok(onrush_query::declared_numeric(digits)?);
    }
    let lower = written.to_string().to_lowercase();
    let instead = onrush_types::data_type::TYPE_NAMES;
    lower.strip_prefix("pg_catalog.").unwrap_or(&lower).parse().map_err(|error| match error {
        // A varchar that is too long, or too short.
        TypeError::ImpossibleDataType { reason, .. } if reason.contains("10485760") => {
            onrush::Error::Type(error).into()
        }
        _ => {
            let written = shown_type(written);
            SqlError::not_supported(format!("the type {written} of {place}"), instead)
        }
    })
}

/// A type as it was written, where a type of a user goes by its note.
fn shown_type(written: &ast::DataType) -> String {
    let plain = written.to_string();
    let (element, rest) = plain.split_at(plain.find('[').unwrap_or(plain.len()));
    match element.parse() {
        Ok(own @ (DataType::Enum(_) | DataType::Composite(_))) => {
            format!("{}{rest}", values::type_name(own))
        }
        _ => plain,
    }
}
