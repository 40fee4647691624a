//! `ON CONFLICT (expression, ...) [WHERE condition]`: sqlparser reads columns alone there. Anything else becomes `ON
//! CONFLICT ON CONSTRAINT` with a name that no constraint has and in which the words stand.

use std::ops::Range;

use onrush::{IndexDefinition, Indexed, RowExpression, TableDefinition, Uniqueness};
use sqlparser::ast::Expr;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::dialect::OnrushDialect;
use super::index::innermost;
use super::insert::Arbiter;
use super::{form, names};
use crate::error::{Result, SqlError, state};

/// In front of the words.
const TARGET: &str = "onrush.conflict ";
/// Between what conflicts and the condition.
const WHERE: &str = "\u{1}";

/// Puts the name in the place of what sqlparser does not read.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let words: Vec<usize> = statement.filter(is_word).collect();
    let word =
        |at: usize| words.get(at).map(|place| tokens[*place].token.to_string().to_lowercase());
    let is = |at: usize, wanted: &str| word(at).is_some_and(|word| word == wanted);
    let mut starts = 0..words.len();
    let found = starts.find(|at| is(*at, "on") && is(at + 1, "conflict") && is(at + 2, "("));
    let Some(open) = found.map(|at| at + 2) else { return };
    let Some(close) = end_of(open + 1, &word, |depth, word| depth == 0 && word == ")") else {
        return;
    };
    let condition = match is(close + 1, "where") {
        true => {
            let end = end_of(close + 2, &word, |depth, word| depth == 0 && word == "do");
            let Some(end) = end else { return };
            Some(close + 2..end)
        }
        false => None,
    };
    let are_columns = (open + 1..close).enumerate().all(|(at, place)| {
        matches!((&tokens[words[place]].token, at % 2), (Token::Word(_), 0) | (Token::Comma, 1))
    });
    if are_columns && condition.is_none() {
        return;
    }
    let text = |range: Range<usize>| -> String {
        let shown = range.map(|at| tokens[words[at]].token.to_string());
        shown.collect::<Vec<_>>().join(" ")
    };
    let mut target = format!("{TARGET}{}", text(open + 1..close));
    let mut last = close;
    if let Some(condition) = condition {
        last = condition.end - 1;
        target = format!("{target}{WHERE}{}", text(condition));
    }
    let span = tokens[words[open]].span;
    let space = Token::Whitespace(Whitespace::Space);
    let new = [
        Token::make_keyword("ON"),
        space.clone(),
        Token::make_keyword("CONSTRAINT"),
        space,
        Token::make_word(&target, Some('"')),
    ];
    let new = new.map(|token| TokenWithSpan { token, span });
    tokens.splice(words[open]..=words[last], new);
}

/// Where a word stands of which `is_end` is told how deep in parentheses it is.
fn end_of(
    start: usize,
    word: &impl Fn(usize) -> Option<String>,
    is_end: impl Fn(usize, &str) -> bool,
) -> Option<usize> {
    let mut depth = 0_usize;
    for at in start.. {
        let word = word(at)?;
        if is_end(depth, &word) {
            return Some(at);
        }
        match word.as_str() {
            "(" => depth += 1,
            ")" => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// What a name made by [`spell`] means. None for any other name.
pub(super) fn arbiter(table: &TableDefinition, name: &str) -> Option<Result<Arbiter>> {
    let target = name.strip_prefix(TARGET)?;
    Some(find(table, target))
}

fn find(table: &TableDefinition, target: &str) -> Result<Arbiter> {
    let (keys, condition) = match target.split_once(WHERE) {
        Some((keys, condition)) => (keys, Some(condition)),
        None => (target, None),
    };
    let mut given = Vec::new();
    for expression in read(keys)? {
        given.push(key(table, &expression)?);
    }
    let number = |position: &usize| column_key(table, *position);
    let primary: Vec<Key> = table.primary_key().iter().map(number).collect();
    if primary.iter().all(|key| given.contains(key))
        && given.iter().all(|key| primary.contains(key))
    {
        return Ok(Arbiter::Key);
    }
    let condition = match condition {
        Some(condition) => match read(condition)?.as_slice() {
            [condition] => computed(table, condition),
            _ => None,
        },
        None => None,
    };
    let is_it = |index: &IndexDefinition| {
        let known = index.columns.iter().map(|column| match column.of {
            Indexed::Column(number) => Some(Key::Column(number)),
            Indexed::Expression(at) => {
                let expression = index.expressions.get(usize::from(at))?;
                Some(Key::Computed(Some(expression.of.clone())))
            }
        });
        let known: Option<Vec<Key>> = known.collect();
        let has_all = known.is_some_and(|known| {
            known.iter().all(|key| given.contains(key))
                && given.iter().all(|key| known.contains(key))
        });
        // A condition that is given may be more than an index of all rows needs.
        let has_condition = index.predicate.is_none() || index.predicate == condition;
        let is_unique = index.uniqueness != Uniqueness::NotUnique && !index.is_building;
        is_unique && has_all && has_condition
    };
    table.indexes().iter().position(is_it).map(Arbiter::Index).ok_or_else(no_constraint)
}

/// What is said to conflict.
#[derive(PartialEq)]
enum Key {
    /// The number of a column.
    Column(u16),
    /// None is no index's.
    Computed(Option<RowExpression>),
}

fn key(table: &TableDefinition, expression: &Expr) -> Result<Key> {
    let inner = innermost(expression);
    let Expr::Identifier(name) = inner else { return Ok(Key::Computed(computed(table, inner))) };
    Ok(column_key(table, table.shown_column_index(&names::identifier(name))?))
}

fn column_key(table: &TableDefinition, position: usize) -> Key {
    // A table has at most 1,024 columns.
    Key::Column(u16::try_from(table.column_number(position)).unwrap_or(u16::MAX))
}

fn computed(table: &TableDefinition, expression: &Expr) -> Option<RowExpression> {
    RowExpression::new(&form::read(expression, table.name())?, table).ok()
}

fn read(text: &str) -> Result<Vec<Expr>> {
    let dialect = OnrushDialect::new(text.len());
    let mut parser = Parser::new(&dialect).try_with_sql(text)?;
    let read = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::EOF)?;
    Ok(read)
}

pub(super) fn no_constraint() -> SqlError {
    let message =
        "there is no unique or exclusion constraint matching the ON CONFLICT specification";
    SqlError::new(state::INVALID_COLUMN_REFERENCE, message)
}

pub(super) fn is_deferrable() -> SqlError {
    let message = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
    SqlError::new(state::NOT_IN_PREREQUISITE_STATE, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(text: &str) -> String {
        let mut tokens = super::super::tokens(text).expect("words");
        let all = 0..tokens.len();
        spell(&mut tokens, all);
        tokens.iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn columns_stay_and_all_else_becomes_a_name() {
        let plain = "INSERT INTO t VALUES (1) ON CONFLICT (a, \"B\") DO NOTHING";
        assert_eq!(spelled(plain), plain);
        let start = "INSERT INTO t VALUES (1) ON CONFLICT ";
        assert_eq!(
            spelled(&format!("{start}(lower(a), b) DO NOTHING")),
            format!("{start}ON CONSTRAINT \"{TARGET}lower ( a ) , b\" DO NOTHING")
        );
        assert_eq!(
            spelled(&format!("{start}(a) WHERE (b > 1) DO UPDATE SET a = 1 WHERE t.a = 2")),
            format!(
                "{start}ON CONSTRAINT \"{TARGET}a{WHERE}( b > 1 )\" DO UPDATE SET a = 1 WHERE t.a = 2"
            )
        );
    }
}
