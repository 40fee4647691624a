//! Defaults that are computed for every row, as a table's definition keeps them.

use std::sync::Arc;

use crate::TypeError;
use crate::expression::{Expression, TypedExpression};

/// An expression that gives a column its value.
#[derive(Debug, Clone, PartialEq)]
pub struct ComputedDefault {
    /// As it was written, in SQL.
    pub expression: String,
    /// In the form that everybody understands; none for what the form does not have. Then it means something
    /// only to whoever speaks the language it was written in.
    pub form: Option<Arc<TypedExpression>>,
}

impl ComputedDefault {
    /// Of an expression that looks at no column.
    ///
    /// # Errors
    /// [`TypeError::Expression`] for one that has no type.
    pub fn new(expression: &Expression) -> Result<ComputedDefault, TypeError> {
        let form = Some(Arc::new(expression.bound_to_no_row()?));
        Ok(ComputedDefault { expression: expression.written(None)?, form })
    }
}
