//! Statements as DataFusion takes them: PostgreSQL's ways of writing that it does not know are
//! written otherwise, names are given to expressions, and clauses that it would pass over in silence
//! are refused.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, BinaryOperator, DataType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, LimitClause,
    NamedWindowDefinition, NamedWindowExpr, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SetExpr, TableFactor, TrimWhereField, UnaryOperator, Value, ValueWithSpan, VisitMut,
    VisitorMut, WindowType,
};

use crate::binder::{self, Bound};
use crate::engine::QueryEngine;
use crate::enumeration::own_name_of;
use crate::error::{QueryError, Result};
use crate::functions::SIMILAR_PART;
use crate::nothing::is_surely_empty;
use crate::relation::Relations;
use crate::types::ColumnType;
pub use all_fields::ALL_FIELDS;
pub(crate) use all_fields::{AllFields, record_of};
pub(crate) use calls::{
    cast_by_call, is_aggregate as is_other_aggregate, is_other as is_other_function,
};
use compared::InSight;
pub(crate) use constants::TypedConstants;
pub(crate) use labels::{all_names, names};
use labels::{labels, name_items};
pub(crate) use merged::{MergedColumns, Sides};
pub(crate) use sets::array_of;
pub(crate) use timestamps::range_of;
use whole_rows::Sources;

mod all_fields;
mod arrays;
mod calls;
mod compared;
mod constants;
mod domains;
mod frames;
mod groups;
mod hypothetical_sets;
mod json_rows;
mod labels;
mod merged;
mod numbers;
mod ordinality;
mod populated;
mod row_membership;
mod set_all;
mod sets;
mod things;
mod timestamps;
mod values;
mod variadic;
mod whole_rows;

/// The name of a column that has none, as in PostgreSQL.
const NAMELESS: &str = "?column?";

/// The name of a column of an answer, as far as the statement alone tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Name(String),
    /// As many columns as `*` stands for.
    Wildcard,
}

/// What is known of a query that is ready for DataFusion.
pub(crate) struct Prepared {
    /// What its columns are called.
    pub(crate) labels: Vec<Label>,
    /// What there is to tell should DataFusion not plan it.
    pub(crate) suspect: Option<QueryError>,
}

impl Prepared {
    /// Tells what PostgreSQL would, where DataFusion has only said no.
    pub(crate) fn told(&self, error: QueryError) -> QueryError {
        match (&self.suspect, error) {
            (Some(suspect), QueryError::NotPlanned { .. }) => suspect.clone(),
            (_, error) => error,
        }
    }
}

/// Prepares a query for DataFusion, and tells what its columns are called.
///
/// # Errors
/// A clause that nothing would come of; a name that means nothing; what DataFusion cannot do and would not say.
pub(crate) fn prepare(
    engine: &QueryEngine,
    query: &mut Query,
    relations: &dyn Relations,
    declared: &[Option<ColumnType>],
) -> Result<Prepared> {
    variadic::expand(query)?;
    whole_rows::name_rows(query);
    set_all::with_numbers(query);
    hypothetical_sets::as_counts(query);
    row_membership::as_existence(query)?;
    ordinality::number_rows(query);
    timestamps::place_parts(query);
    let Bound { suspect, merged, constants, all_fields } =
        binder::bind(engine, query, relations, declared)?;
    merged.write(query);
    constants.write(query);
    all_fields.write(query);
    engine.check_clauses(query)?;
    let labels = labels(&query.body);
    labels::tell_numbered_apart(query);
    if let SetExpr::Select(select) = &mut *query.body {
        things::show_names(&mut select.projection);
    }
    let (in_sight, sources) = (InSight::default(), Sources::default());
    let mut writer = Writer { relations, refused: None, in_sight, sources };
    let _: ControlFlow<()> = query.visit(&mut writer);
    match writer.refused {
        Some(message) => Err(QueryError::NotSupported { message }),
        None => Ok(Prepared { labels, suspect }),
    }
}

/// Whether a collation compares bytes, as text is always compared here.
#[must_use]
pub fn is_collation_of_bytes(name: &str) -> bool {
    matches!(name.to_lowercase().as_str(), "default" | "c" | "posix" | "ucs_basic")
}

