//! CREATE, ALTER and DROP VIEW, and the same of materialized views.

pub(super) mod materialized;
mod shown;
pub(super) mod stored;
pub(super) mod updatable;

use std::collections::BTreeSet;
use std::sync::Arc;

use onrush::{Table, ViewDefinition, ViewRows, ViewSource};
use onrush_query::ColumnType;
use sqlparser::ast::{
    AlterTable, AlterTableOperation, CreateTableOptions, CreateView, ObjectName, Query, SetExpr,
    Statement,
};

use super::alter::{self, AlterPlan};
use super::create::{self, Kind};
use super::operand::Parameters;
use super::relations::Known;
use super::{Planner, names, own_types};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;
use crate::{schemas, views};
pub(crate) use shown::shown;
pub(crate) use updatable::Updatable;

/// What is done with views.
#[derive(Clone)]
pub(crate) enum ViewPlan {
    Create(Arc<NewView>),
    Alter { plan: AlterPlan, is_materialized: bool },
    Drop { names: Vec<String>, if_exists: bool, cascades: bool, is_materialized: bool },
}

/// Which form of ALTER a view was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlterView {
    /// ALTER MATERIALIZED VIEW.
    pub(super) is_materialized: bool,
    /// SET SCHEMA, which stands there as RENAME TO.
    pub(super) sets_schema: bool,
}

/// A view that is to be made.
pub(crate) struct NewView {
    /// The engine's name.
    pub(crate) name: String,
    /// For this client alone; not said, where it reads a table that is.
    pub(crate) is_temporary: bool,
    pub(crate) is_said_to_be: bool,
    pub(crate) or_replace: bool,
    pub(crate) columns: Vec<(String, ColumnType)>,
    pub(crate) query: String,
    pub(crate) sources: Vec<ViewSource>,
    /// All that it reads, and what that reads.
    pub(crate) tables: Vec<Table>,
    /// The types of users that its columns are cast to.
    pub(crate) types: Vec<Table>,
}

impl ViewPlan {
    /// As it stands in the answer.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            ViewPlan::Create(_) => "CREATE VIEW",
            ViewPlan::Alter { is_materialized: false, .. } => "ALTER VIEW",
            ViewPlan::Alter { is_materialized: true, .. } => "ALTER MATERIALIZED VIEW",
            ViewPlan::Drop { is_materialized: false, .. } => "DROP VIEW",
            ViewPlan::Drop { is_materialized: true, .. } => "DROP MATERIALIZED VIEW",
        }
    }
}

/// Plans a CREATE VIEW. A materialized one `has_data` if its query is to be asked at once.
pub(super) fn create(
    planner: &Planner<'_>,
    statement: &CreateView,
    has_data: bool,
    parameters: &mut Parameters,
) -> Result<DefinitionPlan> {
    let CreateView {
        or_alter,
        or_replace,
        materialized,
        secure,
        name: written,
        name_before_not_exists: _of_it,
        columns,
        query,
        options,
        cluster_by,
        comment,
        with_no_schema_binding,
        if_not_exists,
        temporary,
        copy_grants,
        to,
        params,
    } = statement;
    if *materialized && (*or_replace || *temporary) {
        let message = "syntax error at or near \"MATERIALIZED\"";
        return Err(SqlError::new(state::SYNTAX_ERROR, message));
    }
    if *if_not_exists && !*materialized {
        let message = "syntax error at or near \"NOT\": CREATE VIEW has no IF NOT EXISTS";
        return Err(SqlError::new(state::SYNTAX_ERROR, message)
            .with_hint("CREATE OR REPLACE VIEW makes it or makes it anew."));
    }
    let is_of_others = *or_alter
        || *secure
        || *with_no_schema_binding
        || *copy_grants
        || comment.is_some()
        || to.is_some()
        || params.is_some()
        || !cluster_by.is_empty()
        || columns.iter().any(|column| column.data_type.is_some() || column.options.is_some());
    if *materialized && !is_of_others {
        return materialized::create(planner, statement, has_data, parameters);
    }
    if is_of_others || *options != CreateTableOptions::None {
        return Err(SqlError::not_supported(
            "an option of CREATE VIEW",
            "Write CREATE [OR REPLACE] [TEMPORARY] VIEW name [(columns)] AS query.",
        ));
    }
    check_query(query)?;
    let kind = if *temporary { Kind::Temporary } else { Kind::Logged };
    let (name, kind) = create::place(planner, written, kind)?;
    let stored::Stored { text, sources } = stored::stored(planner, query)?;
    let given: Vec<String> =
        columns.iter().map(|column| names::own_column(&column.name)).collect::<Result<_>>()?;
    let reads_temporary = || sources.iter().any(|source| is_temporary(planner, source));
    let is_temporary = kind == Kind::Temporary || reads_temporary();
    let name = match is_temporary && !schemas::has_temporary(&name) {
        true => create::place(planner, written, Kind::Temporary)?.0,
        false => name,
    };
    let view = NewView {
        is_temporary,
        is_said_to_be: kind == Kind::Temporary,
        or_replace: *or_replace,
        columns: Vec::new(),
        query: text,
        sources,
        tables: Vec::new(),
        types: own_types::of_columns(planner, query),
        name,
    };
    Ok(DefinitionPlan::View(ViewPlan::Create(Arc::new(planned(planner, view, &given)?))))
}

