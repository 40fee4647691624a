//! Expressions that tables keep: CHECK constraints, which rows are looked at by before they are written, defaults that
//! are computed for each row, and columns that are computed of others. Those in the form that the engine understands
//! are evaluated here; for any other whoever understands it is asked.
//!
//! Invariants
//! 1. A row of a table with checks is written only after all of them have let it pass. Where one is not in
//!    the form and nobody is there who understands it, nothing is written.
//! 2. Rows are looked at outside of the engine: no latch is held, and no log space.
//!    But for rows that are known to meet them, of whoever copies a table with its definition.
//! 3. Of several conditions that a row violates a domain's comes first, and then the first check by name, as in
//!    PostgreSQL.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use onrush_types::expression::{EvaluationError, PreparedDefault, PreparedExpression};
use onrush_types::{
    CheckConstraint, ComputedDefault, DefaultValue, DomainRule, EncodedRow, RowView, Schema,
    TableDefinition, TypeError, Value,
};
use parking_lot::RwLock;

use crate::error::{DomainViolation, Error, Result};

/// Understands expressions that are not in the form which the engine evaluates.
pub trait ExpressionCompiler: Send + Sync {
    /// Makes a check of a definition into something that looks at its rows. Called once for each
    /// definition, when the first row is written.
    ///
    /// # Errors
    /// An expression that is not understood: [`Error::CheckFailed`].
    fn compile_check(
        &self,
        definition: &TableDefinition,
        check: &CheckConstraint,
    ) -> Result<Box<dyn RowCheck>>;

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

/// One check of a table's definition.
pub trait RowCheck: Send + Sync {
    /// Whether a row meets it: whether it is not false.
    ///
    /// # Errors
    /// [`Error::CheckFailed`] for one that cannot be told of.
    fn is_met(&self, row: &RowView<'_>) -> Result<bool>;
}

impl RowDefault for PreparedDefault {
    fn value(&self, now_micros: i64) -> Result<Value<'static>> {
        PreparedDefault::value(self, now_micros).map_err(failed)
    }
}

#[cold]
pub(crate) fn failed(error: EvaluationError) -> Error {
    match error {
        EvaluationError::Type(error) => error.into(),
        other => Error::CheckFailed(Arc::new(other)),
    }
}

/// Who understands the expressions in an open database; nobody at first.
#[derive(Default)]
pub(crate) struct Compiler {
    compiler: RwLock<Option<Arc<dyn ExpressionCompiler>>>,
    /// Whether rows are known to meet all conditions.
    asks_no_checks: AtomicBool,
}

impl Compiler {
    pub(crate) fn set(&self, compiler: Arc<dyn ExpressionCompiler>) {
        *self.compiler.write() = Some(compiler);
    }

    pub(crate) fn ask_no_checks(&self) {
        self.asks_no_checks.store(true, Relaxed);
    }

    fn get(&self) -> Option<Arc<dyn ExpressionCompiler>> {
        self.compiler.read().clone()
    }
}

/// A check that is ready to be asked.
enum Ready {
    InForm(PreparedExpression),
    Compiled(Box<dyn RowCheck>),
    /// The column at this position is not NULL.
    NotNull(usize),
}

/// What a row is told of that does not meet a condition.
enum Told {
    /// The check of this name.
    Check(Box<str>),
    /// The rule of a domain for a column.
    Rule(Box<DomainRule>),
}

/// The checks of a table that has some, and what the domains of its columns have of rules.
pub(crate) struct TableChecks {
    checks: Vec<CheckConstraint>,
    rules: Vec<DomainRule>,
    /// In the order in which they are asked. Made for the first row that is written.
    ready: OnceLock<Vec<(Told, Ready)>>,
}

impl TableChecks {
    /// None for a table without checks, which costs nothing then.
    pub(crate) fn of(definition: &TableDefinition) -> Option<TableChecks> {
        TableChecks::some(definition.checks().to_vec(), definition.rules().to_vec())
    }

