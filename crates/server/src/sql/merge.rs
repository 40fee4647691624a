//! MERGE: a query finds what matches and which action each row takes, another one what does not match.
//!
//! Both begin with the number of the action; behind it stands, for what matches, the key of the row, and then whatever
//! actions take that is more than constants and parameters. That is computed only for rows that take the action.

use onrush::{Table, TableDefinition};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, Cte, Expr, Ident, Join, JoinConstraint, JoinOperator, Merge,
    MergeAction, MergeClauseKind, MergeInsertExpr, MergeInsertKind, SelectItem, TableAlias,
    TableFactor, TableWithJoins, Value, With,
};

use super::assigned_types;
use super::changed::Changed;
use super::insert::{Target, target_columns};
use super::merge_words::{Said, said_by};
use super::operand::{Operand, Parameters};
use super::overriding_words;
use super::select::query_of;
use super::write::{Assignment, NewValue, assignments, changed_table, own_table};
use super::{Planner, QueryPlan, steps};
use crate::error::{Result, SqlError, state};
use crate::schemas::own_name;

/// A MERGE, ready to run.
pub(crate) struct MergePlan {
    pub(crate) table: Table,
    pub(crate) matched: Option<MergeRows>,
    pub(crate) not_matched: Option<MergeRows>,
}

impl MergePlan {
    pub(crate) fn queries(&self) -> impl Iterator<Item = &MergeRows> {
        self.matched.iter().chain(&self.not_matched)
    }
}

/// What a query finds, and what is done with it.
pub(crate) struct MergeRows {
    pub(crate) query: QueryPlan,
    /// By number; a row without a number is left alone.
    pub(crate) actions: Vec<Action>,
}

/// What is done with a row. What was found for it stands behind number and key.
pub(crate) enum Action {
    Nothing,
    Insert(Vec<Assignment>),
    Update(Vec<Assignment>),
    Delete,
}

/// Plans a MERGE.
pub(super) fn plan(
    planner: &Planner<'_>,
    with: Option<&With>,
    merge: &Merge,
    parameters: &mut Parameters,
) -> Result<MergePlan> {
    let Merge {
        merge_token: _,
        optimizer_hints: _,
        into: _,
        table: target,
        source,
        on,
        clauses,
        output,
    } = merge;
    if output.is_some() {
        return Err(SqlError::not_supported("RETURNING of MERGE", "Read the rows afterwards."));
    }
    let target = TableWithJoins { relation: target.clone(), joins: Vec::new() };
    let (changed, relation) = changed_table(planner, &target, ("merge", " into"))?;
    if changed.is_view() {
        let through = changed.through();
        let name = through.asked.first().map_or(&*relation, |view| own_name(view.name()));
        let message = format!("cannot execute MERGE on relation {name:?}");
        return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message)
            .with_detail("This operation is not supported for views."));
    }
    let target = own_table(planner, with, &changed, (&target.relation, &relation));
    let merged = Merged { planner, with, target: &target, source, on };
    let mut matched = Clauses::new(&changed, &relation);
    let mut not_matched = Clauses::new(&changed, &relation);
    for clause in clauses {
        let side = match clause.clause_kind {
            MergeClauseKind::Matched => &mut matched,
            MergeClauseKind::NotMatched => &mut not_matched,
            kind => {
                return Err(SqlError::not_supported(format!("WHEN {kind}"), "Use two statements."));
            }
        };
        if side.is_over {
            let message = "unreachable WHEN clause specified after unconditional WHEN clause";
            return Err(SqlError::new(state::SYNTAX_ERROR, message));
        }
        side.add(clause.predicate.as_ref(), &clause.action, parameters)?;
        side.is_over = clause.predicate.is_none();
    }
    let matched = matched.rows(&merged, true, parameters)?;
    let not_matched = not_matched.rows(&merged, false, parameters)?;
    Ok(MergePlan { table: changed.table.clone(), matched, not_matched })
}

