//! Functions that DataFusion does not have, or has otherwise than PostgreSQL.

mod all_matches;
mod array_assignments;
mod array_casts;
mod array_numbers;
mod array_sets;
mod arrays;
mod averages;
mod bytes;
mod bytes_text;
mod casts;
mod checked;
mod deviations;
mod digest;
mod domains;
mod escapes;
mod exists;
mod fields;
mod frame_exclusions;
mod group_sets;
mod input_order;
mod interval_aggregates;
mod intervals;
mod json;
mod json_changes;
mod json_objects;
mod json_parts;
mod json_paths;
mod json_records;
mod json_rows;
mod json_values;
mod jsonb_keys;
mod letters;
mod made;
mod networks;
mod numbers;
mod numeric_calls;
mod numeric_casts;
mod numeric_keys;
mod numeric_math;
mod numeric_sums;
mod ordered_sets;
mod patterns;
mod quoting;
mod real_deviations;
mod real_sums;
mod record_keys;
mod records;
mod session;
mod single;
mod system;
mod system_casts;
mod templates;
mod text;
mod ties;
mod times_tz;
mod timestamp_arithmetic;
mod timestamp_series;
mod typed;
mod types;
mod unkeyed;
mod uuid;
mod wide;
mod zoned;

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::ArrayRef;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, internal_datafusion_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF};
use onrush::{DataType, Value};

use crate::types::{ColumnType, plain_type};
use crate::values::readable;

pub use array_assignments::{OPEN_BOUND, SET_ELEMENT, SET_SLICE};
pub(crate) use array_casts::{ElementCasts, of_elements};
pub(crate) use array_numbers::FROM_ZERO;
pub(crate) use array_sets::{ARRAY_CONTAINS, ARRAYS_OVERLAP};
pub(crate) use averages::{decimal_sum, numeric_average};
pub(crate) use bytes::shown_escaped;
pub(crate) use bytes_text::bytes_of;
pub(crate) use casts::CheckedCasts;
pub(crate) use checked::CheckedArithmetic;
pub(crate) use deviations::numeric_deviation;
pub use domains::TO_DOMAIN;
pub(crate) use domains::domain_name;
pub(crate) use exists::ExistsAsValue;
pub(crate) use fields::endless_extract;
pub use frame_exclusions::EXCLUSIONS;
pub(crate) use frame_exclusions::excluding;
pub(crate) use group_sets::GroupSets;
pub(crate) use input_order::InputOrder;
pub(crate) use interval_aggregates::{any_average, first_interval, interval_aggregate};
pub(crate) use intervals::{
    READ_INTERVAL, between, divided, extreme_interval, interval_of_time, read_interval, span,
    time_of_interval, times,
};
pub(crate) use json::{JSON_PART, JSON_PART_TEXT};
pub(crate) use json_changes::{JSON_SUBSCRIPT, JSON_WITHOUT_PATH};
pub(crate) use json_parts::{
    JSON_AT_PATH, JSON_AT_PATH_TEXT, JSON_CONTAINS, JSON_HAS_ALL, JSON_HAS_ANY, JSON_HAS_KEY,
    JSON_ITEMS, JSON_ITEMS_TEXT, JSON_JOINED, JSON_KEYS, JSON_WITHOUT, JSONB_ITEMS,
    JSONB_ITEMS_TEXT, json_type_name,
};
pub(crate) use json_paths::{JSON_PATH_FINDS, JSON_PATH_HOLDS, JSON_PATH_ITEMS};
pub(crate) use json_records::{JSON_RECORDS, makes_record};
pub(crate) use json_rows::{
    JSON_COLUMN, JSON_MEMBERS, JSON_MEMBERS_TEXT, JSON_NAMES, JSONB_MEMBERS, JSONB_MEMBERS_TEXT,
    JSONB_NAMES,
};
pub(crate) use json_values::{
    JSON_LIST, JSON_OF_ELEMENTS, JSON_OF_PAIRS, JSON_OF_ROWS, JSON_PAIR, JSON_ROW, JSONB_LIST,
    JSONB_OF_ELEMENTS, JSONB_OF_PAIRS, JSONB_ROW,
};
pub(crate) use jsonb_keys::jsonb_key_of;
pub(crate) use networks::{NETWORK, NETWORK_AS_ADDRESS, NETWORK_SHOW};
pub(crate) use numbers::{LOGARITHM, POSITIVE};
pub(crate) use numeric_calls::{is_numeric_call, numeric_call};
pub(crate) use numeric_casts::{decimal, is_cast_to_any, is_numeric_cast, limited, numeric_cast};
pub(crate) use numeric_keys::{NUMERIC_KEY, has_numeric, key_of};
pub(crate) use numeric_math::quotient;
pub(crate) use numeric_sums::numeric_sum;
pub(crate) use ordered_sets::{is_ordered_set, ordered_sets};
pub use patterns::SIMILAR_PART;
pub(crate) use patterns::{
    ALL_BY_PATTERN, FOUND_BY_PATTERN, LIBRARY_PATTERN, PART_BY_PATTERN, SIMILAR_PATTERN,
    SPLIT_BY_PATTERN, goes_back, library_pattern,
};
pub(crate) use real_deviations::real_deviation;
pub(crate) use real_sums::real_sum;
pub(crate) use record_keys::record_key_of;
pub(crate) use records::{
    RECORD_FIELD, RECORD_FIELD_AS_IS, RECORD_IS_NOT_NULL, RECORD_IS_NULL, RECORD_OF,
    RECORD_OF_JOINED, RECORD_TEXT, ROW, read_composite, styled_record,
};
pub(crate) use session::{bind, bind_to_column, is_told_where_called};
pub(crate) use single::{SINGLE_VALUE, SingleRows, single_value};
pub use system::SystemFunction;
pub(crate) use system_casts::{CHAR_OF, NAMES_OF, OID_OF};
pub(crate) use templates::to_number;
pub(crate) use text::{parse_function, text_function};
pub use ties::WITH_TIES;
pub(crate) use times_tz::{date_at_time, time_as, time_tz_moved};
pub(crate) use timestamp_arithmetic::{date_plus_days, date_with_time, in_common_years, in_reach};
pub(crate) use timestamp_series::timestamp_series;
pub(crate) use types::{TYPE_OF, type_name};
pub(crate) use unkeyed::{kept_by_unkeyed, unkeyed};
pub(crate) use wide::bigint_as_numeric;
pub(crate) use zoned::ZonedCasts;