fn is_temporary(planner: &Planner<'_>, source: &ViewSource) -> bool {
    let table = planner.seen.numbered(source.table);
    table.is_some_and(|table| schemas::has_temporary(table.name()))
}

/// The view with the columns of its query as it is kept.
fn planned(planner: &Planner<'_>, view: NewView, given: &[String]) -> Result<NewView> {
    let known = Known::new(planner, &[]);
    let sources = view.sources.clone();
    let (query, kinds, rows) = (view.query.clone(), Vec::new(), ViewRows::None);
    let kept = ViewDefinition { query, sources, kinds, rows };
    let planned = tokio::task::block_in_place(|| known.new_view(&kept, given))?;
    if given.len() > planned.columns().len() {
        let message = "CREATE VIEW specifies more column names than columns";
        return Err(SqlError::new(state::SYNTAX_ERROR, message));
    }
    if planned.columns().is_empty() {
        return Err(SqlError::not_supported("a view without columns", "Select something."));
    }
    let columns = planned.columns().iter();
    let columns = columns.map(|column| (column.name.clone(), column.column_type)).collect();
    let mut seen = BTreeSet::new();
    let tables = known.into_tables().into_iter().map(|read| read.table);
    let tables: Vec<Table> = tables.filter(|table| seen.insert(table.id())).collect();
    if let Ok(old) = planner.seen.table(&view.name)
        && seen.contains(&old.id())
    {
        let name = schemas::own_name(&view.name);
        let message = format!("infinite recursion detected in rules for relation \"{name}\"");
        return Err(SqlError::new(state::INVALID_OBJECT_DEFINITION, message));
    }
    Ok(NewView { columns, tables, ..view })
}

/// Refuses what a view must not contain.
fn check_query(query: &Query) -> Result<()> {
    let refuse = |what: &str| {
        let message = format!("views must not contain {what}");
        Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message))
    };
    let with = query.with.iter().flat_map(|with| &with.cte_tables);
    let mut bodies = with.map(|named| &*named.query.body);
    let writes = |body: &SetExpr| {
        matches!(body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_))
    };
    if bodies.any(writes) || writes(&query.body) {
        return refuse("data-modifying statements in WITH");
    }
    match &*query.body {
        SetExpr::Select(select) if select.into.is_some() => refuse("SELECT INTO"),
        _ => Ok(()),
    }
}

/// Plans an ALTER VIEW, which was read as one of a table.
pub(super) fn alter(
    planner: &Planner<'_>,
    statement: &Statement,
    form: AlterView,
) -> Result<DefinitionPlan> {
    let AlterView { is_materialized, sets_schema } = form;
    let Statement::AlterTable(AlterTable { name, if_exists, operations, .. }) = statement else {
        return Err(SqlError::not_supported(statement, FORMS));
    };
    let view = planner.lookup().table_that_may_be(name, *if_exists)?;
    if let Ok(known) = planner.seen.table(&view)
        && views::kind(known.definition()) != kind(is_materialized)
    {
        return Err(is_no_view(&view, is_materialized));
    }
    let is_known = |operation: &AlterTableOperation| {
        use AlterTableOperation::{RenameColumn, RenameTable};
        matches!(operation, RenameColumn { .. } | RenameTable { .. })
    };
    if let Some(other) = operations.iter().find(|operation| !is_known(operation)) {
        return Err(SqlError::not_supported(format!("ALTER VIEW ... {other}"), FORMS));
    }
    let planned = match sets_schema {
        true => alter::plan_set_schema(planner, statement)?,
        false => match statement {
            Statement::AlterTable(statement) => alter::plan(planner, statement)?,
            other => return Err(SqlError::not_supported(other, FORMS)),
        },
    };
    match planned {
        DefinitionPlan::AlterTable(plan) => {
            Ok(DefinitionPlan::View(ViewPlan::Alter { plan, is_materialized }))
        }
        other => Ok(other),
    }
}

const FORMS: &str = "There are ALTER [MATERIALIZED] VIEW name RENAME TO, RENAME COLUMN, OWNER TO and SET SCHEMA; \
                     CREATE OR REPLACE VIEW gives a view another query.";

/// What a view is called in messages.
pub(crate) fn kind(is_materialized: bool) -> &'static str {
    if is_materialized { "materialized view" } else { "view" }
}

/// Something else is where a view is wanted.
pub(crate) fn is_no_view(name: &str, is_materialized: bool) -> SqlError {
    let message = format!("{:?} is not a {}", schemas::own_name(name), kind(is_materialized));
    SqlError::new(state::WRONG_OBJECT_TYPE, message)
}

/// Plans a DROP VIEW.
pub(super) fn drop(
    planner: &Planner<'_>,
    (if_exists, cascades): (bool, bool),
    given: &[ObjectName],
    is_materialized: bool,
) -> Result<DefinitionPlan> {
    let name = |name| planner.lookup().table_that_may_be(name, if_exists);
    let names = given.iter().map(name).collect::<Result<_>>()?;
    Ok(DefinitionPlan::View(ViewPlan::Drop { names, if_exists, cascades, is_materialized }))
}
