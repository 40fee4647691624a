//! What expressions of single rows have in common, those of CHECK constraints and those of rows that
//! are written: they are planned as a SELECT of which nothing but the expressions is kept.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::sqlparser::ast::{
    self, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Spanned, Visit, Visitor,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use onrush::{Row, TableDefinition};

use crate::engine::QueryEngine;
use crate::error::{QueryError, Result};
use crate::relation::{MadeRows, Relation, Relations};
use crate::statement::Statement;
use crate::syntax::folded;
use crate::types::ColumnType;

/// Where expressions stand, for messages: in one of these, in many of them.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// As in *cannot use subquery in ...*.
    pub one: &'static str,
    /// As in *aggregate functions are not allowed in ...*.
    pub many: &'static str,
}

/// `SELECT items FROM rows`, or without FROM where there are none.
pub(crate) fn select(items: Vec<SelectItem>, rows: &[NamedRow]) -> Result<ast::Query> {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let relation = |row: &NamedRow| match &row.schema {
        Some(schema) => format!("{}.{}", quoted(schema), quoted(&row.name)),
        None => quoted(&row.name),
    };
    let relations: Vec<String> = rows.iter().map(relation).collect();
    let text = match relations.is_empty() {
        true => "SELECT NULL".to_owned(),
        false => format!("SELECT NULL FROM {}", relations.join(" CROSS JOIN ")),
    };
    let statements = Parser::parse_sql(&PostgreSqlDialect {}, &text);
    let internal = || QueryError::Internal { message: format!("{text} is not read") };
    let statement = statements.ok().and_then(|mut read| read.pop());
    let Some(ast::Statement::Query(mut query)) = statement else { return Err(internal()) };
    let SetExpr::Select(select) = &mut *query.body else { return Err(internal()) };
    select.projection = items.into_iter().flat_map(|item| with_columns(item, rows)).collect();
    Ok(*query)
}

/// The columns that `row.*` stands for: DataFusion looks for a name with a schema only by both.
fn with_columns(item: SelectItem, rows: &[NamedRow]) -> Vec<SelectItem> {
    let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = &item
    else {
        return vec![item];
    };
    let parts: Vec<&ast::Ident> = name.0.iter().filter_map(|part| part.as_ident()).collect();
    let is_it = |row: &&NamedRow| match parts.as_slice() {
        [own] => folded(own) == row.name,
        [schema, own] => {
            folded(own) == row.name && row.schema.as_ref().is_some_and(|it| folded(schema) == *it)
        }
        _ => false,
    };
    let Some(row) = rows.iter().find(is_it) else { return vec![item] };
    let quoted = |name: &str| ast::Ident::with_quote('"', name);
    let column = |column: &NamedColumn| {
        let parts = vec![quoted(&row.name), quoted(&column.name)];
        SelectItem::UnnamedExpr(ast::Expr::CompoundIdentifier(parts))
    };
    row.columns.iter().map(column).collect()
}

/// The expression as it is run, of rows with this schema.
pub(crate) fn physical(
    engine: &QueryEngine,
    expression: Expr,
    schema: &Arc<DFSchema>,
) -> Result<Arc<dyn PhysicalExpr>> {
    let context = SimplifyContext::builder()
        .with_schema(Arc::clone(schema))
        .with_config_options(Arc::clone(engine.state.config_options()))
        .build();
    // Some functions, coalesce among them, are written otherwise before they can be run.
    let expression = ExprSimplifier::new(context).simplify(expression)?;
    Ok(engine.state.create_physical_expr(expression, schema)?)
}

/// Refuses what is about more than one row.
///
/// # Errors
/// A subquery, an aggregate, a window function.
pub(crate) fn check(engine: &QueryEngine, items: &[SelectItem], place: &Place) -> Result<()> {
    seek(Seeker { engine, place, takes_queries: false, depth: 0, refused: None }, items)
}

