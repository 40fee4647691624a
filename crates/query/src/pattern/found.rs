//! What a regular expression finds in a text: of all matches that begin first, the longest.
//!
//! One that refers to what it has found, or looks ahead or behind, is tried way by way, and refused where the ways are
//! too many; any other is an automaton.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use regex::Regex;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input, MatchKind};

use super::parts::Part;
use super::regular::{Flags, in_library, invalid};
use crate::error::{QueryError, Result};

/// Patterns that a thread keeps.
const KEPT_MAX: usize = 64;
/// How often a pattern that goes back may do so in one search.
const WAYS_MAX: usize = 100_000;

thread_local! {
    static KEPT: RefCell<HashMap<(String, String), Rc<Pattern>>> = RefCell::default();
}

/// A regular expression.
pub(crate) struct Pattern {
    library: Library,
    pub(crate) flags: Flags,
}

enum Library {
    Automaton {
        regex: Regex,
        longest: Option<Box<Longest>>,
        /// What tells the groups of a match, where the library's may be others.
        parts: Option<Box<Part>>,
    },
    WayByWay {
        regex: fancy_regex::Regex,
        /// Whether it cannot be told which of several matches counts, or how it is divided.
        is_unsure: bool,
    },
}

/// What tells where the longest match ends, where that may be another than the library's.
struct Longest {
    automaton: DFA,
    cache: RefCell<Cache>,
    /// The pattern up to the end of a text.
    to_the_end: Regex,
}

/// Where the whole of a match lies, and each of its groups that has one.
pub(crate) type Found = Vec<Option<Range<usize>>>;

impl Pattern {
    /// A pattern with options; one that was asked for before is kept.
    ///
    /// # Errors
    /// What is no pattern, and what cannot be found as PostgreSQL does.
    pub(crate) fn new(pattern: &str, letters: &str) -> Result<Rc<Pattern>> {
        let key = (pattern.to_owned(), letters.to_owned());
        if let Some(known) = KEPT.with_borrow(|kept| kept.get(&key).cloned()) {
            return Ok(known);
        }
        let made = Rc::new(Pattern::compiled(pattern, letters)?);
        KEPT.with_borrow_mut(|kept| {
            if kept.len() >= KEPT_MAX {
                kept.clear();
            }
            kept.insert(key, Rc::clone(&made));
        });
        Ok(made)
    }

    fn compiled(pattern: &str, letters: &str) -> Result<Pattern> {
        let flags = Flags::default().with(letters)?;
        let written = in_library(pattern, flags)?;
        // PostgreSQL asks the first of them whether all of a pattern takes much or little.
        if written.lazy > 0 && written.lazy < written.choices {
            let message = "a regular expression of which a part takes as little as it can and another as much is \
                           not supported";
            return Err(QueryError::refused("0A000", message));
        }
        if written.goes_back {
            let regex = fancy_regex::RegexBuilder::new(&written.pattern)
                .leftmost_longest(written.lazy == 0)
                .backtrack_limit(WAYS_MAX)
                .build()
                .map_err(invalid)?;
            let is_unsure = written.lazy > 0 || written.is_nested;
            return Ok(Pattern { library: Library::WayByWay { regex, is_unsure }, flags });
        }
        let regex = Regex::new(&written.pattern).map_err(invalid)?;
        let longest = match written.choices > 0 && written.lazy == 0 {
            true => Some(Box::new(Longest::new(&written.pattern)?)),
            false => None,
        };
        let has_groups = regex.captures_len() > 1;
        let parts = match written.is_nested && has_groups && longest.is_some() {
            true => Some(Box::new(Part::new(&written.pattern, written.flags)?)),
            false => None,
        };
        Ok(Pattern { library: Library::Automaton { regex, longest, parts }, flags })
    }

