//! Constants in quotes, NULL and parameters among the arguments of a function, written as casts to the types that the
//! function takes.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{DataType, Expr, Query, ValueWithSpan, VisitMut, VisitorMut};
use datafusion::sql::sqlparser::tokenizer::Span;

use super::sets::cast;

/// Where constants stand, and what they are.
#[derive(Debug, Default)]
pub(crate) struct TypedConstants {
    /// Each as it is written: what was put into the statement from elsewhere may have the places of other constants.
    constants: Vec<(ValueWithSpan, DataType)>,
}

impl TypedConstants {
    /// Notes the type of an expression, if that is a constant of the text of the statement.
    pub(crate) fn add(&mut self, constant: &Expr, data_type: DataType) {
        match constant {
            Expr::Nested(inner) => self.add(inner, data_type),
            Expr::Value(value) if value.span != Span::empty() => {
                self.constants.push((value.clone(), data_type));
            }
            _ => {}
        }
    }

    fn of(&self, given: &ValueWithSpan) -> Option<&(ValueWithSpan, DataType)> {
        let is_it = |(own, _): &&(ValueWithSpan, DataType)| {
            own.span == given.span && own.value == given.value
        };
        self.constants.iter().find(is_it)
    }

    /// Writes all of them.
    pub(super) fn write(&self, query: &mut Query) {
        if !self.constants.is_empty() {
            let _: ControlFlow<()> = query.visit(&mut Writer { constants: self });
        }
    }
}

struct Writer<'c> {
    constants: &'c TypedConstants,
}

impl VisitorMut for Writer<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(given) = expression
            && let Some((_, data_type)) = self.constants.of(given)
        {
            *expression = cast(expression.clone(), data_type.clone());
        }
        ControlFlow::Continue(())
    }
}
