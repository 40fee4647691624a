//! Statements to plans.

use std::sync::Arc;

use onrush::{Table, TableDefinition};
use onrush_types::DataType;
use sqlparser::ast::{
    self, CloseCursor, DiscardObject, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectType,
    Query, SetExpr, Statement, TransactionModifier, TruncateIdentityOption,
};

use super::alter::AlterPlan;
use super::comment::CommentPlan;
use super::computed::Returning;
use super::copy::CopyPlan;
use super::cursor::{self, DeclarePlan, FetchPlan};
use super::explain::Explained;
use super::insert::{InsertPlan, InsertRows};
use super::operand::{Operand, Parameters};
use super::prepare::{ExecutePlan, PreparePlan};
use super::query::QueryPlan;
use super::role::{self, RoleStatement};
use super::select::{GetPlan, OutputColumn, Scalar};
use super::setting::SettingChange;
use super::write::{DeletePlan, UpdatePlan};
use super::{
    Planner, SchemaPlan, absent, alter, clauses, comment, create, explain, insert, names, prepare,
    schema, select, setting, with, write,
};
use crate::error::{Result, SqlError, state};
use crate::seen::Seen;

/// What SHOW names for all settings.
pub(crate) const ALL: &str = "all";

/// A procedure and its arguments.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    /// Checks everything stored, with so many threads.
    Check { threads: Operand },
    /// Inserts rows of defaults.
    InsertLoop { table: Operand, rows: Operand, rows_per_commit: Operand },
}

/// What a statement does, ready to run.
#[derive(Clone)]
pub(crate) enum Plan {
    Insert(InsertPlan),
    /// A SELECT of the row with a key.
    Get(GetPlan),
    /// Any other query.
    Query(Arc<QueryPlan>),
    /// How a query would be done; with true, how it was.
    Explain(Explained, bool),
    Update(UpdatePlan),
    Delete(DeletePlan),
    /// A SELECT without a table.
    Scalars {
        columns: Arc<[OutputColumn]>,
        values: Vec<Scalar>,
    },
    CreateTable {
        definition: TableDefinition,
        if_not_exists: bool,
    },
    AlterTable(AlterPlan),
    /// What sessions begin with from now on.
    AlterDatabase(SettingChange),
    DropTables {
        names: Vec<String>,
        if_exists: bool,
    },
    /// Of what there is none; that is told.
    DropNothing {
        tag: &'static str,
        missing: Vec<SqlError>,
    },
    Truncate {
        names: Vec<String>,
    },
    Comment(CommentPlan),
    Schema(SchemaPlan),
    Roles(RoleStatement),
    Begin {
        /// None: as `default_transaction_read_only` says.
        is_read_only: Option<bool>,
    },
    Commit,
    Rollback,
    Savepoint(SavepointPlan),
    Declare(DeclarePlan),
    Fetch(FetchPlan),
    /// Of one cursor, or of all.
    CloseCursor(Option<String>),
    Set(SettingChange),
    /// SET TRANSACTION: what is said of reading and writing.
    SetTransaction {
        is_read_only: Option<bool>,
    },
    Show(String),
    /// Forgets prepared statements and settings.
    Discard {
        all: bool,
    },
    Prepare(PreparePlan),
    Execute(ExecutePlan),
    /// Forgets one prepared statement, or all.
    Deallocate(Option<String>),
    /// Done by saying so: the tag.
    Nothing(&'static str),
    CopyIn(CopyPlan),
    CopyOut(CopyPlan),
    Checkpoint,
    Call(Call),
}

impl Plan {
    /// The columns of the answer, where rows are part of it.
    pub(crate) fn columns(&self) -> Option<Arc<[OutputColumn]>> {
        let returned = |returning: &Option<Returning>| {
            returning.as_ref().map(|returning| Arc::clone(&returning.columns))
        };
        match self {
            Plan::Get(get) => Some(Arc::clone(&get.columns)),
            Plan::Query(query) => Some(Arc::clone(&query.columns)),
            Plan::Explain(..) => Some([text_column("QUERY PLAN")].into()),
            Plan::Scalars { columns, .. } => Some(Arc::clone(columns)),
            Plan::Insert(insert) => returned(&insert.returning),
            Plan::Update(update) => returned(&update.returning),
            Plan::Delete(delete) => returned(&delete.returning),
            Plan::Show(name) => Some(show_columns(name)),
            Plan::Call(Call::Check { .. }) => Some([text_column("check")].into()),
            _ => None,
        }
    }

