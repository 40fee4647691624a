//! `[NOT] DEFERRABLE` of a transaction, which sqlparser does not read. It says when a serializable transaction begins,
//! and means nothing for any other, so it is left out.

use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::rewrite::keyword;

/// How many words a statement has in front of its modes.
const WORDS_BEFORE_MODES: usize = 5;

/// Takes the mode out of the statement, with the comma beside it.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let words: Vec<usize> = statement.filter(is_word).collect();
    let mut leading = words.iter().take(WORDS_BEFORE_MODES).map(|at| keyword(&tokens[*at]));
    let has_modes = match leading.next().flatten() {
        Some(Keyword::BEGIN | Keyword::START) => true,
        Some(Keyword::SET) => leading.any(|word| word == Some(Keyword::TRANSACTION)),
        _ => false,
    };
    if !has_modes {
        return;
    }
    let mut left_out = Vec::new();
    for (number, at) in words.iter().enumerate() {
        if keyword(&tokens[*at]) != Some(Keyword::DEFERRABLE) {
            continue;
        }
        let is_not = number > 0 && keyword(&tokens[words[number - 1]]) == Some(Keyword::NOT);
        let first = if is_not { number - 1 } else { number };
        left_out.extend_from_slice(&words[first..=number]);
        let is_comma = |number: Option<usize>| {
            let at = number.and_then(|number| words.get(number)).copied();
            at.filter(|at| tokens[*at].token == Token::Comma && !left_out.contains(at))
        };
        left_out.extend(is_comma(first.checked_sub(1)).or_else(|| is_comma(Some(number + 1))));
    }
    left_out.sort_unstable();
    for at in left_out.into_iter().rev() {
        tokens.remove(at);
    }
}
