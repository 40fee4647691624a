//! Statements that name types of users.
//!
//! Below the planner an enumerated or a composite type goes by its [note](onrush::EnumType::note), which is a name that
//! is read like those of other types, and a cast to a domain is [written otherwise](super::domain::cast). What is kept
//! of a statement names either by its number, so that it stays the same type under another name.

use std::ops::ControlFlow;

use onrush::{DataType, Table};
use sqlparser::ast::{
    self, AlterColumnOperation, AlterTableOperation, ArrayElemTypeDef, ColumnDef, ColumnOption,
    Expr, Ident, ObjectName, Query, SelectItem, SetExpr, Statement, VisitMut, visit_expressions,
    visit_expressions_mut,
};

use super::operand::Parameters;
use super::{Planner, domain, names};
use crate::error::{Result, SqlError};
use crate::own_types;

/// Begins the name of a type in what is kept, in front of its number.
const KEPT: &str = "onrush_type_";

/// What stands in the place of the name of a type.
enum Written {
    /// Another name.
    Name(String),
    /// A cast to this domain.
    Domain(Table),
}

type Write<'w> = dyn Fn(&[String]) -> Option<Written> + 'w;

/// Writes what was found.
struct Writer<'w> {
    planner: Option<&'w Planner<'w>>,
    write: &'w Write<'w>,
    /// The domains that are cast to.
    domains: Vec<Table>,
}

/// The same statement as it is read below; none if it names no such type.
///
/// # Errors
/// A domain that nobody understands.
pub(super) fn noted(
    planner: &Planner<'_>,
    statement: &Statement,
    parameters: &mut Parameters,
) -> Result<Option<Statement>> {
    if let Some(query) = made_of(statement) {
        parameters.note_column_types(of_columns(planner, query));
    }
    let write = |parts: &[String]| found(planner.lookup().own_type_named(parts)?);
    let mut writer = Writer { planner: Some(planner), write: &write, domains: Vec::new() };
    let mut statement = match statement {
        Statement::CreateTable(_) | Statement::AlterTable(_) => statement.clone(),
        Statement::Query(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Merge(_)
        | Statement::Explain { .. }
        | Statement::Declare { .. }
        | Statement::Copy { .. }
        | Statement::Prepare { .. }
            if names_own_type(statement) =>
        {
            statement.clone()
        }
        _ => return Ok(None),
    };
    match &mut statement {
        Statement::CreateTable(create) => {
            create.columns.iter_mut().try_for_each(|column| writer.in_column(column))?;
            if let Some(query) = &mut create.query {
                writer.in_expressions(&mut **query)?;
            }
        }
        Statement::AlterTable(alter) => {
            for operation in &mut alter.operations {
                writer.in_operation(operation)?;
            }
        }
        Statement::Prepare { data_types, .. } => {
            // What is prepared is looked at when it is planned.
            data_types.iter_mut().for_each(|data_type| writer.in_type(data_type));
        }
        other => writer.in_expressions(other)?,
    }
    parameters.note_domains(writer.domains);
    Ok(Some(statement))
}

/// The query that a table is made of.
fn made_of(statement: &Statement) -> Option<&Query> {
    match statement {
        Statement::CreateTable(create) => create.query.as_deref(),
        Statement::Query(query) => match &*query.body {
            SetExpr::Select(select) if select.into.is_some() => Some(query),
            _ => None,
        },
        _ => None,
    }
}

/// The types of users that a query casts its columns to.
pub(super) fn of_columns(planner: &Planner<'_>, query: &Query) -> Vec<Table> {
    let SetExpr::Select(select) = &*query.body else { return Vec::new() };
    let of_item = |item: &SelectItem| {
        let mut expression = match item {
            SelectItem::UnnamedExpr(expression) => expression,
            SelectItem::ExprWithAlias { expr, .. } => expr,
            _ => return None,
        };
        while let Expr::Nested(inside) = expression {
            expression = inside;
        }
        let name = custom(type_of(expression)?)?;
        planner.lookup().own_type_named(&names::parts(name).ok()?)
    };
    select.projection.iter().filter_map(of_item).collect()
}

/// What a type of a user is below the planner.
fn found(table: Table) -> Option<Written> {
    Some(match own_types::of_table(&table) {
        Some(DataType::Enum(of)) => Written::Name(of.note()),
        Some(DataType::Composite(of)) => Written::Name(of.note()),
        _ => Written::Domain(table),
    })
}

/// Writes a part of a statement as it is read below.
///
/// # Errors
/// A domain that nobody understands.
pub(super) fn note_names<N: VisitMut>(planner: &Planner<'_>, node: &mut N) -> Result<()> {
    let write = |parts: &[String]| found(planner.lookup().own_type_named(parts)?);
    let mut writer = Writer { planner: Some(planner), write: &write, domains: Vec::new() };
    writer.in_expressions(node)
}

/// Writes the numbers of types in place of their names, for what is kept.
///
/// # Errors
/// Those of looking at a name, of which there are none here.
pub(super) fn numbered<N: VisitMut>(planner: &Planner<'_>, node: &mut N) -> Result<()> {
    let write = |parts: &[String]| {
        let table = planner.lookup().own_type_named(parts)?;
        Some(Written::Name(format!("{KEPT}{}", table.id())))
    };
    Writer { planner: None, write: &write, domains: Vec::new() }.in_expressions(node)
}

/// Writes what was kept as it is read below; the domains that it casts to.
///
/// # Errors
/// A domain that nobody understands.
pub(super) fn noted_again<N: VisitMut>(planner: &Planner<'_>, node: &mut N) -> Result<Vec<Table>> {
    let write = |parts: &[String]| found(planner.seen.numbered(number_of(parts)?)?);
    let mut writer = Writer { planner: Some(planner), write: &write, domains: Vec::new() };
    writer.in_expressions(node)?;
    Ok(writer.domains)
}

/// Writes names in place of the numbers of types in what was kept, to show it.
///
/// # Errors
/// As of [`numbered`].
pub(super) fn named_again<N: VisitMut>(
    find: &dyn Fn(u32) -> Option<String>,
    node: &mut N,
) -> Result<()> {
    let write = |parts: &[String]| find(number_of(parts)?).map(Written::Name);
    Writer { planner: None, write: &write, domains: Vec::new() }.in_expressions(node)
}

/// The number of a type that is named by it.
fn number_of(parts: &[String]) -> Option<u32> {
    match parts {
        [own] => own.strip_prefix(KEPT)?.parse().ok(),
        _ => None,
    }
}

/// Whether what was kept names a type of this number.
pub(crate) fn names_number(kept: &str, number: u32) -> bool {
    let name = format!("{KEPT}{number}");
    let is_whole = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_digit());
    kept.split(&name).skip(1).any(is_whole)
}

