//! SELECT ... FOR UPDATE and its kin: the rows that a query finds, and whose rows of tables are locked for them.

use std::sync::Arc;

use onrush::{DataType, RowLock, Table};
use sqlparser::ast::{
    self, Expr, GroupByExpr, Ident, JoinOperator, LimitClause, LockClause, LockType, NonBlock,
    Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins,
};

use super::operand::{Operand, Parameters};
use super::query::QueryPlan;
use super::select::{self, GetPlan, OutputColumn};
use super::{Planner, names, plan};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::SelectPlan;
use crate::{schemas, views};

/// In place of a table's name behind OF: the lock is FOR NO KEY UPDATE.
pub(super) const NO_KEY: &str = "no key";
/// The lock is FOR KEY SHARE.
pub(super) const KEY: &str = "key";

/// What is done about a row that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenTaken {
    Wait,
    Fail,
    Skip,
}

/// A table whose rows are locked.
#[derive(Clone)]
pub(crate) struct LockedTable {
    pub(crate) table: Table,
    pub(crate) lock: RowLock,
    pub(crate) when_taken: WhenTaken,
    /// Where the row's key stands among what the query finds.
    pub(crate) key: std::ops::Range<usize>,
}

/// Where the rows come from.
#[derive(Clone)]
pub(crate) enum LockedRows {
    /// One, by its key.
    Get(GetPlan),
    /// A query, without its LIMIT and OFFSET: rows that are skipped do not count.
    Query { query: Arc<QueryPlan>, limit: Option<Operand>, offset: Option<Operand> },
}

/// Of which rows of tables the rows of a query are, for a cursor.
#[derive(Clone)]
pub(crate) struct KeyedRows {
    /// Tables, and where the keys of their rows stand.
    pub(crate) tables: Vec<(Table, std::ops::Range<usize>)>,
    /// How many columns there are before the keys.
    pub(crate) visible: usize,
}

/// A SELECT that locks rows.
#[derive(Clone)]
pub(crate) struct LockingPlan {
    pub(crate) rows: LockedRows,
    pub(crate) columns: Arc<[OutputColumn]>,
    pub(crate) tables: Vec<LockedTable>,
    /// Whether the keys stay behind the columns.
    pub(crate) keeps_keys: bool,
    /// What it is called.
    pub(crate) verb: &'static str,
}

/// A table in FROM.
struct Relation {
    /// What stands in front of its columns.
    name: String,
    table: Table,
    /// Its columns may be NULL for want of a row.
    is_nullable: bool,
}

/// Plans a query with FOR UPDATE or the like behind it.
pub(super) fn plan(
    planner: &Planner<'_>,
    query: &Query,
    parameters: &mut Parameters,
) -> Result<SelectPlan> {
    plan_locking(planner, query, false, parameters)
}

/// Plans a query so that the keys of its rows stand behind its columns: of a table, or of those that it locks. None
/// for one whose rows are not rows of tables.
pub(super) fn plan_keyed(
    planner: &Planner<'_>,
    query: &Query,
    parameters: &mut Parameters,
) -> Result<Option<(SelectPlan, KeyedRows)>> {
    if !query.locks.is_empty() {
        let plan = plan_locking(planner, query, true, parameters)?;
        let SelectPlan::Locking(locking) = &plan else { return Ok(None) };
        let table = |locked: &LockedTable| (locked.table.clone(), locked.key.clone());
        let keyed = KeyedRows {
            tables: locking.tables.iter().map(table).collect(),
            visible: locking.columns.len(),
        };
        return Ok(Some((plan, keyed)));
    }
    let SetExpr::Select(body) = &*query.body else { return Ok(None) };
    if check_body(body, "").is_err() {
        return Ok(None);
    }
    let Ok(relations) = relations(planner, query, body, "") else { return Ok(None) };
    let ([relation], [ast::TableWithJoins { joins, .. }]) =
        (relations.as_slice(), body.from.as_slice())
    else {
        return Ok(None);
    };
    if !joins.is_empty() {
        return Ok(None);
    }
    let (table, when_taken) = (relation.table.clone(), WhenTaken::Wait);
    let wanted = LockedTable { table, lock: RowLock::KeyShare, when_taken, key: 0..0 };
    let Ok((keyed, tables)) = with_keys(query.clone(), &relations, vec![wanted]) else {
        return Ok(None);
    };
    let mut tried = parameters.clone();
    let names = [relation.table.name()];
    // Of groups, for one, there is no key.
    let Ok(plan) = QueryPlan::of_rows_of(planner, &names, keyed, &mut tried) else {
        return Ok(None);
    };
    *parameters = tried;
    let keys: usize = tables.iter().map(|wanted| wanted.key.len()).sum();
    let visible = plan.columns.len() - keys;
    let key =
        |wanted: LockedTable| (wanted.table, wanted.key.start + visible..wanted.key.end + visible);
    let tables = tables.into_iter().map(key).collect();
    Ok(Some((SelectPlan::Query(Arc::new(plan)), KeyedRows { tables, visible })))
}

