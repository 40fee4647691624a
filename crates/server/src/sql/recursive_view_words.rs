//! `CREATE RECURSIVE VIEW name (columns) AS query`, which sqlparser does not read, as the view of a WITH RECURSIVE of
//! that name.

use std::ops::Range;

use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::rewrite::word;

/// Writes one statement anew.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let places: Vec<usize> = statement.filter(is_word).collect();
    let words: Vec<String> = places.iter().take(6).map(|at| word(&tokens[*at])).collect();
    let Some(recursive) = words.iter().position(|word| word == "recursive") else { return };
    let leads = words[..recursive]
        .iter()
        .all(|word| matches!(word.as_str(), "create" | "or" | "replace" | "temp" | "temporary"));
    if !leads || words.first().map(String::as_str) != Some("create") {
        return;
    }
    if words.get(recursive + 1).map(String::as_str) != Some("view") {
        return;
    }
    let find = |from: usize, wanted: &Token| {
        places[from..].iter().position(|at| tokens[*at].token == *wanted).map(|at| from + at)
    };
    let Some(open) = find(recursive, &Token::LParen) else { return };
    let Some(close) = find(open, &Token::RParen) else { return };
    let Some(begin) = places.get(close + 1).filter(|at| word(&tokens[**at]) == "as") else {
        return;
    };
    let name = tokens[places[open - 1]].token.clone();
    let columns: Vec<Token> =
        places[open + 1..close].iter().map(|at| tokens[*at].token.clone()).collect();
    let span = tokens[*begin].span;
    let spaced = |written: Vec<Token>| {
        let space = Token::Whitespace(Whitespace::Space);
        let each = written.into_iter().flat_map(move |token| [space.clone(), token]);
        each.map(move |token| TokenWithSpan { token, span }).collect::<Vec<_>>()
    };
    let keyword = Token::make_keyword;
    let mut before = vec![keyword("WITH"), keyword("RECURSIVE"), name.clone(), Token::LParen];
    before.extend(columns.iter().cloned());
    before.extend([Token::RParen, keyword("AS"), Token::LParen]);
    let mut behind = vec![Token::RParen, keyword("SELECT")];
    behind.extend(columns);
    behind.extend([keyword("FROM"), name]);
    let (begin, end) = (*begin, places.last().map_or(begin + 1, |last| last + 1));
    tokens.splice(end..end, spaced(behind));
    tokens.splice(begin + 1..begin + 1, spaced(before));
    tokens.remove(places[recursive]);
}