/// The relations of a MERGE.
struct Merged<'m> {
    planner: &'m Planner<'m>,
    with: Option<&'m With>,
    target: &'m TableFactor,
    source: &'m TableFactor,
    on: &'m Expr,
}

/// The clauses for what matches, or for what does not.
struct Clauses<'c> {
    changed: &'c Changed,
    relation: &'c str,
    conditions: Vec<Option<Expr>>,
    actions: Vec<Action>,
    /// What the actions take, each with the number of the action.
    found: Vec<(usize, Expr)>,
    /// Whether no row gets to another clause.
    is_over: bool,
}

impl<'c> Clauses<'c> {
    fn new(changed: &'c Changed, relation: &'c str) -> Clauses<'c> {
        let (conditions, actions, found) = (Vec::new(), Vec::new(), Vec::new());
        Clauses { changed, relation, conditions, actions, found, is_over: false }
    }

    fn definition(&self) -> &TableDefinition {
        &self.changed.definition
    }

    fn add(
        &mut self,
        condition: Option<&Expr>,
        action: &MergeAction,
        parameters: &mut Parameters,
    ) -> Result<()> {
        let mut found = Vec::new();
        let planned = match (action, said_by(action)) {
            (_, Said::Nothing) => Action::Nothing,
            (_, Said::DefaultValues) => Action::Insert(Vec::new()),
            (MergeAction::Delete { .. }, Said::Itself) => Action::Delete,
            (MergeAction::Update(update), Said::Itself) => {
                if update.update_predicate.is_some() || update.delete_predicate.is_some() {
                    return Err(where_behind_an_action());
                }
                let target = (self.definition(), self.relation);
                let given = &update.assignments;
                Action::Update(assignments(target, given, false, &mut found, parameters)?)
            }
            (MergeAction::Insert(insert), Said::Itself) => {
                Action::Insert(self.inserted(insert, &mut found, parameters)?)
            }
        };
        let (number, before) = (self.actions.len(), self.found.len());
        // Values that are found stand behind those of the actions before.
        let planned = match planned {
            Action::Insert(values) => Action::Insert(moved(values, before)),
            Action::Update(values) => Action::Update(moved(values, before)),
            other => other,
        };
        self.found.extend(found.into_iter().map(|expr| (number, expr)));
        self.conditions.push(condition.cloned());
        self.actions.push(planned);
        Ok(())
    }

    /// The values of an INSERT.
    fn inserted(
        &self,
        insert: &MergeInsertExpr,
        found: &mut Vec<Expr>,
        parameters: &mut Parameters,
    ) -> Result<Vec<Assignment>> {
        if insert.insert_predicate.is_some() {
            return Err(where_behind_an_action());
        }
        let MergeInsertKind::Values(values) = &insert.kind else {
            return Err(SqlError::not_supported("INSERT ROW", "Write INSERT VALUES (...)."));
        };
        let [row] = values.rows.as_slice() else {
            let message = "syntax error at or near \",\": MERGE inserts one row at a time";
            return Err(SqlError::new(state::SYNTAX_ERROR, message));
        };
        let (named, overriding) = overriding_words::of(&insert.columns);
        let columns = target_columns(self.changed, named)?;
        let are_named = !named.is_empty();
        let target = Target { definition: self.definition(), columns, are_named, overriding };
        target.check_count(row.content.len())?;
        let mut values = Vec::with_capacity(row.content.len());
        for (value, column) in row.content.iter().zip(&target.columns) {
            let data_type = self.definition().columns()[*column].data_type;
            assigned_types::check_value(&self.definition().columns()[*column], value)?;
            let new = match Operand::if_simple(value, data_type, parameters)? {
                Some(operand) => NewValue::Given(operand),
                None => {
                    found.push(value.clone());
                    NewValue::Found(found.len() - 1)
                }
            };
            if target.is_overridden(*column)? || matches!(new, NewValue::Given(Operand::Default)) {
                continue;
            }
            target.check_generated(*column)?;
            values.push(Assignment { column: *column, value: new });
        }
        Ok(values)
    }

    /// The number of the action that a row takes.
    fn number(&self) -> Expr {
        let conditions = (0..).zip(&self.conditions).map(|(number, condition)| CaseWhen {
            condition: condition.clone().unwrap_or_else(|| Expr::value(Value::Boolean(true))),
            result: self::number(number),
        });
        case(conditions.collect())
    }

    fn rows(
        self,
        merged: &Merged<'_>,
        is_matched: bool,
        parameters: &mut Parameters,
    ) -> Result<Option<MergeRows>> {
        if self.actions.is_empty() {
            return Ok(None);
        }
        let key: Vec<Expr> = match is_matched {
            true => self.changed.key(self.relation).collect(),
            false => Vec::new(),
        };
        let takes = |(number, found): &(usize, Expr)| {
            let is_it = Expr::BinaryOp {
                left: Box::new(self.number()),
                op: BinaryOperator::Eq,
                right: Box::new(self::number(*number)),
            };
            case(vec![CaseWhen { condition: is_it, result: found.clone() }])
        };
        let found = self.found.iter().map(takes);
        let all = std::iter::once(self.number()).chain(key).chain(found);
        let named = |(at, expr): (usize, Expr)| SelectItem::ExprWithAlias {
            expr,
            alias: Ident::with_quote('"', format!("value {}", at + 1)),
        };
        let items = all.enumerate().map(named).collect();
        let of = |relation: &TableFactor| TableWithJoins {
            relation: relation.clone(),
            joins: Vec::new(),
        };
        let (from, selection) = if is_matched {
            let on = JoinConstraint::On(merged.on.clone());
            let join = Join {
                relation: merged.target.clone(),
                global: false,
                join_operator: JoinOperator::Inner(on),
            };
            (TableWithJoins { joins: vec![join], ..of(merged.source) }, None)
        } else {
            let one = vec![SelectItem::UnnamedExpr(self::number(1))];
            let there = query_of(one, vec![of(merged.target)], Some(merged.on.clone()))?;
            let there = Expr::Exists { subquery: Box::new(there), negated: true };
            (of(merged.source), Some(there))
        };
        let mut query = query_of(items, vec![from], selection)?;
        query.with = merged.with.cloned();
        let query = QueryPlan::of_rows(merged.planner, &self.changed.table, query, parameters)?;
        Ok(Some(MergeRows { query, actions: self.actions }))
    }
}

