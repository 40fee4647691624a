//! Types as PostgreSQL has them, where DataFusion has others.
//!
//! * A constant in quotes has the type of what it is compared with: `id = '0190...'` compares
//!   UUIDs, and text that is none is an error (`22P02`).
//! * Casts between text and other types read and write values as PostgreSQL does.
//! * Casts to whole numbers round, of `double precision` to the even one of two.
//! * Small whole numbers are `integer`, not `bigint`.
//! * A sum of `bigint` is `numeric`.
//! * What is compared or combined with a `double precision` is one, and a date with an interval is a
//!   timestamp.
//! * Exact numbers are decimals where they certainly have space there, and else any `numeric`.
//! * What is between two moments is an interval; intervals are multiplied, divided and compared.
//! * Bytes are counted as bytes.
//! * A parameter has the type that any of its places tells; one that none tells is text.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, InList, Placeholder, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, TypePlanner};
use datafusion::logical_expr::utils::{COUNT_STAR_EXPANSION, merge_schema};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType as SqlType, ExactNumberInfo,
};
use onrush::{CompositeType, DataType, Value};

use crate::error::QueryError;
use crate::functions::{ARRAY_CONTAINS, RECORD_FIELD, excluding, named, numeric_call};
use crate::numeric;
use crate::text::read_text;
use crate::types::{ColumnType, column_type, planned_field};
use crate::unkeyed::without_keys;
use crate::values::scalar;

mod branches;
mod calls;
mod casts;
mod interval_groups;
mod intervals;
mod join_conditions;
mod json;
mod keys;
mod networks;
mod numerics;
mod operands;
mod outer;
mod parameters;
mod records;
mod sources;
mod times;
mod vectors;

pub(crate) use casts::typed as cast;
pub(crate) use keys::with_constants;
use parameters::Told;
pub(crate) use sources::of_source;
pub use times::time_type;
pub(crate) use times::{digits_of, fields_of_type};
pub(crate) use vectors::Subscripts;

/// The types that PostgreSQL's names stand for, where DataFusion takes them otherwise or not at all.
#[derive(Debug)]
pub(crate) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        let stored = |data_type| Some(ColumnType::Stored(data_type));
        let column = match sql_type {
            SqlType::Uuid => stored(DataType::Uuid),
            SqlType::Float(ExactNumberInfo::Precision(..=24)) => stored(DataType::Float32),
            SqlType::Float(_) => stored(DataType::Float64),
            SqlType::Text | SqlType::Varchar(None) | SqlType::CharacterVarying(None) => {
                stored(DataType::Text)
            }
            SqlType::Array(ArrayElemTypeDef::SquareBracket(element, _))
                if matches!(**element, SqlType::Interval { .. }) =>
            {
                Some(ColumnType::Array(DataType::Interval))
            }
            SqlType::Array(ArrayElemTypeDef::SquareBracket(element, _)) if is_name(element) => {
                Some(ColumnType::Array(DataType::Name))
            }
            SqlType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => {
                match element.to_string().parse() {
                    Ok(of @ (DataType::Enum(_) | DataType::Composite(_))) => {
                        Some(ColumnType::Array(of))
                    }
                    _ => None,
                }
            }
            SqlType::JSON => stored(DataType::Json),
            SqlType::JSONB => stored(DataType::Jsonb),
            SqlType::Varchar(Some(_))
            | SqlType::CharacterVarying(Some(_))
            | SqlType::Char(_)
            | SqlType::Character(_) => sql_type.to_string().parse().ok().map(ColumnType::Stored),
            SqlType::Numeric(digits) | SqlType::Decimal(digits) | SqlType::Dec(digits) => {
                stored(numeric::declared_numeric(digits)?)
            }
            SqlType::Regclass => stored(DataType::Text),
            SqlType::Custom(name, _) => {
                let last = name.0.last().map(ToString::to_string).unwrap_or_default();
                match last.trim_matches('"').to_lowercase().as_str() {
                    "oid" | "xid" | "cid" => stored(DataType::Oid),
                    "name" | "cstring" => stored(DataType::Name),
                    "char" => Some(ColumnType::Char),
                    "record" => {
                        CompositeType::anonymous([]).and_then(|of| stored(DataType::Composite(of)))
                    }
                    "regclass" | "regtype" | "regproc" | "regprocedure" | "regnamespace"
                    | "regrole" => stored(DataType::Text),
                    other => match other.parse() {
                        Ok(DataType::Array(element)) => Some(ColumnType::Array(*element)),
                        known => known.ok().map(ColumnType::Stored),
                    },
                }
            }
            other => time_type(other).map(ColumnType::Stored),
        };
        Ok(column.map(|column| Arc::new(planned_field("", column, true))))
    }
}

