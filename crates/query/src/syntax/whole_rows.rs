//! Rows as values: `(a, b)`; `row_to_json(t)`, `json_agg(t)`, where `t` is a table.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectNamePart, Query,
    Select, SelectItem, SetExpr, TableFactor, Value,
};

use super::labels::label;
use super::{Label, call_of, folded};
use crate::functions::{JSON_ROW, JSONB_ROW, RECORD_OF, ROW};
use crate::relation::{Relation, Relations};

/// What a relation is called, and its columns.
type Source = (String, Vec<String>);

/// The relations of each query around an expression, the innermost last.
#[derive(Default)]
pub(super) struct Sources {
    around: Vec<Vec<Source>>,
    /// Queries that WITH names.
    named: HashMap<String, Vec<String>>,
}

impl Sources {
    pub(super) fn name(&mut self, query: &Query, relations: &dyn Relations) {
        for named in query.with.iter().flat_map(|with| &with.cte_tables) {
            let renamed = named.alias.columns.iter().map(|column| folded(&column.name));
            let renamed: Vec<String> = renamed.collect();
            let columns = match renamed.is_empty() {
                true => self.columns_of(&named.query.body, relations),
                false => Some(renamed),
            };
            if let Some(columns) = columns {
                self.named.insert(folded(&named.alias.name), columns);
            }
        }
    }

    pub(super) fn enter(&mut self, select: &Select, relations: &dyn Relations) {
        let sources = self.sources(select, relations);
        self.around.push(sources);
    }

    pub(super) fn leave(&mut self) {
        self.around.pop();
    }

    fn sources(&self, select: &Select, relations: &dyn Relations) -> Vec<Source> {
        let joined = select.from.iter().flat_map(|from| {
            let joins = from.joins.iter().map(|join| &join.relation);
            std::iter::once(&from.relation).chain(joins)
        });
        joined.filter_map(|relation| self.source(relation, relations)).collect()
    }

    fn source(&self, relation: &TableFactor, relations: &dyn Relations) -> Option<Source> {
        let (alias, columns) = match relation {
            TableFactor::Derived { alias, subquery, .. } => {
                (alias, self.columns_of(&subquery.body, relations)?)
            }
            TableFactor::Table { name, alias, args: None, .. } => {
                let words: Vec<String> = name.0.iter().filter_map(word).collect();
                let columns = match words.as_slice() {
                    [name] if let Some(columns) = self.named.get(name) => columns.clone(),
                    [name] => columns_of_relation(&relations.find(None, name).ok()?),
                    [schema, name] => {
                        columns_of_relation(&relations.find(Some(schema), name).ok()?)
                    }
                    _ => return None,
                };
                if alias.is_none() {
                    return Some((words.last()?.clone(), columns));
                }
                (alias, columns)
            }
            _ => return None,
        };
        let alias = alias.as_ref()?;
        let renamed = alias.columns.iter().map(|column| folded(&column.name));
        let mut own: Vec<String> = renamed.collect();
        own.extend(columns.into_iter().skip(own.len()));
        Some((folded(&alias.name), own))
    }

    /// The columns of a query as far as its words tell them.
    fn columns_of(&self, body: &SetExpr, relations: &dyn Relations) -> Option<Vec<String>> {
        match body {
            SetExpr::Query(query) => self.columns_of(&query.body, relations),
            SetExpr::SetOperation { left, .. } => self.columns_of(left, relations),
            SetExpr::Values(values) => {
                let first = values.rows.first()?;
                Some((1..=first.content.len()).map(|number| format!("column{number}")).collect())
            }
            SetExpr::Select(select) => {
                let mut columns = Vec::new();
                for item in &select.projection {
                    match (item, label(item)) {
                        (_, Label::Name(name)) => columns.push(name),
                        (SelectItem::Wildcard(_), Label::Wildcard) => {
                            let sources = self.sources(select, relations);
                            // One whose columns are not known is left out there.
                            let joins: usize =
                                select.from.iter().map(|from| 1 + from.joins.len()).sum();
                            if sources.len() != joins {
                                return None;
                            }
                            columns.extend(sources.into_iter().flat_map(|(_, columns)| columns));
                        }
                        _ => return None,
                    }
                }
                Some(columns)
            }
            _ => None,
        }
    }

