//! CHECK constraints: rows are looked at before they are written, by whoever understands the
//! expressions. The engine does not; it sees to it that no row goes by.
//!
//! Invariants
//! 1. A row of a table with checks is written only after [`RowCheck::check`] has let it pass. Without
//!    anybody who understands the expressions nothing is written.
//! 2. Rows are looked at outside of the engine: no latch is held, and no room in the log.

use std::sync::{Arc, OnceLock};

use onrush_types::{RowView, Schema, TableDefinition};
use parking_lot::RwLock;

use crate::engine::Engine;
use crate::error::{Error, Result};

/// Understands the expressions of CHECK constraints.
pub trait CheckCompiler: Send + Sync {
    /// Makes the checks of a definition into something that looks at its rows. Called once for each
    /// definition, when the first row is written.
    ///
    /// # Errors
    /// An expression that is not understood: [`Error::CheckFailed`].
    fn compile(&self, definition: &TableDefinition) -> Result<Box<dyn RowCheck>>;
}

/// The checks of one table's definition.
pub trait RowCheck: Send + Sync {
    /// Lets a row pass, or not.
    ///
    /// # Errors
    /// [`Error::CheckViolated`]; [`Error::CheckFailed`] for one that cannot be told of.
    fn check(&self, row: &RowView<'_>) -> Result<()>;
}

/// Who understands the expressions in an open database; nobody at first.
#[derive(Default)]
pub(crate) struct Compiler(RwLock<Option<Arc<dyn CheckCompiler>>>);

impl Compiler {
    pub(crate) fn set(&self, compiler: Arc<dyn CheckCompiler>) {
        *self.0.write() = Some(compiler);
    }
}

/// The checks of a table that has some.
pub(crate) struct TableChecks {
    /// Made for the first row that is written.
    compiled: OnceLock<Box<dyn RowCheck>>,
}

impl TableChecks {
    /// None for a table without checks, which costs nothing then.
    pub(crate) fn of(definition: &TableDefinition) -> Option<TableChecks> {
        (!definition.checks().is_empty()).then(|| TableChecks { compiled: OnceLock::new() })
    }

    /// Looks at a row that is about to be written, or is there.
    pub(crate) fn check(
        &self,
        engine: &Engine,
        schema: &Schema,
        key: &[u8],
        row: &[u8],
    ) -> Result<()> {
        let compiled = match self.compiled.get() {
            Some(compiled) => &**compiled,
            None => self.compile(engine, schema)?,
        };
        compiled.check(&schema.view(key, row)?)
    }

    #[cold]
    fn compile(&self, engine: &Engine, schema: &Schema) -> Result<&dyn RowCheck> {
        let compiler = engine.check_compiler.0.read().clone();
        let compiler =
            compiler.ok_or_else(|| Error::ChecksNotUnderstood { table: schema.name().into() })?;
        let compiled = compiler.compile(schema.definition())?;
        Ok(&**self.compiled.get_or_init(|| compiled))
    }
}
