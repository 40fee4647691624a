//! WITH that changes rows: each INSERT, UPDATE and DELETE in it is a step of the statement, and so is a query that
//! several steps ask for. A MERGE asks twice for what it reads.
//!
//! What comes last runs behind the steps that it asks for, in PostgreSQL's order; steps that nobody asks for run
//! behind it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use onrush_query::Relation;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    Cte, Ident, ObjectName, Query, SelectItem, SetExpr, Statement, TableAlias, TableFactor,
    TableWithJoins, Visit, Visitor, WildcardAdditionalOptions, With,
};

use super::operand::Parameters;
use super::select::{OutputColumn, query_of};
use super::{Planner, QueryPlan, clauses, merge, names, with};
use crate::error::{Result, SqlError, state};
use crate::execute::StepRows;
use crate::execute::plan::{StepPlan, StepsPlan};

/// A step by its name.
pub(crate) struct Named {
    name: String,
    /// None where it has no RETURNING.
    rows: Option<Arc<StepRows>>,
}

impl Named {
    /// What the name means in FROM.
    pub(super) fn relation(&self) -> Result<Relation> {
        match &self.rows {
            Some(rows) => Ok(Relation::Made(Arc::<StepRows>::clone(rows))),
            None => {
                let name = &self.name;
                let message = format!("WITH query \"{name}\" does not have a RETURNING clause");
                Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message))
            }
        }
    }
}

impl Planner<'_> {
    /// The step of this name, of those that are planned already.
    pub(super) fn step(&self, name: &str) -> Option<&Named> {
        self.steps?.iter().rev().find(|step| step.name == name)
    }
}

/// Whether a query has steps: changes in its WITH, or the two queries of a MERGE.
pub(super) fn has_steps(query: &Query) -> bool {
    let with = query.with.as_ref();
    with.is_some_and(|with| with.cte_tables.iter().any(|cte| is_change(&cte.query)))
        || is_merge(query)
}

fn is_merge(query: &Query) -> bool {
    matches!(&*query.body, SetExpr::Merge(_))
}

fn is_change(query: &Query) -> bool {
    matches!(
        &*query.body,
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
    )
}

/// Plans a statement [that has steps](has_steps).
pub(super) fn plan(
    planner: &Planner<'_>,
    query: &Query,
    parameters: &mut Parameters,
) -> Result<StepsPlan> {
    let mut query = query.clone();
    let with = query.with.take();
    let mut with = with.unwrap_or_else(|| With {
        with_token: AttachedToken::empty(),
        recursive: false,
        cte_tables: Vec::new(),
    });
    if let SetExpr::Merge(Statement::Merge(merge)) = &mut *query.body {
        with.cte_tables.extend(merge::take_source(merge));
    }
    let parts = Parts::of(&with, &query)?;
    let mut planned = Planned { planner, named: Vec::new(), steps: Vec::new() };
    let (before, behind) = parts.order();
    for part in before {
        planned.add(&parts, part, parameters)?;
    }
    planned.add_last(&parts, &query, parameters)?;
    let last = planned.steps.len() - 1;
    for part in behind {
        planned.add(&parts, part, parameters)?;
    }
    Ok(StepsPlan { steps: planned.steps, last })
}

/// What a WITH names, and which of it is a step.
struct Parts<'q> {
    with: &'q With,
    parts: Vec<Part<'q>>,
    /// What the end of the statement asks for, by position, and how often.
    asked_last: BTreeSet<usize>,
    asks_twice: bool,
}

struct Part<'q> {
    name: String,
    cte: &'q Cte,
    is_change: bool,
    is_step: bool,
    /// What it asks for, by position.
    asked: BTreeSet<usize>,
}

