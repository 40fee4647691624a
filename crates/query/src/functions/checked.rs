//! Numbers that stay in their type, as in PostgreSQL: whole numbers do not wrap around, floating-point numbers do not
//! become infinite or zero, and are not divided by zero (`22003`, `22012`).

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, Datum};
use datafusion::arrow::compute::kernels::arity::try_binary;
use datafusion::arrow::compute::kernels::numeric::{add, mul, neg, sub};
use datafusion::arrow::datatypes::{DataType as ArrowType, Float32Type, Float64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::analyzer::AnalyzerRule;

use super::rewrite_typed;
use crate::error::QueryError;
use crate::types::plain_type;

/// Arithmetic of numbers of the same type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operator: Operator,
    name: &'static str,
    signature: Signature,
}

static FUNCTIONS: LazyLock<[(Operator, Arc<ScalarUDF>); 4]> = LazyLock::new(|| {
    let known = [
        (Operator::Plus, "plus"),
        (Operator::Minus, "minus"),
        (Operator::Multiply, "times"),
        (Operator::Divide, "over"),
    ];
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
        let [left, right] = args.args.as_slice() else {
            return internal_err!("{} has two arguments", self.name);
        };
        let rows = args.number_rows;
        let made = match left.data_type() {
            ArrowType::Float64 => self.of_floats::<Float64Type>(left, right, rows)?,
            ArrowType::Float32 => self.of_floats::<Float32Type>(left, right, rows)?,
            _ => self.of_whole_numbers(left, right, rows)?,
        };
        Ok(ColumnarValue::Array(made))
    }
}

impl Checked {
    fn of_whole_numbers(
        &self,
        left: &ColumnarValue,
        right: &ColumnarValue,
        rows: usize,
    ) -> Result<ArrayRef> {
        let compute: fn(&dyn Datum, &dyn Datum) -> std::result::Result<ArrayRef, ArrowError> =
            match self.operator {
                Operator::Plus => add,
                Operator::Minus => sub,
                _ => mul,
            };
        let made = match (left, right) {
            (ColumnarValue::Array(left), ColumnarValue::Array(right)) => compute(left, right),
            (ColumnarValue::Array(left), ColumnarValue::Scalar(right)) => {
                compute(left, &right.to_scalar()?)
            }
            (ColumnarValue::Scalar(left), ColumnarValue::Array(right)) => {
                compute(&left.to_scalar()?, right)
            }
            (ColumnarValue::Scalar(left), right) => {
                compute(&left.to_array_of_size(rows)?, &right.to_array(rows)?)
            }
        };
        made.map_err(|error| match error {
            ArrowError::ArithmeticOverflow(_) => {
                let message = format!("{} out of range", plain_type(&left.data_type()));
                QueryError::OutOfRange { message }.into()
            }
            other => other.into(),
        })
    }

    fn of_floats<T: ArrowPrimitiveType<Native: Float>>(
        &self,
        left: &ColumnarValue,
        right: &ColumnarValue,
        rows: usize,
    ) -> Result<ArrayRef> {
        let (left, right) = (left.to_array(rows)?, right.to_array(rows)?);
        let compute = |one: T::Native, other: T::Native| one.computed(self.operator, other);
        let made =
            try_binary::<_, _, _, T>(left.as_primitive::<T>(), right.as_primitive::<T>(), compute);
        Ok(Arc::new(made?))
    }
}

/// A floating-point number of either width.
trait Float: Copy {
    fn computed(self, operator: Operator, other: Self) -> std::result::Result<Self, ArrowError>;
}

macro_rules! float {
    ($own:ty) => {
        impl Float for $own {
            fn computed(
                self,
                operator: Operator,
                other: $own,
            ) -> std::result::Result<$own, ArrowError> {
                let told = |error: QueryError| Err(ArrowError::ExternalError(Box::new(error)));
                let out_of_range = |how: &str| {
                    told(QueryError::OutOfRange { message: format!("value out of range: {how}") })
                };
                let made = match operator {
                    Operator::Plus => self + other,
                    Operator::Minus => self - other,
                    Operator::Multiply => self * other,
                    _ if other == 0.0 && !self.is_nan() => return told(QueryError::DivisionByZero),
                    _ => self / other,
                };
                let is_quotient = operator == Operator::Divide;
                if made.is_infinite()
                    && !self.is_infinite()
                    && (is_quotient || !other.is_infinite())
                {
                    return out_of_range("overflow");
                }
                let may_vanish = match operator {
                    Operator::Multiply => other != 0.0,
                    Operator::Divide => !other.is_infinite(),
                    _ => false,
                };
                if made == 0.0 && self != 0.0 && may_vanish {
                    return out_of_range("underflow");
                }
                Ok(made)
            }
        }
    };
}

float!(f32);
float!(f64);

/// The other sign. The least whole number has none.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Negated {
    signature: Signature,
}

static NEGATED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(Negated { signature }))
});

impl ScalarUDFImpl for Negated {
    fn name(&self) -> &str {
        "negated"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[ArrowType]) -> Result<ArrowType> {
        match arguments {
            [number] => Ok(number.clone()),
            _ => internal_err!("negated of {arguments:?}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [number] = args.args.as_slice() else {
            return internal_err!("negated has one argument");
        };
        Ok(ColumnarValue::Array(neg(&number.to_array(args.number_rows)?)?))
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
        rewrite_typed(plan, checked)
    }
}

fn checked(expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let (function, arguments) = match &expression {
        Expr::Negative(number) if is(number, schema, ArrowType::is_integer) => {
            (&*NEGATED, vec![(**number).clone()])
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let known = FUNCTIONS.iter().find(|(operator, _)| operator == op);
            let is_suited = match op {
                // Of whole numbers it is right as it is.
                Operator::Divide => ArrowType::is_floating,
                _ => |own: &ArrowType| own.is_integer() || own.is_floating(),
            };
            match known {
                Some((_, function))
                    if is(left, schema, is_suited) && is_alike(left, right, schema) =>
                {
                    (function, vec![(**left).clone(), (**right).clone()])
                }
                _ => return Transformed::no(expression),
            }
        }
        _ => return Transformed::no(expression),
    };
    let call = ScalarFunction::new_udf(Arc::clone(function), arguments);
    Transformed::yes(Expr::ScalarFunction(call))
}

fn is(number: &Expr, schema: &DFSchema, is_suited: fn(&ArrowType) -> bool) -> bool {
    number.get_type(schema).is_ok_and(|own| is_suited(&own))
}

fn is_alike(left: &Expr, right: &Expr, schema: &DFSchema) -> bool {
    matches!((left.get_type(schema), right.get_type(schema)), (Ok(one), Ok(other)) if one == other)
}