/// A name as it counts: in lower case unless it is quoted.
pub(crate) fn folded(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

/// What PostgreSQL calls the column that an expression makes.
pub(crate) fn name_of(expression: &Expr) -> Option<String> {
    let word = |word: &str| Some(word.to_owned());
    match expression {
        Expr::Identifier(name) => Some(folded(name)),
        Expr::CompoundIdentifier(parts) => parts.last().map(folded),
        Expr::Function(call) if domains::is_cast(call) => domains::name_of_cast(call),
        Expr::Function(call) => call.name.0.last().and_then(|part| match part {
            ObjectNamePart::Identifier(name) if name.value == SIMILAR_PART => word("substring"),
            ObjectNamePart::Identifier(name) => Some(folded(name)),
            _ => None,
        }),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => name_of(inner),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(Expr::Identifier(name)) => Some(folded(name)),
                _ => None,
            });
            field.or_else(|| name_of(root))
        }
        Expr::Cast { expr, data_type, .. } => own_name(expr).or_else(|| type_name(data_type)),
        Expr::TypedString(typed) => type_name(&typed.data_type),
        Expr::Case { else_result, .. } => {
            else_result.as_deref().and_then(own_name).or_else(|| word("case"))
        }
        Expr::Exists { .. } => word("exists"),
        Expr::Subquery(query) => match labels(&query.body).into_iter().next() {
            Some(Label::Name(name)) => Some(name),
            _ => None,
        },
        Expr::Array(_) => word("array"),
        Expr::Tuple(_) => word("row"),
        Expr::Extract { .. } => word("extract"),
        Expr::Position { .. } => word("position"),
        Expr::Substring { .. } => word("substring"),
        Expr::Overlay { .. } => word("overlay"),
        Expr::Ceil { .. } => word("ceil"),
        Expr::Floor { .. } => word("floor"),
        Expr::Trim { trim_where, .. } => word(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            _ => "btrim",
        }),
        Expr::AtTimeZone { .. } => word("timezone"),
        Expr::Interval(_) => word("interval"),
        _ => None,
    }
}

/// The name of an expression that is not that of a type or of a kind of expression.
fn own_name(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => own_name(inner),
        Expr::Cast { expr, .. } => own_name(expr),
        Expr::Case { else_result, .. } => else_result.as_deref().and_then(own_name),
        Expr::TypedString(_) | Expr::Interval(_) => None,
        other => name_of(other),
    }
}

fn type_name(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4".to_owned(),
        DataType::SmallInt(_) | DataType::Int2(_) => "int2".to_owned(),
        DataType::BigInt(_) | DataType::Int8(_) => "int8".to_owned(),
        DataType::Boolean | DataType::Bool => "bool".to_owned(),
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => type_name(element)?,
        DataType::Custom(name, _) => {
            let own = name.0.last()?.as_ident().map(folded)?;
            match own.parse() {
                Ok(onrush::DataType::Enum(of)) => own_name_of(of.name()).to_owned(),
                Ok(onrush::DataType::Composite(of)) => own_name_of(of.name()).to_owned(),
                _ => own,
            }
        }
        DataType::Real | DataType::Float4 => "float4".to_owned(),
        DataType::DoublePrecision | DataType::Float8 => "float8".to_owned(),
        DataType::Numeric(_) | DataType::Decimal(_) => "numeric".to_owned(),
        DataType::Varchar(_) | DataType::CharacterVarying(_) => "varchar".to_owned(),
        DataType::Char(_) | DataType::Character(_) => "bpchar".to_owned(),
        other => other.to_string().to_lowercase().split(['(', ' ']).next()?.to_owned(),
    })
}

/// Goes through a statement and writes it anew.
struct Writer<'r> {
    relations: &'r dyn Relations,
    refused: Option<String>,
    in_sight: InSight,
    sources: Sources,
}

impl Writer<'_> {
    fn refuse(&mut self, what: impl Into<String>) -> ControlFlow<()> {
        self.refused = Some(format!("{} is not supported", what.into()));
        ControlFlow::Break(())
    }
}

