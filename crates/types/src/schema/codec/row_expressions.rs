//! Expressions over the columns of a row as bytes: `u16` number of columns, then for each a `u16`: its number; the
//! expression; its form.

use super::{Input, push_form, push_short, push_u16, read_form};
use crate::schema::RowExpression;

pub(super) fn push(of: &RowExpression, out: &mut Vec<u8>) {
    let RowExpression { columns, expression, form } = of;
    push_u16(columns.len(), out);
    columns.iter().for_each(|number| push_u16(usize::from(*number), out));
    push_short(expression.as_bytes(), out);
    push_form(Some(form), out);
}

pub(super) fn read(input: &mut Input<'_>) -> Result<RowExpression, &'static str> {
    let mut columns = Vec::new();
    for _ in 0..input.u16()? {
        columns.push(input.u16()?);
    }
    let (expression, form) = (input.name()?, read_form(input)?);
    let form = form.ok_or("what is computed of a row has no form")?;
    Ok(RowExpression { columns, expression, form })
}
