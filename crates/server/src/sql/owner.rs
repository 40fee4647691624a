//! To whom things belong, in statements that sqlparser does not read, or not in all forms.
//!
//! ```text
//! ALTER TABLE | VIEW | MATERIALIZED VIEW | SEQUENCE | TYPE | DOMAIN | SCHEMA [IF EXISTS] [schema.]name OWNER TO role
//! REASSIGN OWNED BY role [, ...] TO role
//! DROP OWNED BY role [, ...] [CASCADE | RESTRICT]
//! ```

use sqlparser::tokenizer::Token;

use super::constraints::identifier;
use super::role::RoleName;
use super::{Planner, domain, enum_type, no_schema, plan};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::DefinitionPlan;
use crate::{schemas, views};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnerStatement {
    Alter {
        /// TABLE and the like.
        kind: &'static str,
        if_exists: bool,
        name: (Option<String>, String),
        owner: RoleName,
    },
    Reassign {
        from: Vec<RoleName>,
        to: RoleName,
    },
    Drop {
        of: Vec<RoleName>,
        cascades: bool,
    },
}

/// What becomes of owners.
#[derive(Clone, Debug)]
pub(crate) enum OwnerPlan {
    /// The engine's name of a table, sequence or view, and the tag.
    Table(String, RoleName, &'static str),
    Schema(String, RoleName),
    Reassign {
        from: Vec<RoleName>,
        to: RoleName,
    },
    Drop {
        of: Vec<RoleName>,
        cascades: bool,
    },
}

impl OwnerPlan {
    /// As it stands in the answer.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            OwnerPlan::Table(_, _, tag) => tag,
            OwnerPlan::Schema(..) => "ALTER SCHEMA",
            OwnerPlan::Reassign { .. } => "REASSIGN OWNED",
            OwnerPlan::Drop { .. } => "DROP OWNED",
        }
    }
}

const KINDS: [(&str, &str); 7] = [
    ("table", "ALTER TABLE"),
    ("view", "ALTER VIEW"),
    ("materialized view", "ALTER MATERIALIZED VIEW"),
    ("sequence", "ALTER SEQUENCE"),
    ("type", "ALTER TYPE"),
    ("domain", "ALTER DOMAIN"),
    ("schema", "ALTER SCHEMA"),
];

/// Reads a statement whose words these are. None if it is none of this form.
pub(super) fn read(words: &[&Token]) -> Option<OwnerStatement> {
    let lower: Vec<String> = words.iter().map(|word| word.to_string().to_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    match lower.as_slice() {
        ["alter", rest @ .., "owner", "to", _] => {
            let begins =
                |known: &str| known.split(' ').zip(rest).all(|(known, word)| known == *word);
            let (kind, _) = KINDS.iter().find(|(known, _)| begins(known))?;
            let kind_words = kind.split(' ').count();
            let if_exists = rest.get(kind_words..)?.starts_with(&["if", "exists"]);
            let start = 1 + kind_words + if if_exists { 2 } else { 0 };
            let name = match words.get(start..words.len() - 3)? {
                [own] => (None, identifier(own)?),
                [schema, Token::Period, own] => (Some(identifier(schema)?), identifier(own)?),
                _ => return None,
            };
            let owner = RoleName::of(words.last()?)?;
            Some(OwnerStatement::Alter { kind, if_exists, name, owner })
        }
        ["reassign", "owned", "by", .., "to", _] => {
            let from = roles(&words[3..words.len() - 2])?;
            Some(OwnerStatement::Reassign { from, to: RoleName::of(words.last()?)? })
        }
        ["drop", "owned", "by", rest @ ..] => {
            let cascades = rest.last() == Some(&"cascade");
            let has_end = cascades || rest.last() == Some(&"restrict");
            let of = roles(&words[3..words.len() - usize::from(has_end)])?;
            Some(OwnerStatement::Drop { of, cascades })
        }
        _ => None,
    }
}

fn roles(words: &[&Token]) -> Option<Vec<RoleName>> {
    let one = |words: &[&Token]| match words {
        [name] => RoleName::of(name),
        _ => None,
    };
    words.split(|word| **word == Token::Comma).map(one).collect()
}

/// Plans it.
pub(super) fn plan(planner: &Planner<'_>, statement: &OwnerStatement) -> Result<DefinitionPlan> {
    let planned = match statement.clone() {
        OwnerStatement::Reassign { from, to } => OwnerPlan::Reassign { from, to },
        OwnerStatement::Drop { of, cascades } => OwnerPlan::Drop { of, cascades },
        OwnerStatement::Alter { kind: "schema", name: (_, name), owner, .. } => {
            if name != schemas::PUBLIC && super::is_builtin(&name) {
                return Err(SqlError::not_supported(
                    format!("another owner of the schema {name}"),
                    "It belongs to the system.",
                ));
            }
            if !schemas::is_there(planner.seen, &name)? {
                return Err(no_schema(&name));
            }
            OwnerPlan::Schema(name, owner)
        }
        OwnerStatement::Alter {
            kind: kind @ ("type" | "domain"),
            name: (schema, name),
            owner,
            ..
        } => {
            let parts: Vec<String> = schema.into_iter().chain([name]).collect();
            let found = planner.lookup().own_type_named(&parts);
            let of = found.ok_or_else(|| enum_type::missing(&parts.join(".")))?;
            if kind == "domain" && of.definition().domain().is_none() {
                return Err(domain::is_no_domain(&parts.join(".")));
            }
            let tag = if kind == "domain" { "ALTER DOMAIN" } else { "ALTER TYPE" };
            OwnerPlan::Table(of.name().to_owned(), owner, tag)
        }
        OwnerStatement::Alter { kind, if_exists, name: (schema, name), owner } => {
            let tag = KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, tag)| tag);
            match plan::table_in(planner, schema.as_deref(), &name) {
                Err(error) if if_exists && error.state == state::UNDEFINED_TABLE => {
                    let message = format!("relation \"{name}\" does not exist, skipping");
                    let missing = vec![SqlError::new(error.state, message).notice()];
                    return Ok(DefinitionPlan::DropNothing { tag, missing });
                }
                found => {
                    let found = found?;
                    let is_kind = views::kind(found.definition());
                    if kind != "table" && kind != is_kind {
                        let message = format!("\"{name}\" is not a {kind}");
                        return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message));
                    }
                    OwnerPlan::Table(found.name().to_owned(), owner, tag)
                }
            }
        }
    };
    Ok(DefinitionPlan::Owner(planned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Option<OwnerStatement> {
        let tokens = super::super::tokens(text).expect("words");
        let words = tokens.iter().map(|token| &token.token);
        read(&words.filter(|token| !matches!(token, Token::Whitespace(_))).collect::<Vec<_>>())
    }

    #[test]
    fn every_form_is_read() {
        let named = |name: &str| RoleName::Named(name.to_owned());
        assert_eq!(
            read_text("ALTER TABLE IF EXISTS s.\"T\" OWNER TO Clerk"),
            Some(OwnerStatement::Alter {
                kind: "table",
                if_exists: true,
                name: (Some("s".into()), "T".into()),
                owner: named("clerk"),
            })
        );
        assert_eq!(
            read_text("REASSIGN OWNED BY a, b TO CURRENT_USER"),
            Some(OwnerStatement::Reassign {
                from: vec![named("a"), named("b")],
                to: RoleName::Current
            })
        );
        assert_eq!(
            read_text("DROP OWNED BY a CASCADE"),
            Some(OwnerStatement::Drop { of: vec![named("a")], cascades: true })
        );
        assert_eq!(read_text("ALTER TABLE t RENAME TO owner"), None);
    }
}
