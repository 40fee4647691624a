//! Whole numbers that do not wrap around: a sum beyond the type is an error (`22003`).

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, Datum};
use datafusion::arrow::compute::kernels::numeric::{add, mul, sub};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::analyzer::AnalyzerRule;

use super::rewrite;

/// Addition, subtraction or multiplication of whole numbers of the same width.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operator: Operator,
    name: &'static str,
    signature: Signature,
}

static FUNCTIONS: LazyLock<[(Operator, Arc<ScalarUDF>); 3]> = LazyLock::new(|| {
    let known =
        [(Operator::Plus, "plus"), (Operator::Minus, "minus"), (Operator::Multiply, "times")];
    known.map(|(operator, name)| {
        let signature = Signature::any(2, Volatility::Immutable);
        (operator, Arc::new(ScalarUDF::new_from_impl(Checked { operator, name, signature })))
    })
});

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[ArrowType]) -> Result<ArrowType> {
        match arguments {
            [left, right] if left == right => Ok(left.clone()),
            _ => internal_err!("{} of {arguments:?}", self.name),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let compute: fn(&dyn Datum, &dyn Datum) -> std::result::Result<ArrayRef, ArrowError> =
            match self.operator {
                Operator::Plus => add,
                Operator::Minus => sub,
                _ => mul,
            };
        let [left, right] = args.args.as_slice() else {
            return internal_err!("{} has two arguments", self.name);
        };
        let made = match (left, right) {
            (ColumnarValue::Array(left), ColumnarValue::Array(right)) => compute(left, right)?,
            (ColumnarValue::Array(left), ColumnarValue::Scalar(right)) => {
                compute(left, &right.to_scalar()?)?
            }
            (ColumnarValue::Scalar(left), ColumnarValue::Array(right)) => {
                compute(&left.to_scalar()?, right)?
            }
            (ColumnarValue::Scalar(left), right) => compute(
                &left.to_array_of_size(args.number_rows)?,
                &right.to_array(args.number_rows)?,
            )?,
        };
        Ok(ColumnarValue::Array(made))
    }
}

/// Puts the functions above in the place of DataFusion's operators, once all types are known.
#[derive(Debug)]
pub(crate) struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            rewrite(plan, |expression| Ok(checked(expression, &schema)))
        })
        .data()
    }
}

fn checked(expression: Expr, schema: &datafusion::common::DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expression else {
        return Transformed::no(expression);
    };
    let Some((_, function)) = FUNCTIONS.iter().find(|(operator, _)| operator == op) else {
        return Transformed::no(expression);
    };
    match (left.get_type(schema), right.get_type(schema)) {
        (Ok(one), Ok(other)) if one == other && one.is_integer() => {
            let arguments = vec![(**left).clone(), (**right).clone()];
            let call = ScalarFunction::new_udf(Arc::clone(function), arguments);
            Transformed::yes(Expr::ScalarFunction(call))
        }
        _ => Transformed::no(expression),
    }
}
