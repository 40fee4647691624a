//! Casts of arrays: of each element as one of a value by itself, with the session's time zone and its errors.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, RecordBatch};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result, internal_err};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::expr::{Cast, ScalarFunction};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::physical_expr::create_physical_expr;
use onrush::DataType;

use super::{casts, rewrite_typed, zoned};
use crate::numeric;
use crate::types::{ColumnType, column_type, planned_field};

/// What an element is called in the cast of it.
const ELEMENT: &str = "element";

/// The cast of an array.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ElementsCast {
    from: ArrowType,
    /// The cast of a column that is called [`ELEMENT`].
    element: Expr,
    to: FieldRef,
    signature: Signature,
}

/// Whether a function is one of these, so that it is told the zone where it is called.
pub(super) fn is_of_elements(function: &ScalarUDF) -> bool {
    let inner: &dyn std::any::Any = function.inner().as_ref();
    inner.is::<ElementsCast>()
}

/// A cast of an array to one of elements of another type, each of which is cast as `typed` says; none for any other.
pub(crate) fn of_elements(
    cast: &Cast,
    from: &ArrowType,
    typed: impl Fn(Cast, &DFSchema) -> Result<Expr>,
) -> Result<Option<Expr>> {
    let (ArrowType::List(own), ArrowType::List(wanted)) = (from, cast.field.data_type()) else {
        return Ok(None);
    };
    let (own, wanted) = (own.data_type(), wanted.data_type());
    let is_plain = |of: &ArrowType| !of.is_nested() && *of != ArrowType::Null;
    if own == wanted || !is_plain(own) || !is_plain(wanted) {
        return Ok(None);
    }
    let wanted: FieldRef = match column_type(&cast.field) {
        ColumnType::Array(element) => {
            planned_field(ELEMENT, ColumnType::Stored(element), true).into()
        }
        _ => Field::new(ELEMENT, wanted.clone(), true).into(),
    };
    let schema = schema_of(own)?;
    let column = Box::new(Expr::Column(Column::new_unqualified(ELEMENT)));
    let element = typed(Cast { expr: column, field: wanted }, &schema)?;
    let element = element.transform_up(|inner| Ok(zoned::zoned(inner, &schema))).data()?;
    let element = element.transform_up(|inner| Ok(casts::checked(inner, &schema))).data()?;
    let is_of_session = element.exists(|inner| {
        Ok(matches!(inner, Expr::ScalarFunction(call)
            if call.func.signature().volatility != Volatility::Immutable))
    })?;
    let volatility = if is_of_session { Volatility::Stable } else { Volatility::Immutable };
    // A numeric has any number of digits where the type says nothing of them.
    let to = match element.get_type(&schema)? == numeric::ANY {
        true => planned_field("", ColumnType::Array(DataType::Numeric(None)), true).into(),
        false => Arc::clone(&cast.field),
    };
    let function = ScalarUDF::new_from_impl(ElementsCast {
        from: own.clone(),
        element,
        to,
        signature: Signature::any(1, volatility),
    });
    let call = ScalarFunction::new_udf(Arc::new(function), vec![(*cast.expr).clone()]);
    Ok(Some(Expr::ScalarFunction(call)))
}

fn schema_of(element: &ArrowType) -> Result<DFSchema> {
    let field = Arc::new(Field::new(ELEMENT, element.clone(), true));
    DFSchema::new_with_metadata(vec![(None, field)], Default::default())
}

impl ScalarUDFImpl for ElementsCast {
    fn name(&self) -> &str {
        "cast_elements"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(self.to.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&self.to))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ([given], ArrowType::List(wanted)) = (args.args.as_slice(), self.to.data_type()) else {
            return internal_err!("{} has one argument, an array", self.name());
        };
        let given = given.to_array(args.number_rows)?;
        let lists = given.as_list::<i32>();
        // Those of these rows alone: others may lie beside them.
        let [first, end] = [lists.offsets().first(), lists.offsets().last()]
            .map(|at| at.map_or(0, |at| usize::try_from(*at).unwrap_or(0)));
        let values = lists.values().slice(first, end - first);
        let made = self.cast(values, wanted.data_type())?;
        let offsets = OffsetBuffer::from_lengths(lists.offsets().lengths());
        let nulls = lists.nulls().cloned();
        let made = ListArray::try_new(Arc::clone(wanted), offsets, made, nulls)?;
        Ok(ColumnarValue::Array(Arc::new(made)))
    }
}

impl ElementsCast {
    fn cast(&self, values: ArrayRef, wanted: &ArrowType) -> Result<ArrayRef> {
        let schema = schema_of(&self.from)?;
        let physical = create_physical_expr(
            &self.element,
            &schema,
            &ExecutionProps::new(),
            &PhysicalPlanningContext::default(),
        )?;
        let count = values.len();
        let rows = RecordBatch::try_new(Arc::clone(schema.inner()), vec![values])?;
        let made = physical.evaluate(&rows)?.into_array(count)?;
        Ok(if made.data_type() == wanted { made } else { cast(&made, wanted)? })
    }
}

/// Casts of arrays that nobody has written, once all types are known.
#[derive(Debug)]
pub(crate) struct ElementCasts {
    pub(crate) typed: fn(Cast, &DFSchema) -> Result<Expr>,
}

impl AnalyzerRule for ElementCasts {
    fn name(&self) -> &str {
        "element_casts"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_typed(plan, |expression, schema| {
            let Expr::Cast(cast) = &expression else { return Transformed::no(expression) };
            let from = cast.expr.get_type(schema);
            // What it cannot have as a cast of its elements fails as DataFusion's cast of the whole does.
            match from.and_then(|from| of_elements(cast, &from, self.typed)) {
                Ok(Some(own)) => Transformed::yes(own),
                _ => Transformed::no(expression),
            }
        })
    }
}
