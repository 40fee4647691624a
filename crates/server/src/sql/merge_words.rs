//! `DO NOTHING` and `INSERT DEFAULT VALUES` of MERGE: sqlparser does not read them. They become actions on a column
//! with a name that no column has.

use std::ops::Range;

use sqlparser::ast::{Assignment, AssignmentTarget, Expr, MergeAction, MergeInsertKind};
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::names;
use super::rewrite::word;

const NOTHING: &str = "onrush.do nothing";
const DEFAULTS: &str = "onrush.default values";

/// Puts the actions in the place of the words.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let words: Vec<usize> = statement.filter(is_word).collect();
    let is = |at: usize, wanted: &str| words.get(at).is_some_and(|at| word(&tokens[*at]) == wanted);
    if !(0..words.len()).any(|at| is(at, "merge") && is(at + 1, "into")) {
        return;
    }
    let mut found = Vec::new();
    for at in 0..words.len() {
        if is(at, "then") && is(at + 1, "do") && is(at + 2, "nothing") {
            let when = (0..at).rev().find(|at| is(*at, "when"));
            let is_matched = when.is_some_and(|when| is(when + 1, "matched"));
            let action = if is_matched { update() } else { insert(NOTHING) };
            found.push((words[at + 1]..=words[at + 2], action));
        }
        let is_default = is(at, "then") && is(at + 1, "insert") && is(at + 2, "default");
        if is_default && is(at + 3, "values") {
            found.push((words[at + 1]..=words[at + 3], insert(DEFAULTS)));
        }
    }
    for (place, action) in found.into_iter().rev() {
        let span = tokens[*place.start()].span;
        tokens.splice(place, action.into_iter().map(|token| TokenWithSpan { token, span }));
    }
}

fn name(name: &str) -> Token {
    Token::make_word(name, Some('"'))
}

fn update() -> Vec<Token> {
    let space = || Token::Whitespace(Whitespace::Space);
    vec![
        Token::make_keyword("UPDATE"),
        space(),
        Token::make_keyword("SET"),
        space(),
        name(NOTHING),
        Token::Eq,
        name(NOTHING),
    ]
}

fn insert(what: &str) -> Vec<Token> {
    vec![
        Token::make_keyword("INSERT"),
        Token::Whitespace(Whitespace::Space),
        Token::make_keyword("VALUES"),
        Token::LParen,
        name(what),
        Token::RParen,
    ]
}

/// What an action says that stands for words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    DefaultValues,
    /// What it is written as.
    Itself,
}

pub(super) fn said_by(action: &MergeAction) -> Said {
    let name = match action {
        MergeAction::Update(update) => only_column(&update.assignments),
        MergeAction::Insert(insert) => only_value(&insert.kind),
        MergeAction::Delete { .. } => None,
    };
    match name.as_deref() {
        Some(NOTHING) => Said::Nothing,
        Some(DEFAULTS) => Said::DefaultValues,
        _ => Said::Itself,
    }
}

fn only_column(assignments: &[Assignment]) -> Option<String> {
    let [Assignment { target: AssignmentTarget::ColumnName(column), .. }] = assignments else {
        return None;
    };
    names::column(column).ok()
}

fn only_value(kind: &MergeInsertKind) -> Option<String> {
    let MergeInsertKind::Values(values) = kind else { return None };
    let [row] = values.rows.as_slice() else { return None };
    let [Expr::Identifier(name)] = row.content.as_slice() else { return None };
    Some(name.value.clone())
}
