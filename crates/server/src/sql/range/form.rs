//! What is made of the rows between two keys: they are sent as they are, sorted, or become one row of totals.

use std::cmp::Ordering;

use onrush::{DataType, KeyOrder, TableDefinition, Value};
use sqlparser::ast::{
    Distinct, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, OrderByExpr, OrderByKind,
    Query, Select, SelectItem,
};

use super::super::condition::column_name;
use super::super::names;
use super::super::select::{OutputColumn, columns_of};
use crate::error::Result;

/// What is made of the rows.
#[derive(Clone)]
pub(crate) enum Form {
    /// Those in the order of the primary key, or from its end on.
    Rows {
        is_backward: bool,
    },
    Sorted {
        by: Vec<SortKey>,
        is_distinct: bool,
    },
    Totals(Vec<Total>),
}

#[derive(Clone, Copy)]
pub(crate) struct SortKey {
    /// Position in the row of the table.
    pub(crate) column: usize,
    pub(crate) order: KeyOrder,
    /// Blanks at the end do not count, as of `char(n)`.
    pub(crate) is_padded: bool,
}

impl SortKey {
    fn new(definition: &TableDefinition, column: usize, order: KeyOrder) -> SortKey {
        let is_padded = matches!(definition.columns()[column].data_type, DataType::Char(_));
        SortKey { column, order, is_padded }
    }

    /// How two values of the column stand to each other in this order.
    pub(crate) fn compare(&self, left: &Value<'_>, right: &Value<'_>) -> Ordering {
        let SortKey { order, is_padded, .. } = self;
        match (left.is_null(), right.is_null()) {
            (true, true) => return Ordering::Equal,
            (true, false) if order.nulls_first => return Ordering::Less,
            (true, false) => return Ordering::Greater,
            (false, true) if order.nulls_first => return Ordering::Greater,
            (false, true) => return Ordering::Less,
            (false, false) => {}
        }
        let compared = match (left, right) {
            (Value::Text(left), Value::Text(right)) if *is_padded => {
                left.trim_end_matches(' ').cmp(right.trim_end_matches(' '))
            }
            _ => compare(left, right),
        };
        if order.descending { compared.reverse() } else { compared }
    }
}

/// One value of all rows; of a column, by its position in the table.
#[derive(Clone, Copy)]
pub(crate) enum Total {
    Rows,
    /// Those that are not NULL.
    Values(usize),
    Sum(usize),
    Least(usize),
    Greatest(usize),
}

/// The columns of the answer, and how it is made of the rows.
pub(super) fn form(
    definition: &TableDefinition,
    relation: &str,
    query: &Query,
    select: &Select,
) -> Result<Option<(Vec<OutputColumn>, Form)>> {
    let is_distinct = match &select.distinct {
        None => false,
        Some(Distinct::Distinct) => true,
        Some(_) => return Ok(None),
    };
    let order: &[OrderByExpr] = match &query.order_by {
        None => &[],
        Some(order) if order.interpolate.is_none() => match &order.kind {
            OrderByKind::Expressions(expressions) => expressions,
            OrderByKind::All(_) => return Ok(None),
        },
        Some(_) => return Ok(None),
    };
    let Some(columns) = columns_of(definition, relation, &select.projection)? else {
        let is_plain = order.is_empty() && !is_distinct;
        let totals = totals(definition, relation, &select.projection).filter(|_| is_plain);
        return Ok(totals.map(|(columns, totals)| (columns, Form::Totals(totals))));
    };
    let mut by = Vec::new();
    for item in order {
        let Some(key) = sort_key(definition, relation, &columns, item, is_distinct) else {
            return Ok(None);
        };
        by.push(key);
    }
    let orders = |column: usize| is_ordered(definition.columns()[column].data_type);
    if is_distinct {
        // Those that are alike come together.
        for OutputColumn { source, .. } in &columns {
            if !by.iter().any(|key| key.column == *source) {
                by.push(SortKey::new(definition, *source, KeyOrder::ASCENDING));
            }
        }
    }
    let can_sort = by.iter().all(|key| orders(key.column));
    Ok(can_sort.then_some((columns, Form::Sorted { by, is_distinct })))
}

