//! Regular expressions of PostgreSQL, as the library has them.
//!
//! PostgreSQL's are of Henry Spencer: a dot and `[^a]` stand for the end of a line, too, `\y` is the edge of a word
//! and `\m` its beginning, and of all matches at a place the longest counts. What cannot be said in the library's
//! words is refused.

use std::iter::Peekable;
use std::str::Chars;

use crate::error::{QueryError, Result};

/// The letters of options, as they are given to a function or stand in front of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    is_insensitive: bool,
    /// `^` and `$` are found at the lines' ends, too.
    has_lines: bool,
    /// A dot and what is not of a class stop at the end of a line.
    stops_at_lines: bool,
    is_expanded: bool,
    is_literal: bool,
    /// `g`: all that is found, not the first alone.
    pub(crate) is_global: bool,
}

impl Flags {
    /// Takes letters, one after the other.
    ///
    /// # Errors
    /// `22023`, a letter that there is not.
    pub(crate) fn with(mut self, letters: &str) -> Result<Flags> {
        for letter in letters.chars() {
            match letter {
                'i' => self.is_insensitive = true,
                'c' => self.is_insensitive = false,
                'n' | 'm' => (self.has_lines, self.stops_at_lines) = (true, true),
                's' => (self.has_lines, self.stops_at_lines) = (false, false),
                'p' => (self.has_lines, self.stops_at_lines) = (false, true),
                'w' => (self.has_lines, self.stops_at_lines) = (true, false),
                'x' => self.is_expanded = true,
                't' => self.is_expanded = false,
                'q' => self.is_literal = true,
                'g' => self.is_global = true,
                'b' | 'e' => {
                    return Err(unsupported("the option that makes a pattern an older one"));
                }
                other => {
                    let message = format!("invalid regular expression option: \"{other}\"");
                    return Err(QueryError::refused("22023", message));
                }
            }
        }
        Ok(self)
    }
}

/// A pattern in the library's words.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) pattern: String,
    /// Alternatives, and parts of which there may be more or less.
    pub(crate) choices: usize,
    /// Of these, how many take as little as they can.
    pub(crate) lazy: usize,
    /// Alternatives, or groups of which there may be more or less: parts of a match may be divided in several ways.
    pub(crate) is_nested: bool,
    /// How long the flags at its beginning are.
    pub(crate) flags: usize,
    /// It refers to what it has found, or looks ahead or behind, which no automaton does.
    pub(crate) goes_back: bool,
}

/// # Errors
/// `2201B`, what is no pattern; `0A000`, what the library has not.
pub(crate) fn in_library(pattern: &str, flags: Flags) -> Result<Written> {
    let mut flags = flags;
    let mut rest = pattern;
    if let Some(literal) = rest.strip_prefix("***=") {
        flags.is_literal = true;
        rest = literal;
    } else {
        rest = rest.strip_prefix("***:").unwrap_or(rest);
        if rest.starts_with("***") {
            return Err(invalid("quantifier operand invalid"));
        }
        if !flags.is_literal
            && let Some((letters, behind)) = embedded(rest)
        {
            flags = flags.with(letters)?;
            rest = behind;
        }
    }
    let mut written = String::with_capacity(rest.len() + 8);
    written.push_str("(?");
    for (is_on, letter) in [
        (!flags.stops_at_lines, 's'),
        (flags.is_insensitive, 'i'),
        (flags.has_lines, 'm'),
        (flags.is_expanded && !flags.is_literal, 'x'),
    ] {
        if is_on {
            written.push(letter);
        }
    }
    match written.as_str() {
        "(?" => written.clear(),
        _ => written.push(')'),
    }
    if flags.is_literal {
        written.push_str(&regex::escape(rest));
        return Ok(Written { pattern: written, ..Written::default() });
    }
    let made = Written { flags: written.len(), pattern: written, ..Written::default() };
    let (rest, open, groups) = (rest.chars().peekable(), Vec::new(), Vec::new());
    Writer { rest, made, flags, open, groups, has_reference: false, has_start: false }.write()
}

