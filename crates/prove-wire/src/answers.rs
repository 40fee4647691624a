//! What comes back, beside what was predicted.

use crate::model::Prediction;
use crate::statement::{Statement, Way};
use crate::wire::Answer;

/// Errors that say that nothing has happened, and why: not here, not now.
const REFUSALS: [&str; 2] = ["0A000", "25001"];
/// Somebody else came first.
const CONFLICTS: [&str; 2] = ["40001", "23505"];
/// Somebody else has not ended who has locked a row.
const KEPT_OFF: [&str; 3] = ["55P03", "40001", "40P01"];
/// The disk failed: the outcome is not known, or nothing goes any more.
const FAILURES: [&str; 4] = ["08007", "58030", "57P01", "XX000"];
/// The disk is full: nothing has happened, and work goes on.
const FULL: &str = "53100";

/// It was refused, and nothing has happened.
pub(crate) fn is_refusal(prediction: &Prediction, answer: &Answer, may_be_full: bool) -> bool {
    let Some(state) = answer.state() else { return false };
    let is_conflict = prediction.may_conflict && CONFLICTS.contains(&state);
    let is_kept_off = prediction.may_wait && KEPT_OFF.contains(&state);
    (REFUSALS.contains(&state) || (may_be_full && state == FULL) || is_conflict || is_kept_off)
        && !prediction.errors.contains(&state)
}

/// The disk has failed under it.
pub(crate) fn has_failed(answer: &Answer) -> bool {
    answer.is_over || answer.state().is_some_and(|state| FAILURES.contains(&state))
}

/// In few words.
pub(crate) fn shown(answer: &Answer) -> String {
    match &answer.error {
        Some((state, message)) => format!("{state} {message}"),
        None if answer.is_over => "the server hung up".into(),
        None => match answer.rows.is_empty() {
            true => answer.tags.join(", "),
            false => format!("{}, {} rows", answer.tags.join(", "), answer.rows.len()),
        },
    }
}

/// How an answer differs from what it must be.
pub(crate) fn wrong(
    statement: &Statement,
    prediction: &Prediction,
    answer: &Answer,
) -> Option<String> {
    if answer.is_over {
        return Some("the server hung up".into());
    }
    let is_wanted = match answer.state() {
        Some(state) => prediction.errors.contains(&state),
        None => prediction.errors.is_empty(),
    };
    if !is_wanted {
        let wanted = match prediction.errors.as_slice() {
            [] => prediction.tags.join(", "),
            errors => format!("one of the errors {errors:?}"),
        };
        return Some(format!("{wanted} is right, and the answer is {}", shown(answer)));
    }
    let is_pipelined = matches!(statement, Statement::Insert { way: Way::Pipelined, .. });
    let has_tags = answer.error.is_none() || is_pipelined;
    if has_tags && answer.tags != prediction.tags && !prediction.tags.is_empty() {
        return Some(format!(
            "{:?} is right, and the answer is {:?}",
            prediction.tags, answer.tags
        ));
    }
    match &prediction.rows {
        Some(rows) if answer.error.is_none() && *rows != answer.rows => {
            Some(format!("the rows {rows:?} are right, and the answer has {:?}", answer.rows))
        }
        _ => None,
    }
}
