//! Statements to plans.

use std::sync::Arc;

use onrush::{Identities, Table, TableDefinition};
use onrush_types::DataType;
use sqlparser::ast::{
    self, CascadeOption, CloseCursor, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName,
    ObjectType, Query, SetExpr, Statement, TransactionModifier, TruncateIdentityOption,
};

use super::create::Kind;
use super::names::TableName;
use super::operand::{Operand, Parameters};
use super::role::{self, RoleStatement};
use super::select::OutputColumn;
use super::{
    Planner, alter, clauses, comment, create, create_as, cursor, enum_type, explain, extension,
    index, insert, lock, names, own_types, prepare, schema, select, sequence, setting, steps, view,
    with, write,
};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::{
    Call, CursorPlan, DefinitionPlan, Plan, RowsPlan, SelectPlan, SessionPlan, WritePlan,
};
use crate::notifications::Change;
use crate::schemas;

/// What SHOW names for all settings.
pub(crate) const ALL: &str = "all";

/// What is done with a savepoint, by its name.
#[derive(Clone)]
pub(crate) enum SavepointPlan {
    Set(String),
    RollbackTo(String),
    Release(String),
}

impl From<SelectPlan> for Plan {
    fn from(select: SelectPlan) -> Plan {
        Plan::Rows(RowsPlan::Select(select))
    }
}

impl From<WritePlan> for Plan {
    fn from(write: WritePlan) -> Plan {
        Plan::Rows(RowsPlan::Write(write))
    }
}

impl From<RoleStatement> for Plan {
    fn from(statement: RoleStatement) -> Plan {
        Plan::Definition(DefinitionPlan::Roles(statement))
    }
}

impl From<SessionPlan> for Plan {
    fn from(plan: SessionPlan) -> Plan {
        Plan::Session(plan)
    }
}

impl From<SavepointPlan> for Plan {
    fn from(plan: SavepointPlan) -> Plan {
        Plan::Session(SessionPlan::Savepoint(plan))
    }
}

/// The columns of SHOW; ALL has several.
pub(crate) fn show_columns(name: &str) -> Arc<[OutputColumn]> {
    let names: &[&str] = if name == ALL { &["name", "setting", "description"] } else { &[name] };
    let column = |(source, name): (usize, &&str)| OutputColumn { source, ..text_column(name) };
    names.iter().enumerate().map(column).collect()
}

pub(crate) fn text_column(name: &str) -> OutputColumn {
    OutputColumn { name: name.to_owned(), column_type: DataType::Text.into(), source: 0 }
}

