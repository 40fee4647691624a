//! What the names of a query mean, for those who keep it: which relations it reads, which of their columns it names,
//! and what `*` stands for.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::tokenizer::{Location, Span};

use crate::binder;
use crate::engine::QueryEngine;
use crate::error::Result;
use crate::relation::Relations;

/// A column that `*` stands for: what its relation is called, and the column; no relation where a join or a function
/// has it.
pub type StarColumn = (String, String);

/// See the module. Places are those in the text of the query.
#[derive(Clone, Debug, Default)]
pub struct ResolvedNames {
    /// By the place of a name in FROM: the columns of the relation that the query names, by position.
    relations: BTreeMap<Location, BTreeSet<usize>>,
    stars: BTreeMap<Location, Vec<StarColumn>>,
    /// Relations by their numbers in the statement.
    sources: BTreeMap<usize, (Location, usize)>,
}

impl ResolvedNames {
    /// The columns that are named of the relation whose name stands at a place; none if that is no relation that was
    /// looked for, but a query of WITH.
    #[must_use]
    pub fn relation(&self, place: Span) -> Option<&BTreeSet<usize>> {
        self.relations.get(&place.start)
    }

    /// The columns that the `*` at a place stands for; none if they are not told.
    #[must_use]
    pub fn star(&self, place: Span) -> Option<&[StarColumn]> {
        self.stars.get(&place.start).map(Vec::as_slice)
    }

    pub(crate) fn add_relation(&mut self, number: usize, place: Span, columns: usize) {
        self.relations.entry(place.start).or_default();
        self.sources.insert(number, (place.start, columns));
    }

    pub(crate) fn add_star(&mut self, place: Span, columns: Vec<StarColumn>) {
        self.stars.insert(place.start, columns);
    }

    pub(crate) fn use_column(&mut self, (number, column): (usize, usize)) {
        if let Some((place, _)) = self.sources.get(&number) {
            self.relations.entry(*place).or_default().insert(column);
        }
    }

    /// A row of the relation is used.
    pub(crate) fn use_all(&mut self, number: usize) {
        if let Some((place, columns)) = self.sources.get(&number) {
            self.relations.entry(*place).or_default().extend(0..*columns);
        }
    }
}

impl QueryEngine {
    /// What the names of a query mean.
    ///
    /// # Errors
    /// A name that means nothing.
    pub fn resolve(&self, query: &ast::Query, relations: &dyn Relations) -> Result<ResolvedNames> {
        binder::resolve(self, query, relations)
    }
}
