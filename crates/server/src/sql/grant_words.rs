//! Rights in statements that sqlparser does not read.
//!
//! ```text
//! GRANT USAGE | ALL ON TYPE | DOMAIN name [, ...] TO role [, ...]
//! REVOKE USAGE | ALL ON TYPE | DOMAIN name [, ...] FROM role [, ...] [CASCADE | RESTRICT]
//! ALTER DEFAULT PRIVILEGES [FOR ROLE role [, ...]] [IN SCHEMA name [, ...]]
//!     GRANT right [, ...] | ALL ON TABLES | SEQUENCES | TYPES | SCHEMAS TO role [, ...]
//!     | REVOKE right [, ...] | ALL ON ... FROM role [, ...] [CASCADE | RESTRICT]
//! ```

use sqlparser::ast::{Ident, ObjectName};
use sqlparser::tokenizer::Token;

use super::constraints::identifier;
use super::role::{self, RoleName, RoleStatement};
use super::{Planner, domain, enum_type};
use crate::access::{Kind, Right};
use crate::error::{Result, SqlError, state};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrantStatement {
    is_grant: bool,
    /// WITH GRANT OPTION and the like.
    passes_on: bool,
    /// None: ALL.
    rights: Option<Vec<Named>>,
    on: On,
    roles: Vec<RoleName>,
}

/// A right as it is written, in capitals.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    right: String,
    has_columns: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum On {
    Types {
        is_domain: bool,
        names: Vec<Vec<String>>,
    },
    /// What roles, or with none the current one, are going to make: TABLES and the like.
    Made {
        by: Vec<RoleName>,
        schemas: Vec<String>,
        kind: String,
    },
}

impl GrantStatement {
    pub(super) fn is_grant_on_types(&self) -> bool {
        self.is_grant && matches!(self.on, On::Types { .. })
    }
}