/// Plans a statement.
pub(crate) fn plan(
    planner: &Planner<'_>,
    statement: &Statement,
    parameters: &mut Parameters,
) -> Result<Plan> {
    let noted = own_types::noted(planner, statement, parameters)?;
    let statement = noted.as_ref().unwrap_or(statement);
    if let Statement::Query(query) = statement
        && steps::has_steps(query)
    {
        let plan = steps::plan(planner, query, parameters)?;
        return Ok(Plan::Rows(RowsPlan::Steps(Arc::new(plan))));
    }
    clauses::check(planner, statement)?;
    match statement {
        Statement::Query(query) if let Some((into, query)) = create_as::into_of(query) => {
            create_as::select_into(planner, into, query, parameters).map(Plan::Definition)
        }
        Statement::Insert(insert) => insert::plan(planner, insert, parameters).map(Plan::from),
        Statement::Query(query) => match with::plan(planner, query, parameters)? {
            Some(plan) => Ok(plan.into()),
            None => select::plan(planner, query, parameters).map(Plan::from),
        },
        Statement::Update(update) => {
            write::update(planner, None, update, parameters).map(Plan::from)
        }
        Statement::Delete(delete) => {
            write::delete(planner, None, delete, parameters).map(Plan::from)
        }
        Statement::Merge(merge) => {
            let body = SetExpr::Merge(Statement::Merge(merge.clone()));
            let query = select::query_of_body(body)?;
            let plan = steps::plan(planner, &query, parameters)?;
            Ok(Plan::Rows(RowsPlan::Steps(Arc::new(plan))))
        }
        Statement::Explain { .. } => explain::plan(planner, statement, parameters).map(Plan::Rows),
        Statement::CreateTable(_) | Statement::CreateView(_) => {
            create_relation(planner, statement, CreateForm::PLAIN, parameters).map(Plan::Definition)
        }
        Statement::Drop { object_type: ObjectType::Table, if_exists, names, cascade, .. } => {
            let name = |name| planner.lookup().table_that_may_be(name, *if_exists);
            let names = names.iter().map(name).collect::<Result<_>>()?;
            let (if_exists, cascades) = (*if_exists, *cascade);
            Ok(Plan::Definition(DefinitionPlan::DropTables { names, if_exists, cascades }))
        }
        Statement::CreateSchema { .. } => schema::create(statement).map(Plan::Definition),
        Statement::AlterSchema(alter) => schema::alter(alter).map(Plan::Definition),
        Statement::Drop {
            object_type: kind @ (ObjectType::View | ObjectType::MaterializedView),
            if_exists,
            names,
            cascade,
            ..
        } => {
            let is_materialized = *kind == ObjectType::MaterializedView;
            view::drop(planner, (*if_exists, *cascade), names, is_materialized)
                .map(Plan::Definition)
        }
        Statement::Drop {
            object_type: ObjectType::Sequence, if_exists, names, cascade, ..
        } => sequence::drop(planner, *if_exists, names, *cascade).map(Plan::Definition),
        Statement::Drop { object_type: ObjectType::Index, if_exists, names, .. } => {
            index::drop(planner, *if_exists, names).map(Plan::Definition)
        }
        Statement::Drop { object_type: ObjectType::Schema, if_exists, names, cascade, .. } => {
            schema::drop(names, *if_exists, *cascade).map(Plan::Definition)
        }
        Statement::Truncate(truncate) => {
            let identities = match truncate.identity {
                Some(TruncateIdentityOption::Restart) => Identities::BeginAnew,
                Some(TruncateIdentityOption::Continue) | None => Identities::GoOn,
            };
            let names = truncate.table_names.iter().map(|target| &target.name);
            let name = |name| {
                let name = planner.lookup().table_named(name)?;
                sequence::check_is_table(planner, &name, |name| {
                    format!("{name:?} is not a table")
                })?;
                Ok(name)
            };
            let names = names.map(name).collect::<Result<_>>()?;
            let cascades = truncate.cascade == Some(CascadeOption::Cascade);
            Ok(Plan::Definition(DefinitionPlan::Truncate { names, cascades, identities }))
        }
        Statement::Lock(statement) => lock::plan(planner, statement).map(Plan::Definition),
        Statement::Comment { .. } => comment::plan(planner, statement).map(Plan::Definition),
        Statement::CreateRole(create) => role::create(create).map(Plan::from),
        Statement::AlterRole { name, operation } => role::alter(name, operation).map(Plan::from),
        Statement::Drop { object_type: ObjectType::Role, if_exists, names, .. } => {
            role::drop(names, *if_exists).map(Plan::from)
        }
        Statement::Grant(grant) => role::grant(planner, grant).map(Plan::from),
        Statement::Revoke(revoke) => role::revoke(planner, revoke).map(Plan::from),
        Statement::StartTransaction { modes, begin, modifier: None, statements, .. }
            if statements.is_empty() =>
        {
            let tag = if *begin { "BEGIN" } else { "START TRANSACTION" };
            Ok(SessionPlan::Begin { modes: setting::modes(modes)?, tag }.into())
        }
        Statement::Commit { chain, modifier: None::<TransactionModifier>, .. } => {
            Ok(SessionPlan::Commit { chains: *chain }.into())
        }
        Statement::Rollback { chain, savepoint: None } => {
            Ok(SessionPlan::Rollback { chains: *chain }.into())
        }
        Statement::Savepoint { name } => Ok(SavepointPlan::Set(names::identifier(name)).into()),
        Statement::Rollback { chain: false, savepoint: Some(name) } => {
            Ok(SavepointPlan::RollbackTo(names::identifier(name)).into())
        }
        Statement::ReleaseSavepoint { name } => {
            Ok(SavepointPlan::Release(names::identifier(name)).into())
        }
        Statement::Set(set) => setting::set(set).map(Plan::Session),
        Statement::Reset(reset) => setting::reset(reset).map(Plan::Session),
        Statement::ShowVariable { variable } => {
            let words: Vec<String> = variable.iter().map(names::identifier).collect();
            let name = words.join(".");
            // SHOW TIME ZONE and SHOW TRANSACTION ISOLATION LEVEL are the two of several words.
            let name = match name.as_str() {
                "time.zone" => "timezone".to_owned(),
                "transaction.isolation.level" => "transaction_isolation".to_owned(),
                _ => name,
            };
            Ok(SessionPlan::Show(name).into())
        }
        Statement::Discard { object_type } => Ok(SessionPlan::Discard(*object_type).into()),
        Statement::Prepare { name, data_types, statement } => {
            prepare::prepare(name, data_types, statement).map(Plan::Session)
        }
        Statement::Execute { .. } => prepare::execute(statement).map(Plan::Session),
        Statement::Declare { stmts } => {
            cursor::declare(planner, stmts, parameters).map(Plan::Cursor)
        }
        Statement::Close { cursor: CloseCursor::All } => Ok(Plan::Cursor(CursorPlan::Close(None))),
        Statement::Close { cursor: CloseCursor::Specific { name } } => {
            Ok(Plan::Cursor(CursorPlan::Close(Some(names::identifier(name)))))
        }
        Statement::LISTEN { channel } => {
            Ok(SessionPlan::Listen(Change::Listen(names::identifier(channel))).into())
        }
        Statement::UNLISTEN { channel } => {
            let is_all = channel.quote_style.is_none() && channel.value == "*";
            let channel = (!is_all).then(|| names::identifier(channel));
            Ok(SessionPlan::Listen(Change::Unlisten(channel)).into())
        }
        Statement::NOTIFY { channel, payload } => {
            let payload = payload.clone().unwrap_or_default();
            Ok(SessionPlan::Notify(names::identifier(channel), payload).into())
        }
        Statement::Deallocate { name, .. } => {
            let is_all = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all");
            Ok(SessionPlan::Deallocate((!is_all).then(|| names::identifier(name))).into())
        }
        Statement::Copy {
            source,
            to,
            target,
            options,
            legacy_options,
            values: _are_looked_at_with_all_clauses,
        } => {
            super::copy::plan(planner, source, *to, target, options, legacy_options).map(Plan::Rows)
        }
        Statement::Call(function) => {
            call(function, parameters).map(|call| Plan::Rows(RowsPlan::Call(call)))
        }
        Statement::AlterTable(statement) => alter::plan(planner, statement).map(Plan::Definition),
        Statement::CreateIndex(create) => index::create(planner, create).map(Plan::Definition),
        Statement::AlterIndex { name, operation } => {
            index::alter(planner, name, operation).map(Plan::Definition)
        }
        Statement::CreateType { name, representation } => {
            enum_type::create(planner, name, representation.as_ref()).map(Plan::Definition)
        }
        Statement::AlterType(alter) => enum_type::alter(planner, alter).map(Plan::Definition),
        Statement::CreateExtension(create) => extension::create(create).map(Plan::Definition),
        other => {
            let text = other.to_string();
            let verb: Vec<&str> = text.split_whitespace().take(2).collect();
            Err(SqlError::not_supported(
                verb.join(" "),
                "There are CREATE, ALTER, DROP and TRUNCATE TABLE, INSERT, SELECT, UPDATE, DELETE, COPY, \
                 transactions, SET, SHOW, CHECKPOINT and CALL.",
            ))
        }
    }
}