    /// The row of a relation that a name stands for, as a record; none where the name is that of a column.
    pub(super) fn row(&self, name: &Ident) -> Option<Expr> {
        let wanted = folded(name);
        for sources in self.around.iter().rev() {
            if sources.iter().any(|(_, columns)| columns.contains(&wanted)) {
                return None;
            }
            if let Some((_, columns)) = sources.iter().find(|(own, _)| *own == wanted) {
                return Some(call_of(RECORD_OF, named_columns(name, columns)));
            }
        }
        None
    }

    /// Writes out the row where one is what a function of JSON is given.
    pub(super) fn write_out(&self, call: &mut Function) {
        let row = match call.name.to_string().to_lowercase().as_str() {
            "row_to_json" | "to_json" | "json_agg" | "json_build_object" | "json_build_array"
            | "json_object_agg" => JSON_ROW,
            "to_jsonb" | "jsonb_agg" | "jsonb_build_object" | "jsonb_build_array"
            | "jsonb_object_agg" => JSONB_ROW,
            _ => return,
        };
        let FunctionArguments::List(list) = &mut call.args else { return };
        for given in &mut list.args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(given)) = given {
                self.write_out_one(given, row);
            }
        }
    }

    fn write_out_one(&self, given: &mut Expr, row: &str) {
        let Expr::Identifier(name) = &*given else { return };
        let (Some(sources), wanted) = (self.around.last(), folded(name)) else { return };
        // A column of this name is nearer.
        if sources.iter().any(|(_, columns)| columns.contains(&wanted)) {
            return;
        }
        let Some((_, columns)) = sources.iter().find(|(name, _)| *name == wanted) else { return };
        let row = call_of(row, named_columns(name, columns));
        *given = row;
    }
}

/// The columns of a relation, each behind its name.
fn named_columns<'c>(
    relation: &'c Ident,
    columns: &'c [String],
) -> impl Iterator<Item = Expr> + use<'c> {
    columns.iter().flat_map(|column| {
        let key = Expr::value(Value::SingleQuotedString(column.clone()));
        let parts = vec![relation.clone(), Ident::with_quote('"', column)];
        [key, Expr::CompoundIdentifier(parts)]
    })
}

/// `(a, b)` as the call of a function, where it stands for a record.
pub(super) fn as_call(value: &mut Expr) {
    match value {
        Expr::Nested(inner) if matches!(**inner, Expr::Tuple(_)) => as_call(inner),
        Expr::Tuple(fields) => *value = call_of(ROW, std::mem::take(fields)),
        _ => {}
    }
}

/// The same of what a function is given.
pub(super) fn as_calls_in(call: &mut Function) {
    let FunctionArguments::List(list) = &mut call.args else { return };
    for given in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(given)) = given {
            as_call(given);
        }
    }
}

fn word(part: &ObjectNamePart) -> Option<String> {
    match part {
        ObjectNamePart::Identifier(name) => Some(folded(name)),
        ObjectNamePart::Function(_) => None,
    }
}

fn columns_of_relation(relation: &Relation) -> Vec<String> {
    match relation {
        Relation::Table(table) | Relation::TableWithRowIds(table) => {
            let definition = table.definition();
            let name = |at: usize| definition.columns()[at].name.clone();
            definition.shown_columns().map(name).collect()
        }
        Relation::Columns(table, positions) => {
            let all = table.definition().columns();
            positions.iter().map(|at| all[*at].name.clone()).collect()
        }
        Relation::View(view) => view.columns().iter().map(|column| column.name.clone()).collect(),
        Relation::Made(rows) => {
            rows.columns().into_iter().map(|(name, _)| name.to_owned()).collect()
        }
    }
}
