//! INSERT: for each column of the table the place where its value comes from.

use std::sync::Arc;

use onrush::{DataType, DefaultValue, IndexDefinition, Table, TableDefinition, Uniqueness};
use onrush_query::{ColumnType, Place, QueryColumn};
use sqlparser::ast::{
    CastKind, ConflictTarget, DoUpdate, Expr, Insert, ObjectName, OnConflict, OnConflictAction,
    OnInsert, Query, SelectItem, SetExpr, TableObject, Value, ValueWithSpan,
};
use sqlparser::parser::Parser;

use super::assigned_types;
use super::changed::{Changed, Through};
use super::computed::{Computed, Returning, row_of};
use super::dialect::OnrushDialect;
use super::operand::{self, Operand, Parameters};
use super::overriding_words::{self, Overriding};
use super::plan;
use super::query::QueryPlan;
use super::write::{Assignment, assignments};
use super::{Planner, conflict_words, names};
use crate::catalog::is_identity;
use crate::error::{Result, SqlError, state};
use crate::execute::plan::WritePlan;
use crate::{schemas, values};

/// What the row that was to be inserted is called.
pub(super) const EXCLUDED: &str = "excluded";

/// What happens to a row whose key is taken.
#[derive(Clone, Debug)]
pub(crate) enum Conflict {
    /// The statement fails.
    Fail,
    /// The row is left out.
    Nothing(Arbiter),
    /// The row that is there is changed.
    Update(Arbiter, ConflictUpdate),
}

/// Which rows are in the way of one that is to be inserted; any other makes the statement fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arbiter {
    /// Those with its primary key, or its values in any unique index.
    Any,
    /// Those with its primary key.
    Key,
    /// Those with its values in a unique index, by its position among the table's.
    Index(usize),
}

/// How a row is changed that has the key of one that was to be inserted.
#[derive(Clone, Debug)]
pub(crate) struct ConflictUpdate {
    pub(crate) assignments: Vec<Assignment>,
    /// What is computed for them, from the row that is there and the one that was to be inserted.
    pub(crate) computed: Option<Arc<Computed>>,
    /// Whether the last of what is computed is a condition.
    pub(crate) has_condition: bool,
    /// The view by which the row that is there must be seen; whether it is comes last but for the condition.
    pub(crate) seen_by: Option<String>,
}

/// What is inserted.
#[derive(Clone)]
pub(crate) enum InsertRows {
    /// Rows, each with a value for every column of the table.
    Given(Vec<Vec<Operand>>),
    /// The rows of a query, into these columns of the table, by position; a value for none is left out. Behind them
    /// stands, for each of `defaulted`, whether the row takes the default of that column.
    Found { columns: Vec<Option<usize>>, defaulted: Vec<usize>, query: Arc<QueryPlan> },
}

/// An INSERT, ready to run.
#[derive(Clone)]
pub(crate) struct InsertPlan {
    pub(crate) table: Table,
    pub(crate) rows: InsertRows,
    pub(crate) conflict: Conflict,
    pub(crate) returning: Option<Returning>,
    pub(crate) through: Through,
}

/// Plans an INSERT.
pub(super) fn plan(
    planner: &Planner<'_>,
    statement: &Insert,
    parameters: &mut Parameters,
) -> Result<WritePlan> {
    let TableObject::TableName(name) = &statement.table else {
        return Err(SqlError::not_supported(&statement.table, "Insert into a table."));
    };
    let changed = Changed::named(planner, name, ("insert", " into"))?;
    let definition = &*changed.definition;
    let (named, overriding) = overriding_words::of(&statement.columns);
    let columns = target_columns(&changed, named)?;
    let rows = match &statement.source {
        None => InsertRows::Given(vec![vec![Operand::Default; definition.columns().len()]]),
        Some(source) => {
            let are_named = !named.is_empty();
            let target = Target { definition, columns, are_named, overriding };
            rows(planner, target, source, parameters)?
        }
    };
    let relation = match &statement.table_alias {
        Some(alias) => names::identifier(&alias.alias),
        None => changed.own_name().to_owned(),
    };
    let upsert = Upsert { planner, changed: &changed, relation: &relation };
    let conflict = match &statement.on {
        None => Conflict::Fail,
        Some(OnInsert::OnConflict(conflict)) => upsert.conflict(conflict, parameters)?,
        Some(_) => {
            return Err(SqlError::not_supported("ON DUPLICATE KEY", "Write ON CONFLICT."));
        }
    };
    let returned = changed.items(statement.returning.as_deref());
    let returned = returned.as_deref();
    let target = (definition, relation.as_str());
    let returning = Returning::new(planner, target, Vec::new(), returned, parameters)?;
    let (table, through) = (changed.table.clone(), changed.through());
    Ok(WritePlan::Insert(InsertPlan { table, rows, conflict, returning, through }))
}