impl<'q> Parts<'q> {
    fn of(with: &'q With, last: &Query) -> Result<Parts<'q>> {
        let called: Vec<String> =
            with.cte_tables.iter().map(|cte| names::identifier(&cte.alias.name)).collect();
        for (at, name) in called.iter().enumerate() {
            if called[..at].contains(name) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                return Err(SqlError::new(state::DUPLICATE_ALIAS, message));
            }
        }
        let mut parts = Vec::with_capacity(called.len());
        for (name, cte) in called.iter().zip(&with.cte_tables) {
            let asked = asked_by(&cte.query, &called);
            let is_change = is_change(&cte.query);
            if is_merge(&cte.query) {
                let message = "MERGE not supported in WITH query";
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message));
            }
            if is_change && with.recursive && asked.contains(&parts.len()) {
                let message = format!(
                    "recursive query \"{name}\" must not contain data-modifying statements"
                );
                return Err(SqlError::new(state::INVALID_RECURSION, message));
            }
            parts.push(Part { name: name.clone(), cte, is_change, is_step: is_change, asked });
        }
        let asked_last = asked_by(&last.body, &called);
        let mut all = Parts { with, parts, asked_last, asks_twice: is_merge(last) };
        all.find_shared();
        Ok(all)
    }

    /// A query that several ask for is computed once, as a step.
    fn find_shared(&mut self) {
        let mut asked_by = vec![0; self.parts.len()];
        let changes = self.parts.iter().filter(|part| part.is_change);
        let last = std::iter::repeat_n(&self.asked_last, 1 + usize::from(self.asks_twice));
        for asked in changes.map(|part| &part.asked).chain(last) {
            self.beside(asked).into_iter().for_each(|part| asked_by[part] += 1);
        }
        for (part, asked_by) in self.parts.iter_mut().zip(asked_by) {
            part.is_step |= asked_by > 1;
        }
    }

    /// The queries that stand beside what asks for these: all that is no step, asked for by others of them, too.
    fn beside(&self, asked: &BTreeSet<usize>) -> BTreeSet<usize> {
        let (mut found, mut open) = (BTreeSet::new(), asked.clone());
        while let Some(part) = open.pop_first() {
            if !self.parts[part].is_step && found.insert(part) {
                open.extend(&self.parts[part].asked);
            }
        }
        found
    }

    /// The steps before and behind the last one, each behind those that it asks for.
    fn order(&self) -> (Vec<usize>, Vec<usize>) {
        let (mut seen, mut before, mut behind) = (BTreeSet::new(), Vec::new(), Vec::new());
        self.visit(&self.asked_last, &mut seen, &mut before);
        let changes = (0..self.parts.len()).filter(|part| self.parts[*part].is_change);
        self.visit(&changes.collect(), &mut seen, &mut behind);
        (before, behind)
    }

    fn visit(&self, asked: &BTreeSet<usize>, seen: &mut BTreeSet<usize>, steps: &mut Vec<usize>) {
        for part in asked {
            if seen.insert(*part) {
                self.visit(&self.parts[*part].asked, seen, steps);
                if self.parts[*part].is_step {
                    steps.push(*part);
                }
            }
        }
    }

    /// The WITH of what asks for these, in front of one of its own.
    fn with_of(&self, asked: &BTreeSet<usize>, own: Option<&With>) -> Option<With> {
        let beside = self.beside(asked);
        if beside.is_empty() {
            return own.cloned();
        }
        let own = own.map(|own| (own.recursive, own.cte_tables.clone()));
        let (own_recursive, own_tables) = own.unwrap_or_default();
        let tables = beside.into_iter().map(|part| self.parts[part].cte.clone());
        Some(With {
            recursive: self.with.recursive || own_recursive,
            cte_tables: tables.chain(own_tables).collect(),
            ..self.with.clone()
        })
    }
}

/// Which of these names a part of a statement reads, by position.
fn asked_by(part: &impl Visit, names: &[String]) -> BTreeSet<usize> {
    let mut asked = Asked { names, found: BTreeSet::new() };
    let _ = part.visit(&mut asked);
    asked.found
}

struct Asked<'n> {
    names: &'n [String],
    found: BTreeSet<usize>,
}

impl Visitor for Asked<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        if let Ok([name]) = names::parts(relation).as_deref() {
            self.found.extend(self.names.iter().position(|known| known == name));
        }
        ControlFlow::Continue(())
    }
}

