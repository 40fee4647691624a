//! Values of domains. A cast to a domain is one to the type that it is over, and then a call of [`TO_DOMAIN`], which
//! looks at the value as the domain's conditions do.
//!
//! A domain as it is defined at one moment goes by a number. Each is kept once for the whole process and never given
//! back: there are as many as definitions that statements ever named.
//!
//! Invariant: a number means one definition for ever. Who keeps a plan with one plans it again when the domain has
//! become another.

use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef, UInt64Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::sql::sqlparser::ast;
use onrush::TableDefinition;

use crate::condition::Condition;
use crate::engine::QueryEngine;
use crate::error::QueryError;

/// The function that is called with the number of a domain and a value of the type that it is over.
pub const TO_DOMAIN: &str = "onrush_to_domain";

/// A domain that a statement named.
struct Kept {
    definition: TableDefinition,
    refuses_null: bool,
    /// With their names, in the order in which they are asked.
    checks: Vec<(String, Condition)>,
}

static KEPT: LazyLock<RwLock<Vec<Arc<Kept>>>> = LazyLock::new(RwLock::default);

impl QueryEngine {
    /// The number by which [`TO_DOMAIN`] knows a domain as it is defined now. Each of its conditions has a name, and
    /// the expression that is not to be false; that of NOT NULL has neither.
    ///
    /// # Errors
    /// As of [`condition`](Self::condition).
    pub fn domain(
        &self,
        definition: &TableDefinition,
        conditions: Vec<Option<(String, ast::Expr)>>,
    ) -> crate::Result<usize> {
        let position =
            |kept: &Vec<Arc<Kept>>| kept.iter().position(|it| it.definition == *definition);
        if let Some(known) = position(&KEPT.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(known);
        }
        let refuses_null = conditions.iter().any(Option::is_none);
        let mut checks = Vec::new();
        for (name, expression) in conditions.into_iter().flatten() {
            checks.push((name, self.condition(definition, expression)?));
        }
        let made = Arc::new(Kept { definition: definition.clone(), refuses_null, checks });
        let mut kept = KEPT.write().unwrap_or_else(PoisonError::into_inner);
        Ok(position(&kept).unwrap_or_else(|| {
            kept.push(made);
            kept.len() - 1
        }))
    }
}

fn kept(number: usize) -> Option<Arc<Kept>> {
    KEPT.read().unwrap_or_else(PoisonError::into_inner).get(number).cloned()
}

/// The name of the domain with a number, without its schema.
pub(crate) fn domain_name(number: usize) -> Option<String> {
    let kept = kept(number)?;
    let name = kept.definition.name();
    Some(name.rsplit_once('.').map_or(name, |(_, own)| own).to_owned())
}

impl Kept {
    /// Refuses values of which one is none of the domain.
    fn check(&self, values: &ArrayRef) -> crate::Result<()> {
        // With its schema, unless that is `public`.
        let own = self.definition.name();
        if self.refuses_null && values.logical_null_count() > 0 {
            let message = format!("domain {own} does not allow null values");
            return Err(QueryError::refused("23502", message));
        }
        for (name, condition) in &self.checks {
            if !condition.are_met(values)? {
                let message =
                    format!("value for domain {own} violates check constraint \"{name}\"");
                return Err(QueryError::refused("23514", message));
            }
        }
        Ok(())
    }
}

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let signature = Signature::any(2, Volatility::Immutable);
    vec![Arc::new(ScalarUDF::new_from_impl(ToDomain { signature }))]
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToDomain {
    signature: Signature,
}

impl ScalarUDFImpl for ToDomain {
    fn name(&self) -> &str {
        TO_DOMAIN
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[ArrowType]) -> Result<ArrowType> {
        Ok(given.get(1).cloned().unwrap_or(ArrowType::Null))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        match args.arg_fields {
            [_, value] => Ok(Arc::new(value.as_ref().clone().with_nullable(true))),
            _ => internal_err!("{TO_DOMAIN} has a number and a value"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [number, value] = args.args.as_slice() else {
            return internal_err!("{TO_DOMAIN} has a number and a value");
        };
        let number = cast(&number.to_array(1)?, &ArrowType::UInt64)?;
        let number = number.as_primitive::<UInt64Type>();
        // The same for all rows.
        let Some(number) = number.iter().next().flatten() else { return Ok(value.clone()) };
        let Some(domain) = usize::try_from(number).ok().and_then(kept) else {
            return internal_err!("there is no domain of number {number}");
        };
        // A constant is looked at once.
        let values = match value {
            ColumnarValue::Scalar(constant) => constant.to_array()?,
            ColumnarValue::Array(values) => Arc::clone(values),
        };
        domain.check(&values)?;
        Ok(value.clone())
    }
}