/// `(?i)` at the beginning of a pattern.
fn embedded(pattern: &str) -> Option<(&str, &str)> {
    let (letters, behind) = pattern.strip_prefix("(?")?.split_once(')')?;
    let are_letters = letters.bytes().all(|letter| letter.is_ascii_lowercase());
    (are_letters && !letters.is_empty()).then_some((letters, behind))
}

pub(crate) fn invalid(what: impl std::fmt::Display) -> QueryError {
    QueryError::refused("2201B", format!("invalid regular expression: {what}"))
}

fn unsupported(what: &str) -> QueryError {
    QueryError::refused("0A000", format!("{what} in a regular expression is not supported"))
}

/// What a parenthesis has opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    /// What is found in it is kept under this number, from 0.
    Group(usize),
    Plain,
    /// A look ahead or behind, in which nothing is kept.
    Look,
}

struct Writer<'p> {
    rest: Peekable<Chars<'p>>,
    made: Written,
    flags: Flags,
    open: Vec<Open>,
    /// Whether each group is closed.
    groups: Vec<bool>,
    has_reference: bool,
    /// Whether it has `^`.
    has_start: bool,
}

impl Writer<'_> {
    fn write(mut self) -> Result<Written> {
        while let Some(character) = self.rest.next() {
            match character {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => {
                    if let Some(Open::Group(number)) = self.open.pop() {
                        self.groups[number] = true;
                    }
                    self.made.pattern.push(')');
                }
                // Of other things than numbers it is a brace.
                '{' if !self.rest.peek().is_some_and(char::is_ascii_digit) => {
                    self.made.pattern.push_str("\\{");
                }
                '*' | '+' | '?' | '{' => self.quantifier(character),
                '|' => {
                    self.made.choices += 1;
                    self.made.is_nested = true;
                    self.made.pattern.push('|');
                }
                other => {
                    self.has_start |= other == '^';
                    self.made.pattern.push(other);
                }
            }
        }
        // PostgreSQL finds `$()` in no text, where `|^\1` is another alternative.
        if self.has_reference && self.has_start && self.made.is_nested {
            return Err(unsupported("a reference to what was found beside ^ and alternatives"));
        }
        Ok(self.made)
    }

    /// How many there are of what stands before it.
    fn quantifier(&mut self, character: char) {
        self.made.is_nested |= self.made.pattern.ends_with(')');
        self.made.pattern.push(character);
        let mut may_differ = true;
        if character == '{' {
            let mut bounds = String::new();
            while let Some(digit) = self.rest.next_if(|next| next.is_ascii_digit() || *next == ',')
            {
                bounds.push(digit);
            }
            may_differ = match bounds.split_once(',') {
                Some((least, most)) => least != most,
                None => false,
            };
            self.made.pattern.push_str(&bounds);
            self.made.pattern.extend(self.rest.next_if_eq(&'}'));
        }
        let is_lazy = self.rest.next_if_eq(&'?').is_some();
        if is_lazy {
            self.made.pattern.push('?');
        }
        // A lazy count makes what it counts lazy, too, however often that is.
        self.made.choices += usize::from(may_differ || is_lazy);
        self.made.lazy += usize::from(is_lazy);
    }

    /// What stands behind a backslash, outside of a class.
    fn escape(&mut self) -> Result<()> {
        let Some(character) = self.rest.next() else {
            return Err(invalid("invalid escape \\ sequence"));
        };
        match character {
            'A' => self.made.pattern.push_str("\\A"),
            'Z' => self.made.pattern.push_str("\\z"),
            'm' => self.made.pattern.push_str("\\b{start}"),
            'M' => self.made.pattern.push_str("\\b{end}"),
            'y' => self.made.pattern.push_str("\\b"),
            'Y' => self.made.pattern.push_str("\\B"),
            'D' | 'S' | 'W' if self.flags.stops_at_lines => {
                self.made.pattern.push_str(&format!("[\\{character}--\\n]"));
            }
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => self.made.pattern.extend(['\\', character]),
            '1'..='9' => self.reference(character)?,
            other => self.character(other)?,
        }
        Ok(())
    }

    /// What a group has found, once more.
    fn reference(&mut self, digit: char) -> Result<()> {
        if self.rest.peek().is_some_and(char::is_ascii_digit) {
            return Err(unsupported("a number of several digits behind a backslash"));
        }
        let number = digit.to_digit(10).map_or(0, |digit| digit as usize);
        let is_there = self.groups.get(number - 1) == Some(&true);
        if !is_there || self.is_looking() {
            return Err(invalid("invalid backreference number"));
        }
        self.made.goes_back = true;
        self.has_reference = true;
        // What stands behind it is not to be taken for another digit of it.
        self.made.pattern.push_str(&format!("(?:\\{digit})"));
        Ok(())
    }

    fn is_looking(&self) -> bool {
        self.open.contains(&Open::Look)
    }

    /// An escape that stands for one character.
    fn character(&mut self, character: char) -> Result<()> {
        let found = match character {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'B' => '\\',
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '0' => '\0',
            'u' => self.hexadecimal(Some(4))?,
            'U' => self.hexadecimal(Some(8))?,
            'x' => self.hexadecimal(None)?,
            other if other.is_alphanumeric() => {
                return Err(invalid("invalid escape \\ sequence"));
            }
            other => other,
        };
        self.literal(found);
        Ok(())
    }

    /// The character of a number, of so many digits or of as many as there are.
    fn hexadecimal(&mut self, count: Option<usize>) -> Result<char> {
        let bad = || invalid("invalid escape \\ sequence");
        let mut digits = String::new();
        while count.is_none_or(|count| digits.len() < count)
            && let Some(digit) = self.rest.next_if(char::is_ascii_hexdigit)
        {
            digits.push(digit);
        }
        if count.is_some_and(|count| digits.len() < count) {
            return Err(bad());
        }
        u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).ok_or_else(bad)
    }

    /// A character that stands for itself, in a class or outside of one.
    fn literal(&mut self, character: char) {
        if matches!(character, '&' | '~' | '-' | '\n' | '#' | ' ') || character.is_ascii_control() {
            self.made.pattern.push_str(&format!("\\x{{{:x}}}", u32::from(character)));
        } else {
            self.made.pattern.push_str(&regex::escape(character.encode_utf8(&mut [0; 4])));
        }
    }

    /// What stands behind an opening bracket, to the closing one.
    fn class(&mut self) -> Result<()> {
        let rest: String = self.rest.clone().take(6).collect();
        for (word, edge) in [("[:<:]]", "\\b{start}"), ("[:>:]]", "\\b{end}")] {
            if rest == word {
                self.rest.by_ref().nth(word.len() - 1);
                self.made.pattern.push_str(edge);
                return Ok(());
            }
        }
        self.made.pattern.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.made.pattern.push('^');
            if self.flags.stops_at_lines {
                self.made.pattern.push_str("\\n");
            }
        }
        let mut is_first = true;
        loop {
            let Some(character) = self.rest.next() else {
                return Err(invalid("brackets [] not balanced"));
            };
            match character {
                ']' if !is_first => break,
                '[' if matches!(self.rest.peek(), Some('.' | '=')) => {
                    return Err(unsupported("a collating element"));
                }
                '[' if self.rest.peek() == Some(&':') => self.named()?,
                '\\' => match self.rest.next() {
                    Some(class @ ('d' | 's' | 'w')) => self.made.pattern.extend(['\\', class]),
                    Some(other) => self.character(other)?,
                    None => return Err(invalid("brackets [] not balanced")),
                },
                // A range, or itself at one of the ends.
                '-' if !is_first && self.rest.peek() != Some(&']') => self.made.pattern.push('-'),
                other => self.literal(other),
            }
            is_first = false;
        }
        self.made.pattern.push(']');
        Ok(())
    }

    /// `:alpha:]`, of which the bracket was read.
    fn named(&mut self) -> Result<()> {
        let mut name = String::new();
        self.rest.next();
        while let Some(letter) = self.rest.next_if(char::is_ascii_alphabetic) {
            name.push(letter);
        }
        if self.rest.next() != Some(':') || self.rest.next() != Some(']') {
            return Err(invalid("brackets [] not balanced"));
        }
        let known = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print",
            "punct", "space", "upper", "word", "xdigit",
        ];
        if !known.contains(&name.as_str()) {
            return Err(invalid("invalid character class"));
        }
        self.made.pattern.push_str(&format!("[:{name}:]"));
        Ok(())
    }

    fn group(&mut self) -> Result<()> {
        if self.rest.next_if_eq(&'?').is_none() {
            let opened = match self.is_looking() {
                true => Open::Plain,
                false => Open::Group(self.groups.len()),
            };
            if opened == Open::Plain {
                self.made.pattern.push_str("(?:");
            } else {
                self.groups.push(false);
                self.made.pattern.push('(');
            }
            self.open.push(opened);
            return Ok(());
        }
        let looked = match self.rest.next() {
            Some(':') => None,
            Some(ahead @ ('=' | '!')) => Some(ahead.to_string()),
            Some('<') => match self.rest.next() {
                Some(behind @ ('=' | '!')) => Some(format!("<{behind}")),
                _ => return Err(invalid("quantifier operand invalid")),
            },
            Some('#') => {
                // A comment.
                while self.rest.next().is_some_and(|other| other != ')') {}
                return Ok(());
            }
            _ => return Err(invalid("quantifier operand invalid")),
        };
        self.open.push(if looked.is_some() { Open::Look } else { Open::Plain });
        self.made.goes_back |= looked.is_some();
        self.made.pattern.push_str(&format!("(?{}", looked.unwrap_or_else(|| ":".to_owned())));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_put_into_the_library_s_words() {
        for (pattern, letters, expected) in [
            ("a.b", "", "(?s)a.b"),
            ("a.b", "n", "(?m)a.b"),
            ("a", "i", "(?si)a"),
            ("(?i)a", "", "(?si)a"),
            (r"\mx\M\y", "", r"(?s)\b{start}x\b{end}\b"),
            ("[[:<:]]a", "", r"(?s)\b{start}a"),
            ("[]a]", "", r"(?s)[\]a]"),
            ("[a&&b]", "", r"(?s)[a\x{26}\x{26}b]"),
            ("[^a]", "n", r"(?m)[^\na]"),
            ("a{x", "", r"(?s)a\{x"),
            ("a{2,3}", "", "(?s)a{2,3}"),
            ("***=a.b", "", r"(?s)a\.b"),
            ("(?#b)a", "", "(?s)a"),
        ] {
            let flags = Flags::default().with(letters).expect("options");
            assert_eq!(in_library(pattern, flags).expect(pattern).pattern, expected, "{pattern}");
        }
        for pattern in [r"\1", r"(a\1)", r"(a)\2", r"(a)(?=\1)", "[[.a.]]"] {
            assert!(in_library(pattern, Flags::default()).is_err(), "{pattern}");
        }
        for (pattern, expected) in
            [(r"(a)\1", r"(?s)(a)(?:\1)"), ("(?=(a))", "(?s)(?=(?:a))"), ("(?<!a)b", "(?s)(?<!a)b")]
        {
            let written = in_library(pattern, Flags::default()).expect(pattern);
            assert!(written.goes_back && written.pattern == expected, "{pattern}");
        }
    }
}