fn names_own_type(statement: &Statement) -> bool {
    let is_own = |data_type: &ast::DataType| custom(data_type).is_some();
    if let Statement::Prepare { data_types, .. } = statement {
        return data_types.iter().any(is_own);
    }
    let found = visit_expressions(statement, |expression| match type_of(expression) {
        Some(data_type) if is_own(data_type) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

fn type_of(expression: &Expr) -> Option<&ast::DataType> {
    match expression {
        Expr::Cast { data_type, .. } => Some(data_type),
        Expr::TypedString(typed) => Some(&typed.data_type),
        _ => None,
    }
}

/// The name of a type that is none of those that are always there.
fn custom(data_type: &ast::DataType) -> Option<&ObjectName> {
    match data_type {
        ast::DataType::Custom(name, modifiers) if modifiers.is_empty() => Some(name),
        ast::DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => custom(element),
        _ => None,
    }
}

impl Writer<'_> {
    fn in_column(&mut self, column: &mut ColumnDef) -> Result<()> {
        self.in_type(&mut column.data_type);
        for option in &mut column.options {
            if let ColumnOption::Default(value) = &mut option.option {
                self.in_expressions(value)?;
            }
        }
        Ok(())
    }

    fn in_operation(&mut self, operation: &mut AlterTableOperation) -> Result<()> {
        match operation {
            AlterTableOperation::AddColumn { column_def, .. } => self.in_column(column_def),
            AlterTableOperation::AlterColumn { op, .. } => match op {
                AlterColumnOperation::SetDataType { data_type, using, .. } => {
                    self.in_type(data_type);
                    using.iter_mut().try_for_each(|using| self.in_expressions(using))
                }
                AlterColumnOperation::SetDefault { value } => self.in_expressions(value),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn in_expressions<N: VisitMut>(&mut self, node: &mut N) -> Result<()> {
        let visited = visit_expressions_mut(node, |expression| match self.in_cast(expression) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::<SqlError>::Break(error),
        });
        visited.break_value().map_or(Ok(()), Err)
    }

    fn in_cast(&mut self, expression: &mut Expr) -> Result<()> {
        let (value, data_type) = match expression {
            Expr::Cast { expr, data_type, .. } => (&**expr, data_type),
            Expr::TypedString(typed) => (&Expr::Value(typed.value.clone()), &mut typed.data_type),
            _ => return Ok(()),
        };
        if let (Some(Written::Domain(table)), Some(planner)) =
            (self.written(data_type), self.planner)
        {
            let cast = domain::cast(planner, &table, value.clone())?;
            self.domains.push(table);
            *expression = cast;
            return Ok(());
        }
        self.in_type(data_type);
        Ok(())
    }

    fn written(&self, data_type: &ast::DataType) -> Option<Written> {
        let ast::DataType::Custom(name, modifiers) = data_type else { return None };
        let parts = names::parts(name).ok().filter(|_| modifiers.is_empty())?;
        (self.write)(&parts)
    }

    /// What no other name stands for stays as it is: the column of a domain.
    fn in_type(&self, data_type: &mut ast::DataType) {
        if let ast::DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) = data_type {
            return self.in_type(element);
        }
        if let Some(Written::Name(other)) = self.written(data_type)
            && let ast::DataType::Custom(name, _) = data_type
        {
            *name = ObjectName::from(vec![Ident::new(other)]);
        }
    }
}
