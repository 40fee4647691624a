//! Domains, columns of them and what they have of rules, in a definition.

use super::definition::{Column, Read, SHORT, read_expression, read_flag, read_form, read_name};
use super::input::Input;

/// Reads the last part of a definition with domains, whose columns have the numbers that `live` tells.
pub(super) fn read(
    input: &mut Input<'_>,
    format: u8,
    columns: &[Column],
    live: impl Fn(u16) -> bool,
) -> Read<()> {
    let is_domain = read_flag(input)?;
    if is_domain {
        if columns.first().is_none_or(|column| column.name != "value") {
            return Err("a domain has no value");
        }
        let mut unvalidated: Vec<String> = Vec::new();
        for _ in 0..input.u16().ok_or(SHORT)? {
            let name = read_name(input)?;
            if unvalidated.contains(&name) {
                return Err("a check of a domain is there twice");
            }
            unvalidated.push(name);
        }
    }
    let mut of_domains: Vec<u16> = Vec::new();
    for _ in 0..input.u16().ok_or(SHORT)? {
        let number = input.u16().ok_or(SHORT)?;
        if !live(number) || of_domains.contains(&number) {
            return Err("a column of a domain does not exist, or is there twice");
        }
        of_domains.push(number);
        input.u32().ok_or(SHORT)?;
        read_name(input)?;
        read_flag(input)?;
    }
    for _ in 0..input.u16().ok_or(SHORT)? {
        if !of_domains.contains(&input.u16().ok_or(SHORT)?) {
            return Err("a rule is of a column that is of no domain");
        }
        read_flag(input)?;
        if read_flag(input)? {
            read_name(input)?;
            read_expression(input)?;
            read_form(input)?;
        }
    }
    match is_domain || !of_domains.is_empty() || format > 15 {
        true => Ok(()),
        false => Err("a definition without domains is of a format with them"),
    }
}
