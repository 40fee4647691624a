//! Roles in roles, in statements that sqlparser does not read.
//!
//! ```text
//! GRANT role [, ...] TO role [, ...] [WITH ADMIN OPTION] [GRANTED BY role]
//! REVOKE [ADMIN OPTION FOR] role [, ...] FROM role [, ...] [GRANTED BY role] [CASCADE | RESTRICT]
//! ALTER GROUP role ADD | DROP USER role [, ...]
//! ```

use sqlparser::tokenizer::Token;

use super::role::{RoleName, RoleStatement};
use crate::error::{Result, SqlError, state};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberStatement {
    groups: Vec<RoleName>,
    /// As if a role had some.
    has_columns: bool,
    change: MemberChange,
}

/// Who is to be a member of roles, or is no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberChange {
    pub(crate) members: Vec<RoleName>,
    pub(crate) is_grant: bool,
    /// The right to make others members: with it, or it alone is taken back.
    pub(crate) has_admin: bool,
    pub(crate) by: Option<RoleName>,
    /// ALTER GROUP.
    pub(crate) is_alter: bool,
}

/// Reads a statement whose words these are. None if it is none of this form.
pub(super) fn read(words: &[&Token]) -> Option<MemberStatement> {
    let lower: Vec<String> = words.iter().map(|word| word.to_string().to_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    match lower.as_slice() {
        ["alter", "group", _, verb @ ("add" | "drop"), "user", ..] => {
            let members = roles(&words[5..])?;
            let is_grant = *verb == "add";
            let change =
                MemberChange { members, is_grant, has_admin: false, by: None, is_alter: true };
            let groups = vec![RoleName::of(words[2])?];
            Some(MemberStatement { groups, has_columns: false, change })
        }
        ["grant", ..] => of_roles(&words[1..], &lower[1..], true, false),
        ["revoke", "admin", "option", "for", ..] => of_roles(&words[4..], &lower[4..], false, true),
        ["revoke", ..] => of_roles(&words[1..], &lower[1..], false, false),
        _ => None,
    }
}

/// GRANT or REVOKE, behind its first words.
fn of_roles(
    words: &[&Token],
    lower: &[&str],
    is_grant: bool,
    takes_admin: bool,
) -> Option<MemberStatement> {
    if lower.contains(&"on") {
        return None;
    }
    let behind = lower.iter().position(|word| *word == if is_grant { "to" } else { "from" })?;
    let mut end = words.len();
    // What a member has passed on is not kept apart, so nothing goes with it.
    if !is_grant && matches!(lower.last(), Some(&("cascade" | "restrict"))) {
        end -= 1;
    }
    let mut by = None;
    if let [.., "granted", "by", _] = &lower[..end] {
        by = Some(RoleName::of(words[end - 1])?);
        end -= 3;
    }
    let mut has_admin = takes_admin;
    if is_grant && lower[..end].ends_with(&["with", "admin", "option"]) {
        has_admin = true;
        end -= 3;
    }
    let members = roles(words.get(behind + 1..end)?)?;
    let has_columns = words[..behind].contains(&&Token::LParen);
    let groups = match has_columns {
        true => Vec::new(),
        false => roles(&words[..behind])?,
    };
    // Words that stand for a role are no name of one that is granted.
    if !groups.iter().all(|name| matches!(name, RoleName::Named(name) if name != "all")) {
        return None;
    }
    let change = MemberChange { members, is_grant, has_admin, by, is_alter: false };
    Some(MemberStatement { groups, has_columns, change })
}

fn roles(words: &[&Token]) -> Option<Vec<RoleName>> {
    let one = |words: &[&Token]| match words {
        [name] => RoleName::of(name),
        _ => None,
    };
    words.split(|word| **word == Token::Comma).map(one).collect()
}

/// Plans it.
pub(super) fn plan(statement: &MemberStatement) -> Result<RoleStatement> {
    let MemberStatement { groups, has_columns, change } = statement.clone();
    if has_columns {
        let message = "column names cannot be included in GRANT/REVOKE ROLE";
        return Err(SqlError::new(state::INVALID_GRANT, message));
    }
    Ok(RoleStatement::Members { groups, change })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Option<MemberStatement> {
        let tokens = super::super::tokens(text).expect("words");
        let words = tokens.iter().map(|token| &token.token);
        read(&words.filter(|token| !matches!(token, Token::Whitespace(_))).collect::<Vec<_>>())
    }

    fn named(names: &[&str]) -> Vec<RoleName> {
        names.iter().map(|name| RoleName::Named((*name).to_owned())).collect()
    }

    #[test]
    fn every_form_is_read() {
        let change = MemberChange {
            members: named(&["c", "D"]),
            is_grant: true,
            has_admin: true,
            by: Some(RoleName::Current),
            is_alter: false,
        };
        let granted = MemberStatement { groups: named(&["a", "b"]), has_columns: false, change };
        let text = "GRANT a, B TO c, \"D\" WITH ADMIN OPTION GRANTED BY CURRENT_USER";
        assert_eq!(read_text(text), Some(granted.clone()));
        let change = MemberChange { is_grant: false, by: None, ..granted.change.clone() };
        let taken = MemberStatement { change, ..granted };
        let text = "REVOKE ADMIN OPTION FOR a, b FROM c, \"D\" CASCADE";
        assert_eq!(read_text(text), Some(taken.clone()));
        let change = MemberChange { has_admin: false, is_alter: true, ..taken.change };
        let altered = MemberStatement { groups: named(&["a"]), has_columns: false, change };
        assert_eq!(read_text("ALTER GROUP a DROP USER c, \"D\""), Some(altered));
    }

    #[test]
    fn what_has_another_form_is_left() {
        for text in [
            "GRANT SELECT ON t TO r",
            "GRANT CURRENT_USER TO r",
            "GRANT ALL TO r",
            "GRANT a TO b WITH GRANT OPTION",
            "REVOKE a FROM b WITH ADMIN OPTION",
            "ALTER GROUP a RENAME TO b",
        ] {
            assert_eq!(read_text(text), None, "{text}");
        }
    }
}
