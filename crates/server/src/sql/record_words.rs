//! `(record).*` as `(record).field`, which sqlparser reads: the field stands for all.

use std::ops::Range;

use onrush_query::ALL_FIELDS;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Writes each star behind a record in parentheses anew.
pub(super) fn spell(tokens: &mut [TokenWithSpan], statement: Range<usize>) {
    let is_word = |token: &Token| !matches!(token, Token::Whitespace(_));
    let words: Vec<usize> = statement.filter(|at| is_word(&tokens[*at].token)).collect();
    for place in words.windows(3) {
        let &[close, point, star] = place else { continue };
        let is_star = tokens[star].token == Token::Mul && tokens[point].token == Token::Period;
        if is_star && tokens[close].token == Token::RParen {
            tokens[star].token = Token::make_word(ALL_FIELDS, None);
        }
    }
}
