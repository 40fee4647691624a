//! FOR NO KEY UPDATE, FOR KEY SHARE, and OF with several tables, in words that sqlparser reads: a clause for each
//! table, with the kind of lock in front of its name, behind LIMIT.

use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::locking::{KEY, NO_KEY};
use super::rewrite::keyword;

/// Writes the clauses of the statement anew.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let (mut at, mut end) = (statement.start, statement.end);
    while at < end {
        let clause = (keyword(&tokens[at]) == Some(Keyword::FOR))
            .then(|| Clause::read(&tokens[at..end]))
            .flatten();
        let Some(clause) = clause else {
            at += 1;
            continue;
        };
        let (span, length) = (tokens[at].span, clause.length);
        let spelled = clause.spelled().into_iter().map(|token| TokenWithSpan { token, span });
        let spelled: Vec<_> = spelled.collect();
        end = end - length + spelled.len();
        tokens.drain(at..at + length);
        // sqlparser reads LIMIT in front of the clause only.
        let place = at + limit_length(&tokens[at..end - spelled.len()]);
        at = place + spelled.len();
        tokens.splice(place..place, spelled);
    }
}

/// How many tokens LIMIT, OFFSET and FETCH have that stand here.
fn limit_length(tokens: &[TokenWithSpan]) -> usize {
    let is_word = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let first = tokens.iter().find(is_word).and_then(keyword);
    if !matches!(first, Some(Keyword::LIMIT | Keyword::OFFSET | Keyword::FETCH)) {
        return 0;
    }
    let mut depth = 0usize;
    let is_end = |token: &TokenWithSpan| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return true,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0 && keyword(token) == Some(Keyword::FOR)
    };
    tokens.iter().position(is_end).unwrap_or(tokens.len())
}

/// One clause, as it was written.
struct Clause {
    /// UPDATE or SHARE.
    lock: Keyword,
    /// What stands in front of that, by the name that it is given.
    kind: Option<&'static str>,
    of: Vec<Token>,
    /// NOWAIT, or SKIP LOCKED.
    when_taken: Vec<Token>,
    /// How many tokens it has, those between words included.
    length: usize,
}

impl Clause {
    fn read(tokens: &[TokenWithSpan]) -> Option<Clause> {
        let is_word =
            |(_, token): &(usize, &TokenWithSpan)| !matches!(token.token, Token::Whitespace(_));
        let words: Vec<(usize, &TokenWithSpan)> =
            tokens.iter().enumerate().filter(is_word).collect();
        let word = |at: usize| words.get(at).and_then(|(_, token)| keyword(token));
        let (lock, kind, mut next) = match (word(1), word(2), word(3)) {
            (Some(Keyword::NO), Some(Keyword::KEY), Some(Keyword::UPDATE)) => {
                (Keyword::UPDATE, Some(NO_KEY), 4)
            }
            (Some(Keyword::KEY), Some(Keyword::SHARE), _) => (Keyword::SHARE, Some(KEY), 3),
            (Some(lock @ (Keyword::UPDATE | Keyword::SHARE)), ..) => (lock, None, 2),
            _ => return None,
        };
        let mut of = Vec::new();
        if word(next) == Some(Keyword::OF) {
            loop {
                of.push(words.get(next + 1)?.1.token.clone());
                next += 2;
                match words.get(next).map(|(_, token)| &token.token) {
                    Some(Token::Comma) => {}
                    // A name with a schema, which is refused by name.
                    Some(Token::Period) => return None,
                    _ => break,
                }
            }
        }
        let when_taken = match (word(next), word(next + 1)) {
            (Some(Keyword::NOWAIT), _) => 1,
            (Some(Keyword::SKIP), Some(Keyword::LOCKED)) => 2,
            _ => 0,
        };
        let said = &words[next..next + when_taken];
        let length = words[next + when_taken - 1].0 + 1;
        let when_taken = said.iter().map(|(_, token)| token.token.clone()).collect();
        Some(Clause { lock, kind, of, when_taken, length })
    }

    fn spelled(self) -> Vec<Token> {
        let lock = if self.lock == Keyword::UPDATE { "UPDATE" } else { "SHARE" };
        let of: Vec<Option<Token>> = match self.of.is_empty() {
            true => vec![None],
            false => self.of.into_iter().map(Some).collect(),
        };
        let mut spelled = Vec::new();
        for table in of {
            spelled.extend([Token::make_keyword("FOR"), Token::make_keyword(lock)]);
            let kind = self.kind.map(|kind| Token::make_word(kind, Some('"')));
            let names: Vec<Token> = kind.into_iter().chain(table).collect();
            for (position, name) in names.into_iter().enumerate() {
                let between = if position == 0 { Token::make_keyword("OF") } else { Token::Period };
                spelled.extend([between, name]);
            }
            spelled.extend(self.when_taken.iter().cloned());
        }
        spelled
    }
}