fn plan_locking(
    planner: &Planner<'_>,
    query: &Query,
    keeps_keys: bool,
    parameters: &mut Parameters,
) -> Result<SelectPlan> {
    let mut query = query.clone();
    let locks = std::mem::take(&mut query.locks);
    let verb = verb_of(&locks);
    let SetExpr::Select(body) = &*query.body else {
        let message = match &*query.body {
            SetExpr::Values(_) => format!("{verb} cannot be applied to VALUES"),
            SetExpr::SetOperation { .. } => {
                format!("{verb} is not allowed with UNION/INTERSECT/EXCEPT")
            }
            _ => format!("{verb} behind parentheses is not supported"),
        };
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message));
    };
    check_body(body, verb)?;
    let relations = relations(planner, &query, body, verb)?;
    let tables = locked(&locks, &relations, verb)?;
    if !keeps_keys
        && let SelectPlan::Get(get) = select::plan(planner, &query, &mut parameters.clone())?
    {
        select::plan(planner, &query, parameters)?;
        let columns = Arc::clone(&get.columns);
        let rows = LockedRows::Get(get);
        return Ok(locking(LockingPlan { rows, columns, tables, keeps_keys, verb }));
    }
    let (limit, offset) = limits(&mut query, parameters)?;
    let (query, tables) = with_keys(query, &relations, tables)?;
    let names: Vec<&str> = tables.iter().map(|locked| locked.table.name()).collect();
    let visible = |plan: &QueryPlan| {
        let keys: usize = tables.iter().map(|locked| locked.key.len()).sum();
        plan.columns.len() - keys
    };
    let query = QueryPlan::of_rows_of(planner, &names, query, parameters)?;
    let first_key = visible(&query);
    let columns = query.columns[..first_key].into();
    let behind = |mut locked: LockedTable| {
        locked.key = locked.key.start + first_key..locked.key.end + first_key;
        locked
    };
    let tables = tables.into_iter().map(behind).collect();
    let rows = LockedRows::Query { query: Arc::new(query), limit, offset };
    Ok(locking(LockingPlan { rows, columns, tables, keeps_keys, verb }))
}

fn locking(plan: LockingPlan) -> SelectPlan {
    SelectPlan::Locking(Arc::new(plan))
}

/// As PostgreSQL calls the first clause.
fn verb_of(locks: &[LockClause]) -> &'static str {
    match locks.first().map(lock_of) {
        Some(RowLock::KeyShare) => "FOR KEY SHARE",
        Some(RowLock::Share) => "FOR SHARE",
        Some(RowLock::NoKeyUpdate) => "FOR NO KEY UPDATE",
        Some(RowLock::Update) | None => "FOR UPDATE",
    }
}

fn lock_of(clause: &LockClause) -> RowLock {
    let parts = clause.of.as_ref().and_then(|name| names::parts(name).ok()).unwrap_or_default();
    match (clause.lock_type, parts.first().map(String::as_str)) {
        (LockType::Update, Some(NO_KEY)) => RowLock::NoKeyUpdate,
        (LockType::Update, _) => RowLock::Update,
        (LockType::Share, Some(KEY)) => RowLock::KeyShare,
        (LockType::Share, _) => RowLock::Share,
    }
}

/// The table that the clause names, if it names one.
fn named(clause: &LockClause) -> Result<Option<String>> {
    let Some(name) = &clause.of else { return Ok(None) };
    let mut parts = names::parts(name)?;
    if matches!(parts.first().map(String::as_str), Some(NO_KEY | KEY)) {
        parts.remove(0);
    }
    match parts.as_slice() {
        [] => Ok(None),
        [name] => Ok(Some(name.clone())),
        _ => {
            let verb = verb_of(std::slice::from_ref(clause));
            let message = format!("{verb} must specify unqualified relation names");
            Err(SqlError::new(state::SYNTAX_ERROR, message))
        }
    }
}

fn not_allowed(verb: &str, what: &str) -> SqlError {
    let message = format!("{verb} is not allowed with {what}");
    SqlError::new(state::FEATURE_NOT_SUPPORTED, message)
}