    /// Whether a table that it was made for was altered or dropped since.
    pub(crate) fn is_stale(&self, seen: &Seen) -> bool {
        let is_stale = |table: &Table| !seen.is_current(table);
        match self {
            Plan::Insert(insert) => {
                let query = match &insert.rows {
                    InsertRows::Found { query, .. } => query.is_stale(seen),
                    _ => false,
                };
                is_stale(&insert.table) || query
            }
            Plan::Get(get) | Plan::Explain(Explained::Get(get), _) => is_stale(&get.table),
            Plan::Query(query) | Plan::Explain(Explained::Query(query), _) => query.is_stale(seen),
            Plan::Declare(declared) => declared.query.is_stale(seen),
            Plan::Explain(Explained::Write(plan), _) => plan.is_stale(seen),
            Plan::Update(update) => is_stale(&update.table) || update.rows.is_stale(seen),
            Plan::Delete(delete) => is_stale(&delete.table) || delete.rows.is_stale(seen),
            Plan::CopyIn(copy) | Plan::CopyOut(copy) => is_stale(&copy.table),
            _ => false,
        }
    }

    /// The table whose rows it writes, if it is one that writes rows.
    pub(crate) fn written_table(&self) -> Option<&Table> {
        match self {
            Plan::Insert(insert) => Some(&insert.table),
            Plan::Update(update) => Some(&update.table),
            Plan::Delete(delete) => Some(&delete.table),
            Plan::CopyIn(copy) => Some(&copy.table),
            _ => None,
        }
    }

    /// Whether it reads or writes rows of tables, and nothing but them and its text says how.
    pub(crate) fn is_of_rows(&self) -> bool {
        matches!(self, Plan::Insert(_) | Plan::Get(_) | Plan::Update(_) | Plan::Delete(_))
    }

