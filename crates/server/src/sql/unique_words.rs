//! What sqlparser does not read of UNIQUE constraints, written as comments of the constraint before it is read:
//!
//! ```text
//! UNIQUE (columns) INCLUDE (columns)     the included columns
//! column type UNIQUE NULLS NOT DISTINCT  whether rows may have NULL more than once
//! ```

use std::ops::Range;

use onrush::Uniqueness;
use sqlparser::ast::IndexOption;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::constraints::lower;
use super::dialect::OnrushDialect;
use super::names;
use crate::error::{Result, SqlError, state};

/// Begins the comment that stands for included columns.
const INCLUDE: &str = "onrush.include ";
/// The comment that stands for NULLS NOT DISTINCT.
const NULLS_NOT_DISTINCT: &str = "onrush.nulls_not_distinct";

/// Writes the clauses of one statement as comments.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let places: Vec<usize> = statement.filter(is_word).collect();
    let words: Vec<String> = places.iter().map(|at| lower(&tokens[*at].token)).collect();
    let mut changes = Vec::new();
    for at in 0..words.len() {
        changes.extend(match words[at].as_str() {
            "unique" => nulls(&words, at),
            "include" => included(&words, at),
            _ => None,
        });
    }
    for (range, comment) in changes.into_iter().rev() {
        let (first, last) = (places[range.start], places[range.end - 1]);
        let span = tokens[first].span;
        let mut written = Vec::new();
        if let Some(comment) = comment {
            written.push(Token::make_keyword("COMMENT"));
            written.push(Token::SingleQuotedString(comment));
        }
        let written = written.into_iter().map(|token| TokenWithSpan { token, span });
        tokens.splice(first..=last, written);
    }
}

/// Which words a clause has, and the comment that stands for it; none where it says nothing.
type Clause = (Range<usize>, Option<String>);

/// What a UNIQUE behind a column says of NULL. In front of columns sqlparser reads it.
fn nulls(words: &[String], unique: usize) -> Option<Clause> {
    let rest: Vec<&str> = words[unique + 1..].iter().take(4).map(String::as_str).collect();
    let (length, comment) = match rest.as_slice() {
        ["nulls", "not", "distinct", next @ ..] if next != ["("] => {
            (3, Some(NULLS_NOT_DISTINCT.to_owned()))
        }
        ["nulls", "distinct", next @ ..] if next.first() != Some(&"(") => (2, None),
        _ => return None,
    };
    Some((unique + 1..unique + 1 + length, comment))
}

/// The INCLUDE clause behind the columns of a UNIQUE constraint.
fn included(words: &[String], include: usize) -> Option<Clause> {
    if words[..include].last()? != ")" || words.get(include + 1)? != "(" {
        return None;
    }
    let open = words[..include].iter().rposition(|word| word == "(")?;
    let before: Vec<&str> = words[..open].iter().rev().take(3).map(String::as_str).collect();
    let is_constraint = matches!(
        before.as_slice(),
        ["unique", ..]
            | ["distinct", "nulls", ..]
            | ["distinct", "not", "nulls"]
            | ["key", "primary", ..]
    );
    let close = include + words[include..].iter().position(|word| word == ")")?;
    let columns = words[include + 2..close].join(" ");
    is_constraint.then(|| (include..close + 1, Some(format!("{INCLUDE}{columns}"))))
}

/// Whether a comment behind a column says that NULL may be there once.
pub(super) fn uniqueness(comment: &str) -> Option<Uniqueness> {
    (comment == NULLS_NOT_DISTINCT).then_some(Uniqueness::NullsEqual)
}

/// The columns that a constraint includes.
///
/// # Errors
/// Another option; what is no list of columns.
pub(super) fn included_columns(options: &[IndexOption]) -> Result<Vec<String>> {
    let mut columns = Vec::new();
    for option in options {
        let words = match option {
            IndexOption::Comment(comment) => comment.strip_prefix(INCLUDE),
            IndexOption::Using(_) => None,
        };
        let words = words.ok_or_else(|| {
            SqlError::not_supported(option, "Write UNIQUE (columns) [INCLUDE (columns)].")
        })?;
        let dialect = OnrushDialect::new(words.len());
        let parser = Parser::new(&dialect).try_with_sql(words);
        let list = parser.and_then(|mut parser| {
            let list = parser.parse_comma_separated(Parser::parse_identifier)?;
            parser.expect_token(&Token::EOF).map(|_| list)
        });
        let list = list.map_err(|_| {
            SqlError::new(state::SYNTAX_ERROR, format!("{words:?} is no list of columns"))
        })?;
        columns.extend(list.iter().map(names::identifier));
    }
    Ok(columns)
}