fn is_name(sql_type: &SqlType) -> bool {
    matches!(sql_type, SqlType::Custom(name, _) if name.to_string().eq_ignore_ascii_case("name"))
}

/// Comparisons of something with a constant in quotes.
#[derive(Debug)]
pub(crate) struct Comparisons;

impl ExprPlanner for Comparisons {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator as Op;
        if let Some(planned) = json::planned(&expr, schema)? {
            return Ok(PlannerResult::Planned(planned));
        }
        if let Some(planned) = networks::planned(&mut expr, schema)? {
            return Ok(PlannerResult::Planned(planned));
        }
        if matches!(expr.op, Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq) {
            let (left, right) = (expr.left.clone(), expr.right.clone());
            for side in [&left, &right] {
                check_comparable(side, &expr.op, schema)?;
            }
            adopt(&mut expr.left, &right, schema)?;
            adopt(&mut expr.right, &left, schema)?;
        }
        if matches!(expr.op, Op::Plus | Op::Minus) {
            let (left, right) = (expr.left.clone(), expr.right.clone());
            for (constant, other) in [(&mut expr.left, &right), (&mut expr.right, &left)] {
                if intervals::is_one(other, schema) {
                    adopt(constant, other, schema)?;
                }
            }
        }
        if matches!(expr.op, Op::Plus | Op::Minus | Op::Multiply | Op::Divide | Op::Modulo) {
            let (left, right) = (expr.left.clone(), expr.right.clone());
            numerics::adopt_constant(&mut expr.left, &right, schema);
            numerics::adopt_constant(&mut expr.right, &left, schema);
        }
        operands::adopt_constants(&mut expr, schema)?;
        operands::join_as_text(&mut expr, schema)?;
        if let Some(planned) = operands::of_arrays(&expr, schema)? {
            return Ok(PlannerResult::Planned(planned));
        }
        intervals::planned(expr, schema)
    }
}

/// JSON as it was written has no order and no equality, as in PostgreSQL: what says the same may be
/// written otherwise.
fn check_comparable(side: &Expr, operator: &BinaryOperator, schema: &DFSchema) -> Result<()> {
    let Some(field) = field_of(side, schema) else { return Ok(()) };
    if column_type(&field) == ColumnType::Array(DataType::Interval) {
        return Err(intervals::not_supported("a comparison of arrays of intervals"));
    }
    if column_type(&field) != ColumnType::Stored(DataType::Json) {
        return Ok(());
    }
    let message = format!("operator does not exist: json {operator} of anything; cast it to jsonb");
    Err(QueryError::UnknownFunction { message }.into())
}

/// The field of an expression. A cast makes what it says, whatever notes are on what is cast.
fn field_of(expression: &Expr, schema: &DFSchema) -> Option<FieldRef> {
    match expression {
        Expr::Cast(cast) => Some(Arc::clone(&cast.field)),
        other => other.to_field(schema).ok().map(|(_, field)| field),
    }
}

/// Gives a constant in quotes the type of `other`, if that is no constant itself.
fn adopt(constant: &mut Expr, other: &Expr, schema: &DFSchema) -> Result<()> {
    match other {
        // Of other types two constants may be, too.
        Expr::Literal(ScalarValue::FixedSizeBinary(..), _) => adopt_type(constant, other, schema),
        Expr::Literal(..) => Ok(()),
        _ => adopt_type(constant, other, schema),
    }
}

