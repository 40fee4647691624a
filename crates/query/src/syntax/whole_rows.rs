//! Rows as values: `(a, b)`; `row_to_json(t)`, `json_agg(t)`, where `t` is a table.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    JoinOperator, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor, Value, visit_expressions_mut,
};

use super::labels::label;
use super::{Label, call_of, folded};
use crate::cold::ColdTable;
use crate::functions::{JSON_ROW, JSONB_ROW, RECORD_OF, RECORD_OF_JOINED, ROW};
use crate::relation::{Relation, Relations};

/// A relation.
struct Source {
    /// What it is called.
    name: String,
    columns: Vec<String>,
    /// An outer join may find no row of it, whose columns are all NULL then.
    may_be_missing: bool,
}

/// An item that stands for columns.
pub(super) enum Star {
    All,
    /// Those of a relation.
    Of(String),
}

/// Those among the items.
pub(super) fn stars(items: &[SelectItem]) -> Vec<Star> {
    let star = |item: &SelectItem| match item {
        SelectItem::Wildcard(_) => Some(Star::All),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            Some(Star::Of(word(name.0.last()?)?))
        }
        _ => None,
    };
    items.iter().filter_map(star).collect()
}

/// The relations of each query around an expression, the innermost last.
#[derive(Default)]
pub(super) struct Sources {
    around: Vec<Vec<Source>>,
    /// What the items of each query are called, which GROUP BY may mean.
    aliases: Vec<Vec<String>>,
    /// Queries that WITH names.
    named: HashMap<String, Vec<String>>,
}

