//! `ONLY table`: sqlparser reads it in ALTER TABLE and its kin alone. Without inherited tables there are no others.

use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::rewrite::keyword;

/// Takes ONLY out of FROM, JOIN, USING, INTO and UPDATE.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let words: Vec<usize> = statement.filter(is_word).collect();
    let is_taken = |three: &&[usize]| {
        let [before, only, table] = [0, 1, 2].map(|at| &tokens[three[at]]);
        let names_tables = before.token == Token::Comma
            || matches!(
                keyword(before),
                Some(
                    Keyword::FROM
                        | Keyword::JOIN
                        | Keyword::USING
                        | Keyword::INTO
                        | Keyword::UPDATE
                )
            );
        names_tables
            && keyword(only) == Some(Keyword::ONLY)
            && matches!(table.token, Token::Word(_))
    };
    let taken: Vec<usize> = words.windows(3).filter(is_taken).map(|three| three[1]).collect();
    for at in taken.into_iter().rev() {
        tokens.remove(at);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_taken_out_where_tables_are_named() {
        for (text, expected) in [
            ("SELECT a FROM ONLY s.t, only u", "SELECT a FROM  s.t,  u"),
            ("DELETE FROM ONLY t USING ONLY u", "DELETE FROM  t USING  u"),
            ("UPDATE ONLY t SET a = 1", "UPDATE  t SET a = 1"),
            ("ALTER TABLE ONLY t DROP a", "ALTER TABLE ONLY t DROP a"),
            ("SELECT a FROM t FETCH FIRST 2 ROWS ONLY", "SELECT a FROM t FETCH FIRST 2 ROWS ONLY"),
            ("SELECT a FROM \"only\" t", "SELECT a FROM \"only\" t"),
        ] {
            let spelled = crate::sql::rewrite::spelled(text, super::spell);
            assert_eq!(spelled, expected);
        }
    }
}
