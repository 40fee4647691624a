//! Expressions that tables keep: CHECK constraints, which rows are looked at by before they are
//! written, and defaults that are computed for each row. The engine does not understand them; it sees to
//! it that whoever does is asked.
//!
//! Invariants
//! 1. A row of a table with checks is written only after [`RowCheck::check`] has let it pass. Without
//!    anybody who understands the expressions nothing is written.
//! 2. Rows are looked at outside of the engine: no latch is held, and no room in the log.

use std::sync::{Arc, OnceLock};

use onrush_types::{DefaultValue, RowView, Schema, TableDefinition, Value};
use parking_lot::RwLock;

use crate::engine::Engine;
use crate::error::{Error, Result};

/// Understands the expressions of CHECK constraints and of defaults.
pub trait ExpressionCompiler: Send + Sync {
    /// Makes the checks of a definition into something that looks at its rows. Called once for each
    /// definition, when the first row is written.
    ///
    /// # Errors
    /// An expression that is not understood: [`Error::CheckFailed`].
    fn compile_checks(&self, definition: &TableDefinition) -> Result<Box<dyn RowCheck>>;

    /// Makes the default of a column, which is an expression, into something that gives its values.
    /// Called once for each definition, when the first value is wanted.
    ///
    /// # Errors
    /// An expression that is not understood: [`Error::DefaultNotUnderstood`] where none are, as it is
    /// unless this is said otherwise.
    fn compile_default(
        &self,
        definition: &TableDefinition,
        column: usize,
    ) -> Result<Box<dyn RowDefault>> {
        Err(not_understood(definition, column))
    }
}

/// A default that is computed for each row.
pub trait RowDefault: Send + Sync {
    /// The next value, of the column's type, for a row of the moment `now_micros`: microseconds since
    /// 1970-01-01 00:00:00 UTC, the same for all columns of the row.
    ///
    /// # Errors
    /// [`Error::CheckFailed`] for one that cannot be computed.
    fn value(&self, now_micros: i64) -> Result<Value<'static>>;
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
pub(crate) struct Compiler(RwLock<Option<Arc<dyn ExpressionCompiler>>>);

impl Compiler {
    pub(crate) fn set(&self, compiler: Arc<dyn ExpressionCompiler>) {
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
        let compiler = engine.expression_compiler.0.read().clone();
        let compiler =
            compiler.ok_or_else(|| Error::ChecksNotUnderstood { table: schema.name().into() })?;
        let compiled = compiler.compile_checks(schema.definition())?;
        Ok(&**self.compiled.get_or_init(|| compiled))
    }
}

fn not_understood(definition: &TableDefinition, column: usize) -> Error {
    Error::DefaultNotUnderstood {
        table: definition.name().to_owned(),
        column: definition.columns()[column].name.clone(),
    }
}

/// The defaults of a table that are expressions.
pub(crate) struct TableDefaults {
    /// By column. Made for the first row that needs them.
    compiled: Vec<(usize, OnceLock<Box<dyn RowDefault>>)>,
}

impl TableDefaults {
    pub(crate) fn of(definition: &TableDefinition) -> TableDefaults {
        let columns = definition.columns().iter().enumerate();
        let is_expression = |default: &DefaultValue| matches!(default, DefaultValue::Expression(_));
        let expressions = columns.filter(|(_, column)| is_expression(&column.default));
        TableDefaults { compiled: expressions.map(|(at, _)| (at, OnceLock::new())).collect() }
    }

    /// The next value of a column's default. Called outside: it may take its time.
    pub(crate) fn value(
        &self,
        engine: &Engine,
        definition: &TableDefinition,
        column: usize,
        now_micros: i64,
    ) -> Result<Value<'static>> {
        let own = self.compiled.iter().find(|(own, _)| *own == column);
        let Some((_, compiled)) = own else { return Err(not_understood(definition, column)) };
        if let Some(default) = compiled.get() {
            return default.value(now_micros);
        }
        let compiler = engine.expression_compiler.0.read().clone();
        let compiler = compiler.ok_or_else(|| not_understood(definition, column))?;
        let default = compiler.compile_default(definition, column)?;
        compiled.get_or_init(|| default).value(now_micros)
    }
}
