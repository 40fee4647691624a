//! `WHERE CURRENT OF cursor`, which sqlparser does not read, as a condition: the call of a function that nothing else
//! has.

use std::ops::Range;

use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Value};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::rewrite::keyword;

/// The function that stands for it.
const CURRENT_OF: &str = "onrush_current_of";

/// Writes the condition of one statement anew.
pub(super) fn spell(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let places: Vec<usize> = statement.filter(is_word).collect();
    let first = places.first().and_then(|at| keyword(&tokens[*at]));
    if !matches!(first, Some(Keyword::UPDATE | Keyword::DELETE | Keyword::WITH)) {
        return;
    }
    let found = places.windows(4).find(|found| {
        let [condition, current, of, _] = found else { return false };
        keyword(&tokens[*condition]) == Some(Keyword::WHERE)
            && keyword(&tokens[*current]) == Some(Keyword::CURRENT)
            && keyword(&tokens[*of]) == Some(Keyword::OF)
    });
    let Some(&[_, current, _, cursor]) = found else { return };
    let Token::Word(word) = &tokens[cursor].token else { return };
    let name = match word.quote_style {
        Some(_) => word.value.clone(),
        None => word.value.to_lowercase(),
    };
    let span = tokens[current].span;
    let call = [
        Token::make_word(CURRENT_OF, None),
        Token::LParen,
        Token::SingleQuotedString(name),
        Token::RParen,
    ];
    let call = call.into_iter().map(|token| TokenWithSpan { token, span });
    tokens.splice(current..=cursor, call);
}

/// The cursor on whose row a condition is.
pub(super) fn cursor_of(selection: &Expr) -> Option<&str> {
    let Expr::Function(call) = selection else { return None };
    let FunctionArguments::List(list) = &call.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))]
            if call.name.to_string() == CURRENT_OF =>
        {
            match &value.value {
                Value::SingleQuotedString(name) => Some(name),
                _ => None,
            }
        }
        _ => None,
    }
}
