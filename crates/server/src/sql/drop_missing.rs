//! DROP of kinds of objects that there are none of here: types, functions, triggers and the like. Each is missing, so
//! it is told as PostgreSQL does; with IF EXISTS the statement is done, which is what scripts that make a database
//! anew want.

use onrush::DataType;
use sqlparser::tokenizer::Token;

use super::constraints::{identifier, lower, name};
use super::{Planner, domain, names, no_schema, plan};
use crate::error::{Result, SqlError, state};
use crate::execute::DATABASE;
use crate::execute::plan::DefinitionPlan;
use crate::{schemas, values};

/// What stands behind the words of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Names, in schemas or without.
    InSchemas,
    /// Names that have no schema.
    Plain,
    /// Names with the types of what they take.
    Routines,
    /// A name ON a table.
    OnTable,
    /// A name USING an access method.
    OfMethod,
    /// A symbol with the types of its two sides.
    Operator,
    /// (a type AS a type)
    Cast,
}

/// A kind of objects.
#[derive(Debug, PartialEq, Eq)]
struct Kind {
    tag: &'static str,
    /// As it is called in messages.
    noun: &'static str,
    state: &'static str,
    form: Form,
}

const fn kind(tag: &'static str, noun: &'static str, form: Form) -> Kind {
    Kind { tag, noun, state: state::UNDEFINED_OBJECT, form }
}

const fn routine(tag: &'static str, noun: &'static str, form: Form) -> Kind {
    Kind { tag, noun, state: state::UNDEFINED_FUNCTION, form }
}

const KINDS: [Kind; 29] = [
    kind("DROP TYPE", "type", Form::InSchemas),
    kind("DROP DOMAIN", "type", Form::InSchemas),
    kind("DROP COLLATION", "collation", Form::InSchemas),
    kind("DROP CONVERSION", "conversion", Form::InSchemas),
    kind("DROP STATISTICS", "statistics object", Form::InSchemas),
    kind("DROP TEXT SEARCH PARSER", "text search parser", Form::InSchemas),
    kind("DROP TEXT SEARCH DICTIONARY", "text search dictionary", Form::InSchemas),
    kind("DROP TEXT SEARCH TEMPLATE", "text search template", Form::InSchemas),
    kind("DROP TEXT SEARCH CONFIGURATION", "text search configuration", Form::InSchemas),
    kind("DROP FOREIGN TABLE", "foreign table", Form::InSchemas),
    kind("DROP EXTENSION", "extension", Form::Plain),
    kind("DROP LANGUAGE", "language", Form::Plain),
    kind("DROP FOREIGN DATA WRAPPER", "foreign-data wrapper", Form::Plain),
    kind("DROP SERVER", "server", Form::Plain),
    kind("DROP ACCESS METHOD", "access method", Form::Plain),
    kind("DROP EVENT TRIGGER", "event trigger", Form::Plain),
    kind("DROP PUBLICATION", "publication", Form::Plain),
    kind("DROP SUBSCRIPTION", "subscription", Form::Plain),
    Kind {
        tag: "DROP DATABASE",
        noun: "database",
        state: state::UNDEFINED_DATABASE,
        form: Form::Plain,
    },
    routine("DROP FUNCTION", "function", Form::Routines),
    routine("DROP PROCEDURE", "procedure", Form::Routines),
    routine("DROP ROUTINE", "routine", Form::Routines),
    routine("DROP AGGREGATE", "aggregate", Form::Routines),
    kind("DROP TRIGGER", "trigger", Form::OnTable),
    kind("DROP RULE", "rule", Form::OnTable),
    kind("DROP POLICY", "policy", Form::OnTable),
    kind("DROP OPERATOR CLASS", "operator class", Form::OfMethod),
    kind("DROP OPERATOR FAMILY", "operator family", Form::OfMethod),
    routine("DROP OPERATOR", "operator", Form::Operator),
];
const CAST: Kind = kind("DROP CAST", "cast", Form::Cast);

