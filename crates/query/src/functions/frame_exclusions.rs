//! Windows whose frames leave out rows: `EXCLUDE CURRENT ROW`, `GROUP` and `TIES`, which DataFusion has not.
//!
//! The parser does not read the clause either: a window that has it is partitioned by a call of a function, too, that
//! says which rows it leaves out. Here the call goes, and the function that is called over the window becomes one that
//! looks at the rows of the frame which are left.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::partition;
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Schema};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::function::{
    AccumulatorArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs,
};
use datafusion::logical_expr::{
    AggregateUDF, Expr, PartitionEvaluator, ScalarUDF, Signature, WindowFunctionDefinition,
    WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use onrush::{DataType, Value};

use super::SystemFunction;
use crate::error::QueryError;

/// Which rows of a frame are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Exclusion {
    CurrentRow,
    /// The current row and its peers.
    Group,
    /// Its peers alone.
    Ties,
}

/// The functions that tell which, by the words of the clause.
pub const EXCLUSIONS: [(&str, &str); 3] = [
    ("CURRENT ROW", "onrush_exclude_current_row"),
    ("GROUP", "onrush_exclude_group"),
    ("TIES", "onrush_exclude_ties"),
];

impl Exclusion {
    fn named(name: &str) -> Option<Exclusion> {
        let at = EXCLUSIONS.iter().position(|(_, function)| *function == name)?;
        [Exclusion::CurrentRow, Exclusion::Group, Exclusion::Ties].get(at).copied()
    }

    /// The rows of a frame that are left, of a row at `current` with the peers `group`.
    fn left(self, frame: &Range<usize>, current: usize, group: &Range<usize>) -> Vec<Range<usize>> {
        let out = match self {
            Exclusion::CurrentRow => std::iter::once(current..current + 1).collect(),
            Exclusion::Group => vec![group.clone()],
            Exclusion::Ties => vec![group.start..current, current + 1..group.end],
        };
        let mut left = vec![frame.clone()];
        for out in out {
            left = left
                .iter()
                .flat_map(|kept| {
                    let before = kept.start..kept.end.min(out.start);
                    let behind = kept.start.max(out.end)..kept.end;
                    if out.is_empty() { [kept.clone(), 0..0] } else { [before, behind] }
                })
                .filter(|kept| !kept.is_empty())
                .collect();
        }
        left
    }
}

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let function = |(_, name)| {
        let told = SystemFunction::new(name, DataType::Boolean.into(), |_| Value::Boolean(true));
        told.immutable().into_udf()
    };
    EXCLUSIONS.map(function).into()
}

/// Calls what stands for EXCLUDE away from a window, and leaves the rows out.
///
/// # Errors
/// A condition of the rows beside it.
pub(crate) fn excluding(window: &mut WindowFunction) -> Result<()> {
    let mut found = None;
    window.params.partition_by.retain(|key| {
        let Expr::ScalarFunction(call) = key else { return true };
        let exclusion = Exclusion::named(call.func.name());
        found = found.or(exclusion);
        exclusion.is_none()
    });
    let Some(exclusion) = found else { return Ok(()) };
    let inner = match &window.fun {
        WindowFunctionDefinition::AggregateUDF(function) => Inner::Aggregate(Arc::clone(function)),
        WindowFunctionDefinition::WindowUDF(function) => match function.name() {
            "first_value" => Inner::First(Arc::clone(function)),
            "last_value" => Inner::Last(Arc::clone(function)),
            "nth_value" => Inner::Nth(Arc::clone(function)),
            // The others do not look at the frame.
            _ => return Ok(()),
        },
    };
    if window.params.filter.is_some() {
        let message = "FILTER of a window function beside EXCLUDE is not supported".to_owned();
        return Err(QueryError::NotSupported { message }.into());
    }
    let name = format!("{}_{exclusion:?}", inner.name());
    let function = WindowUDF::new_from_impl(Excluding { name, inner, exclusion });
    window.fun = WindowFunctionDefinition::WindowUDF(Arc::new(function));
    Ok(())
}

/// The function that is called over the window.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Inner {
    Aggregate(Arc<AggregateUDF>),
    First(Arc<WindowUDF>),
    Last(Arc<WindowUDF>),
    Nth(Arc<WindowUDF>),
}

impl Inner {
    fn name(&self) -> &str {
        match self {
            Inner::Aggregate(function) => function.name(),
            Inner::First(function) | Inner::Last(function) | Inner::Nth(function) => {
                function.name()
            }
        }
    }
}

/// The same function over what is left of each frame.
#[derive(Clone, Debug)]
struct Excluding {
    name: String,
    inner: Inner,
    exclusion: Exclusion,
}

impl PartialEq for Excluding {
    fn eq(&self, other: &Excluding) -> bool {
        self.inner == other.inner && self.exclusion == other.exclusion
    }
}

impl Eq for Excluding {}