    /// Those that rows of a table must meet which is to be `definition` and was `old`; none if it has them all.
    pub(crate) fn new_in(
        definition: &TableDefinition,
        old: &TableDefinition,
    ) -> Option<TableChecks> {
        let is_new = |check: &&CheckConstraint| check.is_validated && !old.checks().contains(check);
        let checks = definition.checks().iter().filter(is_new).cloned().collect();
        let was_there = |rule: &DomainRule| {
            old.rules().iter().any(|other| other.is_validated && other.has_condition_of(rule))
        };
        // In a column that is new nothing was there before the condition.
        let is_asked =
            |rule: &DomainRule| rule.is_validated || old.column_with_number(rule.column).is_none();
        let is_new = |rule: &&DomainRule| is_asked(rule) && !was_there(rule);
        TableChecks::some(checks, definition.rules().iter().filter(is_new).cloned().collect())
    }

    fn some(checks: Vec<CheckConstraint>, rules: Vec<DomainRule>) -> Option<TableChecks> {
        let has_some = !checks.is_empty() || !rules.is_empty();
        has_some.then(|| TableChecks { checks, rules, ready: OnceLock::new() })
    }

    /// Looks at a row that is about to be written, or is there.
    pub(crate) fn check(
        &self,
        compiler: &Compiler,
        schema: &Schema,
        key: &[u8],
        row: &[u8],
    ) -> Result<()> {
        let ready = match self.ready.get() {
            Some(ready) => ready,
            None => self.prepare(compiler, schema)?,
        };
        let row = schema.view(key, row)?;
        for (told, check) in ready {
            let is_met = match check {
                Ready::InForm(condition) => condition.is_met(&row).map_err(failed)?,
                Ready::Compiled(check) => check.is_met(&row)?,
                Ready::NotNull(column) => !row.column(*column)?.is_null(),
            };
            if !is_met {
                return Err(told.violated(schema));
            }
        }
        Ok(())
    }

    #[cold]
    fn prepare(&self, compiler: &Compiler, schema: &Schema) -> Result<&Vec<(Told, Ready)>> {
        if compiler.asks_no_checks.load(Relaxed) {
            return Ok(self.ready.get_or_init(Vec::new));
        }
        let definition = schema.definition();
        let made = |check: &CheckConstraint| {
            Ok::<_, Error>(match &check.form {
                Some(form) => Ready::InForm(PreparedExpression::new(definition, form)?),
                None => Ready::Compiled(compiled(compiler, definition, check)?),
            })
        };
        let mut ready = Vec::with_capacity(self.rules.len() + self.checks.len());
        for rule in &self.rules {
            let made = match &rule.check {
                Some(check) => made(check)?,
                None => Ready::NotNull(position(definition, rule)?),
            };
            ready.push((Told::Rule(Box::new(rule.clone())), made));
        }
        let mut checks: Vec<&CheckConstraint> = self.checks.iter().collect();
        checks.sort_by(|one, other| one.name.cmp(&other.name));
        for check in checks {
            ready.push((Told::Check(Box::from(check.name.as_str())), made(check)?));
        }
        Ok(self.ready.get_or_init(|| ready))
    }
}

impl Told {
    #[cold]
    fn violated(&self, schema: &Schema) -> Error {
        let (definition, table) = (schema.definition(), schema.name().to_owned());
        let rule = match self {
            Told::Check(constraint) => {
                return Error::CheckViolated { table, constraint: constraint.to_string() };
            }
            Told::Rule(rule) => rule,
        };
        let column = match position(definition, rule) {
            Ok(at) => &definition.columns()[at],
            Err(error) => return error,
        };
        let domain = column.domain.as_ref().map_or_else(String::new, |domain| domain.name.clone());
        let constraint = rule.check.as_ref().map(|check| check.name.clone());
        let column = column.name.clone();
        Error::DomainViolated(Box::new(DomainViolation { table, column, domain, constraint }))
    }
}

/// Where the column of a rule stands.
fn position(definition: &TableDefinition, rule: &DomainRule) -> Result<usize> {
    let missing = || Error::Internal(format!("a rule of {} has no column", definition.name()));
    definition.column_with_number(rule.column).ok_or_else(missing)
}

fn compiled(
    compiler: &Compiler,
    definition: &TableDefinition,
    check: &CheckConstraint,
) -> Result<Box<dyn RowCheck>> {
    let compiler = compiler.get().ok_or_else(|| Error::ChecksNotUnderstood {
        table: definition.name().to_owned(),
        constraint: check.name.clone(),
    })?;
    compiler.compile_check(definition, check)
}

fn not_understood(definition: &TableDefinition, column: usize) -> Error {
    Error::DefaultNotUnderstood {
        table: definition.name().to_owned(),
        column: definition.columns()[column].name.clone(),
    }
}

/// The columns of a table that are computed of others.
pub(crate) struct GeneratedColumns {
    /// With their positions. Made for the first row that is written.
    ready: OnceLock<Vec<(usize, PreparedExpression)>>,
}

impl GeneratedColumns {
    /// None for a table without such columns, which costs nothing then.
    pub(crate) fn of(definition: &TableDefinition) -> Option<GeneratedColumns> {
        let has_some = definition.generated_columns().next().is_some();
        has_some.then(|| GeneratedColumns { ready: OnceLock::new() })
    }