fn check_body(body: &Select, verb: &str) -> Result<()> {
    if body.distinct.is_some() {
        return Err(not_allowed(verb, "DISTINCT clause"));
    }
    let has_groups = match &body.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(expressions, modifiers) => {
            !(expressions.is_empty() && modifiers.is_empty())
        }
    };
    if has_groups {
        return Err(not_allowed(verb, "GROUP BY clause"));
    }
    if body.having.is_some() {
        return Err(not_allowed(verb, "HAVING clause"));
    }
    if !body.named_window.is_empty() {
        return Err(not_allowed(verb, "window functions"));
    }
    Ok(())
}

/// The tables in FROM. Those of WITH are not locked, as in PostgreSQL.
fn relations(
    planner: &Planner<'_>,
    query: &Query,
    body: &Select,
    verb: &str,
) -> Result<Vec<Relation>> {
    let with = query.with.iter().flat_map(|with| &with.cte_tables);
    let with: Vec<String> = with.map(|table| names::identifier(&table.alias.name)).collect();
    let mut relations = Vec::new();
    for from in &body.from {
        add_joined(planner, from, (&with, verb), &mut relations)?;
    }
    Ok(relations)
}

fn add_joined(
    planner: &Planner<'_>,
    from: &TableWithJoins,
    context: (&[String], &str),
    relations: &mut Vec<Relation>,
) -> Result<()> {
    let first = relations.len();
    add(planner, &from.relation, context, relations)?;
    for join in &from.joins {
        let left = relations.len();
        add(planner, &join.relation, context, relations)?;
        let (is_left_nullable, is_right_nullable) = match &join.join_operator {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => (false, true),
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (true, false),
            JoinOperator::FullOuter(_) => (true, true),
            _ => (false, false),
        };
        for (at, relation) in relations.iter_mut().enumerate().skip(first) {
            relation.is_nullable |= if at < left { is_left_nullable } else { is_right_nullable };
        }
    }
    Ok(())
}

fn add(
    planner: &Planner<'_>,
    factor: &TableFactor,
    (with, verb): (&[String], &str),
    relations: &mut Vec<Relation>,
) -> Result<()> {
    match factor {
        TableFactor::Table { name, alias, args: None, .. } => {
            let parts = names::parts(name)?;
            if parts.len() == 1 && with.contains(&parts[0]) {
                return Ok(());
            }
            let table = plan::relation_named(planner, name)?;
            if table.definition().view().is_some() {
                let instead = "Lock the rows of the table that it reads.";
                return Err(SqlError::not_supported(format!("{verb} of a view"), instead));
            }
            let kind = views::kind(table.definition());
            if kind != "table" {
                let message =
                    format!("cannot lock rows in {kind} {:?}", schemas::own_name(table.name()));
                return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message));
            }
            if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
                return Err(SqlError::not_supported(
                    format!("{verb} of a table whose columns have other names"),
                    "Name the table alone: FROM table AS name.",
                ));
            }
            let alias = alias.as_ref().map(|alias| names::identifier(&alias.name));
            let name = alias.unwrap_or_else(|| schemas::own_name(table.name()).to_owned());
            relations.push(Relation { name, table, is_nullable: false });
            Ok(())
        }
        TableFactor::NestedJoin { table_with_joins, alias: None } => {
            add_joined(planner, table_with_joins, (with, verb), relations)
        }
        TableFactor::Derived { .. } => Err(SqlError::not_supported(
            format!("{verb} with a subquery in FROM"),
            "Join its tables, or lock their rows in a statement of its own.",
        )),
        // Rows that functions make belong to no table.
        _ => Ok(()),
    }
}

/// The tables that the clauses lock, each as strongly as one of them says.
fn locked(locks: &[LockClause], relations: &[Relation], verb: &str) -> Result<Vec<LockedTable>> {
    let mut tables: Vec<Option<LockedTable>> = relations.iter().map(|_| None).collect();
    for clause in locks {
        let (lock, name) = (lock_of(clause), named(clause)?);
        if let Some(name) = &name
            && !relations.iter().any(|relation| relation.name == *name)
        {
            let message = format!("relation \"{name}\" in {verb} clause not found in FROM clause");
            return Err(SqlError::new(state::UNDEFINED_TABLE, message));
        }
        let when_taken = match clause.nonblock {
            None => WhenTaken::Wait,
            Some(NonBlock::Nowait) => WhenTaken::Fail,
            Some(NonBlock::SkipLocked) => WhenTaken::Skip,
        };
        for (relation, there) in relations.iter().zip(&mut tables) {
            if name.as_ref().is_some_and(|name| relation.name != *name) {
                continue;
            }
            if relation.is_nullable {
                let message =
                    format!("{verb} cannot be applied to the nullable side of an outer join");
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message));
            }
            let table = relation.table.clone();
            let there = there.get_or_insert(LockedTable { table, lock, when_taken, key: 0..0 });
            there.lock = there.lock.max(lock);
            if there.when_taken == WhenTaken::Wait || when_taken == WhenTaken::Fail {
                there.when_taken = when_taken;
            }
        }
    }
    Ok(tables.into_iter().flatten().collect())
}