/// Where values go.
pub(super) struct Target<'t> {
    pub(super) definition: &'t TableDefinition,
    /// By position in the table.
    pub(super) columns: Vec<usize>,
    /// Whether the statement names them: each has a value then. Otherwise the last may have none.
    pub(super) are_named: bool,
    pub(super) overriding: Option<Overriding>,
}

impl Target<'_> {
    /// Whether values for a column are left out, as it is an identity.
    ///
    /// # Errors
    /// It takes its values from a sequence, which may be an identity's or a serial's.
    pub(super) fn is_overridden(&self, column: usize) -> Result<bool> {
        let column = &self.definition.columns()[column];
        if self.overriding != Some(Overriding::User) {
            return Ok(false);
        }
        match &column.default {
            DefaultValue::Generated(_) => Ok(false),
            DefaultValue::Expression(computed)
                if !column.is_always_generated && computed.expression.starts_with("nextval(") =>
            {
                let what = format!("OVERRIDING USER VALUE beside column {}", column.name);
                Err(SqlError::not_supported(what, "Leave the column out."))
            }
            _ => Ok(column.is_always_generated || is_identity(column)),
        }
    }

    /// A column that is always generated is given no other value, unless it is an identity and the statement says so.
    pub(super) fn check_generated(&self, column: usize) -> Result<()> {
        let is_computed =
            matches!(self.definition.columns()[column].default, DefaultValue::Generated(_));
        match self.overriding {
            Some(_) if !is_computed => Ok(()),
            _ => check_generated(self.definition, column),
        }
    }

    pub(super) fn check_count(&self, values: usize) -> Result<()> {
        let message = match self.columns.len() {
            columns if values > columns => "INSERT has more expressions than target columns",
            columns if values < columns && self.are_named => {
                "INSERT has more target columns than expressions"
            }
            _ => return Ok(()),
        };
        Err(SqlError::new(state::SYNTAX_ERROR, message))
    }
}

fn rows(
    planner: &Planner<'_>,
    target: Target<'_>,
    source: &Query,
    parameters: &mut Parameters,
) -> Result<InsertRows> {
    let mut beyond = None;
    if let (SetExpr::Values(values), None) = (&*source.body, &source.with) {
        plan::only_body(source)?;
        let mut counts = values.rows.iter().map(|values| values.content.len());
        let count = counts.next().unwrap_or_default();
        if counts.any(|other| other != count) {
            let message = "VALUES lists must all be the same length";
            return Err(SqlError::new(state::SYNTAX_ERROR, message));
        }
        target.check_count(count)?;
        let mut tried = parameters.clone();
        let given = values.rows.iter().map(|values| row(&target, &values.content, &mut tried));
        match given.collect::<Result<Vec<_>>>() {
            Ok(mut rows) => {
                for column in &target.columns {
                    if target.is_overridden(*column)? {
                        rows.iter_mut().for_each(|row| row[*column] = Operand::Default);
                    }
                }
                for column in &target.columns {
                    if rows.iter().any(|row| row[*column] != Operand::Default) {
                        target.check_generated(*column)?;
                    }
                }
                *parameters = tried;
                return Ok(InsertRows::Given(rows));
            }
            Err(error) if error.is_beyond_the_short_way() => beyond = Some(error),
            Err(error) => return Err(error),
        }
    }
    let (mut source, mut target) = (source.clone(), target);
    let mut defaulted = Vec::new();
    if let SetExpr::Values(values) = &mut *source.body {
        let mut rows: Vec<&mut Vec<Expr>> =
            values.rows.iter_mut().map(|row| &mut row.content).collect();
        defaulted = without_defaults(&mut target, &mut rows);
        for row in rows {
            as_columns(&target, row);
        }
    }
    let query = QueryPlan::new(planner, source, parameters).map_err(|error| match beyond {
        // It tells what can stand among values.
        Some(beyond) if error.state == state::FEATURE_NOT_SUPPORTED => beyond,
        _ => error,
    })?;
    let count = query.columns.len() - defaulted.len();
    target.check_count(count)?;
    target.columns.truncate(count);
    target.columns.iter().copied().try_for_each(|column| target.check_generated(column))?;
    let taken = |column: &usize| Ok((!target.is_overridden(*column)?).then_some(*column));
    let columns = target.columns.iter().map(taken).collect::<Result<Vec<_>>>()?;
    for (column, given) in columns.iter().zip(&*query.columns) {
        if let Some(column) = column {
            assigned_types::check(&target.definition.columns()[*column], given.column_type)?;
        }
    }
    Ok(InsertRows::Found { columns, defaulted, query: Arc::new(query) })
}

