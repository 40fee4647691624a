//! `SELECT` of no columns and from nowhere, which sqlparser does not read: it gives one row, as one from a row does.

use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::dialect::OnrushDialect;
use super::rewrite::keyword;

/// Says from where, wherever a SELECT has nothing but clauses behind it.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    const ROW: &str = " FROM (VALUES (1)) AS onrush_row ";
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let words: Vec<usize> = statement.filter(is_word).collect();
    let is_bare = |number: usize| {
        let Some(next) = words.get(number + 1).map(|at| &tokens[*at]) else { return true };
        let behind = [Keyword::WHERE, Keyword::UNION, Keyword::EXCEPT, Keyword::INTERSECT];
        next.token == Token::RParen || keyword(next).is_some_and(|word| behind.contains(&word))
    };
    let bare = (0..words.len())
        .filter(|number| keyword(&tokens[words[*number]]) == Some(Keyword::SELECT))
        .filter(|number| is_bare(*number));
    let places: Vec<usize> = bare.map(|number| words[number] + 1).collect();
    for place in places.into_iter().rev() {
        let span = tokens[place - 1].span;
        let row = Tokenizer::new(&OnrushDialect::new(ROW.len()), ROW).tokenize();
        let row = row.unwrap_or_default().into_iter();
        tokens.splice(place..place, row.map(|token| TokenWithSpan { token, span }));
    }
}