impl QueryEngine {
    /// Refuses aggregates and window functions outside of subqueries.
    ///
    /// # Errors
    /// One of them.
    pub fn check_of_one_row(&self, items: &[ast::Expr], place: &Place) -> Result<()> {
        seek(Seeker { engine: self, place, takes_queries: true, depth: 0, refused: None }, items)
    }
}

fn seek<V: Visit>(mut seeker: Seeker<'_>, items: &[V]) -> Result<()> {
    for item in items {
        let _: ControlFlow<()> = item.visit(&mut seeker);
    }
    seeker.refused.map_or(Ok(()), Err)
}

/// Looks for what no expression of one row can have.
struct Seeker<'e> {
    engine: &'e QueryEngine,
    place: &'e Place,
    takes_queries: bool,
    /// How many queries inside of an item.
    depth: usize,
    refused: Option<QueryError>,
}

impl Visitor for Seeker<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.depth += 1;
        if self.takes_queries {
            return ControlFlow::Continue(());
        }
        let message = format!("cannot use subquery in {}", self.place.one);
        self.refused = Some(QueryError::NotSupported { message });
        ControlFlow::Break(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &ast::Expr) -> ControlFlow<()> {
        let (0, ast::Expr::Function(call)) = (self.depth, expression) else {
            return ControlFlow::Continue(());
        };
        let name = call.name.0.last().map(ToString::to_string).unwrap_or_default().to_lowercase();
        let state = &self.engine.state;
        let (code, kind) = if call.over.is_some() || state.window_functions().contains_key(&name) {
            ("42P20", "window")
        } else if state.aggregate_functions().contains_key(&name) {
            ("42803", "aggregate")
        } else {
            return ControlFlow::Continue(());
        };
        let message = format!("{kind} functions are not allowed in {}", self.place.many);
        self.refused = Some(QueryError::refused(code, message).at(call.name.span()));
        ControlFlow::Break(())
    }
}

/// A row that expressions are of, by what stands in front of its columns.
#[derive(Clone, Debug)]
pub struct NamedRow {
    /// The schema that may stand in front of that; none: PostgreSQL's `public`.
    pub schema: Option<String>,
    /// What stands there.
    pub name: String,
    /// The columns that can be named.
    pub columns: Vec<NamedColumn>,
}

/// A column of a [row](NamedRow).
#[derive(Clone, Debug)]
pub struct NamedColumn {
    /// Where its value is in the row.
    pub position: usize,
    /// What it is called.
    pub name: String,
    /// Its type.
    pub column_type: ColumnType,
}

impl NamedRow {
    /// A row of a table, with the columns that SQL shows.
    #[must_use]
    pub fn of_table(name: &str, table: &TableDefinition) -> NamedRow {
        let column = |position: usize| {
            let column = &table.columns()[position];
            let column_type = column.data_type.into();
            NamedColumn { position, name: column.name.clone(), column_type }
        };
        let columns = table.shown_columns().map(column).collect();
        NamedRow { schema: None, name: name.to_owned(), columns }
    }
}

/// Relations of which only the columns are looked at.
pub(crate) struct NamedRows<'r>(pub(crate) &'r [NamedRow]);

impl Relations for NamedRows<'_> {
    fn find(&self, _: Option<&str>, name: &str) -> Result<Relation> {
        match self.0.iter().find(|row| row.name == name) {
            Some(row) => Ok(Relation::Made(Arc::new(OnlyColumns(row.columns.clone())))),
            None => {
                let message = format!("the relation {name} in an expression is not supported");
                Err(QueryError::NotSupported { message })
            }
        }
    }

    fn is_always_empty(&self, _: Option<&str>, _: &str) -> bool {
        false
    }
}

#[derive(Debug)]
struct OnlyColumns(Vec<NamedColumn>);

impl MadeRows for OnlyColumns {
    fn columns(&self) -> Vec<(&str, ColumnType)> {
        self.0.iter().map(|column| (column.name.as_str(), column.column_type)).collect()
    }

    fn rows(&self, _: &Statement) -> Vec<Row> {
        Vec::new()
    }
}
