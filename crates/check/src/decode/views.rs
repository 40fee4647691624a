//! What makes a table a view: the last part of a definition.

use super::definition::{Read, SHORT};
use super::input::Input;

const VIEW_BYTES_MAX: usize = 64_000;
/// How many kinds of columns there are.
const KINDS: u8 = 6;

/// Reads a view; `is_live` tells whether it has a column of a number.
pub(super) fn read(input: &mut Input<'_>, is_live: impl Fn(u16) -> bool) -> Read<()> {
    let length = usize::try_from(input.u32().ok_or(SHORT)?).unwrap_or(usize::MAX);
    if !(1..=VIEW_BYTES_MAX).contains(&length) {
        return Err("the query of a view is empty or too long");
    }
    let query = input.take(length).ok_or(SHORT)?;
    std::str::from_utf8(query).map_err(|_| "the query of a view is not UTF-8")?;
    for _ in 0..input.u16().ok_or(SHORT)? {
        if input.u32().ok_or(SHORT)? == 0 {
            return Err("a view reads a table without a number");
        }
        let columns = read_numbers(input)?;
        let used = read_numbers(input)?;
        if used.iter().any(|column| !columns.contains(column)) {
            return Err("a view names a column that it does not see");
        }
    }
    for _ in 0..input.u16().ok_or(SHORT)? {
        let (column, kind) = (input.u16().ok_or(SHORT)?, input.u8().ok_or(SHORT)?);
        if !is_live(column) || !(1..=KINDS).contains(&kind) {
            return Err("the kind of a view's column is not known, or the column is not there");
        }
    }
    Ok(())
}

fn read_numbers(input: &mut Input<'_>) -> Read<Vec<u16>> {
    let count = input.u16().ok_or(SHORT)?;
    (0..count).map(|_| input.u16().ok_or(SHORT)).collect()
}