/// What stands in a CREATE of a table or a view that sqlparser does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CreateForm {
    /// UNLOGGED.
    pub(super) is_unlogged: bool,
    /// Not WITH NO DATA.
    pub(super) has_data: bool,
}

impl CreateForm {
    pub(super) const PLAIN: CreateForm = CreateForm { is_unlogged: false, has_data: true };
}

/// Plans a CREATE whose form was read already.
pub(super) fn create_in_form(
    planner: &Planner<'_>,
    statement: &Statement,
    form: CreateForm,
    parameters: &mut Parameters,
) -> Result<Plan> {
    let noted = own_types::noted(planner, statement, parameters)?;
    let statement = noted.as_ref().unwrap_or(statement);
    clauses::check(planner, statement)?;
    create_relation(planner, statement, form, parameters).map(Plan::Definition)
}

fn create_relation(
    planner: &Planner<'_>,
    statement: &Statement,
    CreateForm { is_unlogged, has_data }: CreateForm,
    parameters: &mut Parameters,
) -> Result<DefinitionPlan> {
    let kind = if is_unlogged { Kind::Unlogged } else { Kind::Logged };
    match statement {
        Statement::CreateTable(table) => match &table.query {
            Some(query) => create_as::plan(planner, table, query, (kind, has_data), parameters),
            None => create::plan(planner, table, kind),
        },
        Statement::CreateView(view) if !is_unlogged => {
            view::create(planner, view, has_data, parameters)
        }
        Statement::CreateView(view) if view.materialized => {
            let message = "materialized views cannot be unlogged";
            Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message))
        }
        other => Err(SqlError::not_supported(
            format!("UNLOGGED in {other}"),
            "Only tables can be unlogged: CREATE UNLOGGED TABLE.",
        )),
    }
}