impl Source {
    /// Whether two of its columns have one name, so that it does not tell them apart.
    fn has_doubled_names(&self) -> bool {
        let mut known = HashSet::with_capacity(self.columns.len());
        !self.columns.iter().all(|column| known.insert(column))
    }
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
        let alias = |item: &SelectItem| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
            _ => None,
        };
        self.aliases.push(select.projection.iter().filter_map(alias).collect());
        self.around.push(sources);
    }

    pub(super) fn leave(&mut self) {
        self.around.pop();
        self.aliases.pop();
    }

    fn sources(&self, select: &Select, relations: &dyn Relations) -> Vec<Source> {
        let mut all = Vec::new();
        for from in &select.from {
            let first = all.len();
            all.extend(self.source(&from.relation, relations));
            for join in &from.joins {
                let (is_left_outer, is_right_outer) = match &join.join_operator {
                    JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => (true, false),
                    JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (false, true),
                    JoinOperator::FullOuter(_) => (true, true),
                    _ => (false, false),
                };
                if is_right_outer {
                    all[first..].iter_mut().for_each(|source| source.may_be_missing = true);
                }
                let source = self.source(&join.relation, relations);
                all.extend(source.map(|source| Source { may_be_missing: is_left_outer, ..source }));
            }
        }
        all
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
                    let name = words.last()?.clone();
                    return Some(Source { name, columns, may_be_missing: false });
                }
                (alias, columns)
            }
            _ => return None,
        };
        let alias = alias.as_ref()?;
        let renamed = alias.columns.iter().map(|column| folded(&column.name));
        let mut own: Vec<String> = renamed.collect();
        own.extend(columns.into_iter().skip(own.len()));
        Some(Source { name: folded(&alias.name), columns: own, may_be_missing: false })
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
                            columns.extend(sources.into_iter().flat_map(|source| source.columns));
                        }
                        _ => return None,
                    }
                }
                Some(columns)
            }
            _ => None,
        }
    }

    /// The relation whose row a name stands for; none where the name is that of a column.
    fn relation(&self, name: &Ident) -> Option<&Source> {
        let wanted = folded(name);
        if self.aliases.last().is_some_and(|aliases| aliases.contains(&wanted)) {
            return None;
        }
        for sources in self.around.iter().rev() {
            if sources.iter().any(|source| source.columns.contains(&wanted)) {
                return None;
            }
            if let Some(source) = sources.iter().find(|source| source.name == wanted) {
                return Some(source);
            }
        }
        None
    }

    /// The row of a relation that a name stands for, as a record.
    pub(super) fn row(&self, name: &Ident) -> Option<Expr> {
        let source = self.relation(name)?;
        let function = if source.may_be_missing { RECORD_OF_JOINED } else { RECORD_OF };
        Some(call_of(function, named_columns(name, &source.columns)))
    }

    /// Whether a name stands for the row of a relation with two columns of one name.
    pub(super) fn is_row_of_doubled_names(&self, name: &Ident) -> bool {
        self.relation(name).is_some_and(Source::has_doubled_names)
    }

    /// The relation and the name of a column of the innermost query, as far as they are told.
    fn place_of(&self, column: &Expr) -> (Option<String>, String) {
        match column {
            Expr::Identifier(name) => {
                let name = folded(name);
                let mut sources = self.around.last().into_iter().flatten();
                let source = sources.find(|source| source.columns.contains(&name));
                (source.map(|source| source.name.clone()), name)
            }
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., relation, name] => (Some(folded(relation)), folded(name)),
                _ => (None, column.to_string()),
            },
            other => (None, other.to_string()),
        }
    }

    /// What tells a column of the innermost query from others, however it is written.
    pub(super) fn key_of(&self, column: &Expr) -> String {
        match self.place_of(column) {
            (Some(relation), name) => format!("{relation}.{name}"),
            (None, name) => name,
        }
    }

    /// Whether a star among the items has the column, too.
    pub(super) fn is_in_star(&self, column: &Expr, stars: &[Star]) -> bool {
        let (relation, _) = self.place_of(column);
        stars.iter().any(|star| match star {
            Star::All => true,
            Star::Of(own) => relation.as_ref() == Some(own),
        })
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
        if sources.iter().any(|source| source.columns.contains(&wanted)) {
            return;
        }
        let source = sources.iter().find(|source| source.name == wanted);
        let Some(source) = source.filter(|source| !source.has_doubled_names()) else { return };
        // As a record it may be NULL.
        let row = if source.may_be_missing { RECORD_OF_JOINED } else { row };
        let row = call_of(row, named_columns(name, &source.columns));
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

/// `f(t.*)` and `t.* = u.*` with the names alone, which stand for the same rows. What `row(t.*)` has are the columns.
pub(super) fn name_rows(query: &mut Query) {
    let name = |name: &ObjectName| match name.0.as_slice() {
        [part] => part.as_ident().cloned(),
        _ => None,
    };
    let _: ControlFlow<()> = visit_expressions_mut(query, |expression| {
        match expression {
            Expr::QualifiedWildcard(relation, _) => {
                if let Some(name) = name(relation) {
                    *expression = Expr::Identifier(name);
                }
            }
            Expr::Function(call) if !call.name.to_string().eq_ignore_ascii_case(ROW) => {
                let FunctionArguments::List(list) = &mut call.args else {
                    return ControlFlow::Continue(());
                };
                for given in &mut list.args {
                    if let FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(relation)) =
                        given
                        && let Some(name) = name(relation)
                    {
                        let row = FunctionArgExpr::Expr(Expr::Identifier(name));
                        *given = FunctionArg::Unnamed(row);
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    });
}

/// `(a, b)` as the call of a function, where it stands for a record.
pub(super) fn as_call(value: &mut Expr) {
    match value {
        Expr::Nested(inner) if matches!(**inner, Expr::Tuple(_)) => as_call(inner),
        Expr::Tuple(fields) => *value = call_of(ROW, std::mem::take(fields)),
        _ => {}
    }
}

/// `GROUP BY (a, b)`, which groups by both.
pub(super) fn group_by_fields(select: &mut Select) {
    let GroupByExpr::Expressions(groups, _) = &mut select.group_by else { return };
    if groups.iter().any(|group| matches!(group, Expr::Tuple(_))) {
        let each = std::mem::take(groups).into_iter().flat_map(|group| match group {
            Expr::Tuple(fields) => fields,
            other => vec![other],
        });
        *groups = each.collect();
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
        Relation::Cold(rows) => {
            ColdTable::columns(&**rows).into_iter().map(|(name, _)| name).collect()
        }
        Relation::Made(rows) => {
            rows.columns().into_iter().map(|(name, _)| name.to_owned()).collect()
        }
    }
}