    /// # Errors
    /// A pattern with too many ways to go.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool> {
        match &self.library {
            Library::Automaton { regex, .. } => Ok(regex.is_match(text)),
            Library::WayByWay { regex, .. } => regex.is_match(text).map_err(too_many_ways),
        }
    }

    /// The first match that begins at this byte or behind it.
    ///
    /// # Errors
    /// A text of which the longest match cannot be told.
    pub(crate) fn first(&self, text: &str, from: usize) -> Result<Option<Found>> {
        let (regex, longest, parts) = match &self.library {
            Library::Automaton { regex, longest, parts } => (regex, longest, parts),
            Library::WayByWay { is_unsure: true, .. } => {
                let message = "what a regular expression takes that looks around or refers to what it has found, and \
                               has several ways to go, is not told";
                return Err(QueryError::refused("0A000", message));
            }
            Library::WayByWay { regex, .. } => {
                let captures = regex.captures_from_pos(text, from).map_err(too_many_ways)?;
                return Ok(captures.map(|captures| {
                    captures.iter().map(|group| group.map(|group| group.range())).collect()
                }));
            }
        };
        let Some(captures) = regex.captures_at(text, from) else { return Ok(None) };
        let ranges = |captures: regex::Captures<'_>| -> Found {
            captures.iter().map(|group| group.map(|group| group.range())).collect()
        };
        let found = ranges(captures);
        let (Some(longest), Some(Some(whole))) = (longest, found.first()) else {
            return Ok(Some(found));
        };
        let end = longest.end(text, whole.start)?;
        if let Some(parts) = parts {
            let start = whole.start;
            let mut groups: Found = vec![None; found.len()];
            groups[0] = Some(start..end);
            parts.groups(text, start, end, &mut groups)?;
            return Ok(Some(groups));
        }
        if end == whole.end {
            return Ok(Some(found));
        }
        let captures = longest.to_the_end.captures_at(&text[..end], whole.start);
        let other = captures.map(ranges).filter(|other| {
            other
                .first()
                .is_some_and(|own| own.as_ref().is_some_and(|own| own.start == whole.start))
        });
        other.map(Some).ok_or_else(unsure)
    }

    /// All matches from this byte on, one behind the other.
    ///
    /// # Errors
    /// Those of [`first`](Self::first).
    pub(crate) fn all(&self, text: &str, from: usize) -> Result<Vec<Found>> {
        let mut all = Vec::new();
        let mut next = Some(from);
        while let Some(from) = next
            && let Some(found) = self.first(text, from)?
        {
            next = found.first().and_then(Option::as_ref).and_then(|whole| behind(text, whole));
            all.push(found);
        }
        Ok(all)
    }
}

/// Where to look on behind a match; none at the end of the text.
pub(crate) fn behind(text: &str, whole: &Range<usize>) -> Option<usize> {
    match whole.is_empty() {
        false => Some(whole.end),
        true => text[whole.end..].chars().next().map(|next| whole.end + next.len_utf8()),
    }
}

impl Longest {
    fn new(pattern: &str) -> Result<Longest> {
        let automaton = DFA::builder()
            .configure(DFA::config().match_kind(MatchKind::All).unicode_word_boundary(true))
            .build(pattern)
            .map_err(invalid)?;
        let cache = RefCell::new(automaton.create_cache());
        let to_the_end = Regex::new(&format!("(?:{pattern})\\z")).map_err(invalid)?;
        Ok(Longest { automaton, cache, to_the_end })
    }

    /// Where the longest match ends that begins at this byte.
    fn end(&self, text: &str, start: usize) -> Result<usize> {
        let input = Input::new(text).range(start..).anchored(Anchored::Yes);
        let found = self.automaton.try_search_fwd(&mut self.cache.borrow_mut(), &input);
        found.ok().flatten().map(|end| end.offset()).ok_or_else(unsure)
    }
}

fn too_many_ways(_: fancy_regex::Error) -> QueryError {
    QueryError::refused("0A000", "this regular expression has too many ways to go in this text")
}

pub(super) fn unsure() -> QueryError {
    QueryError::refused(
        "0A000",
        "the longest match of this regular expression in this text is not found",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(pattern: &str, text: &str) -> Option<Vec<Option<String>>> {
        let pattern = Pattern::new(pattern, "").expect("a pattern");
        let found = pattern.first(text, 0).expect("no doubt")?;
        let part = |range: Option<Range<usize>>| range.map(|range| text[range].to_owned());
        Some(found.into_iter().map(part).collect())
    }

    #[test]
    fn the_longest_match_counts() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(first("foo|foobar", "xfoobar"), Some(vec![some("foobar")]));
        assert_eq!(first("(foo|foobar)", "foobar"), Some(vec![some("foobar"), some("foobar")]));
        assert_eq!(first("a*(ab)?", "aab"), Some(vec![some("aab"), some("ab")]));
        assert_eq!(first("(a|ab)(b*)", "abb"), Some(vec![some("abb"), some("ab"), some("b")]));
        assert_eq!(
            first("(a|ab)(c|bcd)(d*)", "abcd"),
            Some(vec![some("abcd"), some("ab"), some("c"), some("d")])
        );
        assert_eq!(first("(?:(a)|(b))*", "ab"), Some(vec![some("ab"), None, some("b")]));
        assert_eq!(first("(b)|(c)", "abc"), Some(vec![some("b"), some("b"), None]));
        assert_eq!(first("<.*?>", "<a><b>"), Some(vec![some("<a>")]));
        assert_eq!(first("x", "abc"), None);
        assert!(Pattern::new(r".*?(\d+)", "").is_err());
    }
}