/// The table of a name of the engine's.
pub(super) fn table(planner: &Planner<'_>, name: &str) -> Result<Table> {
    names::check_reserved(name)?;
    planner.seen.relation(name).map_err(|error| match error {
        onrush::Error::UnknownTable { .. } => unknown_table(planner, name),
        other => other.into(),
    })
}

/// The table of a name as it is written, whose schema need not be there, either.
pub(super) fn table_in(planner: &Planner<'_>, schema: Option<&str>, table: &str) -> Result<Table> {
    let Some(schema) = schema else {
        let found = planner.lookup().on_path(table);
        return match planner.seen.relation(&found) {
            Err(onrush::Error::UnknownTable { .. }) => Err(unknown_table(planner, table)),
            found => Ok(found?),
        };
    };
    let found = planner.lookup().in_schema(schema, table).ok();
    match found.map(|name| planner.seen.relation(&name)) {
        None | Some(Err(onrush::Error::UnknownTable { .. })) => {
            Err(unknown_table(planner, &format!("{schema}.{table}")))
        }
        Some(found) => Ok(found?),
    }
}

/// The table or sequence that a name in a statement means.
pub(super) fn relation_named(planner: &Planner<'_>, name: &ObjectName) -> Result<Table> {
    let span = names::span(name);
    match names::table(name)? {
        TableName::System(view) => Err(names::not_changed(&view)),
        TableName::User { schema, table } => {
            table_in(planner, schema.as_deref(), &table).map_err(|error| error.at(span))
        }
    }
}

fn unknown_table(planner: &Planner<'_>, name: &str) -> SqlError {
    let mut known = planner.seen.names();
    known.truncate(20);
    let message = format!("relation \"{name}\" does not exist");
    let told = SqlError::new(state::UNDEFINED_TABLE, message);
    match known.is_empty() {
        true => told.with_hint("The database has no tables: CREATE TABLE makes one."),
        false => told.with_hint(format!("The tables are: {}.", known.join(", "))),
    }
}

/// The column of a table that a statement writes to.
pub(super) fn target_column(table: &TableDefinition, name: &ObjectName) -> Result<usize> {
    let column = names::column(name)?;
    table.shown_column_index(&column).map_err(|_| {
        let table = schemas::own_name(table.name());
        let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
        let span = names::span(name);
        SqlError::new(state::UNDEFINED_COLUMN, message).at(span)
    })
}

/// A statement names a column of a table for a second time.
pub(super) fn given_twice(table: &TableDefinition, column: usize) -> SqlError {
    let name = &table.columns()[column].name;
    let message = format!("column {name:?} specified more than once");
    SqlError::new(state::DUPLICATE_COLUMN, message)
}

/// The body of a query that has nothing else.
pub(super) fn only_body(query: &Query) -> Result<&SetExpr> {
    let has_more = query.with.is_some()
        || query.order_by.is_some()
        || query.limit_clause.is_some()
        || query.fetch.is_some()
        || !query.locks.is_empty();
    if has_more {
        return Err(SqlError::not_supported("this form of VALUES", "Write VALUES (...), (...)."));
    }
    Ok(&query.body)
}