    /// Computes them in a row that has all other columns. What `is_given` must be what it is computed to be.
    pub(crate) fn complete(
        &self,
        schema: &Schema,
        encoded: &mut EncodedRow,
        is_given: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let EncodedRow { key, row, .. } = std::mem::take(encoded);
        let values = self.values(schema, &key, &row)?;
        schema.update_row(&key, &row, &values, encoded)?;
        let (given, computed) = (schema.view(&key, &row)?, schema.view(&key, &encoded.row)?);
        let is_other = |column: usize| given.stored_bytes(column) != computed.stored_bytes(column);
        match values.iter().find(|(column, _)| is_given(*column) && is_other(*column)) {
            Some((column, _)) => {
                Err(TypeError::GeneratedValue(schema.definition().column_name(*column)).into())
            }
            None => Ok(()),
        }
    }

    fn values(
        &self,
        schema: &Schema,
        key: &[u8],
        row: &[u8],
    ) -> Result<Vec<(usize, Value<'static>)>> {
        let ready = match self.ready.get() {
            Some(ready) => ready,
            None => self.prepare(schema)?,
        };
        let row = schema.view(key, row)?;
        let value = |(column, expression): &(usize, PreparedExpression)| {
            Ok((*column, expression.value(&row).map_err(failed)?.into_owned()))
        };
        ready.iter().map(value).collect()
    }

    #[cold]
    fn prepare(&self, schema: &Schema) -> Result<&Vec<(usize, PreparedExpression)>> {
        let definition = schema.definition();
        let mut ready = Vec::new();
        for (column, generated) in definition.generated_columns() {
            let data_type = definition.columns()[column].data_type;
            let made = PreparedExpression::assigned(definition, &generated.form, data_type)?;
            ready.push((column, made));
        }
        Ok(self.ready.get_or_init(|| ready))
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
        compiler: &Compiler,
        definition: &TableDefinition,
        column: usize,
        now_micros: i64,
    ) -> Result<Value<'static>> {
        let own = self.compiled.iter().find(|(own, _)| *own == column);
        let Some((_, compiled)) = own else { return Err(not_understood(definition, column)) };
        if let Some(default) = compiled.get() {
            return default.value(now_micros);
        }
        let default = prepared(compiler, definition, column)?;
        compiled.get_or_init(|| default).value(now_micros)
    }
}

#[cold]
fn prepared(
    compiler: &Compiler,
    definition: &TableDefinition,
    column: usize,
) -> Result<Box<dyn RowDefault>> {
    let found = &definition.columns()[column];
    if let DefaultValue::Expression(ComputedDefault { form: Some(form), .. }) = &found.default {
        return Ok(Box::new(PreparedDefault::new(form, found.data_type)?));
    }
    let compiler = compiler.get().ok_or_else(|| not_understood(definition, column))?;
    compiler.compile_default(definition, column)
}
