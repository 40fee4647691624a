//! UPDATE and DELETE: of the row with a key, or of the rows that a query finds.

use std::borrow::Cow;
use std::sync::Arc;

use onrush::{DefaultValue, Table, TableDefinition};
use onrush_query::{ColumnType, NamedRow, Place};
use sqlparser::ast::{
    self, AssignmentTarget, Delete, Expr, FromTable, FunctionArg, FunctionArgExpr,
    FunctionArguments, ObjectName, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins,
    Update, UpdateTableFromKind, With,
};

use super::assigned_parts::{self, Given};
use super::assigned_types;
use super::changed::{Changed, Through};
use super::computed::{Computed, Returning, row_of};
use super::insert::EXCLUDED;
use super::operand::{Operand, Parameters};
use super::plan;
use super::query::QueryPlan;
use super::select::query_of;
use super::view::stored::quoted;
use super::{Planner, beside, condition, cursor_words, names};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::WritePlan;
use crate::schemas;
use crate::seen::Seen;

/// Where the new value of a column comes from.
#[derive(Clone, Debug)]
pub(crate) enum NewValue {
    Given(Operand),
    /// The same statement's row that was to be inserted, by position.
    Excluded(usize),
    /// What a query found, by position after the key, or what was computed.
    Found(usize),
}

/// A column, by position, and its new value.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub(crate) column: usize,
    pub(crate) value: NewValue,
}

/// Where the key of a row comes from.
#[derive(Clone, Debug)]
pub(crate) enum WantedKey {
    /// A value for each of its columns, in key order.
    Given(Vec<Operand>),
    /// It is that of the row on which a cursor stands.
    OfCursor(String),
}

/// Which rows are changed.
#[derive(Clone)]
pub(crate) enum RowsToChange {
    /// One of which the statement says the key.
    WithKey {
        key: WantedKey,
        /// What is computed of the row.
        computed: Option<Arc<Computed>>,
    },
    /// Those that a query finds. Its first columns are the key.
    Found(Arc<QueryPlan>),
}

impl RowsToChange {
    /// Whether a table that they are looked for in was altered or dropped since.
    pub(crate) fn is_stale(&self, seen: &Seen) -> bool {
        matches!(self, RowsToChange::Found(query) if query.is_stale(seen))
    }

    /// The types of what is found for each row behind so many columns of the key, or computed of it.
    fn found_types(&self, key_columns: usize) -> Vec<ColumnType> {
        match self {
            RowsToChange::WithKey { computed, .. } => {
                computed.as_ref().map_or_else(Vec::new, |computed| computed.types())
            }
            RowsToChange::Found(query) => {
                query.columns.iter().skip(key_columns).map(|column| column.column_type).collect()
            }
        }
    }
}

/// An UPDATE.
#[derive(Clone)]
pub(crate) struct UpdatePlan {
    pub(crate) table: Table,
    pub(crate) rows: RowsToChange,
    pub(crate) assignments: Vec<Assignment>,
    /// Whether the rows are found with others, and so one perhaps several times.
    pub(crate) is_joined: bool,
    pub(crate) returning: Option<Returning>,
    pub(crate) through: Through,
}

/// A DELETE.
#[derive(Clone)]
pub(crate) struct DeletePlan {
    pub(crate) table: Table,
    pub(crate) rows: RowsToChange,
    pub(crate) returning: Option<Returning>,
    pub(crate) through: Through,
}

/// Plans an UPDATE.
pub(super) fn update(
    planner: &Planner<'_>,
    with: Option<&With>,
    statement: &Update,
    parameters: &mut Parameters,
) -> Result<WritePlan> {
    let Update {
        update_token: _,
        optimizer_hints: _,
        table: target,
        assignments: given,
        from,
        selection,
        returning: returned,
        output,
        or,
        order_by,
        limit,
    } = statement;
    if output.is_some() || or.is_some() || !order_by.is_empty() || limit.is_some() {
        return Err(SqlError::not_supported(
            "this form of UPDATE",
            "Write UPDATE table SET column = value [FROM ...] WHERE condition.",
        ));
    }
    let (changed, relation) = changed_table(planner, target, ("update", ""))?;
    let mut found = Vec::new();
    let definition = &changed.definition;
    let of = (&**definition, relation.as_str());
    let assignments = assignments(of, given, false, &mut found, parameters)?;
    let others = match from {
        None => &[],
        Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) => {
            from.as_slice()
        }
    };
    let changed = &changed;
    let selection = changed.selection(selection.as_ref(), &relation);
    let returned = returned.as_deref();
    let wanted = Wanted { with, target, others, relation: &relation, changed, selection };
    let beside = wanted.beside(planner, returned, found.len(), parameters)?;
    let rows = wanted.rows(planner, found, &beside, parameters)?;
    let key = definition.primary_key().len();
    assigned_types::check_assignments(definition, &assignments, &rows.found_types(key))?;
    let returned = changed.items(returned);
    let target = (&**definition, relation.as_str());
    let returning = Returning::new(planner, target, beside, returned.as_deref(), parameters)?;
    let (table, through) = (changed.table.clone(), changed.through());
    let is_joined = !others.is_empty();
    Ok(WritePlan::Update(UpdatePlan { table, rows, assignments, is_joined, returning, through }))
}