    /// Whether a transaction that has failed takes it.
    pub(crate) fn is_for_failed_transaction(&self) -> bool {
        let back = matches!(self, Plan::Savepoint(SavepointPlan::RollbackTo(_)));
        back || matches!(self, Plan::Commit | Plan::Rollback)
    }
}

/// What is done with a savepoint, by its name.
#[derive(Clone)]
pub(crate) enum SavepointPlan {
    Set(String),
    RollbackTo(String),
    Release(String),
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
    clauses::check(planner, statement)?;
    match statement {
        Statement::Insert(insert) => insert::plan(planner, insert, parameters),
        Statement::Query(query) => match with::plan(planner, query, parameters)? {
            Some(plan) => Ok(plan),
            None => select::plan(planner, query, parameters),
        },
        Statement::Update(update) => write::update(planner, None, update, parameters),
        Statement::Delete(delete) => write::delete(planner, None, delete, parameters),
        Statement::Explain { .. } => explain::plan(planner, statement, parameters),
        Statement::CreateTable(table) => create::plan(planner, table, false),
        Statement::Drop {
            object_type: ObjectType::Table, if_exists, names, cascade: _, ..
        } => {
            let name = |name| planner.lookup().table_that_may_be(name, *if_exists);
            let names = names.iter().map(name).collect::<Result<_>>()?;
            Ok(Plan::DropTables { names, if_exists: *if_exists })
        }
        Statement::CreateSchema { .. } => schema::create(statement),
        Statement::AlterSchema(alter) => schema::alter(alter),
        Statement::Drop {
            object_type:
                object_type @ (ObjectType::View
                | ObjectType::MaterializedView
                | ObjectType::Sequence
                | ObjectType::Index),
            if_exists,
            names,
            ..
        } => absent::drop(planner, *object_type, *if_exists, names),
        Statement::Drop { object_type: ObjectType::Schema, if_exists, names, cascade, .. } => {
            schema::drop(names, *if_exists, *cascade)
        }
        Statement::Truncate(truncate) => {
            if truncate.identity == Some(TruncateIdentityOption::Restart) {
                return Err(SqlError::not_supported(
                    "TRUNCATE ... RESTART IDENTITY",
                    "Drop the table and create it again; generated keys go on where they were.",
                ));
            }
            let names = truncate.table_names.iter().map(|target| &target.name);
            let names =
                names.map(|name| planner.lookup().table_named(name)).collect::<Result<_>>()?;
            Ok(Plan::Truncate { names })
        }
        Statement::Comment { .. } => comment::plan(planner, statement),
        Statement::CreateRole(create) => role::create(create).map(Plan::Roles),
        Statement::AlterRole { name, operation } => role::alter(name, operation).map(Plan::Roles),
        Statement::Drop { object_type: ObjectType::Role, if_exists, names, .. } => {
            role::drop(names, *if_exists).map(Plan::Roles)
        }
        Statement::Grant(grant) => role::grant(planner, grant).map(Plan::Roles),
        Statement::Revoke(revoke) => role::revoke(planner, revoke).map(Plan::Roles),
        Statement::StartTransaction { modes, modifier: None, statements, .. }
            if statements.is_empty() =>
        {
            Ok(Plan::Begin { is_read_only: setting::modes(modes)? })
        }
        Statement::Commit { chain: false, modifier: None::<TransactionModifier>, .. } => {
            Ok(Plan::Commit)
        }
        Statement::Rollback { chain: false, savepoint: None } => Ok(Plan::Rollback),
        Statement::Savepoint { name } => {
            Ok(Plan::Savepoint(SavepointPlan::Set(names::identifier(name))))
        }
        Statement::Rollback { chain: false, savepoint: Some(name) } => {
            Ok(Plan::Savepoint(SavepointPlan::RollbackTo(names::identifier(name))))
        }
        Statement::ReleaseSavepoint { name } => {
            Ok(Plan::Savepoint(SavepointPlan::Release(names::identifier(name))))
        }
        Statement::Set(set) => setting::set(set),
        Statement::Reset(reset) => setting::reset(reset),
        Statement::ShowVariable { variable } => {
            let words: Vec<String> = variable.iter().map(names::identifier).collect();
            let name = words.join(".");
            // SHOW TIME ZONE and SHOW TRANSACTION ISOLATION LEVEL are the two of several words.
            let name = match name.as_str() {
                "time.zone" => "timezone".to_owned(),
                "transaction.isolation.level" => "transaction_isolation".to_owned(),
                _ => name,
            };
            Ok(Plan::Show(name))
        }
        Statement::Discard { object_type } => {
            Ok(Plan::Discard { all: *object_type == DiscardObject::ALL })
        }
        Statement::Prepare { name, data_types, statement } => {
            prepare::prepare(name, data_types, statement)
        }
        Statement::Execute { .. } => prepare::execute(statement),
        Statement::Declare { stmts } => cursor::declare(planner, stmts, parameters),
        Statement::Fetch { name, direction, position: _, into: None } => {
            cursor::fetch(name, direction)
        }
        Statement::Close { cursor: CloseCursor::All } => Ok(Plan::CloseCursor(None)),
        Statement::Close { cursor: CloseCursor::Specific { name } } => {
            Ok(Plan::CloseCursor(Some(names::identifier(name))))
        }
        // What pools send: there are no notifications to be done with.
        Statement::UNLISTEN { .. } => Ok(Plan::Nothing("UNLISTEN")),
        Statement::Deallocate { name, .. } => {
            let is_all = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all");
            Ok(Plan::Deallocate((!is_all).then(|| names::identifier(name))))
        }
        Statement::Copy { source, to, target, options, legacy_options, values }
            if values.is_empty() =>
        {
            super::copy::plan(planner, source, *to, target, options, legacy_options)
        }
        Statement::Call(function) => call(function, parameters).map(Plan::Call),
        Statement::AlterTable(statement) => alter::plan(planner, statement),
        Statement::CreateIndex(_) => Err(SqlError::not_supported(
            "a secondary index",
            "The primary key is the index; put the columns that you search by in front of it.",
        )),
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

/// Plans CREATE UNLOGGED TABLE.
pub(super) fn create_unlogged(planner: &Planner<'_>, statement: &Statement) -> Result<Plan> {
    match statement {
        Statement::CreateTable(table) => {
            clauses::check(planner, statement)?;
            create::plan(planner, table, true)
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
    planner.seen.table(name).map_err(|error| match error {
        onrush::Error::UnknownTable { .. } => {
            let mut known = planner.seen.names();
            known.truncate(20);
            let told = SqlError::new(state::UNDEFINED_TABLE, format!("there is no table {name}"));
            match known.is_empty() {
                true => told.with_hint("The database has no tables: CREATE TABLE makes one."),
                false => told.with_hint(format!("The tables are: {}.", known.join(", "))),
            }
        }
        other => other.into(),
    })
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
        _ => {
            let message = format!("there is no procedure {}", function.name);
            return Err(SqlError::new(state::UNDEFINED_FUNCTION, message).with_hint(
                "There are onrush.check(dop => 2) and \
                 onrush.insert_loop(table, rows, rows_per_commit).",
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
        _ => Ok(Call::InsertLoop {
            table: next(None)?,
            rows: next(None)?,
            rows_per_commit: next(Some(1))?,
        }),
    }
}