impl Hash for Excluding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl WindowUDFImpl for Excluding {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        match &self.inner {
            Inner::Aggregate(function) => function.signature(),
            Inner::First(function) | Inner::Last(function) | Inner::Nth(function) => {
                function.signature()
            }
        }
    }

    fn coerce_types(&self, given: &[ArrowType]) -> Result<Vec<ArrowType>> {
        match &self.inner {
            Inner::Aggregate(function) => function.coerce_types(given),
            Inner::First(function) | Inner::Last(function) | Inner::Nth(function) => {
                function.coerce_types(given)
            }
        }
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        let made = match &self.inner {
            Inner::Aggregate(function) => function.return_field(args.input_fields())?,
            Inner::First(function) | Inner::Last(function) | Inner::Nth(function) => {
                let name = args.name();
                function.field(WindowUDFFieldArgs::new(args.input_fields(), name))?
            }
        };
        Ok(Arc::new(made.as_ref().clone().with_name(args.name())))
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs<'_>,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(Evaluator {
            inner: self.inner.clone(),
            exclusion: self.exclusion,
            arguments: args.input_exprs().to_vec(),
            fields: args.input_fields().to_vec(),
            current: 0,
            groups: None,
        }))
    }
}

/// Computes the function for the rows of a partition, one after the other.
#[derive(Debug)]
struct Evaluator {
    inner: Inner,
    exclusion: Exclusion,
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<FieldRef>,
    /// The row whose turn it is.
    current: usize,
    /// The rows that are peers of each other.
    groups: Option<Vec<Range<usize>>>,
}

impl PartitionEvaluator for Evaluator {
    fn uses_window_frame(&self) -> bool {
        true
    }

    /// `values` are the arguments, and behind them what the window is ordered by.
    fn evaluate(&mut self, values: &[ArrayRef], frame: &Range<usize>) -> Result<ScalarValue> {
        let (arguments, order) = values.split_at(self.arguments.len());
        if self.groups.is_none() {
            let count = values.first().map_or(0, |values| values.len());
            // Without an order all rows are peers.
            let all = std::iter::once(0..count);
            self.groups = Some(match order.is_empty() {
                true => all.collect(),
                false => partition(order)?.ranges(),
            });
        }
        let current = self.current;
        self.current += 1;
        let groups = self.groups.as_deref().unwrap_or_default();
        let at = groups.partition_point(|group| group.end <= current);
        let group = groups.get(at).cloned().unwrap_or(current..current + 1);
        let left = self.exclusion.left(frame, current, &group);
        self.of_rows(arguments, &left)
    }
}

impl Evaluator {
    fn of_rows(&self, arguments: &[ArrayRef], rows: &[Range<usize>]) -> Result<ScalarValue> {
        let place = match &self.inner {
            Inner::Aggregate(function) => return self.aggregate(function, arguments, rows),
            Inner::First(_) => Some(0),
            Inner::Last(_) => rows.iter().map(Range::len).sum::<usize>().checked_sub(1),
            Inner::Nth(_) => {
                let number = ScalarValue::try_from_array(&arguments[1], 0)?;
                match number.cast_to(&ArrowType::Int64)? {
                    ScalarValue::Int64(Some(number)) => usize::try_from(number - 1).ok(),
                    _ => None,
                }
            }
        };
        match place.and_then(|place| rows.iter().flat_map(Clone::clone).nth(place)) {
            Some(row) => ScalarValue::try_from_array(&arguments[0], row),
            None => ScalarValue::try_from(arguments[0].data_type()),
        }
    }

    fn aggregate(
        &self,
        function: &AggregateUDF,
        arguments: &[ArrayRef],
        rows: &[Range<usize>],
    ) -> Result<ScalarValue> {
        let schema = Schema::new(Vec::<Field>::new());
        let mut accumulator = function.accumulator(AccumulatorArgs {
            return_field: function.return_field(&self.fields)?,
            schema: &schema,
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: function.name(),
            is_distinct: false,
            exprs: &self.arguments,
            expr_fields: &self.fields,
        })?;
        for rows in rows {
            let slices = arguments.iter().map(|array| array.slice(rows.start, rows.len()));
            accumulator.update_batch(&slices.collect::<Vec<_>>())?;
        }
        accumulator.evaluate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_keeps_what_is_not_left_out() {
        let all = std::iter::once::<Range<usize>>;
        let left = |exclusion: Exclusion, frame| exclusion.left(&frame, 3, &(2..5));
        assert_eq!(left(Exclusion::CurrentRow, 1..6), [1..3, 4..6]);
        assert_eq!(left(Exclusion::Group, 1..6), [1..2, 5..6]);
        assert_eq!(left(Exclusion::Ties, 1..6), [1..2, 3..4, 5..6]);
        assert!(left(Exclusion::CurrentRow, 3..4).is_empty());
        assert!(left(Exclusion::Ties, 3..4).into_iter().eq(all(3..4)));
        assert!(left(Exclusion::Group, 5..9).into_iter().eq(all(5..9)));
        assert!(left(Exclusion::Group, 0..0).is_empty());
    }

    #[test]
    fn each_clause_has_its_function() {
        let named = EXCLUSIONS.map(|(_, function)| Exclusion::named(function));
        let all = [Exclusion::CurrentRow, Exclusion::Group, Exclusion::Ties];
        assert_eq!(named, all.map(Some));
    }
}
