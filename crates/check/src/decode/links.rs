//! The last parts of a definition: foreign keys, who may reference the table, and what makes it a sequence.

use super::definition::{Read, SHORT, read_flag, read_name};
use super::input::Input;

const FOREIGN_KEY_COLUMNS_MAX: u16 = 32;

/// Reads all three; `is_live` tells whether the table has a column of a number. Whether there is any of them.
pub(super) fn read(input: &mut Input<'_>, is_live: impl Fn(u16) -> bool) -> Read<bool> {
    let mut names: Vec<String> = Vec::new();
    for _ in 0..input.u16().ok_or(SHORT)? {
        let name = read_foreign_key(input, &is_live)?;
        if names.contains(&name) {
            return Err("two foreign keys have one name");
        }
        names.push(name);
    }
    let mut referencing = Vec::new();
    for _ in 0..input.u16().ok_or(SHORT)? {
        let table = input.u32().ok_or(SHORT)?;
        if table == 0 || referencing.contains(&table) {
            return Err("a referencing table has no number, or stands twice");
        }
        referencing.push(table);
    }
    let is_sequence = read_flag(input)?;
    if is_sequence {
        read_sequence(input)?;
    }
    Ok(is_sequence || !names.is_empty() || !referencing.is_empty())
}

fn read_foreign_key(input: &mut Input<'_>, is_live: impl Fn(u16) -> bool) -> Read<String> {
    let name = read_name(input)?;
    if input.u32().ok_or(SHORT)? == 0 {
        return Err("a foreign key references no table");
    }
    let count = input.u16().ok_or(SHORT)?;
    if !(1..=FOREIGN_KEY_COLUMNS_MAX).contains(&count) {
        return Err("a foreign key has 1 to 32 columns");
    }
    for _ in 0..count {
        let (own, _referenced) = (input.u16().ok_or(SHORT)?, input.u16().ok_or(SHORT)?);
        if !is_live(own) {
            return Err("a foreign key has a column that does not exist");
        }
    }
    let (on_delete, on_update) = (input.u8().ok_or(SHORT)?, input.u8().ok_or(SHORT)?);
    if on_delete > 4 || on_update > 4 || input.u8().ok_or(SHORT)? > 2 {
        return Err("what a foreign key does is not known");
    }
    let (_is_match_full, _is_validated) = (read_flag(input)?, read_flag(input)?);
    Ok(name)
}

fn read_sequence(input: &mut Input<'_>) -> Read<()> {
    let limits = match input.u8().ok_or(SHORT)? {
        2 => i64::from(i16::MIN)..=i64::from(i16::MAX),
        3 => i64::from(i32::MIN)..=i64::from(i32::MAX),
        4 => i64::MIN..=i64::MAX,
        _ => return Err("a sequence is not of whole numbers"),
    };
    let mut number = || input.u64().map(u64::cast_signed).ok_or(SHORT);
    let (start, increment, least, greatest, cache) =
        (number()?, number()?, number()?, number()?, number()?);
    let is_within = limits.contains(&least) && limits.contains(&greatest);
    if !is_within || least >= greatest || !(least..=greatest).contains(&start) {
        return Err("a sequence has limits or a start that cannot be");
    }
    if increment == 0 || cache < 1 {
        return Err("a sequence does not go on");
    }
    let (_cycles, _generation) = (read_flag(input)?, input.u32().ok_or(SHORT)?);
    if read_flag(input)? {
        let (_table, _column) = (input.u32().ok_or(SHORT)?, input.u16().ok_or(SHORT)?);
    }
    Ok(())
}
