//! What names mean at one place of a statement, and what is told where they mean nothing.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{Expr, Ident};
use datafusion::sql::sqlparser::tokenizer::Span;

use super::types::Type;
use crate::error::{QueryError, Result};
use crate::syntax::{Sides, folded};

/// Which column it is: the number of its relation in the statement, and its place there.
pub(super) type Identity = (usize, usize);

/// A column in sight.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) data_type: Type,
    /// What its relation is called.
    pub(super) relation: String,
    pub(super) identity: Identity,
    /// Of both sides of a FULL JOIN: the relation whose it is where this one has none.
    pub(super) other: Option<String>,
}

impl Column {
    /// The relations that have it; none where they have no name.
    fn sides(&self) -> Option<Sides> {
        let other = self.other.as_ref();
        if self.relation.is_empty() || other.is_some_and(String::is_empty) {
            return None;
        }
        let own = self.relation.clone();
        Some(other.map_or(Sides::One(own.clone()), |other| Sides::Both(own, other.clone())))
    }

    /// Refuses a column of both sides of a FULL JOIN where it cannot be written as one of them.
    pub(super) fn check_side(&self, span: Span) -> Result<()> {
        if self.other.is_none() {
            return Ok(());
        }
        let message =
            format!("the column \"{}\" of both sides of a FULL JOIN is not supported", self.name);
        let hint = "Name the columns of the sides, as in coalesce(a.x, b.x), and not *.";
        Err(QueryError::refused("0A000", message).at(span).hint(hint))
    }
}

/// An item of FROM.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) number: usize,
    /// What it is called in the statement.
    pub(super) name: String,
    /// What it is called outside of it, where that is something else.
    pub(super) table: Option<String>,
    pub(super) schema: Option<String>,
    /// None: they are not told.
    pub(super) columns: Option<Vec<Column>>,
    /// Where its primary key stands.
    pub(super) key: Vec<usize>,
}

/// Items of FROM together: what stands behind their names, and without one.
#[derive(Clone, Debug, Default)]
pub(super) struct Space {
    pub(super) sources: Vec<Source>,
    /// Those that `*` stands for.
    pub(super) columns: Vec<Column>,
    /// Some of the columns are not told.
    pub(super) is_open: bool,
}

impl Space {
    pub(super) fn of(source: Source) -> Space {
        let columns = source.columns.clone();
        let is_open = columns.is_none();
        Space { sources: vec![source], columns: columns.unwrap_or_default(), is_open }
    }

    /// Both beside each other.
    pub(super) fn beside(mut self, other: Space) -> Result<Space> {
        self.take_sources(&other)?;
        self.columns.extend(other.columns);
        self.is_open |= other.is_open;
        Ok(self)
    }

    /// With those of `before` that have other names: inside of parentheses a name may come again.
    pub(super) fn in_front_of(mut self, before: &Space) -> Space {
        let is_hidden = |name: &str| self.sources.iter().any(|own| own.name == name);
        let mut sources: Vec<Source> =
            before.sources.iter().filter(|source| !is_hidden(&source.name)).cloned().collect();
        let mut columns: Vec<Column> =
            before.columns.iter().filter(|column| !is_hidden(&column.relation)).cloned().collect();
        sources.append(&mut self.sources);
        columns.append(&mut self.columns);
        Space { sources, columns, is_open: self.is_open || before.is_open }
    }

    /// What `*` stands for where joins have merged columns; none where the planner tells it.
    pub(super) fn merged(&self) -> Option<Vec<(String, Sides)>> {
        let all = self.sources.iter().filter_map(|source| source.columns.as_ref());
        if self.is_open || all.map(Vec::len).sum::<usize>() == self.columns.len() {
            return None;
        }
        let shown = |column: &Column| Some((column.name.clone(), column.sides()?));
        self.columns.iter().map(shown).collect()
    }

    /// Takes what stands behind names, which have to differ.
    pub(super) fn take_sources(&mut self, other: &Space) -> Result<()> {
        for source in &other.sources {
            let is_same = |own: &Source| {
                own.name == source.name
                    && (own.table.is_some()
                        || source.table.is_some()
                        || own.schema == source.schema)
            };
            if self.sources.iter().any(is_same) {
                let message = format!("table name \"{}\" specified more than once", source.name);
                return Err(QueryError::refused("42712", message));
            }
        }
        self.sources.extend(other.sources.iter().cloned());
        Ok(())
    }

    /// The columns of this name.
    pub(super) fn named<'s>(&'s self, name: &str) -> impl Iterator<Item = &'s Column> {
        self.columns.iter().filter(move |column| column.name == name)
    }
}

