//! Domains, columns of them and what they have of rules as bytes: the last part of a definition of format 15.

use super::{Input, push_form, push_short, push_u16, read_form};
use crate::schema::history::History;
use crate::schema::{
    CheckConstraint, ColumnDefinition, ColumnDomain, DomainDefinition, DomainRule, TableDefinition,
};

/// Whether a definition needs this part.
pub(super) fn has_some(table: &TableDefinition) -> bool {
    let is_of_domain = |column: &ColumnDefinition| column.domain.is_some();
    table.domain().is_some()
        || !table.rules().is_empty()
        || table.columns().iter().any(is_of_domain)
}

pub(super) fn push(table: &TableDefinition, out: &mut Vec<u8>) {
    out.push(u8::from(table.domain().is_some()));
    if let Some(DomainDefinition { unvalidated }) = table.domain() {
        push_u16(unvalidated.len(), out);
        unvalidated.iter().for_each(|name| push_short(name.as_bytes(), out));
    }
    let columns = table.columns().iter().enumerate();
    let of_domains: Vec<(usize, &ColumnDomain)> =
        columns.filter_map(|(at, column)| Some((at, column.domain.as_ref()?))).collect();
    push_u16(of_domains.len(), out);
    for (at, ColumnDomain { number, name, gives_default }) in of_domains {
        push_u16(table.column_number(at), out);
        out.extend_from_slice(&number.to_le_bytes());
        push_short(name.as_bytes(), out);
        out.push(u8::from(*gives_default));
    }
    push_u16(table.rules().len(), out);
    for DomainRule { column, check, is_validated } in table.rules() {
        push_u16(usize::from(*column), out);
        out.push(u8::from(*is_validated));
        out.push(u8::from(check.is_some()));
        // The column is the only one that it looks at.
        if let Some(CheckConstraint { name, columns: _, expression, form, is_validated: _ }) = check
        {
            push_short(name.as_bytes(), out);
            push_short(expression.as_bytes(), out);
            push_form(form.as_deref(), out);
        }
    }
}

/// Reads what makes the table a domain, and its rules; the columns get the domains that they are of.
pub(super) fn read(
    input: &mut Input<'_>,
    columns: &mut [ColumnDefinition],
    history: Option<&History>,
) -> Result<(Option<DomainDefinition>, Vec<DomainRule>), &'static str> {
    let mut domain = None;
    if input.flag()? {
        let mut unvalidated = Vec::new();
        for _ in 0..input.u16()? {
            unvalidated.push(input.name()?);
        }
        domain = Some(DomainDefinition { unvalidated });
    }
    for _ in 0..input.u16()? {
        let number = input.u16()?;
        let position = match history {
            Some(history) => history.columns.iter().position(|since| since.number == number),
            None => Some(usize::from(number)),
        };
        let column = position.and_then(|at| columns.get_mut(at));
        let column = column.ok_or("a column that does not exist is of a domain")?;
        let of = input.array()?;
        column.domain = Some(ColumnDomain {
            number: u32::from_le_bytes(of),
            name: input.name()?,
            gives_default: input.flag()?,
        });
    }
    let mut rules = Vec::new();
    for _ in 0..input.u16()? {
        let (column, is_validated) = (input.u16()?, input.flag()?);
        let check = match input.flag()? {
            false => None,
            true => Some(CheckConstraint {
                name: input.name()?,
                columns: vec![column],
                expression: input.name()?,
                form: read_form(input)?,
                is_validated: true,
            }),
        };
        rules.push(DomainRule { column, check, is_validated });
    }
    Ok((domain, rules))
}
