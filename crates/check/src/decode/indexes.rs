//! Indexes in a definition: those of a table, and what makes a table the entries of one.

use onrush_types::{DataType, KeyOrder};

use super::definition::{Read, SHORT, read_flag, read_name, read_row_expression, read_type};
use super::input::Input;

const INDEX_COLUMNS_MAX: usize = 32;

/// An index as its table knows it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Index {
    pub(crate) name: String,
    /// The number of the table of its entries.
    pub(crate) entries: u32,
    /// What is indexed.
    pub(crate) columns: Vec<Indexed>,
    pub(crate) included: Vec<u16>,
    pub(crate) is_unique: bool,
    /// Whether entries have a column that tells those apart in which NULL stands.
    pub(crate) has_tie: bool,
}

/// What an index is ordered by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Indexed {
    /// The column of this number.
    Column(u16),
    /// An expression that comes to values of this type.
    Expression(DataType),
}

/// The flag beside the order of what is no column.
const EXPRESSION: u8 = 4;

/// Of the entries of an index.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct EntriesOf {
    /// The number of the table whose rows are indexed.
    pub(crate) table: u32,
    /// The order of each key column that may be NULL.
    pub(crate) orders: Vec<KeyOrder>,
}

/// Reads both; `is_live` tells whether the table has a column of a number.
pub(super) fn read(
    input: &mut Input<'_>,
    format: u8,
    is_live: impl Fn(u16) -> bool,
) -> Read<(Vec<Index>, Option<EntriesOf>)> {
    let has_expressions = format >= 10;
    let mut indexes: Vec<Index> = Vec::new();
    for _ in 0..input.u16().ok_or(SHORT)? {
        let name = read_name(input)?;
        let entries = input.u32().ok_or(SHORT)?;
        let unique = input.u8().ok_or(SHORT)?;
        if unique > 2 {
            return Err("how an index is unique is not known");
        }
        read_flag(input)?;
        let mut keys = Vec::new();
        for _ in 0..input.u16().ok_or(SHORT)? {
            let (number, flags) = (input.u16().ok_or(SHORT)?, input.u8().ok_or(SHORT)?);
            let is_expression = has_expressions && flags & EXPRESSION != 0;
            order_of(if is_expression { flags & !EXPRESSION } else { flags })?;
            keys.push((is_expression, number));
        }
        let mut included = Vec::new();
        for _ in 0..input.u16().ok_or(SHORT)? {
            included.push(input.u16().ok_or(SHORT)?);
        }
        let mut types = Vec::new();
        if has_expressions {
            for _ in 0..input.u16().ok_or(SHORT)? {
                read_row_expression(input, &is_live)?;
                types.push(read_type(input)?);
            }
            if read_flag(input)? {
                read_row_expression(input, &is_live)?;
            }
        }
        // Whether it is being built.
        if format >= 14 {
            read_flag(input)?;
        }
        // Until when rows may have the same indexed columns.
        let deferrable = if format >= 17 { input.u8().ok_or(SHORT)? } else { 0 };
        if !matches!((deferrable, unique), (0, _) | (1 | 3 | 5 | 7, 0)) {
            return Err("how an index is deferrable is not known");
        }
        let mut columns = Vec::new();
        for (is_expression, number) in keys {
            columns.push(match (is_expression, types.get(usize::from(number))) {
                (false, _) if is_live(number) => Indexed::Column(number),
                (true, Some(data_type)) => Indexed::Expression(*data_type),
                _ => return Err("an index has a column or an expression that does not exist"),
            });
        }
        if columns.is_empty() || columns.len() + included.len() > INDEX_COLUMNS_MAX {
            return Err("an index has 1 to 32 columns");
        }
        if !included.iter().all(|number| is_live(*number)) {
            return Err("an index has a column that does not exist");
        }
        if indexes.iter().any(|other| other.name == name || other.entries == entries) {
            return Err("two indexes have one name, or the same entries");
        }
        let (is_unique, has_tie) = (unique != 0, unique == 1);
        indexes.push(Index { name, entries, columns, included, is_unique, has_tie });
    }
    let entries_of = match read_flag(input)? {
        false => None,
        true => {
            let table = input.u32().ok_or(SHORT)?;
            let mut orders = Vec::new();
            for _ in 0..input.u16().ok_or(SHORT)? {
                orders.push(order_of(input.u8().ok_or(SHORT)?)?);
            }
            Some(EntriesOf { table, orders })
        }
    };
    if entries_of.is_some() && !indexes.is_empty() {
        return Err("the entries of an index are indexed");
    }
    Ok((indexes, entries_of))
}

fn order_of(flags: u8) -> Read<KeyOrder> {
    match flags {
        0..=3 => Ok(KeyOrder { descending: flags & 1 != 0, nulls_first: flags & 2 != 0 }),
        _ => Err("the order of a key column is not known"),
    }
}