/// How long rows wait for the lake where nothing is said.
const LAKE_LAG_SECONDS: i64 = 60;

fn call(function: &ast::Function, parameters: &mut Parameters) -> Result<Call> {
    let mut name = names::parts(&function.name)?;
    if name.len() == 2 && name[0] == names::SYSTEM_SCHEMA {
        name.remove(0);
    }
    let given = match &function.args {
        FunctionArguments::List(list) => list.args.as_slice(),
        _ => &[],
    };
    let name = name.join(".");
    let signature: &[(&str, DataType)] = match name.as_str() {
        "check" => &[("dop", DataType::Int32)],
        "insert_loop" => &[
            ("table", DataType::Text),
            ("rows", DataType::Int64),
            ("rows_per_commit", DataType::Int64),
        ],
        "lake_attach" => &[
            ("table", DataType::Text),
            ("lake_table", DataType::Text),
            ("lag_seconds", DataType::Float64),
        ],
        "lake_view" => &[("table", DataType::Text), ("engine", DataType::Text)],
        "lake_cut" | "lake_detach" | "lake_flush" => &[("table", DataType::Text)],
        "archive_backup" => &[],
        _ => {
            let message = format!("there is no procedure {}", function.name);
            return Err(SqlError::new(state::UNDEFINED_FUNCTION, message).with_hint(
                "There are onrush.check(dop => 2), onrush.insert_loop(table, rows, rows_per_commit), \
                 onrush.lake_attach(table, lake_table, lag_seconds), onrush.lake_detach(table), \
                 onrush.lake_flush(table), onrush.lake_cut(table), onrush.lake_view(table, engine) and \
                 onrush.archive_backup().",
            ));
        }
    };
    let mut arguments: Vec<Option<Operand>> = vec![None; signature.len()];
    for (position, argument) in given.iter().enumerate() {
        let (place, expression) = match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => (Some(position), expression),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(expression), .. } => {
                let name = names::identifier(name);
                (signature.iter().position(|(known, _)| *known == name), expression)
            }
            FunctionArg::ExprNamed { name, arg: FunctionArgExpr::Expr(expression), .. } => {
                let name = name.to_string().to_lowercase();
                (signature.iter().position(|(known, _)| *known == name), expression)
            }
            other => return Err(SqlError::not_supported(other, "Give a value.")),
        };
        let Some((place, (_, data_type))) =
            place.and_then(|place| Some((place, signature.get(place)?)))
        else {
            let message = format!("procedure {name} has no argument {argument}");
            return Err(SqlError::new(state::UNDEFINED_FUNCTION, message));
        };
        arguments[place] = Some(Operand::new(expression, *data_type, parameters)?);
    }
    let mut arguments = arguments.into_iter();
    let mut next = |default: Option<i64>| {
        let given = arguments.next().flatten();
        let default = default.map(|number| Operand::Constant(onrush::Value::Int64(number)));
        given.or(default).ok_or_else(|| {
            SqlError::new(
                state::UNDEFINED_FUNCTION,
                format!("procedure {name} needs more arguments"),
            )
        })
    };
    match name.as_str() {
        "check" => Ok(Call::Check { threads: next(Some(1))? }),
        "lake_attach" => Ok(Call::LakeAttach {
            table: next(None)?,
            lake_table: next(None)?,
            lag_seconds: next(Some(LAKE_LAG_SECONDS))?,
        }),
        "lake_cut" => Ok(Call::LakeCut { table: next(None)? }),
        "lake_view" => Ok(Call::LakeView { table: next(None)?, engine: next(None)? }),
        "lake_detach" => Ok(Call::LakeDetach { table: next(None)? }),
        "archive_backup" => Ok(Call::ArchiveBackup),
        "lake_flush" => Ok(Call::LakeFlush { table: next(None)? }),
        _ => Ok(Call::InsertLoop {
            table: next(None)?,
            rows: next(None)?,
            rows_per_commit: next(Some(1))?,
        }),
    }
}
