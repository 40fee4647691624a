//! What sqlparser does not read of ALTER COLUMN, written as a default that nothing else has:
//!
//! ```text
//! ALTER [COLUMN] name DROP IDENTITY [IF EXISTS]
//! ALTER [COLUMN] name SET GENERATED ALWAYS | BY DEFAULT
//! ```

use std::ops::Range;

use sqlparser::ast::Expr;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::alter::ColumnChange;
use super::constraints::lower;

/// What stands for a change, and its words.
const CHANGES: [(&str, &[&str]); 4] = [
    ("onrush_drop_identity_if_exists", &["drop", "identity", "if", "exists"]),
    ("onrush_drop_identity", &["drop", "identity"]),
    ("onrush_always_generated", &["set", "generated", "always"]),
    ("onrush_generated_by_default", &["set", "generated", "by", "default"]),
];

/// Writes the changes of one statement, an ALTER, anew.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let places: Vec<usize> = statement.filter(is_word).collect();
    let words: Vec<String> = places.iter().map(|at| lower(&tokens[*at].token)).collect();
    let mut found = Vec::new();
    for at in 2..words.len() {
        let is_of_column = words[at - 2] == "alter" || words[at - 2] == "column";
        let change = CHANGES.iter().find(|(_, change)| {
            let own = words.get(at..at + change.len());
            is_of_column && own.is_some_and(|own| own.iter().eq(change.iter()))
        });
        found.extend(
            change.map(|(name, change)| (*name, places[at]..=places[at + change.len() - 1])),
        );
    }
    for (name, range) in found.into_iter().rev() {
        let span = tokens[*range.start()].span;
        let written = ["set", "default", name].map(|word| Token::make_word(word, None));
        let mut spaced = Vec::with_capacity(written.len());
        for token in written {
            let space = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
            spaced.extend([space, token].map(|token| TokenWithSpan { token, span }));
        }
        tokens.splice(range, spaced);
    }
}

/// The change that a default stands for.
pub(super) fn change_of(default: &Expr) -> Option<ColumnChange> {
    let Expr::Identifier(name) = default else { return None };
    Some(match name.value.as_str() {
        "onrush_drop_identity_if_exists" => ColumnChange::NoIdentity { if_exists: true },
        "onrush_drop_identity" => ColumnChange::NoIdentity { if_exists: false },
        "onrush_always_generated" => ColumnChange::AlwaysGenerated(true),
        "onrush_generated_by_default" => ColumnChange::AlwaysGenerated(false),
        _ => return None,
    })
}
