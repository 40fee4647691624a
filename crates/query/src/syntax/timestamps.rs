//! Intervals as DataFusion reads them, and functions that take today where nothing is said.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Interval, IntervalFields as SqlFields, Query, Value, visit_expressions_mut,
};
use onrush::IntervalFields;

use super::call_of;
use crate::functions::READ_INTERVAL;
use crate::interval;
use crate::interval_text;
use crate::typing::{digits_of, fields_of_type};

/// Writes a constant interval in units that stand alone. One that is none becomes a call, which
/// tells why.
pub(super) fn written_plainly(interval: &mut Interval) -> Option<Expr> {
    let range = range_of(interval.leading_field.as_ref(), interval.last_field.as_ref());
    let digits = interval.leading_precision.or(interval.fractional_seconds_precision);
    let range = range.unwrap_or_default();
    let text = text_of(interval)?;
    match interval_text::read(text, range) {
        // DataFusion counts in nanoseconds.
        Ok(read) if interval::to_arrow(read).is_ok() => {
            *text = plain(range.cut(read, digits.map(digits_of)));
            interval.leading_field = None;
            interval.last_field = None;
            interval.leading_precision = None;
            interval.fractional_seconds_precision = None;
            None
        }
        _ => Some(call_of(READ_INTERVAL, [(*interval.value).clone()])),
    }
}

/// A constant that is cast to an interval of some fields, or with so many digits of seconds.
pub(super) fn of_fields(
    constant: &Expr,
    fields: Option<&SqlFields>,
    digits: Option<u64>,
) -> Option<Expr> {
    let value = match constant {
        Expr::Value(_) => constant.clone(),
        Expr::Interval(known) => (*known.value).clone(),
        _ => return None,
    };
    let mut interval = Interval {
        value: Box::new(value),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    };
    let range = fields.map(fields_of_type).unwrap_or_default();
    let text = text_of(&mut interval)?;
    let read = interval_text::read(text, range);
    Some(match read {
        Ok(read) => {
            *text = plain(range.cut(read, digits.map(digits_of)));
            Expr::Interval(interval)
        }
        Err(_) => call_of(READ_INTERVAL, [*interval.value]),
    })
}

/// The fields from one to another; none if there are no such intervals.
pub(crate) fn range_of(
    first: Option<&DateTimeField>,
    last: Option<&DateTimeField>,
) -> Option<IntervalFields> {
    use DateTimeField::{Day, Hour, Minute, Month, Second, Year};
    Some(match (first, last) {
        (None, None) => IntervalFields::All,
        (Some(Year), None) => IntervalFields::Year,
        (Some(Month), None) => IntervalFields::Month,
        (Some(Day), None) => IntervalFields::Day,
        (Some(Hour), None) => IntervalFields::Hour,
        (Some(Minute), None) => IntervalFields::Minute,
        (Some(Second), None) => IntervalFields::Second,
        (Some(Year), Some(Month)) => IntervalFields::YearToMonth,
        (Some(Day), Some(Hour)) => IntervalFields::DayToHour,
        (Some(Day), Some(Minute)) => IntervalFields::DayToMinute,
        (Some(Day), Some(Second)) => IntervalFields::DayToSecond,
        (Some(Hour), Some(Minute)) => IntervalFields::HourToMinute,
        (Some(Hour), Some(Second)) => IntervalFields::HourToSecond,
        (Some(Minute), Some(Second)) => IntervalFields::MinuteToSecond,
        _ => return None,
    })
}

/// A constant interval with a minus in front, which DataFusion would take for one of its first unit.
pub(super) fn negated(inner: &Expr) -> Option<Expr> {
    let Expr::Interval(interval) = inner else { return None };
    let mut interval = interval.clone();
    let text = text_of(&mut interval)?;
    *text = plain(interval::times(interval::parse_interval(text).ok()?, -1.0).ok()?);
    Some(Expr::Interval(interval))
}

fn text_of(interval: &mut Interval) -> Option<&mut String> {
    let Expr::Value(constant) = &mut *interval.value else { return None };
    let Value::SingleQuotedString(text) = &mut constant.value else { return None };
    Some(text)
}

fn plain(interval: onrush::Interval) -> String {
    let onrush::Interval { months, days, micros } = interval;
    format!("{months} months {days} days {micros} microseconds")
}

/// The unit of EXTRACT as it was written, in lower case.
pub(super) fn unit_name(field: &DateTimeField) -> String {
    match field {
        DateTimeField::Custom(name) => name.value.to_lowercase(),
        other => other.to_string().to_lowercase(),
    }
}

/// The parts of `make_interval` by their names, in their order.
const PARTS: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];

/// Puts the parts of intervals that are given by name in their places, with zeros between them.
pub(super) fn place_parts(query: &mut Query) {
    let _: ControlFlow<()> = visit_expressions_mut(query, |expression| {
        if let Expr::Function(call) = expression
            && call.name.to_string().eq_ignore_ascii_case("make_interval")
            && let FunctionArguments::List(given) = &mut call.args
            && let Some(placed) = placed(&given.args)
        {
            given.args = placed;
        }
        ControlFlow::Continue(())
    });
}

/// None where no part has a name, or one that there is not.
fn placed(given: &[FunctionArg]) -> Option<Vec<FunctionArg>> {
    let zero = || FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::value(number("0"))));
    let mut placed = Vec::new();
    let mut has_names = false;
    for (at, argument) in given.iter().enumerate() {
        let (place, value) = match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
                left,
                op: BinaryOperator::Assignment,
                right,
            })) => {
                has_names = true;
                let Expr::Identifier(name) = &**left else { return None };
                let name = name.value.to_lowercase();
                let place = PARTS.iter().position(|part| *part == name)?;
                (place, FunctionArgExpr::Expr((**right).clone()))
            }
            FunctionArg::Unnamed(value) => (at, value.clone()),
            FunctionArg::Named { name, arg, .. } => {
                has_names = true;
                let name = name.value.to_lowercase();
                (PARTS.iter().position(|part| *part == name)?, arg.clone())
            }
            FunctionArg::ExprNamed { .. } => return None,
        };
        if placed.len() <= place {
            placed.resize_with(place + 1, zero);
        }
        placed[place] = FunctionArg::Unnamed(value);
    }
    has_names.then_some(placed)
}

fn number(digits: &str) -> Value {
    Value::Number(digits.to_owned(), false)
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