/// Those that PostgreSQL has from the beginning, of the kinds that have no schema.
const BUILT_IN: [&str; 12] = [
    "plpgsql", "sql", "c", "internal", "heap", "btree", "hash", "gist", "gin", "spgist", "brin",
    "postgres",
];

/// A name, behind that of a schema where one is given.
type Name = (Option<String>, String);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Object {
    name: Name,
    /// The types that a routine, an operator or a cast is for; none where it does not say.
    types: Option<Vec<Name>>,
    /// The table, or the access method.
    of: Option<Name>,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DropMissing {
    kind: &'static Kind,
    if_exists: bool,
    cascades: bool,
    objects: Vec<Object>,
}

/// Reads a statement whose words these are. None if it is none of this form.
pub(super) fn read(words: &[&Token]) -> Option<DropMissing> {
    let lower: Vec<String> = words.iter().map(|word| lower(word)).collect();
    let begins = |kind: &Kind| {
        let known = kind.tag.split(' ').collect::<Vec<_>>();
        let begins = lower.len() > known.len()
            && known.iter().zip(&lower).all(|(known, word)| known.eq_ignore_ascii_case(word));
        begins.then_some(known.len())
    };
    static ALL: [Kind; 29] = KINDS;
    static OF_CASTS: Kind = CAST;
    let mut kinds = ALL.iter().chain([&OF_CASTS]);
    let (kind, mut at) = kinds.find_map(|kind| Some((kind, begins(kind)?)))?;
    let if_exists = lower.get(at..at + 2).is_some_and(|two| two == ["if", "exists"]);
    if if_exists {
        at += 2;
    }
    let mut rest = &words[at..];
    if kind.noun == "database" {
        rest = &rest[..rest.len().min(1)];
    }
    let is_end = |word: &&Token| matches!(lower_of(word).as_str(), "cascade" | "restrict");
    let mut cascades = false;
    if let [front @ .., last] = rest
        && !front.is_empty()
        && is_end(last)
    {
        cascades = lower_of(last) == "cascade";
        rest = front;
    }
    let objects = parts(rest).into_iter().map(|words| object(kind.form, words));
    Some(DropMissing { kind, if_exists, cascades, objects: objects.collect::<Option<_>>()? })
}

/// What stands between commas outside of parentheses.
fn parts<'w, 't>(words: &'w [&'t Token]) -> Vec<&'w [&'t Token]> {
    let mut depth = 0;
    words
        .split(|word| {
            match word {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            depth == 0 && **word == Token::Comma
        })
        .collect()
}

fn object(form: Form, words: &[&Token]) -> Option<Object> {
    let plain = |name| Object { name, types: None, of: None };
    let between = |word: &str| {
        let at = words.iter().position(|token| lower_of(token) == word)?;
        Some((name(&words[..at])?, name(&words[at + 1..])?))
    };
    match form {
        Form::InSchemas => Some(plain(name(words)?)),
        Form::Plain => Some(plain((None, name(words).filter(|(schema, _)| schema.is_none())?.1))),
        Form::OnTable => between("on").map(|(name, of)| Object { name, types: None, of: Some(of) }),
        Form::OfMethod => {
            between("using").map(|(name, of)| Object { name, types: None, of: Some(of) })
        }
        Form::Routines => match words.iter().position(|word| **word == Token::LParen) {
            None => Some(plain(name(words)?)),
            Some(at) => {
                Some(Object { types: Some(types(&words[at..])?), ..plain(name(&words[..at])?) })
            }
        },
        Form::Operator => {
            let at = words.iter().rposition(|word| **word == Token::LParen)?;
            let schema = words[..at].iter().position(|word| **word == Token::Period);
            let symbol = schema.map_or(0, |place| place + 1);
            let schema = schema
                .map(|place| identifier(words[..place].first()?))
                .map_or(Some(None), |schema| schema.map(Some))?;
            let symbol: String = words[symbol..at].iter().map(ToString::to_string).collect();
            Some(Object { types: Some(types(&words[at..])?), ..plain((schema, symbol)) })
        }
        Form::Cast => {
            let [Token::LParen, inner @ .., Token::RParen] = words else { return None };
            let at = inner.iter().position(|token| lower_of(token) == "as")?;
            let both = vec![type_of(&inner[..at])?, type_of(&inner[at + 1..])?];
            Some(Object { types: Some(both), ..plain((None, String::new())) })
        }
    }
}

/// Those between parentheses.
fn types(words: &[&Token]) -> Option<Vec<Name>> {
    match words {
        [Token::LParen, Token::RParen] => Some(Vec::new()),
        [Token::LParen, inner @ .., Token::RParen] => {
            parts(inner).into_iter().map(type_of).collect()
        }
        _ => None,
    }
}

/// A type as messages call it: by PostgreSQL's name, where it is known here.
fn type_of(words: &[&Token]) -> Option<Name> {
    if let [Token::Mul] = words {
        return Some((None, "*".to_owned()));
    }
    if let [schema @ Token::Word(_), Token::Period, own @ ..] = words {
        return Some((Some(identifier(schema)?), type_of(own)?.1));
    }
    let is_part = |word: &&Token| {
        matches!(word, Token::Word(_) | Token::Number(..) | Token::LBracket | Token::RBracket)
            || matches!(word, Token::LParen | Token::RParen)
    };
    if words.is_empty() || !words.iter().all(is_part) {
        return None;
    }
    let brackets = words.iter().position(|word| **word == Token::LBracket).unwrap_or(words.len());
    let written: Vec<String> = words[..brackets].iter().map(|word| lower(word)).collect();
    let written = written.join(" ");
    let known = written.parse::<DataType>().map(|known| values::type_name(known).to_owned());
    let name = known.unwrap_or_else(|_| written.trim_matches('"').to_owned());
    Some((None, if brackets < words.len() { format!("{name}[]") } else { name }))
}

fn lower_of(token: &&Token) -> String {
    lower(token)
}

/// Plans it: an error for the first that is missing, or notices.
pub(super) fn plan(planner: &Planner<'_>, drop: &DropMissing) -> Result<DefinitionPlan> {
    let mut missing = Vec::with_capacity(drop.objects.len());
    let mut names = Vec::new();
    for object in &drop.objects {
        if matches!(drop.kind.tag, "DROP TYPE" | "DROP DOMAIN")
            && let Some(of) = planner.lookup().own_type_named(&object.parts())
        {
            if drop.kind.tag == "DROP DOMAIN" && of.definition().domain().is_none() {
                return Err(domain::is_no_domain(&object.parts().join(".")));
            }
            names.push(of.name().to_owned());
            continue;
        }
        let told = why_missing(planner, drop.kind, object, drop.if_exists)?;
        if !drop.if_exists || told.is_final {
            return Err(told.error);
        }
        let message = format!("{}, skipping", told.error.message);
        missing.push(SqlError::new(told.error.state, message).notice());
    }
    Ok(match names.is_empty() {
        true => DefinitionPlan::DropNothing { tag: drop.kind.tag, missing },
        false => {
            let (tag, cascades) = (drop.kind.tag, drop.cascades);
            DefinitionPlan::DropTypes { tag, names, missing, cascades }
        }
    })
}

impl Object {
    fn parts(&self) -> Vec<String> {
        let (schema, own) = self.name.clone();
        schema.into_iter().chain([own]).collect()
    }
}

/// What is said of an object.
struct Told {
    error: SqlError,
    /// IF EXISTS does not help.
    is_final: bool,
}

fn missing(state: &'static str, message: String) -> Told {
    Told { error: SqlError::new(state, message), is_final: false }
}

fn why_missing(
    planner: &Planner<'_>,
    kind: &Kind,
    object: &Object,
    if_exists: bool,
) -> Result<Told> {
    let Object { name: (schema, name), types, of } = object;
    if kind.form == Form::OnTable {
        return on_table(planner, kind, name, of.as_ref());
    }
    check_not_built_in(kind, object)?;
    let named = types.iter().flatten().chain([&object.name]);
    for schema in named.filter_map(|(schema, _)| schema.as_ref()) {
        if !is_there(planner, schema)? {
            return Ok(Told { error: no_schema(schema), is_final: false });
        }
    }
    for (_, of_type) in types.iter().flatten() {
        let element = of_type.trim_end_matches("[]");
        let is_no_type = matches!(element, "*" | "none" | "any");
        if !is_no_type && element.parse::<DataType>().is_err() {
            let message = format!("type \"{element}\" does not exist");
            return Ok(missing(state::UNDEFINED_OBJECT, message));
        }
    }
    let shown = match schema {
        Some(schema) => format!("{schema}.{name}"),
        None => name.clone(),
    };
    let listed = || {
        let types = types.iter().flatten().map(|(_, name)| name.as_str());
        types.collect::<Vec<_>>()
    };
    Ok(match kind.form {
        Form::Routines if types.is_none() && !if_exists => {
            let an = if kind.noun == "aggregate" { "an" } else { "a" };
            missing(kind.state, format!("could not find {an} {} named \"{shown}\"", kind.noun))
        }
        Form::Routines => {
            let listed = listed().join(", ");
            missing(kind.state, format!("{} {shown}({listed}) does not exist", kind.noun))
        }
        Form::Operator => match listed().as_slice() {
            [left, right] if if_exists => {
                missing(kind.state, format!("operator {shown}({left}, {right}) does not exist"))
            }
            ["none", right] => {
                missing(kind.state, format!("operator does not exist: {shown} {right}"))
            }
            [left, right] => {
                missing(kind.state, format!("operator does not exist: {left} {shown} {right}"))
            }
            _ => {
                let error = SqlError::new(state::SYNTAX_ERROR, "missing argument");
                Told { error, is_final: true }
            }
        },
        Form::Cast => {
            let listed = listed();
            let (from, to) = (listed.first().unwrap_or(&""), listed.last().unwrap_or(&""));
            let message = format!("cast from type {from} to type {to} does not exist");
            missing(kind.state, message)
        }
        Form::OfMethod => {
            let method = of.as_ref().map_or("", |(_, method)| method.as_str());
            let noun = kind.noun;
            match BUILT_IN.contains(&method) {
                true => {
                    let of = format!("for access method \"{method}\"");
                    missing(kind.state, format!("{noun} \"{shown}\" does not exist {of}"))
                }
                false => {
                    let message = format!("access method \"{method}\" does not exist");
                    Told { error: SqlError::new(kind.state, message), is_final: true }
                }
            }
        }
        _ => {
            check_is_no_relation(planner, kind, object)?;
            let of = if kind.noun == "collation" { " for encoding \"UTF8\"" } else { "" };
            missing(kind.state, format!("{} \"{shown}\"{of} does not exist", kind.noun))
        }
    })
}

/// A trigger, rule or policy: its table must be there.
fn on_table(planner: &Planner<'_>, kind: &Kind, name: &str, table: Option<&Name>) -> Result<Told> {
    let Some((schema, table)) = table else {
        return Err(SqlError::new(state::SYNTAX_ERROR, format!("{} needs ON a table", kind.tag)));
    };
    if let Some(schema) = schema
        && !is_there(planner, schema)?
    {
        return Ok(Told { error: no_schema(schema), is_final: false });
    }
    match plan::table_in(planner, schema.as_deref(), table) {
        Err(error) if error.state == state::UNDEFINED_TABLE => Ok(Told { error, is_final: false }),
        Err(error) => Err(error),
        Ok(_) => {
            let of = if kind.noun == "rule" { "relation" } else { "table" };
            let message = format!("{} \"{name}\" for {of} \"{table}\" does not exist", kind.noun);
            Ok(missing(kind.state, message))
        }
    }
}

fn is_there(planner: &Planner<'_>, schema: &str) -> Result<bool> {
    Ok(super::is_builtin(schema) || schemas::is_there(planner.seen, schema)?)
}

/// Refuses what the system brings: it is there, and stays.
fn check_not_built_in(kind: &Kind, object: &Object) -> Result<()> {
    let (schema, name) = &object.name;
    let is_type = || name.parse::<DataType>().is_ok();
    let is_built_in = match kind.form {
        Form::Plain if kind.noun == "database" && name == DATABASE => {
            let message = "cannot drop the currently open database";
            return Err(SqlError::new(state::OBJECT_IN_USE, message));
        }
        Form::Plain => BUILT_IN.contains(&name.as_str()),
        Form::InSchemas => kind.noun == "type" && is_type(),
        _ => false,
    };
    let is_of_system = |schema: &String| schema == "pg_catalog" || schema == names::SYSTEM_SCHEMA;
    if is_built_in || schema.as_ref().is_some_and(is_of_system) {
        let message = format!(
            "cannot drop {} {name} because it is required by the database system",
            kind.noun
        );
        return Err(SqlError::new(state::DEPENDENT_OBJECTS, message));
    }
    Ok(())
}

/// Refuses a table where there is something else to be: each has a type of its name.
fn check_is_no_relation(planner: &Planner<'_>, kind: &Kind, object: &Object) -> Result<()> {
    let (schema, name) = &object.name;
    let is_relation = matches!(kind.noun, "type" | "foreign table");
    if !is_relation {
        return Ok(());
    }
    let Ok(table) = plan::table_in(planner, schema.as_deref(), name) else { return Ok(()) };
    if kind.noun == "foreign table" {
        let message = format!("\"{name}\" is not a foreign table");
        return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message));
    }
    let what = crate::views::kind(table.definition());
    let message = format!("cannot drop type {name} because {what} {name} requires it");
    Err(SqlError::new(state::DEPENDENT_OBJECTS, message)
        .with_hint(format!("You can drop {what} {name} instead.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Option<DropMissing> {
        let tokens = super::super::tokens(text).expect("words");
        let words = tokens.iter().map(|token| &token.token);
        read(&words.filter(|token| !matches!(token, Token::Whitespace(_))).collect::<Vec<_>>())
    }

    #[test]
    fn every_form_is_read() {
        for text in [
            "DROP TYPE IF EXISTS a, s.\"B\" CASCADE",
            "DROP TEXT SEARCH PARSER p",
            "DROP FUNCTION f, g(int, varchar(3)[]) RESTRICT",
            "DROP AGGREGATE IF EXISTS a(*)",
            "DROP TRIGGER t ON s.u",
            "DROP OPERATOR CLASS c USING btree",
            "DROP OPERATOR IF EXISTS s.@#@ (int, s.t)",
            "DROP OPERATOR # (NONE, int)",
            "DROP CAST (text AS double precision)",
            "DROP DATABASE d WITH (FORCE)",
        ] {
            assert!(read_text(text).is_some(), "{text}");
        }
        for text in ["DROP TABLE t", "DROP VIEW v", "DROP TYPE", "DROP TRIGGER t", "SELECT 1"] {
            assert_eq!(read_text(text), None, "{text}");
        }
    }

    #[test]
    fn types_have_the_names_of_postgresql() {
        let read = read_text("DROP FUNCTION f(int, text, int[])").expect("a function");
        let types = read.objects[0].types.iter().flatten();
        let types: Vec<&str> = types.map(|(_, name)| name.as_str()).collect();
        assert_eq!(types, ["integer", "text", "integer[]"]);
    }
}
