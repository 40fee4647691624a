//! The options of an identity in the order in which sqlparser reads them; PostgreSQL takes them in any.

use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::sql::rewrite::keyword;

/// Puts the options of each `IDENTITY (...)` in order.
pub(in crate::sql) fn put_in_order(tokens: &mut [TokenWithSpan], statement: Range<usize>) {
    let is_word = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let mut at = statement.start;
    while at < statement.end {
        let is_identity = keyword(&tokens[at]) == Some(Keyword::IDENTITY);
        at += 1;
        let rest = &tokens[at..statement.end];
        let Some(open) = rest.iter().position(is_word).filter(|_| is_identity) else { continue };
        if rest[open].token != Token::LParen {
            continue;
        }
        let Some(close) = rest.iter().position(|token| token.token == Token::RParen) else {
            return;
        };
        order(&mut tokens[at + open + 1..at + close]);
        at += close;
    }
}

fn order(options: &mut [TokenWithSpan]) {
    let mut groups: Vec<(usize, Vec<TokenWithSpan>)> = Vec::new();
    let mut is_negated = false;
    for token in options.iter() {
        let rank = match keyword(token) {
            Some(Keyword::INCREMENT) => Some(0),
            Some(Keyword::MINVALUE) => Some(1),
            Some(Keyword::MAXVALUE) => Some(2),
            Some(Keyword::START) => Some(3),
            Some(Keyword::CACHE) => Some(4),
            Some(Keyword::CYCLE) => Some(5),
            _ => None,
        };
        match (rank, groups.last_mut()) {
            // Of NO the next word tells what it is about.
            (Some(rank), Some(last)) if is_negated => {
                *last = (rank, std::mem::take(&mut last.1));
                last.1.push(token.clone());
            }
            (Some(rank), _) => groups.push((rank, vec![token.clone()])),
            (None, _) if keyword(token) == Some(Keyword::NO) => {
                groups.push((usize::MAX, vec![token.clone()]));
            }
            (None, Some((_, last))) => last.push(token.clone()),
            // Blanks, or a word that is no option.
            (None, None) => groups.push((0, vec![token.clone()])),
        }
        let is_blank = matches!(token.token, Token::Whitespace(_));
        is_negated = keyword(token) == Some(Keyword::NO) || (is_negated && is_blank);
    }
    groups.sort_by_key(|(rank, _)| *rank);
    let ordered = groups.into_iter().flat_map(|(_, tokens)| tokens);
    options.iter_mut().zip(ordered).for_each(|(place, token)| *place = token);
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    #[test]
    fn options_come_in_one_order() {
        let text = "AS IDENTITY ( NO CYCLE START WITH 4 NO MAXVALUE INCREMENT BY 2 NO MINVALUE )";
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
        let mut tokens = tokens.expect("tokens");
        let all = 0..tokens.len();
        super::put_in_order(&mut tokens, all);
        let words: Vec<String> = tokens.iter().map(|token| token.token.to_string()).collect();
        let words = words.join(" ");
        let words: Vec<&str> = words.split_whitespace().collect();
        assert_eq!(
            words.join(" "),
            "AS IDENTITY ( INCREMENT BY 2 NO MINVALUE NO MAXVALUE START WITH 4 NO CYCLE )"
        );
    }
}
