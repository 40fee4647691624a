//! SET SESSION AUTHORIZATION and SET ROLE, which sqlparser does not read in all their forms.
//!
//! ```text
//! SET [SESSION | LOCAL] SESSION AUTHORIZATION name | DEFAULT
//! SET [SESSION | LOCAL] ROLE name | NONE
//! RESET SESSION AUTHORIZATION
//! ```

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::setting::SettingChange;

/// The setting that tells as whom a client has come, or acts as if it had.
pub(crate) const SESSION_USER: &str = "session_authorization";
/// The setting that tells as which role it acts.
pub(crate) const ROLE: &str = "role";

/// Reads a statement whose words these are. None if it is none of this form.
pub(super) fn read(words: &[&Token]) -> Option<SettingChange> {
    let (first, rest) = words.split_first()?;
    let (first, lower) = (lower(first), rest.iter().map(|token| lower(token)).collect::<Vec<_>>());
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    if (first.as_str(), lower.as_slice()) == ("reset", &["session", "authorization"]) {
        return Some(change(SESSION_USER, None, false, true));
    }
    if first != "set" {
        return None;
    }
    let scopes = usize::from(matches!(
        lower.as_slice(),
        ["session" | "local", "role", _] | ["session" | "local", "session", "authorization", _]
    ));
    let (is_local, name) = (lower.first() == Some(&"local"), rest.last()?);
    match lower.get(scopes..)? {
        ["role", _] => Some(change(ROLE, Some(role(name)?), is_local, false)),
        ["session", "authorization", "default"] => {
            Some(change(SESSION_USER, None, is_local, false))
        }
        ["session", "authorization", _] => {
            Some(change(SESSION_USER, Some(role(name)?), is_local, false))
        }
        _ => None,
    }
}

/// The word `current_role` is a function without parentheses, of which sqlparser does not know: it gets them.
pub(super) fn call_current_role(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let is_it = |token: &Token| match token {
        Token::Word(word) => word.quote_style.is_none() && word.keyword == Keyword::CURRENT_ROLE,
        _ => false,
    };
    let mut places: Vec<usize> = (at..tokens.len())
        .take_while(|at| tokens[*at].token != Token::SemiColon)
        .filter(|at| is_it(&tokens[*at].token))
        .collect();
    places.retain(|at| tokens.get(at + 1).is_none_or(|next| next.token != Token::LParen));
    for place in places.into_iter().rev() {
        let span = tokens[place].span;
        let added = [Token::LParen, Token::RParen].map(|token| TokenWithSpan { token, span });
        tokens.splice(place + 1..place + 1, added);
    }
}

fn change(name: &str, value: Option<String>, is_local: bool, is_reset: bool) -> SettingChange {
    SettingChange { name: Some(name.to_owned()), value, is_local, is_reset }
}

fn role(token: &Token) -> Option<String> {
    match token {
        Token::Word(name) if name.quote_style.is_some() => Some(name.value.clone()),
        Token::Word(name) => Some(name.value.to_lowercase()),
        Token::SingleQuotedString(name) => Some(name.clone()),
        _ => None,
    }
}

fn lower(token: &Token) -> String {
    token.to_string().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Option<SettingChange> {
        let tokens = super::super::tokens(text).expect("words");
        let words = tokens.iter().map(|token| &token.token);
        read(&words.filter(|token| !matches!(token, Token::Whitespace(_))).collect::<Vec<_>>())
    }

    #[test]
    fn every_form_is_read() {
        let set = |name, value: &str, is_local| {
            Some(change(name, Some(value.to_owned()), is_local, false))
        };
        assert_eq!(read_text("SET ROLE Clerk"), set(ROLE, "clerk", false));
        assert_eq!(read_text("SET SESSION ROLE \"Clerk\""), set(ROLE, "Clerk", false));
        assert_eq!(read_text("set local role 'none'"), set(ROLE, "none", true));
        let as_clerk = "SESSION AUTHORIZATION clerk";
        for (scope, is_local) in [("", false), ("SESSION", false), ("LOCAL", true)] {
            let text = format!("SET {scope} {as_clerk}");
            assert_eq!(read_text(&text), set(SESSION_USER, "clerk", is_local), "{text}");
        }
        let back = read_text("SET LOCAL SESSION AUTHORIZATION DEFAULT");
        assert_eq!(back, Some(change(SESSION_USER, None, true, false)));
        let back = read_text("RESET SESSION AUTHORIZATION");
        assert_eq!(back, Some(change(SESSION_USER, None, false, true)));
    }

    #[test]
    fn other_settings_are_none_of_these() {
        for text in ["SET role = clerk", "SET SESSION work_mem = 1", "RESET role", "SELECT role"] {
            assert_eq!(read_text(text), None, "{text}");
        }
    }
}