/// What the rows of a query are grouped by.
#[derive(Debug, Default)]
pub(super) struct Grouping {
    pub(super) columns: HashSet<Identity>,
    /// Relations that are grouped by their key, and so have one row a group.
    pub(super) sources: HashSet<usize>,
    /// With their columns by number.
    pub(super) expressions: Vec<Expr>,
}

/// What is in sight of the expressions of a query.
#[derive(Debug, Default)]
pub(super) struct Scope<'o> {
    pub(super) space: Space,
    /// Relations of the statement that cannot be named from here.
    pub(super) hidden: Vec<Source>,
    pub(super) outer: Option<&'o Scope<'o>>,
    /// Once its columns are held to it.
    pub(super) grouping: RefCell<Option<Grouping>>,
    /// Whether an aggregate is around the expression that is looked at.
    pub(super) in_aggregate: Cell<bool>,
    pub(super) in_window: Cell<bool>,
    /// How many scopes there are around it.
    depth: usize,
    /// The nearest scope, by its depth, that an aggregate which stands here has a name of.
    pub(super) named: Cell<Option<usize>>,
    /// Whether there has been an aggregate.
    pub(super) aggregates: Cell<bool>,
}

/// What a name stands for.
pub(super) enum Found<'s> {
    Column(&'s Column),
    /// A row, or what is not told.
    Other,
}