/// Plans a DELETE.
pub(super) fn delete(
    planner: &Planner<'_>,
    with: Option<&With>,
    statement: &Delete,
    parameters: &mut Parameters,
) -> Result<WritePlan> {
    let Delete {
        delete_token: _,
        optimizer_hints: _,
        tables,
        from,
        using,
        selection,
        returning: returned,
        output,
        order_by,
        limit,
    } = statement;
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = from;
    let plain = tables.is_empty() && output.is_none() && order_by.is_empty() && limit.is_none();
    let ([target], true) = (from.as_slice(), plain) else {
        return Err(SqlError::not_supported(
            "this form of DELETE",
            "Write DELETE FROM table [USING ...] WHERE condition.",
        ));
    };
    let (changed, relation) = changed_table(planner, target, ("delete", " from"))?;
    let others = using.as_deref().unwrap_or_default();
    let changed = &changed;
    let selection = changed.selection(selection.as_ref(), &relation);
    let returned = returned.as_deref();
    let wanted = Wanted { with, target, others, relation: &relation, changed, selection };
    let beside = wanted.beside(planner, returned, 0, parameters)?;
    let rows = wanted.rows(planner, Vec::new(), &beside, parameters)?;
    let returned = changed.items(returned);
    let target = (&*changed.definition, relation.as_str());
    let returning = Returning::new(planner, target, beside, returned.as_deref(), parameters)?;
    let (table, through) = (changed.table.clone(), changed.through());
    Ok(WritePlan::Delete(DeletePlan { table, rows, returning, through }))
}

/// The table that is changed, and what stands in front of its columns.
pub(super) fn changed_table(
    planner: &Planner<'_>,
    target: &TableWithJoins,
    way: (&str, &str),
) -> Result<(Changed, String)> {
    match &target.relation {
        TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints: _are_looked_at_with_all_clauses,
            version: None,
            with_ordinality: false,
            partitions: _too,
            json_path: None,
            sample: None,
            index_hints: _these_too,
        } if target.joins.is_empty() => {
            let changed = Changed::named(planner, name, way)?;
            if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
                return Err(SqlError::not_supported(
                    "other names for the columns of a table that is changed",
                    "Name the table alone: UPDATE table AS name.",
                ));
            }
            let alias = alias.as_ref().map(|alias| names::identifier(&alias.name));
            let relation = alias.unwrap_or_else(|| changed.own_name().to_owned());
            Ok((changed, relation))
        }
        other => Err(SqlError::not_supported(other, "Name one table; join others in FROM.")),
    }
}

/// The table that is changed, in FROM: by its whole name where WITH gives its own to something else.
pub(super) fn own_table(
    planner: &Planner<'_>,
    with: Option<&With>,
    changed: &Changed,
    (written, relation): (&TableFactor, &str),
) -> TableFactor {
    let mut target = written.clone();
    let TableFactor::Table { name, alias, .. } = &mut target else { return target };
    let parts = names::parts(name);
    let Ok([own]) = parts.as_deref() else { return target };
    let mut of_with = with.iter().flat_map(|with| &with.cte_tables);
    let is_taken = of_with.any(|cte| names::identifier(&cte.alias.name) == *own);
    if is_taken || planner.step(own).is_some() {
        let (schema, own) = schemas::parts(changed.table.name());
        *name = ObjectName::from(vec![quoted(schema), quoted(own)]);
        let (explicit, columns, at) = (true, Vec::new(), None);
        *alias = Some(TableAlias { explicit, name: quoted(relation), columns, at });
    }
    target
}

