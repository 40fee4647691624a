//! `INSERT ... OVERRIDING SYSTEM VALUE`: sqlparser does not read it. It becomes the last of the columns that values are
//! given for, with a name that no column has.

use std::ops::Range;

use sqlparser::ast::ObjectName;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::names;
use super::rewrite::word;

/// What becomes of values that are given for identities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overriding {
    /// They are taken, also where the identity is always generated.
    System,
    /// They are left out, and the identity generates its own.
    User,
}

const SYSTEM: &str = "onrush.overriding system";
const USER: &str = "onrush.overriding user";

/// Puts the column in the place of the clause.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let words: Vec<usize> = statement.filter(is_word).collect();
    let is = |at: usize, wanted: &str| word(&tokens[words[at]]) == wanted;
    let Some(insert) = (0..words.len()).find(|at| is(*at, "insert")) else { return };
    let found = (insert..words.len().saturating_sub(2)).find(|at| {
        is(*at, "overriding") && (is(at + 1, "system") || is(at + 1, "user")) && is(at + 2, "value")
    });
    let Some(clause) = found.filter(|at| *at > insert + 1) else { return };
    let name = if is(clause + 1, "system") { SYSTEM } else { USER };
    let span = tokens[words[clause]].span;
    let name = Token::make_word(name, Some('"'));
    let before = words[clause - 1];
    let space = Token::Whitespace(Whitespace::Space);
    let (start, column) = match tokens[before].token {
        Token::RParen => (before, vec![Token::Comma, name, Token::RParen, space]),
        _ => (before + 1, vec![space.clone(), Token::LParen, name, Token::RParen, space]),
    };
    let column = column.into_iter().map(|token| TokenWithSpan { token, span });
    tokens.splice(start..=words[clause + 2], column);
}

/// The columns that are given, without the one that stands for the clause.
pub(super) fn of(columns: &[ObjectName]) -> (&[ObjectName], Option<Overriding>) {
    let Some((last, others)) = columns.split_last() else { return (columns, None) };
    match names::column(last).as_deref() {
        Ok(SYSTEM) => (others, Some(Overriding::System)),
        Ok(USER) => (others, Some(Overriding::User)),
        _ => (columns, None),
    }
}
