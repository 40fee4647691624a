//! What plans of the short ways take from their statements.

use std::ops::Bound as End;

use super::{Plan, RowsPlan, SelectPlan, WritePlan};
use crate::sql::{
    Assignment, Conflict, InsertRows, LockedRows, NewValue, Next, Operand, RowsToChange, WantedKey,
};

impl Plan {
    /// All values that a plan of a short way is given: those of rows that are inserted, of keys, of ends of ranges,
    /// and new ones of columns. None of any other plan, since there the type of a constant may depend on more than
    /// its place. What is computed besides, as for RETURNING, is not among them.
    pub(crate) fn operands(&self) -> Option<Vec<&Operand>> {
        let mut operands = Vec::new();
        match self {
            Plan::Rows(RowsPlan::Select(select)) => of_select(select, &mut operands)?,
            Plan::Rows(RowsPlan::Write(write)) => of_write(write, &mut operands)?,
            _ => return None,
        }
        Some(operands)
    }
}

fn of_select<'p>(select: &'p SelectPlan, operands: &mut Vec<&'p Operand>) -> Option<()> {
    match select {
        SelectPlan::Get(get) => operands.extend(get.key.iter().chain(&get.limit)),
        SelectPlan::Range(range) => {
            operands.extend(range.equal.iter().chain(&range.limit));
            match &range.next {
                Next::Anything => {}
                Next::Between(low, high) => operands.extend(ends([low, high])),
                Next::OneOf(pairs) => {
                    operands.extend(pairs.iter().flat_map(|(low, high)| ends([low, high])));
                }
            }
        }
        SelectPlan::Locking(plan) => match &plan.rows {
            LockedRows::Get(get) => operands.extend(get.key.iter().chain(&get.limit)),
            LockedRows::Query { .. } => return None,
        },
        SelectPlan::Scalars { .. } | SelectPlan::Query(_) => return None,
    }
    Some(())
}

fn of_write<'p>(write: &'p WritePlan, operands: &mut Vec<&'p Operand>) -> Option<()> {
    let rows = match write {
        WritePlan::Insert(insert) => {
            let InsertRows::Given(rows) = &insert.rows else { return None };
            operands.extend(rows.iter().flatten());
            if let Conflict::Update(_, update) = &insert.conflict {
                operands.extend(given(&update.assignments));
            }
            return Some(());
        }
        WritePlan::Update(update) => {
            operands.extend(given(&update.assignments));
            &update.rows
        }
        WritePlan::Delete(delete) => &delete.rows,
    };
    match rows {
        RowsToChange::WithKey { key: WantedKey::Given(key), .. } => operands.extend(key),
        RowsToChange::WithKey { key: WantedKey::OfCursor(_), .. } => {}
        RowsToChange::Found(_) => return None,
    }
    Some(())
}

fn given(assignments: &[Assignment]) -> impl Iterator<Item = &Operand> {
    assignments.iter().filter_map(|assignment| match &assignment.value {
        NewValue::Given(operand) => Some(operand),
        NewValue::Excluded(_) | NewValue::Found(_) => None,
    })
}

fn ends<const N: usize>(ends: [&End<Operand>; N]) -> impl Iterator<Item = &Operand> {
    ends.into_iter().filter_map(|end| match end {
        End::Included(operand) | End::Excluded(operand) => Some(operand),
        End::Unbounded => None,
    })
}
