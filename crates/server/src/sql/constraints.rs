//! SET CONSTRAINTS, which sqlparser does not read.
//!
//! ```text
//! SET CONSTRAINTS ALL | [schema.]name [, ...] DEFERRED | IMMEDIATE
//! ```

use sqlparser::tokenizer::Token;

/// When foreign keys of the open transaction are looked at from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConstraintsPlan {
    /// Schema and name of each; none: all that can be put off.
    pub(crate) names: Option<Vec<(Option<String>, String)>>,
    pub(crate) is_deferred: bool,
}

/// Reads a statement whose words these are. None if it is none of this form.
pub(super) fn read(words: &[&Token]) -> Option<ConstraintsPlan> {
    let (set_constraints, rest) = words.split_at_checked(2)?;
    if lower(set_constraints[0]) != "set" || lower(set_constraints[1]) != "constraints" {
        return None;
    }
    let (when, which) = rest.split_last()?;
    let is_deferred = match lower(when).as_str() {
        "deferred" => true,
        "immediate" => false,
        _ => return None,
    };
    let names = match which {
        [all] if lower(all) == "all" => None,
        names => {
            Some(names.split(|token| **token == Token::Comma).map(name).collect::<Option<_>>()?)
        }
    };
    Some(ConstraintsPlan { names, is_deferred })
}

/// A name, with its schema if one stands in front.
pub(super) fn name(words: &[&Token]) -> Option<(Option<String>, String)> {
    match words {
        [own] => Some((None, identifier(own)?)),
        [schema, Token::Period, own] => Some((Some(identifier(schema)?), identifier(own)?)),
        _ => None,
    }
}

pub(super) fn identifier(token: &Token) -> Option<String> {
    match token {
        Token::Word(name) if name.quote_style.is_some() => Some(name.value.clone()),
        Token::Word(name) => Some(name.value.to_lowercase()),
        _ => None,
    }
}

pub(super) fn lower(token: &Token) -> String {
    token.to_string().to_lowercase()
}
