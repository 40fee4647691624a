//! `ORDER BY x USING >` as `ORDER BY x DESC`: sqlparser reads no operator there.

use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::rewrite::keyword;

/// Writes the orders of the statement anew that are told by an operator.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let words: Vec<usize> = statement.filter(is_word).collect();
    let mut orders = Vec::new();
    for two in words.windows(2) {
        let order = match (keyword(&tokens[two[0]]), &tokens[two[1]].token) {
            (Some(Keyword::USING), Token::Lt) => "ASC",
            (Some(Keyword::USING), Token::Gt) => "DESC",
            _ => continue,
        };
        orders.push((two[0], two[1], order));
    }
    for (using, operator, order) in orders.into_iter().rev() {
        tokens[using].token = Token::make_keyword(order);
        tokens.remove(operator);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_operator_becomes_a_word() {
        let text = "SELECT * FROM a JOIN b USING (x) ORDER BY x USING >, y using < LIMIT 1";
        let spelled = crate::sql::rewrite::spelled(text, super::spell);
        assert_eq!(spelled, "SELECT * FROM a JOIN b USING (x) ORDER BY x DESC , y ASC  LIMIT 1");
    }
}