/// The part of a statement that says which rows.
struct Wanted<'s> {
    with: Option<&'s With>,
    target: &'s TableWithJoins,
    others: &'s [TableWithJoins],
    relation: &'s str,
    changed: &'s Changed,
    selection: Option<Expr>,
}

impl Wanted<'_> {
    /// The row with a key, where that is what is wanted, and what else is to be found is computed of
    /// that row alone.
    fn one_row(
        &self,
        planner: &Planner<'_>,
        found: &[Expr],
        parameters: &mut Parameters,
    ) -> Result<Option<RowsToChange>> {
        let definition = &self.changed.definition;
        let cursor = self.selection.as_ref().and_then(cursor_words::cursor_of);
        let key = match (cursor, &self.selection, self.others) {
            (Some(cursor), _, []) if !self.changed.is_view() && planner.steps.is_none() => {
                WantedKey::OfCursor(cursor.to_owned())
            }
            (Some(_), ..) => {
                return Err(SqlError::not_supported(
                    "WHERE CURRENT OF by a view, beside FROM or USING, or in a WITH",
                    "Change the table itself: UPDATE table SET ... WHERE CURRENT OF cursor.",
                ));
            }
            // Beside other parts of a statement a row is changed as they all see it.
            _ if planner.steps.is_some() => return Ok(None),
            (None, Some(selection), []) => {
                let key = condition::whole_key(definition, self.relation, selection, parameters)?;
                let Some(key) = key else { return Ok(None) };
                WantedKey::Given(key)
            }
            _ => return Ok(None),
        };
        if found.is_empty() {
            return Ok(Some(RowsToChange::WithKey { key, computed: None }));
        }
        let items = found.iter().cloned().map(SelectItem::UnnamedExpr).collect();
        let place = Place { one: "UPDATE", many: "UPDATE" };
        let rows = [row_of(definition, self.relation)];
        // Of what is more than that, or wrong, the query tells.
        let computed = Computed::new(planner, &rows, items, place, parameters).ok();
        Ok(computed
            .map(|computed| RowsToChange::WithKey { key, computed: Some(Arc::new(computed)) }))
    }

    /// What RETURNING may show of what the rows are found with, behind the key and so many values.
    fn beside(
        &self,
        planner: &Planner<'_>,
        returned: Option<&[SelectItem]>,
        found: usize,
        parameters: &Parameters,
    ) -> Result<Vec<NamedRow>> {
        let (Some(items), false) = (returned, self.others.is_empty()) else {
            return Ok(Vec::new());
        };
        beside::check_items(items, self.others, self.changed.is_view())?;
        let first = self.changed.definition.primary_key().len() + found;
        beside::rows(planner, self.with, self.others, parameters, first)
    }

    /// The rows, with what else is to be found for each.
    fn rows(
        self,
        planner: &Planner<'_>,
        found: Vec<Expr>,
        beside: &[NamedRow],
        parameters: &mut Parameters,
    ) -> Result<RowsToChange> {
        let mut tried = parameters.clone();
        if let Some(row) = self.one_row(planner, &found, &mut tried)? {
            *parameters = tried;
            return Ok(row);
        }
        let place = Place { one: "UPDATE", many: "UPDATE" };
        planner.queries.check_of_one_row(&found, &place)?;
        let key = self.changed.key(self.relation);
        // With names of their own: the same value may be wanted twice, or be a part of the key.
        let named = |(at, expr): (usize, Expr)| SelectItem::ExprWithAlias {
            expr,
            alias: quoted(&format!("value {}", at + 1)),
        };
        let found = found.into_iter().enumerate().map(named);
        let beside = beside.iter().flat_map(beside::columns_of);
        let projection = key.map(SelectItem::UnnamedExpr).chain(found).chain(beside).collect();
        let mut target = self.target.clone();
        target.relation = match self.changed.is_view() {
            true => self.changed.target(&target.relation, self.relation),
            false => own_table(planner, self.with, self.changed, (&target.relation, self.relation)),
        };
        let from = std::iter::once(&target).chain(self.others).cloned().collect();
        let mut query = query_of(projection, from, self.selection)?;
        query.with = self.with.cloned();
        let query = QueryPlan::of_rows(planner, &self.changed.table, query, parameters)?;
        Ok(RowsToChange::Found(Arc::new(query)))
    }
}

