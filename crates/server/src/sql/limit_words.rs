//! `FETCH FIRST (n) ROWS ONLY` as `LIMIT (n)`: sqlparser reads a number there and nothing else. WITH TIES becomes a
//! function of the count.

use std::ops::Range;

use onrush_query::WITH_TIES;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::rewrite::keyword;

/// Writes the clauses of the statement anew. FETCH at its beginning is a statement of its own.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let (mut at, mut end) = (statement.start, statement.end);
    let mut is_first_word = true;
    while at < end {
        let is_word = !matches!(tokens[at].token, Token::Whitespace(_));
        let is_clause = is_word && !is_first_word && keyword(&tokens[at]) == Some(Keyword::FETCH);
        is_first_word &= !is_word;
        let clause = is_clause.then(|| Clause::read(&tokens[at..end])).flatten();
        let Some(Clause { count, takes_ties, length }) = clause else {
            at += 1;
            continue;
        };
        let span = tokens[at].span;
        let mut limit = vec![Token::make_keyword("LIMIT"), Token::Whitespace(Whitespace::Space)];
        if takes_ties {
            limit.extend([Token::make_word(WITH_TIES, None), Token::LParen]);
        }
        match count.is_empty() {
            true => limit.push(Token::Number("1".to_owned(), false)),
            false => limit.extend(tokens[at..end][count].iter().map(|token| token.token.clone())),
        }
        if takes_ties {
            limit.push(Token::RParen);
        }
        let limit: Vec<_> = limit.into_iter().map(|token| TokenWithSpan { token, span }).collect();
        end = end - length + limit.len();
        let next = at + limit.len();
        tokens.splice(at..at + length, limit);
        at = next;
    }
}

/// One clause: where its count stands in it, and how long it is.
struct Clause {
    count: Range<usize>,
    takes_ties: bool,
    length: usize,
}

impl Clause {
    /// None if it is none, or has other words than ONLY and WITH TIES at its end.
    fn read(tokens: &[TokenWithSpan]) -> Option<Clause> {
        let mut words = (0..tokens.len())
            .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
            .skip(1)
            .peekable();
        let next_keyword = |wanted: &[Keyword], words: &mut dyn Iterator<Item = usize>| {
            words.next().filter(|at| keyword(&tokens[*at]).is_some_and(|is| wanted.contains(&is)))
        };
        next_keyword(&[Keyword::FIRST, Keyword::NEXT], &mut words)?;
        let first = *words.peek()?;
        let (mut count, mut depth) = (first..first, 0usize);
        let rows = loop {
            let at = words.next()?;
            match &tokens[at].token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 && matches!(keyword(&tokens[at]), Some(Keyword::ROW | Keyword::ROWS)) {
                break at;
            }
            count.end = at + 1;
        };
        if rows == first {
            count = first..first;
        }
        let last = next_keyword(&[Keyword::ONLY, Keyword::WITH], &mut words)?;
        let takes_ties = keyword(&tokens[last]) == Some(Keyword::WITH);
        let last = match takes_ties {
            true => next_keyword(&[Keyword::TIES], &mut words)?,
            false => last,
        };
        Some(Clause { count, takes_ties, length: last + 1 })
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    fn spelled(text: &str) -> String {
        let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
        let mut tokens = tokens.expect("tokens");
        let all = 0..tokens.len();
        super::spell(&mut tokens, all);
        tokens.iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn a_count_may_be_any_expression_or_none() {
        assert_eq!(spelled("TABLE t FETCH FIRST (1 + (2)) ROWS ONLY"), "TABLE t LIMIT (1 + (2))");
        assert_eq!(
            spelled("TABLE t OFFSET 2 ROWS FETCH NEXT $1 ROW ONLY FOR UPDATE"),
            "TABLE t OFFSET 2 ROWS LIMIT $1 FOR UPDATE"
        );
        assert_eq!(spelled("TABLE t FETCH FIRST ROW ONLY"), "TABLE t LIMIT 1");
        assert_eq!(
            spelled("TABLE t FETCH FIRST ($1) ROWS WITH TIES OFFSET 1"),
            "TABLE t LIMIT onrush_with_ties(($1)) OFFSET 1"
        );
    }

    #[test]
    fn other_words_stay() {
        for text in ["FETCH FIRST FROM c", "TABLE t FETCH FIRST 2 ROWS WITHOUT", "TABLE fetch"] {
            assert_eq!(spelled(text), text);
        }
    }
}
