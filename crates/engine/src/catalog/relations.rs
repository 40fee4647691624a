//! All tables over their trees.

use std::ops::Deref;
use std::sync::Arc;

use super::{Catalog, DefinitionLocks};
use crate::constraint::Compiler;
use crate::tree::{Tree, Trees};
use crate::units::ObjectId;

/// See the module.
pub(crate) struct Relations {
    trees: Trees,
    pub(crate) catalog: Catalog,
    /// Whoever understands CHECK constraints.
    pub(crate) expression_compiler: Compiler,
}

impl Deref for Relations {
    type Target = Trees;

    #[inline]
    fn deref(&self) -> &Trees {
        &self.trees
    }
}

impl Relations {
    pub(crate) fn new(trees: Trees) -> Relations {
        let (mut catalog, expression_compiler) = (Catalog::default(), Compiler::default());
        catalog.locks = DefinitionLocks::over(&trees.resolver.row_locks);
        Relations { trees, catalog, expression_compiler }
    }

    /// The tree of an object, if it still has one.
    pub(crate) fn tree_of(&self, object: ObjectId) -> Option<Arc<Tree>> {
        self.catalog.by_object(object).map(|table| Arc::clone(&table.tree))
    }

    /// The trees of all tables.
    pub(crate) fn all_trees(&self) -> Vec<Arc<Tree>> {
        self.catalog.all().iter().map(|table| Arc::clone(&table.tree)).collect()
    }
}