/// Types that [`compare`] orders.
fn is_ordered(data_type: DataType) -> bool {
    matches!(
        data_type,
        DataType::Boolean
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Char(_)
            | DataType::Varchar(_)
            | DataType::Text
            | DataType::Uuid
            | DataType::Date
            | DataType::Timestamp
            | DataType::TimestampTz
    )
}

/// How two values of a column stand to each other; NULL is above all others.
pub(crate) fn compare(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    match (left, right) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        (Value::Boolean(left), Value::Boolean(right)) => left.cmp(right),
        (Value::Text(left), Value::Text(right)) => left.cmp(right),
        (Value::Uuid(left), Value::Uuid(right)) => left.cmp(right),
        (Value::Date(left), Value::Date(right)) => left.cmp(right),
        (Value::Timestamp(left), Value::Timestamp(right))
        | (Value::TimestampTz(left), Value::TimestampTz(right)) => left.cmp(right),
        (left, right) => left.as_i64().cmp(&right.as_i64()),
    }
}

fn sort_key(
    definition: &TableDefinition,
    relation: &str,
    columns: &[OutputColumn],
    item: &OrderByExpr,
    is_distinct: bool,
) -> Option<SortKey> {
    if item.with_fill.is_some() {
        return None;
    }
    let descending = item.options.asc == Some(false);
    let nulls_first = item.options.nulls_first.unwrap_or(descending);
    let column = match &item.expr {
        // The name of a column of the answer comes first.
        Expr::Identifier(name) => {
            let name = names::identifier(name);
            let mut sources = columns.iter().filter(|it| it.name == name).map(|it| it.source);
            match sources.next() {
                Some(source) if sources.all(|other| other == source) => source,
                Some(_) => return None,
                None => definition.shown_column_index(&name).ok()?,
            }
        }
        Expr::CompoundIdentifier(_) => {
            definition.shown_column_index(&column_name(&item.expr, relation)?).ok()?
        }
        _ => return None,
    };
    let is_there = columns.iter().any(|it| it.source == column);
    let order = KeyOrder { descending, nulls_first };
    (is_there || !is_distinct).then(|| SortKey::new(definition, column, order))
}

/// The items as values of all rows.
fn totals(
    definition: &TableDefinition,
    relation: &str,
    items: &[SelectItem],
) -> Option<(Vec<OutputColumn>, Vec<Total>)> {
    let mut columns = Vec::new();
    let mut totals = Vec::new();
    for (source, item) in items.iter().enumerate() {
        let (expression, alias) = match item {
            SelectItem::UnnamedExpr(expression) => (expression, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(names::identifier(alias))),
            _ => return None,
        };
        let Expr::Function(call) = expression else { return None };
        let FunctionArguments::List(list) = &call.args else { return None };
        let is_plain = call.over.is_none()
            && call.filter.is_none()
            && call.null_treatment.is_none()
            && call.within_group.is_empty()
            && matches!(call.parameters, FunctionArguments::None)
            && list.duplicate_treatment.is_none()
            && list.clauses.is_empty();
        let ([part], [FunctionArg::Unnamed(argument)], true) =
            (call.name.0.as_slice(), list.args.as_slice(), is_plain)
        else {
            return None;
        };
        let name = names::identifier(part.as_ident()?);
        let column = match argument {
            FunctionArgExpr::Wildcard if name == "count" => None,
            FunctionArgExpr::Expr(expression) => {
                Some(definition.shown_column_index(&column_name(expression, relation)?).ok()?)
            }
            _ => return None,
        };
        let own = column.map(|column| definition.columns()[column].data_type);
        let is_whole = matches!(own, Some(DataType::Int16 | DataType::Int32 | DataType::Int64));
        let (total, data_type) = match (name.as_str(), column, own) {
            ("count", None, _) => (Total::Rows, DataType::Int64),
            ("count", Some(column), _) => (Total::Values(column), DataType::Int64),
            ("sum", Some(column), Some(DataType::Int16 | DataType::Int32)) => {
                (Total::Sum(column), DataType::Int64)
            }
            ("min", Some(column), Some(own)) if is_whole => (Total::Least(column), own),
            ("max", Some(column), Some(own)) if is_whole => (Total::Greatest(column), own),
            _ => return None,
        };
        columns.push(OutputColumn {
            name: alias.unwrap_or(name),
            column_type: data_type.into(),
            source,
        });
        totals.push(total);
    }
    (!totals.is_empty()).then_some((columns, totals))
}