/// `SET column = value`. Values that are more than constants and parameters are added to `found`.
/// `is_upsert` says whether there is a row that was to be inserted; what stands in front of the columns of the table is
/// given beside it.
pub(super) fn assignments(
    (definition, relation): (&TableDefinition, &str),
    given: &[ast::Assignment],
    is_upsert: bool,
    found: &mut Vec<Expr>,
    parameters: &mut Parameters,
) -> Result<Vec<Assignment>> {
    let mut assignments: Vec<Assignment> = Vec::with_capacity(given.len());
    for (name, given) in assigned_parts::of_columns(definition, relation, one_by_one(given)?)? {
        let (name, given) = (&*name, &*given);
        let column = plan::target_column(definition, name)?;
        if assignments.iter().any(|earlier| earlier.column == column) {
            let name = &definition.columns()[column].name;
            let message = format!("multiple assignments to same column \"{name}\"");
            return Err(SqlError::new(state::SYNTAX_ERROR, message));
        }
        let data_type = definition.columns()[column].data_type;
        assigned_types::check_value(&definition.columns()[column], given)?;
        let value = match excluded(given) {
            Some(other) if is_upsert => NewValue::Excluded(definition.shown_column_index(&other)?),
            _ => match Operand::if_simple(given, data_type, parameters)? {
                Some(operand) => NewValue::Given(operand),
                None => {
                    found.push(given.clone());
                    NewValue::Found(found.len() - 1)
                }
            },
        };
        let is_default = matches!(value, NewValue::Given(Operand::Default));
        if definition.columns()[column].is_always_generated && !is_default {
            let message = format!("column \"{name}\" can only be updated to DEFAULT");
            let detail = match definition.columns()[column].default {
                DefaultValue::Generated(_) => format!("Column \"{name}\" is a generated column."),
                _ => {
                    format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS.")
                }
            };
            return Err(SqlError::new(state::GENERATED_ALWAYS, message).with_detail(detail));
        }
        assignments.push(Assignment { column, value });
    }
    Ok(assignments)
}

/// The columns that are set, each with its value.
fn one_by_one(given: &[ast::Assignment]) -> Result<Vec<Given<'_>>> {
    let mut all = Vec::with_capacity(given.len());
    for ast::Assignment { target, value } in given {
        match target {
            AssignmentTarget::ColumnName(name) => {
                all.push((Cow::Borrowed(name), Cow::Borrowed(value)));
            }
            AssignmentTarget::Tuple(names) => {
                let values = values_of(value)?;
                if values.len() != names.len() {
                    let message = "number of columns does not match number of values";
                    return Err(SqlError::new(state::SYNTAX_ERROR, message));
                }
                all.extend(names.iter().map(Cow::Borrowed).zip(values));
            }
        }
    }
    Ok(all)
}

/// The values of several columns: of a row, or a query for each column.
fn values_of(value: &Expr) -> Result<Vec<Cow<'_, Expr>>> {
    let plain = |given: &FunctionArg| match given {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(Cow::Owned(value.clone())),
        _ => None,
    };
    match value {
        Expr::Tuple(values) => return Ok(values.iter().map(Cow::Borrowed).collect()),
        Expr::Function(row) if row.name.to_string().eq_ignore_ascii_case("row") => {
            if let FunctionArguments::List(list) = &row.args
                && let Some(values) = list.args.iter().map(plain).collect()
            {
                return Ok(values);
            }
        }
        Expr::Subquery(query) => {
            if let SetExpr::Select(select) = &*query.body
                && select.distinct.is_none()
                && select.projection.iter().all(|item| {
                    matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
                })
            {
                let of_item = |item: &SelectItem| {
                    let mut query = query.clone();
                    if let SetExpr::Select(select) = &mut *query.body {
                        select.projection = vec![item.clone()];
                    }
                    Cow::Owned(Expr::Subquery(query))
                };
                return Ok(select.projection.iter().map(of_item).collect());
            }
            let hint = "Name its columns, or set one column at a time.";
            return Err(SqlError::not_supported("SET (columns) = such a query", hint));
        }
        _ => {}
    }
    let message =
        "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
    Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message))
}

fn excluded(value: &Expr) -> Option<String> {
    match value {
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, column] if names::identifier(table) == EXCLUDED => {
                Some(names::identifier(column))
            }
            _ => None,
        },
        _ => None,
    }
}