/// VALUES without DEFAULT, which no query has. A column that each row leaves to its default is none of the target;
/// behind the others stands, for each column that is returned, whether a row leaves it to its default.
fn without_defaults(target: &mut Target<'_>, rows: &mut [&mut Vec<Expr>]) -> Vec<usize> {
    let count = rows.first().map_or(0, |row| row.len());
    let mut defaulted = Vec::new();
    for at in (0..count).rev() {
        let is_default: Vec<bool> = rows.iter().map(|row| operand::is_default(&row[at])).collect();
        if !is_default.contains(&true) {
            continue;
        }
        let column = target.columns[at];
        let is_in_all = !is_default.contains(&false);
        // A column at least stands in each row.
        if is_in_all && rows.first().is_some_and(|row| row.len() > 1) {
            target.columns.remove(at);
            rows.iter_mut().for_each(|row| drop(row.remove(at)));
            continue;
        }
        for (row, is_default) in rows.iter_mut().zip(is_default) {
            if is_default {
                row[at] = Expr::value(Value::Null);
            }
            row.push(Expr::value(Value::Boolean(is_default)));
        }
        defaulted.push(column);
    }
    defaulted
}

/// Gives what stands in the place of one column of several rows one type: texts in quotes that of the column. Arrays of
/// numbers with digits become texts, since the digits of each are its own.
fn as_columns(target: &Target<'_>, values: &mut [Expr]) {
    for (value, column) in values.iter_mut().zip(&target.columns) {
        let data_type = target.definition.columns()[*column].data_type;
        let literal = match value {
            Expr::Value(ValueWithSpan { value, .. }) => {
                Some(matches!(value, Value::SingleQuotedString(_)))
            }
            _ => None,
        };
        let name = match (data_type, literal) {
            (DataType::Array(DataType::Decimal { .. } | DataType::Numeric(_)), None) => {
                "text".to_owned()
            }
            (DataType::Array(DataType::Decimal { .. } | DataType::Numeric(_)), _) => continue,
            (DataType::Enum(of), Some(true)) => of.note(),
            // Beside records NULL has to be one.
            (DataType::Composite(of), _) => of.note(),
            (DataType::Array(_), Some(true)) => values::type_name(data_type),
            _ => continue,
        };
        let dialect = OnrushDialect::new(name.len());
        let written = Parser::new(&dialect).try_with_sql(&name);
        if let Ok(data_type) = written.and_then(|mut parser| parser.parse_data_type()) {
            let (kind, expr) = (CastKind::Cast, Box::new(value.clone()));
            *value = Expr::Cast { kind, expr, data_type, array: false, format: None };
        }
    }
}