/// Gives a constant in quotes the type of `other`.
fn adopt_type(constant: &mut Expr, other: &Expr, schema: &DFSchema) -> Result<()> {
    let Expr::Literal(ScalarValue::Utf8(Some(written)), _) = &*constant else { return Ok(()) };
    // What cannot be told here is told when the whole statement is known.
    let Some(field) = field_of(other, schema) else { return Ok(()) };
    if let Some(read) = read(written, &field)? {
        *constant = Expr::Literal(read, None);
    }
    Ok(())
}

/// Gives an array in quotes, `id = ANY ('{1,2}')`, the type of what it is compared with.
fn adopt_array(constant: &mut Expr, element: &Expr, schema: &DFSchema) -> Result<()> {
    let Expr::Literal(ScalarValue::Utf8(Some(written)), _) = &*constant else { return Ok(()) };
    let Ok((_, field)) = element.to_field(schema) else { return Ok(()) };
    let array = ColumnType::Array(crate::types::plain_type(field.data_type()));
    *constant = Expr::Literal(scalar(&Value::from(written.as_str()), array)?, None);
    Ok(())
}

/// Text as a value of a field's type; none where text is what is wanted.
fn read(written: &str, field: &Field) -> Result<Option<ScalarValue>> {
    let column = match column_type(field) {
        ColumnType::Stored(DataType::Char(_)) => {
            return Ok(Some(ScalarValue::Utf8(Some(written.trim_end_matches(' ').to_owned()))));
        }
        // What is longer than a name is cut before it is compared with one.
        ColumnType::Stored(DataType::Name) => DataType::Name,
        ColumnType::Stored(data_type) if data_type.is_text() => return Ok(None),
        ColumnType::Char => return Ok(None),
        // More digits than the column has may still be compared with it.
        ColumnType::Stored(data_type) => data_type.unrounded(),
        other @ (ColumnType::Array(_) | ColumnType::Vector(_)) => {
            return Ok(Some(scalar(&Value::from(written), other)?));
        }
    };
    if matches!(column, DataType::Decimal { .. } | DataType::Numeric(_)) {
        let number = numeric::of_text(written)?;
        return Ok(match *field.data_type() == numeric::ANY {
            true => Some(numeric::scalar(&number)),
            // More digits than the column has may still be compared with it.
            false => numerics::as_decimal(&number),
        });
    }
    // Types that no column has are left to DataFusion.
    if *field.data_type() != crate::types::arrow_type(ColumnType::Stored(column)) {
        return Ok(None);
    }
    let value = match (column, written) {
        (DataType::Bytes, bytes) if !bytes.contains('\\') => Value::from(bytes.as_bytes()),
        _ => read_text(column, written)?,
    };
    Ok(Some(scalar(&value, ColumnType::Stored(column))?))
}

/// Gives the expressions of a plan PostgreSQL's types.
pub(crate) fn with_types(plan: LogicalPlan) -> Result<LogicalPlan> {
    let told = parameters::told(&plan)?;
    all_typed(without_keys(plan)?, &told)
}

fn all_typed(plan: LogicalPlan, told: &Told) -> Result<LogicalPlan> {
    let plan = plan
        .transform_down_with_subqueries(|node| {
            sources::recursive(node, &|term| all_typed(term, told))
        })
        .data()?;
    let plan = plan.transform_up_with_subqueries(|node| typed(node, told)).data()?;
    match outer::of_rows_outside(plan)? {
        followed if followed.transformed => {
            followed.data.transform_up_with_subqueries(|node| typed(node, told)).data()
        }
        unchanged => Ok(unchanged.data),
    }
}

/// The columns that the expressions of a node are made of.
fn schema_below(plan: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = plan {
        let source = scan.source.schema();
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &source)?);
    }
    Ok(schema)
}

