//! `SUBSTRING(text SIMILAR pattern ESCAPE character)` as the call of a function, which sqlparser reads.

use std::ops::Range;

use onrush_query::SIMILAR_PART;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Writes all of them anew.
pub(super) fn spell(tokens: &mut [TokenWithSpan], statement: Range<usize>) {
    for at in statement.clone() {
        if !is_word(&tokens[at].token, "substring") {
            continue;
        }
        let Some((similar, escape)) = words_of(&tokens[at + 1..statement.end]) else { continue };
        tokens[at].token = Token::make_word(SIMILAR_PART, None);
        for word in [similar, escape] {
            tokens[at + 1 + word].token = Token::Comma;
        }
    }
}

fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

/// Where the two words stand behind the parenthesis of a call.
fn words_of(tokens: &[TokenWithSpan]) -> Option<(usize, usize)> {
    let (mut depth, mut similar) = (0_usize, None);
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth <= 1 => return None,
            Token::RParen => depth -= 1,
            Token::Whitespace(_) => {}
            _ if depth == 0 => return None,
            word if depth == 1 && is_word(word, "similar") => similar = Some(at),
            word if depth == 1 && is_word(word, "escape") => return Some((similar?, at)),
            _ => {}
        }
    }
    None
}