/// Positions of the columns that values are given for.
pub(super) fn target_columns(changed: &Changed, named: &[ObjectName]) -> Result<Vec<usize>> {
    let definition = &changed.definition;
    if named.is_empty() {
        return Ok(changed.shown());
    }
    let mut columns = Vec::with_capacity(named.len());
    for name in named {
        let column = plan::target_column(definition, name)?;
        if columns.contains(&column) {
            return Err(plan::given_twice(definition, column).at(names::span(name)));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// A column that is always generated is given no other value.
fn check_generated(table: &TableDefinition, column: usize) -> Result<()> {
    let column = &table.columns()[column];
    if !column.is_always_generated {
        return Ok(());
    }
    let name = &column.name;
    let message = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
    let error = SqlError::new(state::GENERATED_ALWAYS, message);
    if let DefaultValue::Generated(_) = column.default {
        return Err(error.with_detail(format!("Column \"{name}\" is a generated column.")));
    }
    let detail = format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS.");
    Err(error.with_detail(detail).with_hint("Use OVERRIDING SYSTEM VALUE to override."))
}

fn row(target: &Target<'_>, values: &[Expr], parameters: &mut Parameters) -> Result<Vec<Operand>> {
    let all = target.definition.columns();
    let mut row = vec![Operand::Default; all.len()];
    for (value, column) in values.iter().zip(&target.columns) {
        assigned_types::check_value(&all[*column], value)?;
        row[*column] = Operand::new(value, all[*column].data_type, parameters)?;
    }
    Ok(row)
}

/// What ON CONFLICT is about.
struct Upsert<'s> {
    planner: &'s Planner<'s>,
    changed: &'s Changed,
    /// What stands in front of the columns of the row that is there.
    relation: &'s str,
}

impl Upsert<'_> {
    fn conflict(&self, conflict: &OnConflict, parameters: &mut Parameters) -> Result<Conflict> {
        let arbiter = arbiter(&self.changed.definition, conflict.conflict_target.as_ref())?;
        match &conflict.action {
            OnConflictAction::DoNothing => Ok(Conflict::Nothing(arbiter)),
            OnConflictAction::DoUpdate(_) if conflict.conflict_target.is_none() => {
                Err(SqlError::new(
                    state::SYNTAX_ERROR,
                    "ON CONFLICT DO UPDATE needs the columns of the key",
                ))
            }
            OnConflictAction::DoUpdate(update) => {
                Ok(Conflict::Update(arbiter, self.update(update, parameters)?))
            }
        }
    }

    fn update(&self, update: &DoUpdate, parameters: &mut Parameters) -> Result<ConflictUpdate> {
        let mut found = Vec::new();
        let given = &update.assignments;
        let definition = &*self.changed.definition;
        let target = (definition, self.relation);
        let assignments = assignments(target, given, true, &mut found, parameters)?;
        let is_seen = self.changed.selection(None, self.relation);
        let seen_by = is_seen.as_ref().and(self.changed.nearest_view());
        let seen_by = seen_by.map(|view| schemas::own_name(view.name()).to_owned());
        found.extend(is_seen);
        found.extend(update.selection.clone());
        let has_condition = update.selection.is_some();
        if found.is_empty() {
            assigned_types::check_assignments(definition, &assignments, &[])?;
            return Ok(ConflictUpdate { assignments, computed: None, has_condition, seen_by });
        }
        let items = found.into_iter().map(SelectItem::UnnamedExpr).collect();
        let rows = [self.relation, EXCLUDED];
        let rows = rows.map(|name| row_of(definition, name));
        let place = Place { one: "ON CONFLICT DO UPDATE", many: "ON CONFLICT DO UPDATE" };
        let computed = Computed::new(self.planner, &rows, items, place, parameters)?;
        assigned_types::check_assignments(definition, &assignments, &computed.types())?;
        if has_condition {
            check_condition(computed.expressions.columns())?;
        }
        let computed = Some(Arc::new(computed));
        Ok(ConflictUpdate { assignments, computed, has_condition, seen_by })
    }
}

/// The last column is the condition.
fn check_condition(columns: &[QueryColumn]) -> Result<()> {
    match columns.last().map(|column| column.column_type) {
        Some(ColumnType::Stored(DataType::Boolean)) | None => Ok(()),
        Some(_) => {
            let message = "argument of WHERE must be type boolean";
            Err(SqlError::new(state::DATATYPE_MISMATCH, message))
        }
    }
}

/// What ON CONFLICT names: the columns of the primary key or of a unique index, or a constraint.
fn arbiter(definition: &TableDefinition, target: Option<&ConflictTarget>) -> Result<Arbiter> {
    let is_deferrable = |index: &IndexDefinition| index.deferrable.is_some();
    match target {
        None if definition.indexes().iter().any(is_deferrable) => {
            Err(conflict_words::is_deferrable())
        }
        None => Ok(Arbiter::Any),
        Some(ConflictTarget::Columns(columns)) => {
            let mut given = Vec::new();
            for column in columns {
                given.push(definition.shown_column_index(&names::identifier(column))?);
            }
            given.sort_unstable();
            given.dedup();
            let mut key = definition.primary_key().to_vec();
            key.sort_unstable();
            if given == key {
                return Ok(Arbiter::Key);
            }
            let is_it = |index: &IndexDefinition| {
                let columns = index.column_numbers().unwrap_or_default().into_iter();
                let mut columns: Vec<usize> =
                    columns.filter_map(|number| definition.column_with_number(number)).collect();
                columns.sort_unstable();
                index.is_plain() && !index.is_building && columns == given
            };
            let is_unique =
                |index: &IndexDefinition| index.uniqueness != Uniqueness::NotUnique && is_it(index);
            match definition.indexes().iter().position(is_unique) {
                Some(position) => Ok(Arbiter::Index(position)),
                None if definition.indexes().iter().any(|it| is_deferrable(it) && is_it(it)) => {
                    Err(conflict_words::is_deferrable())
                }
                None => Err(conflict_words::no_constraint()),
            }
        }
        Some(ConflictTarget::OnConstraint(name)) => {
            let name = names::parts(name)?.join(".");
            if let Some(found) = conflict_words::arbiter(definition, &name) {
                return found;
            }
            if schemas::has_key_named(definition, &name) {
                return Ok(Arbiter::Key);
            }
            let is_it = |index: &IndexDefinition| {
                index.is_constraint && schemas::own_name(&index.name) == name
            };
            let position = definition.indexes().iter().position(is_it);
            if position.is_some_and(|at| is_deferrable(&definition.indexes()[at])) {
                return Err(conflict_words::is_deferrable());
            }
            position.map(Arbiter::Index).ok_or_else(|| {
                let own = schemas::own_name(definition.name());
                let message = format!("constraint {name:?} for table {own:?} does not exist");
                SqlError::new(state::UNDEFINED_OBJECT, message)
            })
        }
    }
}
