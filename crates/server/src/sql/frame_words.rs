//! `'1 day'::interval PRECEDING`: sqlparser takes text in front of that word for an interval, and no cast behind it.

use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::rewrite::keyword;

/// Takes the casts to intervals out of the frames of windows.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let words: Vec<usize> = statement.filter(is_word).collect();
    let mut casts = Vec::new();
    for four in words.windows(4) {
        let [text, cast, of, side] = [0, 1, 2, 3].map(|at| &tokens[four[at]]);
        let is_distance = matches!(text.token, Token::SingleQuotedString(_))
            && cast.token == Token::DoubleColon
            && keyword(of) == Some(Keyword::INTERVAL)
            && matches!(keyword(side), Some(Keyword::PRECEDING | Keyword::FOLLOWING));
        if is_distance {
            casts.extend([four[1], four[2]]);
        }
    }
    for at in casts.into_iter().rev() {
        tokens.remove(at);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn casts_to_intervals_are_taken_out_of_frames() {
        let text =
            "range between '1 y'::interval preceding and '2'::interval following, '3'::interval";
        let spelled = crate::sql::rewrite::spelled(text, super::spell);
        assert_eq!(spelled, "range between '1 y' preceding and '2' following, '3'::interval");
    }
}
