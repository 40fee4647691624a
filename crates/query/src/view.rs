//! Views: queries that stand in FROM of others under a name. A view's query is planned by itself, with the names of its
//! own, and its plan becomes a part of the plan around it, as that of a query in FROM does.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Column;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableSource, TableType};
use datafusion::sql::sqlparser::ast;

use crate::engine::QueryEngine;
use crate::error::{QueryError, Result};
use crate::query::QueryColumn;
use crate::relation::Relations;
use crate::types::{answer_type, column_type, planned_field};
use crate::{scalar, syntax};

/// A query that is to stand in others.
#[derive(Clone, Debug)]
pub struct View {
    columns: Vec<QueryColumn>,
    /// Before its types are made PostgreSQL's: that is done to all of a statement at once.
    plan: LogicalPlan,
}

impl View {
    /// Its columns.
    #[must_use]
    pub fn columns(&self) -> &[QueryColumn] {
        &self.columns
    }

    /// The same view with only these of its columns.
    ///
    /// # Errors
    /// There is no such column.
    pub fn only(&self, positions: &[usize]) -> Result<View> {
        let columns = positions.iter().filter_map(|at| self.columns.get(*at)).cloned().collect();
        let own = self.plan.schema();
        let kept = positions
            .iter()
            .map(|at| Expr::Column(Column::from(own.qualified_field(*at))))
            .collect::<Vec<_>>();
        let plan = LogicalPlanBuilder::from(self.plan.clone()).project(kept)?.build()?;
        Ok(View { columns, plan })
    }
}

impl QueryEngine {
    /// Plans the query of a view, the first of whose columns get these names.
    ///
    /// # Errors
    /// Whatever is wrong with the query; parameters; two columns of one name.
    pub fn plan_view(
        &self,
        mut query: ast::Query,
        relations: &dyn Relations,
        names: &[String],
    ) -> Result<View> {
        let prepared = syntax::prepare(self, &mut query, relations, &[])?;
        scalar::unfold(self, &mut query);
        let planned = self.untyped(query, relations, &[]);
        let plan = planned.map_err(|error| prepared.told(error))?;
        let typed = self.typed(plan.clone(), &[]).map_err(|error| prepared.told(error))?;
        let (typed, parameters) = typed;
        if !parameters.is_empty() {
            return Err(QueryError::refused("42P02", "there is no parameter $1"));
        }
        let fields = typed.schema().fields();
        let own = fields.iter().map(|field| field.name().clone()).collect();
        let mut own = syntax::names(&prepared.labels, own);
        for (own, given) in own.iter_mut().zip(names) {
            own.clone_from(given);
        }
        let mut seen = HashSet::new();
        if let Some(twice) = own.iter().find(|name| !seen.insert(name.as_str())) {
            let message = format!("column \"{twice}\" specified more than once");
            return Err(QueryError::refused("42701", message));
        }
        let columns = own
            .iter()
            .zip(fields)
            .map(|(name, field)| QueryColumn {
                name: name.clone(),
                column_type: answer_type(field),
            })
            .collect();
        let named = own.iter().enumerate().map(|(at, name)| {
            let column = Expr::Column(Column::from(plan.schema().qualified_field(at)));
            let (own, wanted) = (plan.schema().field(at).data_type(), fields[at].data_type());
            // What stands around it makes nothing else of it.
            match own == wanted {
                true => column.alias(name),
                false => {
                    let wanted = planned_field("", column_type(&fields[at]), true);
                    let expr = Box::new(column);
                    Expr::Cast(Cast { expr, field: Arc::new(wanted) }).alias(name)
                }
            }
        });
        let named = named.collect::<Vec<_>>();
        let plan = LogicalPlanBuilder::from(plan).project(named)?.build()?;
        Ok(View { columns, plan })
    }
}

/// A view where the planner asks for a table.
pub(crate) struct ViewSource {
    view: Arc<View>,
    schema: SchemaRef,
}

impl ViewSource {
    pub(crate) fn new(view: Arc<View>) -> ViewSource {
        let schema = Arc::clone(view.plan.schema().inner());
        ViewSource { view, schema }
    }
}

impl TableSource for ViewSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.view.plan))
    }
}
