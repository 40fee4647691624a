//! FROM: what relations there are, and which columns their joins have.

use datafusion::sql::sqlparser::ast::{
    FunctionArg, FunctionArgExpr, Ident, Join, JoinConstraint, JoinOperator, ObjectName,
    ObjectNamePart, TableAlias, TableFactor, TableWithJoins,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use super::expression::Place;
use super::scope::{Column, Scope, Source, Space};
use super::types::Type;
use super::{Binder, Columns};
use crate::cold::ColdTable;
use crate::error::{QueryError, Result};
use crate::query::QueryColumn;
use crate::relation::Relation;
use crate::syntax::folded;

impl Binder<'_> {
    /// All items of a FROM.
    pub(super) fn from(
        &mut self,
        items: &[TableWithJoins],
        outer: Option<&Scope<'_>>,
    ) -> Result<Space> {
        let mut all = Space::default();
        for item in items {
            let joined = self.joined(item, &all, outer)?;
            all = all.beside(joined)?;
        }
        Ok(all)
    }

    /// One item with what is joined to it; `before` are those in front of it.
    fn joined(
        &mut self,
        item: &TableWithJoins,
        before: &Space,
        outer: Option<&Scope<'_>>,
    ) -> Result<Space> {
        let mut left = self.relation(&item.relation, before, outer)?;
        for Join { relation, join_operator, .. } in &item.joins {
            let sight = left.clone().in_front_of(before);
            let right = self.relation(relation, &sight, outer)?;
            left = self.join(left, right, join_operator, before, outer)?;
        }
        Ok(left)
    }

    fn join(
        &mut self,
        left: Space,
        right: Space,
        operator: &JoinOperator,
        before: &Space,
        outer: Option<&Scope<'_>>,
    ) -> Result<Space> {
        let (JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)) = operator
        else {
            return left.beside(right);
        };
        let kept = match operator {
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => Kept::Right,
            JoinOperator::FullOuter(_) => Kept::Both,
            _ => Kept::Left,
        };
        match constraint {
            JoinConstraint::None => left.beside(right),
            JoinConstraint::On(condition) => {
                let space = left.beside(right)?;
                let mut scope = Scope::new(space, outer);
                scope.hidden.clone_from(&before.sources);
                self.condition(condition, &scope, Place::JoinCondition, "JOIN/ON")?;
                Ok(scope.space)
            }
            JoinConstraint::Using(names) => {
                let name = |name: &ObjectName| name.0.last().and_then(word);
                let names: Vec<String> = names.iter().filter_map(name).collect();
                self.use_common(&left, &right, &names);
                merged(left, right, &names, kept)
            }
            JoinConstraint::Natural => {
                let is_common = |column: &&Column| right.named(&column.name).next().is_some();
                let names: Vec<String> = left
                    .columns
                    .iter()
                    .filter(is_common)
                    .map(|column| column.name.clone())
                    .collect();
                self.use_common(&left, &right, &names);
                merged(left, right, &names, kept)
            }
        }
    }

    /// Columns of these names are compared.
    fn use_common(&mut self, left: &Space, right: &Space, names: &[String]) {
        for name in names {
            for column in left.named(name).chain(right.named(name)) {
                self.use_column(column);
            }
        }
    }

    fn relation(
        &mut self,
        relation: &TableFactor,
        before: &Space,
        outer: Option<&Scope<'_>>,
    ) -> Result<Space> {
        let sideways = || Scope::new(before.clone(), outer);
        match relation {
            // Is refused.
            TableFactor::Table { with_ordinality: true, .. }
            | TableFactor::Function { with_ordinality: true, .. }
            | TableFactor::UNNEST { with_ordinality: true, .. } => {
                Ok(Space { is_open: true, ..Space::default() })
            }
            TableFactor::Table { name, alias, args: None, .. } => self.table(name, alias.as_ref()),
            TableFactor::Table { name, alias, args: Some(given), .. } => {
                self.rows_of_call(name, &given.args, alias.as_ref(), &sideways())
            }
            TableFactor::Function { name, args, alias, .. } => {
                self.rows_of_call(name, args, alias.as_ref(), &sideways())
            }
            TableFactor::UNNEST { alias, array_exprs, .. } => {
                let scope = sideways();
                for array in array_exprs {
                    self.expression(array, &scope, Place::FunctionInFrom)?;
                }
                let columns = (array_exprs.len() == 1)
                    .then(|| vec![(named_as(alias.as_ref(), "unnest"), Type::Untold)]);
                self.source(alias.as_ref(), "unnest", columns)
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let mut scope = sideways();
                if !*lateral {
                    scope.hidden = std::mem::take(&mut scope.space).sources;
                }
                let columns = self.query(subquery, Some(&scope))?;
                self.source(alias.as_ref(), "", columns)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let space = self.joined(table_with_joins, before, outer)?;
                let Some(alias) = alias else { return Ok(space) };
                for column in &space.columns {
                    column.check_side(alias.name.span)?;
                }
                let shown = |column: &Column| (column.name.clone(), column.data_type);
                let columns = (!space.is_open).then(|| space.columns.iter().map(shown).collect());
                self.source(Some(alias), "", columns)
            }
            _ => Ok(Space { is_open: true, ..Space::default() }),
        }
    }

    /// A table, a view of the system or a query of WITH.
    fn table(&mut self, name: &ObjectName, alias: Option<&TableAlias>) -> Result<Space> {
        let words: Option<Vec<String>> = name.0.iter().map(word).collect();
        let (schema, table) = match words.as_deref() {
            Some([table]) => {
                let found = self.named.iter().rev().find(|(name, _)| name == table);
                if let Some((_, columns)) = found {
                    let columns = columns.clone();
                    return self.source(alias, table, columns);
                }
                (None, table.clone())
            }
            Some([schema, table]) => (Some(schema.clone()), table.clone()),
            _ => return Ok(Space { is_open: true, ..Space::default() }),
        };
        let span = name.0.first().map_or_else(Span::empty, span_of);
        let relation =
            self.relations.find(schema.as_deref(), &table).map_err(|error| error.at(span))?;
        let (columns, key): (Vec<(String, Type)>, Vec<usize>) = match relation {
            Relation::Table(table) => {
                let definition = table.definition();
                let shown: Vec<usize> = definition.shown_columns().collect();
                let column = |at: &usize| {
                    let column = &definition.columns()[*at];
                    (column.name.clone(), Type::Known(column.data_type.into()))
                };
                let place = |key: &usize| shown.iter().position(|at| at == key);
                let key: Option<Vec<usize>> = definition.primary_key().iter().map(place).collect();
                (shown.iter().map(column).collect(), key.unwrap_or_default())
            }
            Relation::TableWithRowIds(table) => {
                let columns = table.definition().columns().iter();
                let column = columns
                    .map(|column| (column.name.clone(), Type::Known(column.data_type.into())));
                (column.collect(), Vec::new())
            }
            Relation::Columns(table, positions) => {
                let column = |at: &usize| {
                    let column = &table.definition().columns()[*at];
                    (column.name.clone(), Type::Known(column.data_type.into()))
                };
                let place = |key: &usize| positions.iter().position(|at| at == key);
                let key = table.definition().primary_key().iter().map(place);
                let key: Option<Vec<usize>> = key.collect();
                (positions.iter().map(column).collect(), key.unwrap_or_default())
            }
            Relation::View(view) => {
                let column =
                    |column: &QueryColumn| (column.name.clone(), Type::Known(column.column_type));
                (view.columns().iter().map(column).collect(), Vec::new())
            }
            Relation::Cold(rows) => {
                let columns = ColdTable::columns(&*rows).into_iter();
                (columns.map(|(name, own)| (name, Type::Known(own))).collect(), Vec::new())
            }
            Relation::Made(rows) => {
                let columns = rows.columns().into_iter();
                let column = columns.map(|(name, own)| (name.to_owned(), Type::Known(own)));
                (column.collect(), Vec::new())
            }
        };
        let count = columns.len();
        let mut space = self.source(alias, &table, Some(columns))?;
        for source in &mut space.sources {
            if let Some(names) = &mut self.resolved {
                names.add_relation(source.number, span, count);
            }
            source.key.clone_from(&key);
            source.table = alias.is_some().then(|| table.clone());
            source.schema = Some(schema.clone().unwrap_or_else(|| "public".to_owned()));
        }
        Ok(space)
    }

    /// A function that makes rows.
    fn rows_of_call(
        &mut self,
        name: &ObjectName,
        given: &[FunctionArg],
        alias: Option<&TableAlias>,
        scope: &Scope<'_>,
    ) -> Result<Space> {
        let mut arguments = Vec::with_capacity(given.len());
        for given in given {
            let (FunctionArg::Unnamed(given)
            | FunctionArg::Named { arg: given, .. }
            | FunctionArg::ExprNamed { arg: given, .. }) = given;
            if let FunctionArgExpr::Expr(given) = given {
                arguments.push(self.expression(given, scope, Place::FunctionInFrom)?);
            }
        }
        let function = super::calls::function_name(name);
        let is_known = super::calls::is_of_rows(&function)
            || self.engine.state.table_functions().contains_key(&function)
            || self.relations.is_always_empty(None, &function);
        if !is_known {
            return Err(super::calls::unknown(name, &arguments));
        }
        let expressions = given.iter().filter_map(|given| match given {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(given)) => Some(given),
            _ => None,
        });
        let expressions: Vec<_> = expressions.collect();
        self.type_constants(name, &function, &expressions, &arguments)?;
        let is_one = match function.as_str() {
            "unnest" => given.len() == 1,
            other => super::calls::makes_rows(other) && given.len() < 4,
        };
        let columns = is_one.then(|| vec![(named_as(alias, &function), Type::Untold)]);
        self.source(alias, &function, columns)
    }

    /// A relation, called by its alias if it has one. What is not told of it by itself may be told by the alias.
    fn source(
        &mut self,
        alias: Option<&TableAlias>,
        name: &str,
        columns: Columns,
    ) -> Result<Space> {
        let number = self.sources;
        self.sources += 1;
        let name = alias.map_or_else(|| name.to_owned(), |alias| folded(&alias.name));
        let renamed: Vec<&Ident> =
            alias.into_iter().flat_map(|alias| &alias.columns).map(|column| &column.name).collect();
        let columns = match columns {
            Some(mut columns) => {
                let (there, given) = (columns.len(), renamed.len());
                if given > there {
                    let message = format!(
                        "table \"{name}\" has {there} columns available but {given} columns specified"
                    );
                    return Err(QueryError::refused("42P10", message));
                }
                for (column, renamed) in columns.iter_mut().zip(renamed) {
                    column.0 = folded(renamed);
                }
                Some(columns)
            }
            None => None,
        };
        let column = |(at, (column, data_type)): (usize, (String, Type))| Column {
            name: column,
            data_type,
            relation: name.clone(),
            identity: (number, at),
            other: None,
        };
        let columns = columns.map(|columns| columns.into_iter().enumerate().map(column).collect());
        let source = Source { number, name, table: None, schema: None, columns, key: Vec::new() };
        Ok(Space::of(source))
    }
}

