//! CHECK constraints as bytes: the last part of a definition of format 4.

use super::{Input, push_short, push_u16};
use crate::schema::CheckConstraint;

pub(super) fn push(checks: &[CheckConstraint], out: &mut Vec<u8>) {
    push_u16(checks.len(), out);
    for check in checks {
        push_short(check.name.as_bytes(), out);
        push_u16(check.columns.len(), out);
        for &number in &check.columns {
            push_u16(usize::from(number), out);
        }
        push_short(check.expression.as_bytes(), out);
    }
}

pub(super) fn read(input: &mut Input<'_>) -> Result<Vec<CheckConstraint>, &'static str> {
    let mut checks = Vec::new();
    for _ in 0..input.u16()? {
        let name = input.name()?;
        let mut columns = Vec::new();
        for _ in 0..input.u16()? {
            columns.push(input.u16()?);
        }
        checks.push(CheckConstraint { name, columns, expression: input.name()? });
    }
    Ok(checks)
}
