//! Regular expressions of conditions: those of PostgreSQL's that mean the same to the library that matches them.

use regex::{Regex, RegexBuilder};

/// Memory of a compiled pattern at most, in bytes.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// A regular expression that a text is matched with: `~`, or `~*` where case does not count.
#[derive(Debug, Clone)]
pub struct Pattern {
    written: String,
    is_ignoring_case: bool,
    compiled: Regex,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        (&self.written, self.is_ignoring_case) == (&other.written, other.is_ignoring_case)
    }
}

impl Pattern {
    /// # Errors
    /// It is no regular expression, too large a one, or one with parts to which PostgreSQL gives a
    /// meaning of their own: escapes of letters but for the
    /// classes `\d`, `\s`, `\w`, what begins with `(?` but for `(?:`, classes with names, `***`.
    pub fn new(
        written: impl Into<String>,
        is_ignoring_case: bool,
    ) -> Result<Pattern, &'static str> {
        let written = written.into();
        // Which letters are the same without case depends on PostgreSQL's locale.
        if !means_the_same(&written) || (is_ignoring_case && !written.is_ascii()) {
            return Err("a regular expression with parts that only PostgreSQL knows");
        }
        let compiled = RegexBuilder::new(&written)
            .case_insensitive(is_ignoring_case)
            .dot_matches_new_line(true)
            .size_limit(COMPILED_BYTES_MAX)
            .build()
            .map_err(|_| "a regular expression that cannot be read")?;
        Ok(Pattern { written, is_ignoring_case, compiled })
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Whether upper and lower case are the same to it.
    #[must_use]
    pub fn is_ignoring_case(&self) -> bool {
        self.is_ignoring_case
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }
}

fn means_the_same(written: &str) -> bool {
    if written.starts_with("***") {
        return false;
    }
    let mut characters = written.chars().peekable();
    let mut is_in_class = false;
    // Of the class, without the circumflex that negates it: a bracket that comes first is one of its characters.
    let mut is_first = false;
    while let Some(character) = characters.next() {
        let next = characters.peek().copied();
        let was_first = std::mem::take(&mut is_first);
        match character {
            '\\' => match characters.next() {
                Some('d' | 's' | 'w') if !is_in_class => {}
                Some(escaped)
                    if escaped.is_ascii_punctuation() && escaped != '<' && escaped != '>' => {}
                _ => return false,
            },
            '[' if is_in_class => return false,
            '[' => {
                is_in_class = true;
                is_first = true;
                if next == Some('^') {
                    characters.next();
                }
            }
            ']' if is_in_class && was_first => return false,
            ']' => is_in_class = false,
            // Operations on classes, in the library.
            '&' | '~' | '-' if is_in_class && next == Some(character) => return false,
            '(' if !is_in_class && next == Some('?') => {
                characters.next();
                if characters.next() != Some(':') {
                    return false;
                }
            }
            '{' if !is_in_class && !next.is_some_and(|next| next.is_ascii_digit()) => return false,
            _ => {}
        }
    }
    !is_in_class
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_everyday_are_taken() {
        for written in [
            "^[a-z]+$",
            "^[^@ ]+@[^@ ]+\\.[a-z]{2,}$",
            "^\\d{3}-\\d{4}$",
            "^(?:a|b)*c?$",
            "^[-+]?[0-9]*\\.?[0-9]+$",
            "",
            "é.ß",
        ] {
            assert!(Pattern::new(written, false).is_ok(), "{written}");
        }
    }

    #[test]
    fn parts_with_another_meaning_are_refused() {
        for written in [
            "***=a",
            "\\yword\\y",
            "\\mword",
            "(?i)a",
            "(?=a)",
            "(a)\\1",
            "[[:alpha:]]",
            "[a&&b]",
            "[]a]",
            "a{,3}",
            "[a",
            "(",
            "[\\d]",
            "a\\<",
            "(?<name>a)",
        ] {
            assert!(Pattern::new(written, false).is_err(), "{written}");
        }
    }

    #[test]
    fn a_pattern_that_takes_too_much_memory_is_refused() {
        assert!(Pattern::new("(?:a{1000}){1000}", false).is_err());
    }
}