/// Whose columns of USING are those of the join: those of the side that every row has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Left,
    Right,
    /// No side has all rows.
    Both,
}

/// Both with the columns of these names once, and first.
fn merged(left: Space, right: Space, names: &[String], kept: Kept) -> Result<Space> {
    let mut common = Vec::with_capacity(names.len());
    for name in names {
        let mut sides = Vec::with_capacity(2);
        for (side, space) in [("left", &left), ("right", &right)] {
            let mut found = space.named(name);
            match (found.next(), found.next()) {
                (Some(column), None) => {
                    column.check_side(Span::empty())?;
                    sides.push(column.clone());
                }
                (None, _) if space.is_open => {}
                (None, _) => {
                    let message = format!(
                        "column \"{name}\" specified in USING clause does not exist in {side} table"
                    );
                    return Err(QueryError::refused("42703", message));
                }
                (Some(_), Some(_)) => {
                    let message = format!(
                        "common column name \"{name}\" appears more than once in {side} table"
                    );
                    return Err(QueryError::refused("42702", message));
                }
            }
        }
        common.extend(match (kept, sides.as_slice()) {
            (Kept::Both, [left, right]) => {
                Some(Column { other: Some(right.relation.clone()), ..left.clone() })
            }
            (Kept::Right, _) => sides.pop(),
            _ => sides.into_iter().next(),
        });
    }
    let is_other = |column: &Column| !names.contains(&column.name);
    let mut joined = Space { is_open: left.is_open || right.is_open, ..Space::default() };
    joined.take_sources(&left)?;
    joined.take_sources(&right)?;
    joined.columns = common;
    let rest = left.columns.into_iter().chain(right.columns);
    joined.columns.extend(rest.filter(is_other));
    Ok(joined)
}

/// What the only column of a function is called.
fn named_as(alias: Option<&TableAlias>, function: &str) -> String {
    alias.map_or_else(|| function.to_owned(), |alias| folded(&alias.name))
}

fn word(part: &ObjectNamePart) -> Option<String> {
    match part {
        ObjectNamePart::Identifier(name) => Some(folded(name)),
        ObjectNamePart::Function(_) => None,
    }
}

pub(super) fn span_of(part: &ObjectNamePart) -> Span {
    match part {
        ObjectNamePart::Identifier(name) => name.span,
        ObjectNamePart::Function(_) => Span::empty(),
    }
}
