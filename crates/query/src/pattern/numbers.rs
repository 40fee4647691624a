//! Numbers by a pattern, `9,999.00`, and numbers out of text by one.

use std::cmp::Ordering;

use onrush::Numeric;

use super::not_supported;
use crate::error::{QueryError, Result};

/// More than any number has digits.
const PATTERN_BYTES_MAX: usize = 1000;

/// A pattern of numbers, taken apart.
#[derive(Debug, Default)]
struct Pattern {
    parts: Vec<Part>,
    /// Places for digits in front of the point, and behind it.
    whole: usize,
    fraction: usize,
    /// Places in front of the point before the first that shows zeros.
    blank: usize,
    is_tight: bool,
    sign: Sign,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Whether it shows a zero that counts for nothing.
    Digit {
        is_zero: bool,
    },
    Comma,
    Point,
    Literal(String),
    /// Where the sign stands if it does not stand in front of the first digit.
    Sign,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sign {
    /// A minus or a blank in front of the number.
    #[default]
    InFront,
    /// S: plus or minus, at the number or where it is written behind.
    Anchored { is_behind: bool },
    /// MI: minus or a blank, where it is written.
    Minus,
    /// PR: `<12>`.
    Angles,
}

impl Pattern {
    fn parse(pattern: &str) -> Result<Pattern> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(not_supported(&format!("more than {PATTERN_BYTES_MAX} bytes")));
        }
        let mut read = Pattern::default();
        let (mut rest, mut is_behind_point, mut has_zero) = (pattern, false, false);
        while let Some(first) = rest.chars().next() {
            let upper: String = rest.chars().take(2).map(|c| c.to_ascii_uppercase()).collect();
            let mut length = first.len_utf8();
            match (first.to_ascii_uppercase(), upper.as_str()) {
                ('9' | '0', _) => {
                    has_zero |= first == '0';
                    if is_behind_point {
                        read.fraction += 1;
                    } else {
                        read.whole += 1;
                        read.blank += usize::from(!has_zero);
                    }
                    read.parts.push(Part::Digit { is_zero: first == '0' });
                }
                (_, "FM") => (read.is_tight, length) = (true, 2),
                (_, "MI") => {
                    (read.sign, length) = (Sign::Minus, 2);
                    read.parts.push(Part::Sign);
                }
                (_, "PR") => (read.sign, length) = (Sign::Angles, 2),
                ('S', upper) if !matches!(upper, "SG" | "SP") => {
                    let is_behind = read.whole + read.fraction > 0;
                    read.sign = Sign::Anchored { is_behind };
                    read.parts.push(Part::Sign);
                }
                ('.' | 'D', _) if is_behind_point => {
                    return Err(QueryError::refused("42601", "multiple decimal points"));
                }
                ('.' | 'D', _) => {
                    is_behind_point = true;
                    read.parts.push(Part::Point);
                }
                (',' | 'G', _) => read.parts.push(Part::Comma),
                ('"', _) => {
                    let (text, end) = quoted(&rest[1..]);
                    length = 1 + end;
                    read.parts.push(Part::Literal(text));
                }
                ('\\', "\\\"") => {
                    length = 2;
                    read.parts.push(Part::Literal("\"".to_owned()));
                }
                ('L' | 'V' | 'E' | 'R' | 'T' | 'P' | 'S' | 'B', _) => {
                    return Err(not_supported(&rest[..length]));
                }
                _ => read.parts.push(Part::Literal(first.to_string())),
            }
            rest = &rest[length..];
        }
        Ok(read)
    }
}

impl Pattern {
    /// Leaves out places behind the point that are more than so many, and the point where none are left.
    fn limit_fraction(&mut self, most: usize) {
        if self.fraction <= most {
            return;
        }
        let (mut is_behind, mut count) = (false, 0);
        self.parts.retain(|part| match part {
            Part::Point => {
                is_behind = true;
                most > 0
            }
            Part::Digit { .. } if is_behind => {
                count += 1;
                count <= most
            }
            _ => true,
        });
        self.fraction = most;
    }
}

/// Text up to the next quote, or to the end, and how many bytes that is. A backslash takes the next character as it
/// is.
fn quoted(rest: &str) -> (String, usize) {
    let mut text = String::new();
    let mut characters = rest.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (text, at + 1),
            '\\' => text.extend(characters.next().map(|(_, next)| next)),
            other => text.push(other),
        }
    }
    (text, rest.len())
}

/// The number as the pattern says.
///
/// # Errors
/// Words that are not understood.
pub(crate) fn write_number(pattern: &str, number: &Numeric) -> Result<String> {
    write(Pattern::parse(pattern)?, number)
}

/// The same of a floating-point number, which has no more than so many digits.
///
/// # Errors
/// Words that are not understood.
pub(crate) fn write_float(pattern: &str, number: f64, digits: usize) -> Result<String> {
    let mut pattern = Pattern::parse(pattern)?;
    if !number.is_finite() {
        return write(pattern, &Numeric::from_f64(number));
    }
    let whole = format!("{:.0}", number.abs()).len();
    pattern.limit_fraction(digits.saturating_sub(whole));
    let written = format!("{number:.fraction$}", fraction = pattern.fraction);
    let bad = |_| QueryError::Internal { message: format!("{written} is no number") };
    write(pattern, &written.parse().map_err(bad)?)
}