/// The steps that are planned.
struct Planned<'p> {
    planner: &'p Planner<'p>,
    named: Vec<Named>,
    steps: Vec<StepPlan>,
}

impl Planned<'_> {
    fn add(&mut self, parts: &Parts<'_>, part: usize, parameters: &mut Parameters) -> Result<()> {
        let Part { name, cte, is_change, asked, .. } = &parts.parts[part];
        let query = if *is_change {
            let with = parts.with_of(asked, cte.query.with.as_ref());
            Query { with, ..(*cte.query).clone() }
        } else {
            all_of(parts, part)?
        };
        let plan = self.planned(&query, parameters)?;
        let columns = plan.columns().map(|columns| columns.to_vec());
        let columns = match columns {
            Some(columns) if *is_change => Some(renamed(name, cte, columns)?),
            columns => columns,
        };
        let step = self.steps.len();
        let rows = columns.map(|columns| Arc::new(StepRows { step, columns }));
        self.named.push(Named { name: name.clone(), rows });
        self.steps.push(plan);
        Ok(())
    }

    fn add_last(
        &mut self,
        parts: &Parts<'_>,
        query: &Query,
        parameters: &mut Parameters,
    ) -> Result<()> {
        if !query.locks.is_empty() {
            let what = "FOR UPDATE behind WITH that changes rows";
            return Err(SqlError::not_supported(what, "Lock the rows by a statement before."));
        }
        let query = Query { with: parts.with_of(&parts.asked_last, None), ..query.clone() };
        let plan = self.planned(&query, parameters)?;
        self.steps.push(plan);
        Ok(())
    }

    fn planned(&self, query: &Query, parameters: &mut Parameters) -> Result<StepPlan> {
        let planner = Planner { steps: Some(&self.named), ..*self.planner };
        clauses::check(&planner, &Statement::Query(Box::new(query.clone())))?;
        let before = parameters.clone();
        let plan = match &*query.body {
            SetExpr::Merge(Statement::Merge(merge)) => {
                let plan = merge::plan(&planner, query.with.as_ref(), merge, parameters)?;
                StepPlan::Merge(Box::new(plan))
            }
            _ => match with::plan(&planner, query, parameters)? {
                Some(write) => StepPlan::Write(Box::new(write)),
                None => {
                    let plan = QueryPlan::new(&planner, query.clone(), parameters)?;
                    StepPlan::Query(Box::new(plan))
                }
            },
        };
        // What others have of them they are still to say.
        parameters.forget_others(&before, query);
        Ok(plan)
    }
}

/// All rows of a query that is a step.
fn all_of(parts: &Parts<'_>, part: usize) -> Result<Query> {
    let Part { cte, asked, .. } = &parts.parts[part];
    let others: BTreeSet<usize> = asked.iter().copied().filter(|other| *other != part).collect();
    let own = With { cte_tables: vec![(*cte).clone()], ..parts.with.clone() };
    let all = SelectItem::Wildcard(WildcardAdditionalOptions::default());
    let from = TableWithJoins { relation: named(&cte.alias.name, None), joins: Vec::new() };
    let mut query = query_of(vec![all], vec![from], None)?;
    query.with = parts.with_of(&others, Some(&own));
    Ok(query)
}

/// A relation of this name.
pub(super) fn named(name: &Ident, alias: Option<TableAlias>) -> TableFactor {
    TableFactor::Table {
        name: ObjectName::from(vec![name.clone()]),
        alias,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

/// The columns of a step by the names that the WITH gives them.
fn renamed(name: &str, cte: &Cte, mut columns: Vec<OutputColumn>) -> Result<Vec<OutputColumn>> {
    let given = &cte.alias.columns;
    if given.len() > columns.len() {
        let message = format!(
            "WITH query \"{name}\" has {} columns available but {} columns specified",
            columns.len(),
            given.len()
        );
        return Err(SqlError::new(state::INVALID_COLUMN_REFERENCE, message));
    }
    for (column, given) in columns.iter_mut().zip(given) {
        column.name = names::identifier(&given.name);
    }
    Ok(columns)
}
