//! Elided rows: the form in the log, without the columns at their constant default.

use super::field::Rule;
use super::input::Input;
use super::row::{RowFault, RowPlan, is_null};

const SHORT: RowFault = RowFault::Shape("the elided row ends inside a column");

impl RowPlan {
    /// Checks a whole elided row, which begins with its version or is of the table's first.
    pub(crate) fn check_elided(&self, bytes: &[u8], names_version: bool) -> Result<(), RowFault> {
        let mut input = Input::new(bytes);
        let version = match names_version {
            true => Some(input.u16().ok_or(SHORT)?),
            false => None,
        };
        let none = RowFault::Shape("the row is of another version of the table definition");
        self.of_elided(version).ok_or(none)?.check_elided_input(input)
    }

    fn check_elided_input(&self, mut input: Input<'_>) -> Result<(), RowFault> {
        let count = self.stored().len();
        let present = input.take((count + 1).div_ceil(8)).ok_or(SHORT)?;
        let nulls = match is_null(present, 0) {
            true => Some(input.take(count.div_ceil(8)).ok_or(SHORT)?),
            false => None,
        };
        for (index, stored) in self.stored().iter().enumerate() {
            let null = nulls.is_some_and(|nulls| is_null(nulls, index));
            if !is_null(present, index + 1) {
                if !stored.is_elided {
                    return Err(RowFault::Value(
                        stored.column,
                        "it is left out but has no default",
                    ));
                }
            } else if null {
                if self.never_null()[index / 8] & (1 << (index % 8)) != 0 {
                    return Err(RowFault::Value(stored.column, "a NOT NULL column is NULL"));
                }
            } else {
                let value = take_value(stored.rule, &mut input).ok_or(SHORT)?;
                let checked = match stored.rule {
                    Rule::Char(width) => Rule::Text(width).check(value),
                    rule => rule.check(value),
                };
                checked.map_err(|fault| RowFault::Value(stored.column, fault))?;
            }
        }
        if input.is_empty() {
            Ok(())
        } else {
            Err(RowFault::Shape("bytes are left over after the elided row"))
        }
    }
}

fn take_value<'b>(rule: Rule, input: &mut Input<'b>) -> Option<&'b [u8]> {
    let length = match (rule, rule.width()) {
        (Rule::Char(width), _) if width <= 255 => usize::from(input.u8()?),
        (Rule::Char(_), _) | (_, None) => usize::from(input.u16()?),
        (_, Some(width)) => width,
    };
    input.take(length)
}