fn write(pattern: Pattern, number: &Numeric) -> Result<String> {
    if number.scale().is_none() {
        let message = format!("to_char of {number} is not supported");
        return Err(QueryError::NotSupported { message });
    }
    let rounded = number.rounded(i32::try_from(pattern.fraction).unwrap_or(i32::MAX));
    let is_negative = rounded.sign() == Some(Ordering::Less);
    let digits = rounded.size().to_string();
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let fraction = format!("{fraction:0<width$}", width = pattern.fraction);
    let is_too_long = whole.len() > pattern.whole && (whole != "0" || pattern.fraction > 0);
    // Zeros behind the point that a tight pattern leaves out.
    let last = match pattern.is_tight && !is_too_long {
        true => last_of_fraction(&pattern, &fraction),
        false => pattern.fraction,
    };
    // A zero in front of a point counts for nothing, where none is asked for and more is shown.
    let is_shown = pattern.is_tight && last == 0 && pattern.whole > 0;
    let whole = match whole {
        "0" if (pattern.fraction > 0 || pattern.whole == 0) && !is_shown => "",
        other => other,
    };
    let shown = if is_too_long { 0 } else { pattern.whole - whole.len() };
    let first = if is_too_long { 0 } else { shown.min(pattern.blank) };
    let mut out = String::new();
    let (mut place, mut behind, mut is_behind, mut is_begun) = (0, 0, false, false);
    let begin = |out: &mut String| match (pattern.sign, is_negative) {
        (Sign::InFront, true) => out.push('-'),
        (Sign::InFront, false) if !pattern.is_tight => out.push(' '),
        (Sign::Anchored { is_behind: false }, _) => out.push(if is_negative { '-' } else { '+' }),
        (Sign::Angles, true) => out.push('<'),
        (Sign::Angles, false) if !pattern.is_tight => out.push(' '),
        _ => {}
    };
    for part in &pattern.parts {
        match part {
            Part::Digit { .. } if is_behind => {
                if behind < last {
                    let digit = if is_too_long { "#" } else { &fraction[behind..=behind] };
                    out.push_str(digit);
                }
                behind += 1;
            }
            Part::Digit { .. } => {
                if place >= first && !is_begun {
                    begin(&mut out);
                    is_begun = true;
                }
                if is_too_long {
                    out.push('#');
                } else if place >= shown {
                    out.push_str(&whole[place - shown..=place - shown]);
                } else if place >= first {
                    out.push('0');
                } else if !pattern.is_tight {
                    out.push(' ');
                }
                place += 1;
            }
            Part::Comma if is_begun => out.push(','),
            Part::Comma if !pattern.is_tight => out.push(' '),
            Part::Comma => {}
            Part::Point => {
                if !is_begun {
                    begin(&mut out);
                    is_begun = true;
                }
                is_behind = true;
                // With nothing behind it, it stands all the same, unless nothing ever would be.
                if !pattern.is_tight || pattern.fraction > 0 {
                    out.push('.');
                }
            }
            Part::Literal(text) => out.push_str(text),
            Part::Sign => match pattern.sign {
                Sign::Minus if is_negative => out.push('-'),
                Sign::Minus if !pattern.is_tight => out.push(' '),
                Sign::Anchored { is_behind: true } => out.push(if is_negative { '-' } else { '+' }),
                _ => {}
            },
        }
    }
    if pattern.sign == Sign::Angles {
        match is_negative {
            true => out.push('>'),
            false if !pattern.is_tight => out.push(' '),
            false => {}
        }
    }
    Ok(out)
}

/// How many digits behind the point a tight pattern shows: to the last that counts or that is a 0.
fn last_of_fraction(pattern: &Pattern, fraction: &str) -> usize {
    let point = pattern.parts.iter().position(|part| *part == Part::Point);
    let behind = point.map_or(&[][..], |at| &pattern.parts[at..]);
    let digits = behind.iter().filter_map(|part| match part {
        Part::Digit { is_zero } => Some(*is_zero),
        _ => None,
    });
    let counts = digits.zip(fraction.bytes()).map(|(is_zero, digit)| is_zero || digit != b'0');
    counts.enumerate().filter(|(_, counts)| *counts).last().map_or(0, |(at, _)| at + 1)
}

/// A number that was written by a pattern.
///
/// # Errors
/// Text without digits; words that are not understood.
pub(crate) fn read_number(pattern: &str, written: &str) -> Result<Numeric> {
    let pattern = Pattern::parse(pattern)?;
    let is_negative = written.contains(['-', '<']);
    let (mut whole, mut fraction, mut is_behind) = (String::new(), String::new(), false);
    for character in written.chars() {
        match character {
            '.' if pattern.fraction > 0 => is_behind = true,
            '.' => break,
            '0'..='9' if is_behind && fraction.len() < pattern.fraction => fraction.push(character),
            '0'..='9' if !is_behind && whole.len() < pattern.whole => whole.push(character),
            _ => {}
        }
    }
    let digits = format!("{whole}.{fraction}");
    let number = digits.trim_end_matches('.').parse::<Numeric>();
    let number = number.map_err(|_| QueryError::BadText {
        message: format!("invalid input syntax for type numeric: \"{written}\""),
    })?;
    Ok(if is_negative { number.negated() } else { number })
}