fn typed(plan: LogicalPlan, told: &Told) -> Result<Transformed<LogicalPlan>> {
    let plan = sources::as_read(plan)?;
    let schema = schema_below(&plan)?;
    let is_limit = matches!(plan, LogicalPlan::Limit(_));
    let is_join = matches!(plan, LogicalPlan::Join(_));
    let is_compared = is_join || matches!(plan, LogicalPlan::Sort(_));
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expression| {
        let name = names.save(&expression);
        let cast = expression.transform_down(|inner| Ok(cast_placeholder(inner)))?.data;
        let mut rewritten = cast.transform_up(|inner| {
            let rewritten = rewrite(inner, &schema, told, is_limit)?;
            let rewritten = keys::compared(rewritten.data, &schema)?;
            Ok(Transformed::yes(branches::typed(rewritten, &schema)?))
        })?;
        if is_compared {
            intervals::as_spans([&mut rewritten.data], &schema);
        }
        if is_join {
            rewritten = rewritten.transform_data(|condition| {
                condition.transform_up(join_conditions::column_first)
            })?;
        }
        Ok(rewritten.update_data(|expression| name.restore(expression)))
    })?
    .map_data(|plan| {
        let plan = sources::of_own_types(plan.recompute_schema()?)?;
        keys::node(interval_groups::by_spans(plan)?)
    })
}

/// A whole number as PostgreSQL reads it: an `integer` if it fits.
fn as_read(number: i64) -> ScalarValue {
    i32::try_from(number)
        .map_or(ScalarValue::Int64(Some(number)), |number| ScalarValue::Int32(Some(number)))
}

/// `count(*)` in the words by which DataFusion knows it again.
fn as_count_of_rows(arguments: &mut [Expr]) {
    if let [Expr::Literal(one, _)] = arguments
        && *one == ScalarValue::Int32(Some(1))
    {
        *one = COUNT_STAR_EXPANSION;
    }
}