impl<'o> Scope<'o> {
    pub(super) fn new(space: Space, outer: Option<&'o Scope<'o>>) -> Scope<'o> {
        let depth = outer.map_or(0, |outer| outer.depth + 1);
        Scope { space, outer, depth, ..Scope::default() }
    }

    /// This one and those around it.
    fn around(&self) -> impl Iterator<Item = &Scope<'o>> {
        std::iter::successors(Some(self), |scope| scope.outer)
    }

    /// Whether an aggregate that has only names of the scope of this depth is one of a query outside.
    pub(super) fn is_outside(&self, named: Option<usize>) -> bool {
        named.is_some_and(|depth| depth < self.depth)
    }

    /// Relations that can be named.
    pub(super) fn sources_in_sight(&self) -> impl Iterator<Item = &Source> {
        self.around().flat_map(|scope| &scope.space.sources)
    }

    /// `column`.
    pub(super) fn column(&self, name: &Ident) -> Result<Found<'_>> {
        let (level, found) = self.find(name)?;
        self.checked(level, found, name.span)
    }

    /// `relation.column`, `schema.relation.column`.
    pub(super) fn qualified(&self, parts: &[Ident]) -> Result<Found<'_>> {
        let (level, found) = self.find_qualified(parts)?;
        self.checked(level, found, parts.first().map_or_else(Span::empty, |first| first.span))
    }

    fn checked<'s>(&'s self, level: usize, found: Found<'s>, span: Span) -> Result<Found<'s>> {
        if let Some(depth) = self.depth.checked_sub(level) {
            // What is of a query inside of an aggregate says nothing of where the aggregate belongs.
            for scope in self.around().filter(|scope| scope.depth >= depth) {
                scope.named.set(scope.named.get().max(Some(depth)));
            }
        }
        if let (Found::Column(column), Some(scope)) = (&found, self.around().nth(level)) {
            scope.check_grouped(column, level, span)?;
        }
        Ok(found)
    }

    /// The columns of the relation of this name, nearest first; none where they are not told.
    pub(super) fn row(&self, name: &str) -> Option<&[Column]> {
        let mut sources = self.around().flat_map(|scope| &scope.space.sources);
        sources.find(|source| source.name == name)?.columns.as_deref()
    }

    /// As [`column`](Self::column), grouped by or not, and in how many scopes outside of this one it is.
    pub(super) fn find(&self, name: &Ident) -> Result<(usize, Found<'_>)> {
        let wanted = folded(name);
        for (level, scope) in self.around().enumerate() {
            let mut found = scope.space.named(&wanted);
            match (found.next(), found.next()) {
                (Some(column), None) => return Ok((level, Found::Column(column))),
                (Some(_), Some(_)) => return Err(ambiguous(&wanted, name.span)),
                (None, _) if scope.space.is_open => return Ok((level, Found::Other)),
                (None, _) => {}
            }
        }
        let is_row =
            |scope: &Scope<'_>| scope.space.sources.iter().any(|source| source.name == wanted);
        if self.around().any(is_row) {
            return Ok((0, Found::Other));
        }
        let message = format!("column \"{wanted}\" does not exist");
        Err(QueryError::refused("42703", message).at(name.span))
    }

    /// The relations of a column that JOIN ... USING has merged, where the planner would take its name alone for
    /// another one: that of the left side, or one further outside; and whether there is one further outside.
    pub(super) fn side_of_merged(&self, name: &Ident) -> Option<(Sides, bool)> {
        let wanted = folded(name);
        let (level, Found::Column(column)) = self.find(name).ok()? else { return None };
        let has_it = |source: &&Source| {
            let columns = source.columns.as_ref();
            columns.is_some_and(|columns| columns.iter().any(|own| own.name == wanted))
        };
        let scope = self.around().nth(level)?;
        let mut sources = scope.space.sources.iter().filter(has_it);
        let is_of_left = sources.next().is_some_and(|left| left.name == column.relation);
        let is_merged = sources.next().is_some();
        let mut outside = self.around().skip(level + 1);
        let is_outside = outside
            .any(|scope| scope.space.is_open || scope.space.sources.iter().any(|own| has_it(&own)));
        let is_other = is_outside || !is_of_left || column.other.is_some();
        let sides = if is_merged && is_other { column.sides() } else { None };
        sides.map(|sides| (sides, is_outside))
    }

    /// As [`qualified`](Self::qualified), in the same way.
    pub(super) fn find_qualified(&self, parts: &[Ident]) -> Result<(usize, Found<'_>)> {
        let [front @ .., relation, name] = parts else { return Ok((0, Found::Other)) };
        let span = parts.first().map_or_else(Span::empty, |first| first.span);
        let (level, source) = self.source(front.last(), relation, span)?;
        let Some(columns) = &source.columns else { return Ok((level, Found::Other)) };
        let wanted = folded(name);
        let mut found = columns.iter().filter(|column| column.name == wanted);
        match (found.next(), found.next()) {
            (Some(column), None) => Ok((level, Found::Column(column))),
            (Some(_), Some(_)) => Err(ambiguous(&wanted, span)),
            (None, _) => {
                let message = format!("column {}.{wanted} does not exist", source.name);
                Err(QueryError::refused("42703", message).at(span))
            }
        }
    }

    /// The relation of this name, and in how many scopes outside of this one it is.
    pub(super) fn source(
        &self,
        schema: Option<&Ident>,
        relation: &Ident,
        span: Span,
    ) -> Result<(usize, &Source)> {
        let wanted = folded(relation);
        let schema = schema.map(folded);
        for (level, scope) in self.around().enumerate() {
            let is_wanted = |source: &&Source| {
                source.name == wanted
                    && schema.as_ref().is_none_or(|schema| {
                        source.table.is_none() && source.schema.as_ref() == Some(schema)
                    })
            };
            if let Some(source) = scope.space.sources.iter().find(is_wanted) {
                return Ok((level, source));
            }
        }
        Err(self.no_source(&wanted, schema.is_some(), span))
    }

    fn no_source(&self, wanted: &str, has_schema: bool, span: Span) -> QueryError {
        let invalid = |hint: String| {
            let message = format!("invalid reference to FROM-clause entry for table \"{wanted}\"");
            QueryError::refused("42P01", message).at(span).hint(hint)
        };
        let known =
            || self.around().flat_map(|scope| scope.space.sources.iter().chain(&scope.hidden));
        let is_alias_of = |source: &&Source| source.table.as_deref() == Some(wanted);
        if let Some(source) = known().find(is_alias_of) {
            let alias = &source.name;
            return invalid(format!("Perhaps you meant to reference the table alias \"{alias}\"."));
        }
        if !has_schema && known().any(|source| source.name == wanted) {
            return invalid(format!(
                "There is an entry for table \"{wanted}\", but it cannot be referenced from this part of the query."
            ));
        }
        let message = format!("missing FROM-clause entry for table \"{wanted}\"");
        QueryError::refused("42P01", message).at(span)
    }

    /// Of rows that are grouped a column must be the same for all of a group. `level` says in how many
    /// queries the expression stands inside of this scope's.
    pub(super) fn check_grouped(&self, column: &Column, level: usize, span: Span) -> Result<()> {
        let grouping = self.grouping.borrow();
        let Some(grouping) = grouping.as_ref().filter(|_| !self.in_aggregate.get()) else {
            return Ok(());
        };
        let (source, _) = column.identity;
        if grouping.columns.contains(&column.identity) || grouping.sources.contains(&source) {
            return Ok(());
        }
        let name = match column.relation.is_empty() {
            true => column.name.clone(),
            false => format!("{}.{}", column.relation, column.name),
        };
        let message = match level {
            0 => format!(
                "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
            ),
            _ => format!("subquery uses ungrouped column \"{name}\" from outer query"),
        };
        Err(QueryError::refused("42803", message).at(span))
    }
}

fn ambiguous(name: &str, span: Span) -> QueryError {
    QueryError::refused("42702", format!("column reference \"{name}\" is ambiguous")).at(span)
}
