//! `f(a, VARIADIC array)` as `f(a, VARIADIC(array))`, which sqlparser reads.

use std::ops::Range;

use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Writes the last arguments of the statement's calls anew that stand behind the word.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_it = |token: &Token| {
        matches!(token, Token::Word(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("variadic"))
    };
    let (mut at, mut end) = (statement.start, statement.end);
    while at < end {
        if is_it(&tokens[at].token)
            && let Some(length) = end_of_argument(&tokens[at + 1..end])
        {
            let span = tokens[at].span;
            let close = at + 1 + length;
            tokens.insert(close, TokenWithSpan { token: Token::RParen, span });
            tokens.insert(at + 1, TokenWithSpan { token: Token::LParen, span });
            end += 2;
        }
        at += 1;
    }
}

/// How many tokens there are up to the end of the call; none where no call ends.
fn end_of_argument(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.token {
            Token::RParen if depth == 0 => return Some(at),
            Token::Comma if depth == 0 => return None,
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_last_argument_becomes_a_call() {
        for (text, expected) in [
            ("f(1, VARIADIC x[1], 2)", "f(1, VARIADIC x[1], 2)"),
            ("f(1, VARIADIC array[1, g(2)])", "f(1, VARIADIC( array[1, g(2)]))"),
            ("f(variadic '{}'::int[]) = ''", "f(variadic( '{}'::int[])) = ''"),
        ] {
            let spelled = crate::sql::rewrite::spelled(text, super::spell);
            assert_eq!(spelled, expected);
        }
    }
}