fn rewrite(
    mut expression: Expr,
    schema: &DFSchema,
    told: &Told,
    is_limit: bool,
) -> Result<Transformed<Expr>> {
    if let Expr::ScalarFunction(call) = &mut expression
        && call.func.name() == "array_has_all"
    {
        call.func = named(ARRAY_CONTAINS)?;
    }
    if let Expr::WindowFunction(window) = &mut expression
        && window.fun.name() == "count"
    {
        as_count_of_rows(&mut window.params.args);
    }
    if let Expr::AggregateFunction(aggregate) = &mut expression {
        if aggregate.func.name() == "count" {
            as_count_of_rows(&mut aggregate.params.args);
        }
        let sorts = aggregate.params.order_by.iter_mut();
        intervals::as_spans(sorts.map(|sort| &mut sort.expr), schema);
    }
    let expression = match expression {
        Expr::ScalarFunction(call) if call.func.name() == RECORD_FIELD => {
            records::read_field(call)?
        }
        Expr::ScalarFunction(call) => numerics::function(call, schema)?,
        Expr::AggregateFunction(call) => {
            Expr::AggregateFunction(numerics::aggregate(call, schema)?)
        }
        other => other,
    };
    Ok(match expression {
        Expr::OuterReferenceColumn(field, column) => {
            let real = numerics::real(&field).unwrap_or(field);
            Transformed::yes(Expr::OuterReferenceColumn(real, column))
        }
        Expr::Negative(number) if number.get_type(schema).is_ok_and(|own| own == numeric::ANY) => {
            let negated = numeric_call("-", vec![(*number).clone()]);
            Transformed::yes(negated.unwrap_or(Expr::Negative(number)))
        }
        Expr::ScalarFunction(mut call) if call.func.name() == "array_has" => {
            if let [array, element] = call.args.as_mut_slice() {
                adopt_array(array, element, schema)?;
                if intervals::is_one(element, schema) {
                    return Err(intervals::not_supported("looking for an interval in an array"));
                }
            }
            Transformed::yes(Expr::ScalarFunction(call))
        }
        Expr::ScalarFunction(call)
            if matches!(call.func.name(), "greatest" | "least")
                && intervals::is_among(&call.args, schema) =>
        {
            Transformed::yes(intervals::extreme(call))
        }
        Expr::ScalarFunction(mut call) if call.func.name() == "nullif" => {
            numerics::together(&mut call.args, schema)?;
            Transformed::yes(intervals::null_if(call, schema)?)
        }
        Expr::ScalarFunction(call) if call.func.name() == "generate_series" => {
            Transformed::yes(calls::series(call, schema))
        }
        Expr::ScalarFunction(call) if matches!(call.func.name(), "extract" | "array_to_string") => {
            Transformed::yes(calls::of_timestamps(call, schema)?)
        }
        Expr::ScalarFunction(mut call)
            if matches!(call.func.name(), "coalesce" | "greatest" | "least" | "make_array") =>
        {
            operands::floats_together(&mut call.args, schema)?;
            numerics::together(&mut call.args, schema)?;
            Transformed::yes(Expr::ScalarFunction(call))
        }
        Expr::Case(mut case) => {
            if let Some(of) = &mut case.expr {
                let compared = case.when_then_expr.iter_mut().map(|(when, _)| &mut **when);
                intervals::as_spans(std::iter::once(&mut **of).chain(compared), schema);
            }
            let branches = case.when_then_expr.iter_mut().map(|(_, then)| &mut **then);
            let branches = branches.chain(case.else_expr.as_deref_mut());
            operands::floats_together(branches, schema)?;
            let branches = case.when_then_expr.iter_mut().map(|(_, then)| &mut **then);
            numerics::together(branches.chain(case.else_expr.as_deref_mut()), schema)?;
            if let Some(compared) = &mut case.expr {
                let wanted = case.when_then_expr.iter_mut().map(|(wanted, _)| &mut **wanted);
                numerics::comparable(std::iter::once(&mut **compared).chain(wanted), schema)?;
            }
            Transformed::yes(Expr::Case(case))
        }
        Expr::Literal(ScalarValue::Int64(Some(number)), metadata) => {
            Transformed::yes(Expr::Literal(as_read(number), metadata))
        }
        // No value has this type; a number that large is a numeric.
        Expr::Literal(ScalarValue::UInt64(Some(number)), metadata) => {
            let number = ScalarValue::Decimal128(Some(i128::from(number)), 20, 0);
            Transformed::yes(Expr::Literal(number, metadata))
        }
        Expr::ScalarFunction(call) if calls::counts_as_integer(call.func.name()) => {
            Transformed::yes(calls::as_integers(call))
        }
        Expr::ScalarFunction(call) if vectors::tells_numbers(call.func.name()) => {
            Transformed::yes(vectors::numbered(call, schema)?)
        }
        Expr::ScalarFunction(call) if call.func.name() == "date_bin" => {
            calls::check_stride(&call)?;
            Transformed::no(Expr::ScalarFunction(call))
        }
        Expr::WindowFunction(mut window) => {
            intervals::window(&mut window, schema)?;
            calls::offset(&mut window, schema)?;
            excluding(&mut window)?;
            Transformed::yes(Expr::WindowFunction(window))
        }
        Expr::ScalarFunction(call)
            if matches!(
                call.func.name(),
                "exp" | "ln" | "log" | "log10" | "power" | "pow" | "sqrt"
            ) =>
        {
            Transformed::yes(match call.func.name().starts_with('l') {
                true => calls::logarithm(call)?,
                false => Expr::ScalarFunction(call),
            })
        }
        Expr::ScalarFunction(call) if call.func.name() == "round" => {
            Transformed::yes(calls::round(call, schema))
        }
        Expr::ScalarFunction(call) if matches!(call.func.name(), "concat" | "concat_ws") => {
            Transformed::yes(calls::joined(call, schema))
        }
        Expr::ScalarFunction(mut call)
            if matches!(call.func.name(), "format" | "quote_literal" | "quote_nullable") =>
        {
            call.args.iter_mut().for_each(|given| calls::written(given, schema));
            Transformed::yes(Expr::ScalarFunction(call))
        }
        Expr::ScalarFunction(call)
            if matches!(call.func.name(), "to_json" | "array_to_json" | "to_jsonb") =>
        {
            Transformed::yes(json::of_array(call, schema)?)
        }
        Expr::ScalarFunction(call) if call.func.name() == "character_length" => {
            Transformed::yes(calls::length(call, schema)?)
        }
        Expr::Between(mut between) => {
            let Between { expr, low, high, .. } = &mut between;
            for limit in [&mut *low, &mut *high] {
                adopt(limit, expr, schema)?;
                operands::float_beside(limit, expr, schema)?;
                operands::integer_beside_real(limit, expr, schema);
            }
            intervals::as_spans([&mut **expr, &mut **low, &mut **high], schema);
            numerics::comparable([&mut **expr, &mut **low, &mut **high], schema)?;
            Transformed::yes(Expr::Between(between))
        }
        Expr::InSubquery(subquery) => Transformed::yes(intervals::in_subquery(subquery, schema)?),
        Expr::InList(mut list) => {
            let InList { expr, list: items, .. } = &mut list;
            for item in items.iter_mut() {
                adopt(item, expr, schema)?;
                operands::float_beside(item, expr, schema)?;
                operands::integer_beside_real(item, expr, schema);
            }
            intervals::as_spans(std::iter::once(&mut **expr).chain(items.iter_mut()), schema);
            numerics::comparable(std::iter::once(&mut **expr).chain(items), schema)?;
            Transformed::yes(Expr::InList(list))
        }
        Expr::BinaryExpr(mut binary) => {
            if let Some(found) = operands::by_way(&binary)? {
                return Ok(Transformed::yes(found));
            }
            operands::suit(&mut binary, schema)?;
            let BinaryExpr { left, op, right } = &mut binary;
            if matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom) {
                intervals::as_spans([&mut **left, &mut **right], schema);
            }
            if op.supports_propagation() {
                let (was_left, was_right) = (left.clone(), right.clone());
                adopt(left, &was_right, schema)?;
                adopt(right, &was_left, schema)?;
            }
            Transformed::yes(match numerics::binary(binary, schema)? {
                Expr::BinaryExpr(binary) => operands::days(binary, schema),
                other => other,
            })
        }
        Expr::Cast(cast) => Transformed::yes(casts::typed(cast, schema)?),
        test @ (Expr::IsNull(_) | Expr::IsNotNull(_)) => {
            Transformed::yes(records::null_test(test, schema)?)
        }
        Expr::AggregateFunction(aggregate)
            if intervals::is_among(&aggregate.params.args, schema) =>
        {
            Transformed::yes(Expr::AggregateFunction(intervals::aggregate(aggregate, schema)?))
        }
        Expr::AggregateFunction(mut aggregate) if aggregate.func.name() == "sum" => {
            if let Some(own) = calls::sum(&mut aggregate.params.args, schema) {
                aggregate.func = own;
            }
            Transformed::yes(Expr::AggregateFunction(aggregate))
        }
        Expr::AggregateFunction(mut aggregate) if aggregate.func.name() == "percentile_cont" => {
            calls::as_double(&mut aggregate.params.args, schema);
            Transformed::yes(Expr::AggregateFunction(aggregate))
        }
        Expr::AggregateFunction(mut aggregate) if aggregate.func.name() == "avg" => {
            aggregate.func = calls::average(&mut aggregate.params.args, schema);
            Transformed::yes(Expr::AggregateFunction(aggregate))
        }
        Expr::AggregateFunction(mut aggregate) => {
            if let Some(own) =
                calls::deviation(aggregate.func.name(), &mut aggregate.params.args, schema)
            {
                aggregate.func = own;
            }
            Transformed::yes(Expr::AggregateFunction(aggregate))
        }
        Expr::Placeholder(Placeholder { id, field }) => {
            let field = match field.or_else(|| told.get(&id).cloned()) {
                None if is_limit => Arc::new(Field::new("", ArrowType::Int64, true)),
                None => Arc::new(Field::new("", ArrowType::Utf8, true)),
                Some(field) => match field.data_type() {
                    ArrowType::Null => Arc::new(Field::new("", ArrowType::Utf8, true)),
                    ArrowType::Decimal128(_, _) | ArrowType::Decimal256(_, _) => numerics::any(),
                    _ => field,
                },
            };
            Transformed::yes(Expr::Placeholder(Placeholder { id, field: Some(field) }))
        }
        other => Transformed::no(other),
    })
}

/// `$1::date` is a parameter of type `date`.
fn cast_placeholder(expression: Expr) -> Transformed<Expr> {
    let Expr::Cast(cast) = &expression else { return Transformed::no(expression) };
    match &*cast.expr {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            let field = Some(Arc::clone(&cast.field));
            Transformed::yes(Expr::Placeholder(Placeholder { id: id.clone(), field }))
        }
        _ => Transformed::no(expression),
    }
}

fn call(function: Arc<datafusion::logical_expr::ScalarUDF>, arguments: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(function, arguments))
}
