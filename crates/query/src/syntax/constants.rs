//! Constants in quotes, NULL and parameters among the arguments of a function, written as casts to the types that the
//! function takes.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, Query, VisitMut, VisitorMut};
use datafusion::sql::sqlparser::tokenizer::Span;

/// Where constants stand, and what they are.
#[derive(Debug, Default)]
pub(crate) struct TypedConstants {
    places: Vec<(Span, DataType)>,
}

impl TypedConstants {
    /// Notes the type of an expression, if that is a constant of the text of the statement.
    pub(crate) fn add(&mut self, constant: &Expr, data_type: DataType) {
        match constant {
            Expr::Nested(inner) => self.add(inner, data_type),
            Expr::Value(value) if value.span != Span::empty() => {
                self.places.push((value.span, data_type));
            }
            _ => {}
        }
    }

    /// Writes all of them.
    pub(super) fn write(&self, query: &mut Query) {
        if !self.places.is_empty() {
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
        if let Expr::Value(value) = expression
            && let Some((_, data_type)) =
                self.constants.places.iter().find(|(span, _)| *span == value.span)
        {
            *expression = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(expression.clone()),
                data_type: data_type.clone(),
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    }
}