/// Reads a statement whose words these are. None if it is none of this form.
pub(super) fn read(words: &[&Token]) -> Option<GrantStatement> {
    let lower: Vec<String> = words.iter().map(|word| word.to_string().to_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    match lower.as_slice() {
        ["alter", "default", "privileges", ..] => of_what_is_made(&words[3..], &lower[3..]),
        ["grant" | "revoke", ..] => {
            let (statement, on) = clause(words, &lower)?;
            let (kind, names) = on.split_first()?;
            let is_domain = match kind.to_string().to_lowercase().as_str() {
                "type" => false,
                "domain" => true,
                _ => return None,
            };
            let names = names.split(|word| **word == Token::Comma).map(type_name);
            let names = names.collect::<Option<_>>()?;
            Some(GrantStatement { on: On::Types { is_domain, names }, ..statement })
        }
        _ => None,
    }
}

fn type_name(words: &[&Token]) -> Option<Vec<String>> {
    match words {
        [own] => Some(vec![identifier(own)?]),
        [schema, Token::Period, own] => Some(vec![identifier(schema)?, identifier(own)?]),
        _ => None,
    }
}

fn of_what_is_made(mut words: &[&Token], mut lower: &[&str]) -> Option<GrantStatement> {
    let (mut roles, mut in_schemas) = (None, None);
    loop {
        let place = match lower {
            ["for", "role" | "user", ..] => &mut roles,
            ["in", "schema", ..] => &mut in_schemas,
            ["grant" | "revoke", ..] => break,
            _ => return None,
        };
        let is_next = |word: &&str| matches!(*word, "for" | "in" | "grant" | "revoke");
        let end = 2 + lower[2..].iter().position(is_next)?;
        let named: Vec<&[&Token]> = words[2..end].split(|word| **word == Token::Comma).collect();
        // Each of the two stands there once at most.
        if place.replace(named).is_some() {
            return None;
        }
        (words, lower) = (&words[end..], &lower[end..]);
    }
    let (statement, on) = clause(words, lower)?;
    let [kind] = on else { return None };
    let kind = kind.to_string().to_lowercase();
    if !matches!(
        kind.as_str(),
        "tables" | "sequences" | "types" | "schemas" | "functions" | "routines"
    ) {
        return None;
    }
    let by = roles.unwrap_or_default().into_iter().map(role_of).collect::<Option<_>>()?;
    let schema = |words: &[&Token]| match words {
        [name] => identifier(name),
        _ => None,
    };
    let schemas = in_schemas.unwrap_or_default().into_iter().map(schema).collect::<Option<_>>()?;
    Some(GrantStatement { on: On::Made { by, schemas, kind }, ..statement })
}

fn role_of(words: &[&Token]) -> Option<RoleName> {
    match words {
        [name] => RoleName::of(name),
        _ => None,
    }
}

/// GRANT or REVOKE, with the words behind ON.
fn clause<'w>(words: &'w [&'w Token], lower: &[&str]) -> Option<(GrantStatement, &'w [&'w Token])> {
    let is_grant = lower.first() == Some(&"grant");
    let mut passes_on = lower.get(1..4) == Some(&["grant", "option", "for"]);
    let start = if passes_on { 4 } else { 1 };
    let find = |from: usize, wanted: &str| {
        Some(from + lower.get(from..)?.iter().position(|word| *word == wanted)?)
    };
    let on = find(start, "on")?;
    let behind = find(on + 1, if is_grant { "to" } else { "from" })?;
    let mut end = words.len();
    // Nothing depends on what was granted.
    if !is_grant && matches!(lower.last(), Some(&("cascade" | "restrict"))) {
        end -= 1;
    }
    if is_grant && lower[..end].ends_with(&["with", "grant", "option"]) {
        passes_on = true;
        end -= 3;
    }
    if let [.., "granted", "by", _] = &lower[..end] {
        passes_on = true;
        end -= 3;
    }
    let roles = words.get(behind + 1..end)?.split(|word| **word == Token::Comma);
    let role = |words: &[&Token]| match words {
        [group, name] if group.to_string().eq_ignore_ascii_case("group") => RoleName::of(name),
        words => role_of(words),
    };
    let roles = roles.map(role).collect::<Option<_>>()?;
    let rights = match &lower[start..on] {
        ["all"] | ["all", "privileges"] => None,
        _ => Some(rights(&words[start..on])?),
    };
    let nothing = On::Types { is_domain: false, names: Vec::new() };
    let statement = GrantStatement { is_grant, passes_on, rights, on: nothing, roles };
    Some((statement, &words[on + 1..behind]))
}

fn rights(words: &[&Token]) -> Option<Vec<Named>> {
    let mut named = Vec::new();
    let mut depth = 0;
    for part in words.split(|word| {
        match word {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0 && **word == Token::Comma
    }) {
        let (right, columns) = part.split_first()?;
        let Token::Word(right) = right else { return None };
        let has_columns = match columns {
            [] => false,
            [Token::LParen, .., Token::RParen] => true,
            _ => return None,
        };
        named.push(Named { right: right.value.to_uppercase(), has_columns });
    }
    Some(named)
}

/// Plans it.
pub(super) fn plan(planner: &Planner<'_>, statement: &GrantStatement) -> Result<RoleStatement> {
    let GrantStatement { is_grant, passes_on, rights, on, roles } = statement;
    if *passes_on {
        return Err(role::only_superusers_grant());
    }
    let (roles, is_grant) = (roles.clone(), *is_grant);
    match on {
        On::Types { is_domain, names } => {
            let what = if *is_domain { "domain" } else { "type" };
            let columns = "column privileges are only valid for relations";
            let rights = rights_on(rights.as_deref(), (Kind::Type, what), columns)?;
            let one = |name: &Vec<String>| type_named(planner, name, *is_domain);
            let tables = names.iter().map(one).collect::<Result<_>>()?;
            Ok(RoleStatement::Grant { roles, tables, schemas: Vec::new(), rights, is_grant })
        }
        On::Made { by, schemas, kind } => {
            let kind = match kind.as_str() {
                "tables" => Kind::Table,
                "sequences" => Kind::Sequence,
                "types" => Kind::Type,
                "schemas" => Kind::Schema,
                other => {
                    return Err(SqlError::not_supported(
                        format!("ALTER DEFAULT PRIVILEGES ... ON {}", other.to_uppercase()),
                        "There are TABLES, SEQUENCES, TYPES and SCHEMAS.",
                    ));
                }
            };
            let columns = "default privileges cannot be set for columns";
            let rights = rights_on(rights.as_deref(), (kind, kind.name()), columns)?;
            if kind == Kind::Schema && !schemas.is_empty() {
                let message = "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS";
                return Err(SqlError::new(state::INVALID_GRANT, message));
            }
            let schema = |name: &String| {
                role::schema(planner, &ObjectName::from(vec![Ident::with_quote('"', name)]))
            };
            let schemas = schemas.iter().map(schema).collect::<Result<_>>()?;
            let by = by.clone();
            Ok(RoleStatement::GrantByDefault { by, schemas, kind, roles, rights, is_grant })
        }
    }
}

/// The engine's name of a type.
fn type_named(planner: &Planner<'_>, name: &[String], is_domain: bool) -> Result<String> {
    if let Some(of) = planner.lookup().own_type_named(name) {
        return match is_domain && of.definition().domain().is_none() {
            true => Err(domain::is_no_domain(&name.join("."))),
            false => Ok(of.name().to_owned()),
        };
    }
    let (own, schema) = name.split_last().map_or(("", &[][..]), |(own, schema)| (own, schema));
    let element = own.strip_prefix('_').map(|own| [schema, &[own.to_owned()]].concat());
    if element.is_some_and(|element| planner.lookup().own_type_named(&element).is_some()) {
        let message = "cannot set privileges of array types";
        return Err(SqlError::new(state::INVALID_GRANT, message)
            .with_hint("Set the privileges of the element type instead."));
    }
    match own.parse::<onrush::DataType>() {
        Ok(_) => Err(SqlError::not_supported(
            format!("rights on the type {own}"),
            "Everyone may use it.",
        )),
        Err(_) => Err(enum_type::missing(&name.join("."))),
    }
}

/// The rights of these names, all of which are there on something of a kind that is called so.
fn rights_on(
    named: Option<&[Named]>,
    (kind, what): (Kind, &str),
    of_columns: &str,
) -> Result<Vec<Right>> {
    let Some(named) = named else { return Ok(kind.rights().to_vec()) };
    let right = |Named { right: name, has_columns }: &Named| {
        if let Some(right) = kind.rights().iter().find(|right| right.name() == name)
            && !has_columns
        {
            return Ok(*right);
        }
        let is_known = Right::ALL.iter().any(|right| right.name() == name)
            || matches!(name.as_str(), "EXECUTE" | "CONNECT" | "TEMPORARY" | "TEMP");
        Err(match (is_known, has_columns) {
            (true, true) => SqlError::new(state::INVALID_GRANT, of_columns),
            (true, false) => {
                let message = format!("invalid privilege type {name} for {what}");
                SqlError::new(state::INVALID_GRANT, message)
            }
            (false, _) => {
                let message = format!("unrecognized privilege type \"{}\"", name.to_lowercase());
                SqlError::new(state::SYNTAX_ERROR, message)
            }
        })
    };
    named.iter().map(right).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Option<GrantStatement> {
        let tokens = super::super::tokens(text).expect("words");
        let words = tokens.iter().map(|token| &token.token);
        read(&words.filter(|token| !matches!(token, Token::Whitespace(_))).collect::<Vec<_>>())
    }

    fn named(name: &str) -> RoleName {
        RoleName::Named(name.to_owned())
    }

    #[test]
    fn every_form_is_read() {
        let usage = Named { right: "USAGE".into(), has_columns: false };
        assert_eq!(
            read_text("GRANT usage ON TYPE s.\"T\", u TO PUBLIC, GROUP clerk"),
            Some(GrantStatement {
                is_grant: true,
                passes_on: false,
                rights: Some(vec![usage]),
                on: On::Types {
                    is_domain: false,
                    names: vec![vec!["s".into(), "T".into()], vec!["u".into()]],
                },
                roles: vec![named("public"), named("clerk")],
            })
        );
        assert_eq!(
            read_text(
                "ALTER DEFAULT PRIVILEGES IN SCHEMA a, b FOR ROLE c, CURRENT_USER \
                 REVOKE ALL PRIVILEGES ON TABLES FROM d CASCADE"
            ),
            Some(GrantStatement {
                is_grant: false,
                passes_on: false,
                rights: None,
                on: On::Made {
                    by: vec![named("c"), RoleName::Current],
                    schemas: vec!["a".into(), "b".into()],
                    kind: "tables".into(),
                },
                roles: vec![named("d")],
            })
        );
    }

    #[test]
    fn what_passes_rights_on_is_told() {
        for text in [
            "GRANT USAGE ON DOMAIN d TO r WITH GRANT OPTION",
            "REVOKE GRANT OPTION FOR USAGE ON TYPE t FROM r",
            "GRANT USAGE ON TYPE t TO r GRANTED BY current_user",
        ] {
            assert!(read_text(text).is_some_and(|read| read.passes_on), "{text}");
        }
    }

    #[test]
    fn what_has_another_form_is_left() {
        for text in [
            "GRANT SELECT ON type TO r",
            "GRANT SELECT ON type.t TO r",
            "GRANT a TO b",
            "ALTER DEFAULT PRIVILEGES FOR ROLE a FOR ROLE b GRANT ALL ON TABLES TO c",
            "ALTER DEFAULT PRIVILEGES GRANT ALL ON VIEWS TO c",
        ] {
            assert_eq!(read_text(text), None, "{text}");
        }
    }
}