impl VisitorMut for Writer<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        numbers::with_own_digits(&mut query.body);
        values::with_subqueries(&mut query.body);
        self.sources.name(query, self.relations);
        if let SetExpr::Select(select) = &*query.body {
            self.sources.enter(select, self.relations);
            groups::tell_apart(query, &self.sources);
            self.sources.leave();
        }
        if let Some(fetch) = query.fetch.take() {
            let offset = match query.limit_clause.take() {
                Some(LimitClause::LimitOffset { offset, .. }) => offset,
                _ => None,
            };
            let limit =
                fetch.quantity.or_else(|| Some(Expr::value(Value::Number("1".into(), false))));
            query.limit_clause =
                Some(LimitClause::LimitOffset { limit, offset, limit_by: Vec::new() });
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for NamedWindowDefinition(_, window) in &mut select.named_window {
            if let NamedWindowExpr::WindowSpec(window) = window {
                frames::in_plain_numbers(window);
            }
        }
        self.sources.enter(select, self.relations);
        name_items(&mut select.projection, &self.sources);
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. } =
                item
            {
                whole_rows::as_call(value);
            }
        }
        sets::in_columns(&mut select.projection);
        whole_rows::group_by_fields(select);
        self.in_sight.enter(select);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.in_sight.leave();
        self.sources.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, relation: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: args @ Some(_), .. } = relation {
            unqualify(name);
            // Of what is never there, it does not matter of what it is asked.
            if self.relations.is_always_empty(None, &name.to_string()) {
                *args = None;
            }
        }
        arrays::name_elements(relation);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match expression {
            Expr::Identifier(name) if self.sources.is_row_of_doubled_names(name) => {
                return self
                    .refuse(format!("the row of {name}, of which two columns have one name,"));
            }
            Expr::Identifier(name) if let Some(row) = self.sources.row(name) => *expression = row,
            // Before its parts, among which the name of a field looks like that of a column.
            Expr::CompoundFieldAccess { root, access_chain } => {
                whole_rows::as_call(root);
                if let Some(field) = arrays::field_of(root, access_chain) {
                    *expression = field;
                }
            }
            Expr::Subquery(query) if is_surely_empty(&query.body, self.relations) => {
                *expression = Expr::value(Value::Null);
            }
            Expr::Exists { subquery, negated }
                if is_surely_empty(&subquery.body, self.relations) =>
            {
                *expression = Expr::value(Value::Boolean(*negated));
            }
            Expr::Function(call) => {
                if let Some(WindowType::WindowSpec(window)) = &mut call.over {
                    frames::in_plain_numbers(window);
                }
                match arrays::of_subquery(call, self.relations) {
                    Some(array) => *expression = array,
                    None if matches!(call.args, FunctionArguments::Subquery(_)) => {
                        let what = "ARRAY of a query of several columns, or of all of a table";
                        return self.refuse(what);
                    }
                    None => self.sources.write_out(call),
                }
            }
            // For what stands in brackets DataFusion neither looks outside of a query nor knows what
            // types parameters have.
            Expr::Array(array) if arrays::has_columns_or_parameters(array) => {
                *expression = call_of("make_array", std::mem::take(&mut array.elem));
            }
            Expr::Identifier(name)
                if name.quote_style.is_none()
                    && name.value.eq_ignore_ascii_case("current_schema") =>
            {
                *expression = call_of("current_schema", []);
            }
            Expr::AnyOp { left, right, .. } | Expr::AllOp { left, right, .. } => {
                whole_rows::as_call(left);
                self.in_sight.set_apart(right);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Some(number) = numbers::of_many_digits(expression) {
            *expression = number;
            return ControlFlow::Continue(());
        }
        if let Expr::Cast { expr, .. } = expression {
            whole_rows::as_call(expr);
        }
        match expression {
            Expr::Interval(interval) => {
                if let Some(call) = timestamps::written_plainly(interval) {
                    *expression = call;
                }
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
                let negative = timestamps::negated(expr).or_else(|| calls::negated_base(expr));
                if let Some(negative) = negative {
                    *expression = negative;
                }
            }
            Expr::Array(array) => array.elem.iter_mut().for_each(whole_rows::as_call),
            Expr::IsNull(value) | Expr::IsNotNull(value) => whole_rows::as_call(value),
            Expr::Function(call) => {
                whole_rows::as_calls_in(call);
                unqualify(&mut call.name);
                timestamps::add_today(call);
                if let Some(other) = arrays::rows_of(call).or_else(|| calls::other(call)) {
                    *expression = other;
                } else if call.name.to_string() == "coalesce"
                    && let Some(json) = calls::json_type(expression)
                {
                    *expression = sets::cast(expression.clone(), json);
                }
            }
            Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
                escape_by_backslash(pattern, escape_char);
            }
            Expr::SimilarTo { negated, expr, pattern, escape_char } => {
                *expression = calls::similar(expr, pattern, escape_char.as_ref(), *negated);
            }
            Expr::UnaryOp { op, expr } => {
                if let Some(call) = calls::of_one(*op, expr) {
                    *expression = call;
                }
            }
            Expr::BinaryOp { left, op, right } => {
                if let BinaryOperator::PGCustomBinaryOperator(words) = op {
                    match words.last().and_then(|word| operator(word)) {
                        Some(known) => *op = known,
                        None => return self.refuse(format!("the operator {}", words.join("."))),
                    }
                }
                if matches!(op, BinaryOperator::Eq | BinaryOperator::NotEq) {
                    things::compare_types(&mut [&mut **left, &mut **right]);
                }
                if let Some(other) =
                    calls::of_two(left, op, right).or_else(|| compared::rows(left, op, right))
                {
                    *expression = other;
                } else {
                    whole_rows::as_call(left);
                    whole_rows::as_call(right);
                }
            }
            Expr::InList { expr, list, .. } => {
                let mut compared: Vec<&mut Expr> = list.iter_mut().chain([&mut **expr]).collect();
                things::compare_types(&mut compared);
                compared::row_in(expression);
            }
            Expr::Substring { .. } | Expr::Position { .. } | Expr::Overlay { .. } => {
                if let Some(call) = calls::spelled_out(expression) {
                    *expression = call;
                }
            }
            Expr::Subquery(_) => {
                if let Some(json) = calls::json_type(expression) {
                    *expression = sets::cast(expression.clone(), json);
                }
            }
            // Text has one collation here, that of its bytes.
            Expr::Collate { expr, collation } => {
                let name = collation.0.last().map(ToString::to_string).unwrap_or_default();
                if !is_collation_of_bytes(name.trim_matches('"')) {
                    return self.refuse(format!("the collation {collation}"));
                }
                *expression = (**expr).clone();
            }
            Expr::Cast { expr, data_type, .. }
                if things::is_number_of_function(data_type, expr) =>
            {
                return self.refuse("looking up a function: none has a definition here, so this");
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                let (zone, timestamp) = ((**time_zone).clone(), (**timestamp).clone());
                *expression = call_of("timezone", [zone, timestamp]);
            }
            Expr::Extract { field, expr, .. } => {
                let unit = Value::SingleQuotedString(timestamps::unit_name(field));
                *expression = call_of("extract", [Expr::value(unit), (**expr).clone()]);
            }
            Expr::Cast { expr, data_type: DataType::Interval { fields, precision }, .. }
                if fields.is_some() || precision.is_some() =>
            {
                if let Some(interval) = timestamps::of_fields(expr, fields.as_ref(), *precision) {
                    *expression = interval;
                }
            }
            Expr::Cast { expr, data_type, .. } if numbers::is_float(data_type) => {
                numbers::read_digits(expr);
            }
            Expr::Cast { expr, data_type, .. } => {
                if let Some(named) = things::named(data_type, expr) {
                    *expression = named;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Patterns as DataFusion takes them, whose special characters lose their meaning by a backslash.
fn escape_by_backslash(pattern: &mut Expr, escape: &mut Option<ValueWithSpan>) {
    let is_other = escape.as_ref().is_some_and(
        |escape| !matches!(&escape.value, Value::SingleQuotedString(text) if text == "\\"),
    );
    if is_other && let Some(escape) = escape.take() {
        *pattern = call_of("like_pattern", [pattern.clone(), Expr::Value(escape)]);
    }
}

/// A call of a function with one argument.
pub(crate) fn call(function: &str, argument: Expr) -> Expr {
    call_of(function, [argument])
}

/// A call of a function.
fn call_of(function: &str, arguments: impl IntoIterator<Item = Expr>) -> Expr {
    let argument = |argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument));
    let arguments = FunctionArgumentList {
        duplicate_treatment: None,
        args: arguments.into_iter().map(argument).collect(),
        clauses: Vec::new(),
    };
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(function)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(arguments),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Functions stand in one place, whichever schema is written in front.
fn unqualify(name: &mut ObjectName) {
    if let [ObjectNamePart::Identifier(schema), _] = name.0.as_slice()
        && has_functions(&folded(schema))
    {
        name.0.remove(0);
    }
}

/// The parts of a function's name, without a schema that need not be written.
pub(crate) fn unqualified(name: &ObjectName) -> Vec<String> {
    let part = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(name) => folded(name),
        ObjectNamePart::Function(other) => other.to_string(),
    };
    let mut parts: Vec<String> = name.0.iter().map(part).collect();
    if parts.len() == 2 && has_functions(&parts[0]) {
        parts.remove(0);
    }
    parts
}

fn has_functions(schema: &str) -> bool {
    matches!(schema, "pg_catalog" | "onrush" | "information_schema")
}

/// An operator that was written as `OPERATOR(pg_catalog.~)`.
fn operator(written: &str) -> Option<BinaryOperator> {
    Some(match written {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        "=" => BinaryOperator::Eq,
        "<>" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "||" => BinaryOperator::StringConcat,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        _ => return None,
    })
}
