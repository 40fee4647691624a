//! CHECK constraints as bytes: the last part of a definition of formats 4 and 5.

use super::{Input, push_form, push_short, push_u16, read_form};
use crate::schema::CheckConstraint;

pub(super) fn push(checks: &[CheckConstraint], has_forms: bool, out: &mut Vec<u8>) {
    push_u16(checks.len(), out);
    for check in checks {
        push_short(check.name.as_bytes(), out);
        push_u16(check.columns.len(), out);
        for &number in &check.columns {
            push_u16(usize::from(number), out);
        }
        push_short(check.expression.as_bytes(), out);
        if has_forms {
            push_form(check.form.as_deref(), out);
        }
    }
}

/// Which of them older rows need not meet, in formats with that.
pub(super) fn push_not_validated(checks: &[CheckConstraint], out: &mut Vec<u8>) {
    let not_validated = checks.iter().enumerate().filter(|(_, check)| !check.is_validated);
    let positions: Vec<usize> = not_validated.map(|(position, _)| position).collect();
    push_u16(positions.len(), out);
    positions.into_iter().for_each(|position| push_u16(position, out));
}

pub(super) fn read_not_validated(
    checks: &mut [CheckConstraint],
    input: &mut Input<'_>,
) -> Result<(), &'static str> {
    for _ in 0..input.u16()? {
        let check = checks.get_mut(usize::from(input.u16()?));
        check.ok_or("a check that is not validated does not exist")?.is_validated = false;
    }
    Ok(())
}

pub(super) fn read(
    has_forms: bool,
    input: &mut Input<'_>,
) -> Result<Vec<CheckConstraint>, &'static str> {
    let mut checks = Vec::new();
    for _ in 0..input.u16()? {
        let name = input.name()?;
        let mut columns = Vec::new();
        for _ in 0..input.u16()? {
            columns.push(input.u16()?);
        }
        let expression = input.name()?;
        let form = if has_forms { read_form(input)? } else { None };
        checks.push(CheckConstraint { name, columns, expression, form, is_validated: true });
    }
    Ok(checks)
}