/// All functions that statements can call by name.
pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    let mut all = session::all();
    all.extend(uuid::all());
    all.extend(array_numbers::all());
    all.extend(arrays::all());
    all.extend(array_assignments::all());
    all.extend(frame_exclusions::all());
    all.extend(networks::all());
    all.extend(array_sets::all());
    all.extend(json::all());
    all.extend(json_changes::all());
    all.extend(json_records::all());
    all.extend(json_rows::all());
    all.extend(ties::all());
    all.extend(json_objects::all());
    all.extend(intervals::all());
    all.extend(templates::all());
    all.extend(json_parts::all());
    all.extend(json_paths::all());
    all.extend(json_values::all());
    all.extend(bytes::all());
    all.extend(letters::all());
    all.extend(digest::all());
    all.extend(domains::all());
    all.extend(escapes::all());
    all.extend(fields::all());
    all.extend(made::all());
    all.extend(timestamp_arithmetic::all());
    all.extend(numbers::all());
    all.extend(patterns::all());
    all.extend(quoting::all());
    all.extend(records::all());
    all.extend(system_casts::all());
    all.extend(types::all());
    all.push(octet_length());
    all.push(like_pattern().immutable().into_udf());
    all
}

/// The function of this name.
pub(crate) fn named(name: &str) -> Result<Arc<ScalarUDF>> {
    static ALL: LazyLock<Vec<Arc<ScalarUDF>>> = LazyLock::new(all);
    let found = ALL.iter().find(|function| function.name() == name).cloned();
    found.ok_or_else(|| internal_datafusion_err!("there is no function {name}"))
}

/// The arguments of a call, each as a column that [`value_at`](crate::values::value_at) reads.
fn argument_columns(call: &ScalarFunctionArgs) -> Result<Vec<(ArrayRef, ColumnType)>> {
    let mut columns = Vec::with_capacity(call.args.len());
    for given in &call.args {
        let array = readable(&given.to_array(call.number_rows)?)?;
        let column = ColumnType::Stored(plain_type(array.data_type()));
        columns.push((array, column));
    }
    Ok(columns)
}

/// Changes the expressions of a plan from the inside out, by the columns that they are made of.
fn rewrite_typed(
    plan: LogicalPlan,
    change: impl Fn(Expr, &DFSchema) -> Transformed<Expr>,
) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        rewrite(plan, |expression| Ok(change(expression, &schema)))
    })
    .data()
}

/// Whether a plan, or a subquery of it, has such an expression. Most have none, and need not be written anew.
pub(crate) fn has_expression(
    plan: &LogicalPlan,
    is_sought: impl Fn(&Expr) -> Result<bool>,
) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            found |= expression.exists(&is_sought)?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}

/// Changes the expressions of one node of a plan from the inside out; columns keep their names.
pub(crate) fn rewrite(
    plan: LogicalPlan,
    change: impl Fn(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expression| {
        let name = names.save(&expression);
        let changed = expression.transform_up(&change)?;
        Ok(match changed.transformed {
            true => changed.update_data(|expression| name.restore(expression)),
            false => changed,
        })
    })
}

/// [`with_backslashes`] of a pattern and its escape character.
fn like_pattern() -> SystemFunction {
    SystemFunction::new("like_pattern", DataType::Text.into(), |given| {
        let [Value::Text(pattern), Value::Text(escape)] = given else { return Value::Null };
        with_backslashes(pattern, escape.chars().next()).into()
    })
}

/// A pattern of LIKE whose escape character is this one, or has none, as one whose escape character is the
/// backslash. One that comes last stays last, which is an error when the pattern is matched.
#[must_use]
pub fn with_backslashes(pattern: &str, escape: Option<char>) -> String {
    let mut written = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            _ if Some(character) == escape => {
                written.push('\\');
                written.extend(characters.next());
            }
            '\\' => written.push_str("\\\\"),
            other => written.push(other),
        }
    }
    written
}

/// The nearest whole number, and of two the even one: how PostgreSQL rounds `double precision`.
pub(crate) fn round_to_even() -> Arc<ScalarUDF> {
    let round =
        SystemFunction::new("round_to_even", DataType::Float64.into(), |given| match given {
            [Value::Float64(number)] => Value::Float64(number.round_ties_even()),
            [Value::Float32(number)] => Value::Float64(f64::from(number.round_ties_even())),
            _ => Value::Null,
        });
    round.immutable().into_udf()
}

/// How many bytes a text or a byte string has.
pub(crate) fn octet_length() -> Arc<ScalarUDF> {
    let count = SystemFunction::new("octet_length", DataType::Int32.into(), |given| {
        let bytes = match given {
            [Value::Text(text)] => text.len(),
            [Value::Bytes(bytes)] => bytes.len(),
            _ => return Value::Null,
        };
        i32::try_from(bytes).map_or(Value::Null, Value::Int32)
    });
    count.immutable().into_udf()
}