/// Takes LIMIT and OFFSET out of the query.
fn limits(
    query: &mut Query,
    parameters: &mut Parameters,
) -> Result<(Option<Operand>, Option<Operand>)> {
    let mut operand = |expression: &Expr| {
        let operand = Operand::if_simple(expression, DataType::Int64, parameters)?;
        operand.ok_or_else(|| {
            SqlError::not_supported(
                format!("LIMIT {expression} of a query that locks rows"),
                "Write a number or a parameter.",
            )
        })
    };
    let (mut limit, mut offset) = (None, None);
    if let Some(LimitClause::LimitOffset { limit: rows, offset: skipped, .. }) = &query.limit_clause
    {
        limit = rows.as_ref().map(&mut operand).transpose()?;
        offset = skipped.as_ref().map(|skipped| operand(&skipped.value)).transpose()?;
    } else if query.limit_clause.is_some() {
        return Err(SqlError::not_supported("this form of LIMIT", "Write LIMIT rows OFFSET rows."));
    }
    if let Some(fetch) = &query.fetch {
        let is_plain = !fetch.with_ties && !fetch.percent;
        let Some(rows) = fetch.quantity.as_ref().filter(|_| is_plain) else {
            return Err(SqlError::not_supported("this form of FETCH", "Write LIMIT rows."));
        };
        limit = Some(operand(rows)?);
    }
    (query.limit_clause, query.fetch) = (None, None);
    Ok((limit, offset))
}

/// The query with the keys of the rows that are to be locked behind its columns.
fn with_keys(
    mut query: Query,
    relations: &[Relation],
    mut tables: Vec<LockedTable>,
) -> Result<(Query, Vec<LockedTable>)> {
    let SetExpr::Select(body) = &mut *query.body else {
        return Err(SqlError::new(state::INTERNAL, "a query that locks rows has no body"));
    };
    let quoted = |name: &str| Ident::with_quote('"', name);
    let column = |relation: &Relation, at: usize| {
        let name = &relation.table.definition().columns()[at].name;
        Expr::CompoundIdentifier(vec![quoted(&relation.name), quoted(name)])
    };
    show_columns(body, relations, column)?;
    let mut first = 0;
    for locked in &mut tables {
        let is_it = |relation: &&Relation| relation.table.id() == locked.table.id();
        let Some(relation) = relations.iter().find(is_it) else { continue };
        let key = locked.table.definition().primary_key();
        locked.key = first..first + key.len();
        for at in key {
            first += 1;
            let alias = quoted(&format!("locked key {first}"));
            body.projection.push(SelectItem::ExprWithAlias { expr: column(relation, *at), alias });
        }
    }
    Ok((query, tables))
}

/// Where a table has a hidden key, `*` is written out: the key is read, and not shown.
fn show_columns(
    body: &mut Select,
    relations: &[Relation],
    column: impl Fn(&Relation, usize) -> Expr,
) -> Result<()> {
    let is_hidden = |relation: &Relation| {
        let definition = relation.table.definition();
        definition.shown_columns().count() < definition.columns().len()
    };
    let is_star = |item: &SelectItem| {
        matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
    };
    if !relations.iter().any(is_hidden) || !body.projection.iter().any(is_star) {
        return Ok(());
    }
    let ([relation], [ast::TableWithJoins { joins, .. }]) = (relations, body.from.as_slice())
    else {
        return Err(SqlError::not_supported(
            "* of several tables of which one has no primary key, with FOR UPDATE",
            "Name the columns.",
        ));
    };
    if !joins.is_empty() {
        return Err(SqlError::not_supported("* of a join with FOR UPDATE", "Name the columns."));
    }
    let shown = relation.table.definition().shown_columns();
    let shown: Vec<SelectItem> =
        shown.map(|at| SelectItem::UnnamedExpr(column(relation, at))).collect();
    let items = std::mem::take(&mut body.projection);
    for item in items {
        match is_star(&item) {
            true => body.projection.extend(shown.iter().cloned()),
            false => body.projection.push(item),
        }
    }
    Ok(())
}
