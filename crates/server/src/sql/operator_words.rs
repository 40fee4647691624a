//! `OPERATOR(schema.name) ANY (...)`, as PostgreSQL's tools write it: sqlparser reads no such operator in front of ANY
//! and ALL.

use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::rewrite::{keyword, word};

/// Writes the operator itself there.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let words: Vec<usize> = statement.filter(is_word).collect();
    let mut found = Vec::new();
    for seven in words.windows(7) {
        let at = |place: usize| &tokens[seven[place]];
        let is_operator = keyword(at(0)) == Some(Keyword::OPERATOR)
            && at(1).token == Token::LParen
            && word(at(2)) == "pg_catalog"
            && at(3).token == Token::Period
            && at(5).token == Token::RParen
            && matches!(keyword(at(6)), Some(Keyword::ANY | Keyword::ALL | Keyword::SOME));
        if is_operator {
            found.push((seven[0], seven[4], seven[5]));
        }
    }
    for (first, operator, last) in found.into_iter().rev() {
        let operator = tokens[operator].clone();
        tokens.splice(first..=last, [operator]);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_operator_in_front_of_any_is_written_by_itself() {
        let text = "a OPERATOR(pg_catalog.=) ANY (b) AND c OPERATOR(pg_catalog.~) d OR \
                    e operator ( pg_catalog.<> ) all (f)";
        let spelled = crate::sql::rewrite::spelled(text, super::spell);
        assert_eq!(spelled, "a = ANY (b) AND c OPERATOR(pg_catalog.~) d OR e <> all (f)");
    }
}
