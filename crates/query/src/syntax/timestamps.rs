//! Intervals as DataFusion reads them, and functions that take today where nothing is said.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Interval, Value,
};

use super::call_of;
use crate::functions::READ_INTERVAL;
use crate::interval;

/// Writes a constant interval in units that stand alone. One that is none becomes a call, which
/// tells why.
pub(super) fn written_plainly(interval: &mut Interval) -> Option<Expr> {
    let unit = interval.leading_field.take();
    let text = text_of(interval)?;
    if let Some(unit) = unit {
        *text = format!("{text} {unit}");
    }
    match interval::Interval::parse(text) {
        Ok(read) => {
            *text = plain(read);
            None
        }
        Err(_) => Some(call_of(READ_INTERVAL, [(*interval.value).clone()])),
    }
}

/// A constant interval with a minus in front, which DataFusion would take for one of its first unit.
pub(super) fn negated(inner: &Expr) -> Option<Expr> {
    let Expr::Interval(interval) = inner else { return None };
    let mut interval = interval.clone();
    let text = text_of(&mut interval)?;
    *text = plain(interval::Interval::parse(text).ok()?.times(-1.0).ok()?);
    Some(Expr::Interval(interval))
}

fn text_of(interval: &mut Interval) -> Option<&mut String> {
    let Expr::Value(constant) = &mut *interval.value else { return None };
    let Value::SingleQuotedString(text) = &mut constant.value else { return None };
    Some(text)
}

fn plain(interval: interval::Interval) -> String {
    let interval::Interval { months, days, micros } = interval;
    format!("{months} months {days} days {micros} microseconds")
}

/// `age(moment)` is the age today.
pub(super) fn add_today(call: &mut Function) {
    if call.name.to_string() != "age" {
        return;
    }
    if let FunctionArguments::List(given) = &mut call.args
        && given.args.len() == 1
    {
        let today = FunctionArgExpr::Expr(call_of("current_date", []));
        given.args.insert(0, FunctionArg::Unnamed(today));
    }
}