/// The same values with those that are found so many places further behind.
fn moved(values: Vec<Assignment>, places: usize) -> Vec<Assignment> {
    let moved = |Assignment { column, value }| match value {
        NewValue::Found(at) => Assignment { column, value: NewValue::Found(at + places) },
        value => Assignment { column, value },
    };
    values.into_iter().map(moved).collect()
}

fn where_behind_an_action() -> SqlError {
    SqlError::not_supported("WHERE behind an action of MERGE", "Write WHEN ... AND condition.")
}

fn number(number: usize) -> Expr {
    Expr::value(Value::Number(number.to_string(), false))
}

fn case(conditions: Vec<CaseWhen>) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions,
        else_result: None,
    }
}

/// What a query that a MERGE reads is called.
const SOURCE: &str = "onrush.source of merge";

/// Takes a query out of the USING of a MERGE, which then reads it by a name.
pub(super) fn take_source(merge: &mut Merge) -> Option<Cte> {
    let TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None } =
        &merge.source
    else {
        return None;
    };
    let name = Ident::with_quote('"', SOURCE);
    let called = TableAlias { name: name.clone(), columns: Vec::new(), ..alias.clone() };
    let cte = Cte {
        alias: called,
        query: subquery.clone(),
        from: None,
        materialized: None,
        closing_paren_token: AttachedToken::empty(),
    };
    merge.source = steps::named(&name, Some(alias.clone()));
    Some(cte)
}
