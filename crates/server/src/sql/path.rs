//! Which table a name means: schemas in front, and `search_path` where there is none.

use onrush::Table;
use sqlparser::ast::ObjectName;
use sqlparser::parser::Parser;

use super::dialect::OnrushDialect;
use super::names::{self, TableName};
use crate::error::{Result, SqlError, state};
use crate::schemas;
use crate::seen::Seen;
use crate::sequences::Identity;

/// What `search_path` is at the beginning.
pub(crate) const DEFAULT_PATH: &str = "\"$user\", public";

/// The schemas that a `search_path` names, in its order. None if it cannot be read.
pub(crate) fn schemas_of(written: &str, user: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = written.trim_start();
    while !rest.is_empty() {
        let (name, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_name(quoted)?,
            None => {
                let (word, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
                let word = word.trim_end();
                if word.is_empty() || word.contains(['"', ' ']) {
                    return None;
                }
                (word.to_lowercase(), after)
            }
        };
        found.push(if name == "$user" { user.to_owned() } else { name });
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(after) if !after.trim_start().is_empty() => after.trim_start(),
            None if after.is_empty() => after,
            _ => return None,
        };
    }
    // No table of a user's is there, whatever it is called.
    found.retain(|name| name != names::SYSTEM_SCHEMA && !name.contains('.'));
    Some(found)
}

/// A name behind its first quote, and what follows the last.
fn quoted_name(quoted: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut characters = quoted.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' if characters.next_if(|(_, next)| *next == '"').is_some() => name.push('"'),
            '"' => return Some((name, &quoted[at + 1..])),
            other => name.push(other),
        }
    }
    None
}

/// Where names are looked up.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'b> {
    pub(crate) seen: &'b Seen,
    /// The schemas of names that have none in front.
    pub(crate) path: &'b [String],
}

fn object_name(text: &str) -> Option<ObjectName> {
    let dialect = OnrushDialect::new(text.len());
    let mut parser = Parser::new(&dialect).try_with_sql(text).ok()?;
    parser.parse_object_name(false).ok()
}

/// The name that a text means, as messages have it.
pub(crate) fn written_name(text: &str) -> String {
    let parts = object_name(text).and_then(|name| names::parts(&name).ok());
    parts.map_or_else(|| text.to_owned(), |parts| parts.join("."))
}

impl<'b> Lookup<'b> {
    /// The engine's name of the table that a text means, as `'s.t'::regclass` has it.
    pub(crate) fn written(&self, text: &str) -> Option<String> {
        let name = self.table_named(&object_name(text)?).ok()?;
        self.seen.table(&name).is_ok().then_some(name)
    }

    /// The enumerated type or the domain that a text means.
    pub(crate) fn written_own_type(&self, text: &str) -> Option<Table> {
        let parts = names::parts(&object_name(text)?).ok()?;
        self.own_type_named(&parts)
    }

    /// The enumerated type or the domain of a name, behind that of a schema where one is given.
    pub(crate) fn own_type_named(&self, parts: &[String]) -> Option<Table> {
        let of =
            |name: &str| self.seen.table(name).ok().filter(|table| table.definition().is_type());
        match parts {
            [own] => self.path.iter().find_map(|schema| of(&schemas::joined(schema, own))),
            [schema, own] => of(&self.in_schema(schema, own).ok()?),
            _ => None,
        }
    }

    /// The identity column whose sequence a text means.
    pub(crate) fn written_identity(&self, text: &str) -> Option<Identity> {
        self.identity_named(&object_name(text)?)
    }

    /// The identity column whose sequence a name means.
    pub(crate) fn identity_named(&self, name: &ObjectName) -> Option<Identity> {
        let find = |name: &str| self.seen.table(name).ok();
        match names::table(name).ok()? {
            TableName::System(_) => None,
            TableName::User { schema: Some(schema), table } => {
                Identity::named(&self.in_schema(&schema, &table).ok()?, find)
            }
            TableName::User { schema: None, table } => self
                .path
                .iter()
                .find_map(|schema| Identity::named(&schemas::joined(schema, &table), find)),
        }
    }

    /// The engine's name that a text would mean of an index that is there.
    pub(crate) fn written_index(&self, text: &str) -> Option<String> {
        self.index_named(&object_name(text)?).ok().flatten()
    }

    /// The engine's name of the index that a name means, if it is there.
    ///
    /// # Errors
    /// A schema that is not there; a view of the system.
    pub(crate) fn index_named(&self, name: &ObjectName) -> Result<Option<String>> {
        let indexes = self.seen.index_names();
        let is_there = |name: &String| indexes.contains(name);
        match names::table(name)? {
            TableName::System(_) => Ok(None),
            TableName::User { schema: Some(schema), table } => {
                self.in_schema(&schema, &table).map(|name| Some(name).filter(is_there))
            }
            TableName::User { schema: None, table } => {
                let mut candidates = self.path.iter().map(|schema| schemas::joined(schema, &table));
                Ok(candidates.find(is_there))
            }
        }
    }

    /// The engine's name of the table that a name means. It need not be there.
    ///
    /// # Errors
    /// A schema that is not there; a view of the system.
    pub(crate) fn table_named(&self, name: &ObjectName) -> Result<String> {
        match names::table(name)? {
            TableName::System(view) => Err(names::not_changed(&view)),
            TableName::User { schema: Some(schema), table } => self.in_schema(&schema, &table),
            TableName::User { schema: None, table } => Ok(self.on_path(&table)),
        }
    }

    /// Refuses what the engine calls so where it is a type.
    ///
    /// # Errors
    /// `42809`, and `42P01` of a type that is no relation to PostgreSQL.
    pub(crate) fn check_is_no_type(&self, table: &str) -> Result<()> {
        let Ok(known) = self.seen.table(table) else { return Ok(()) };
        let own = schemas::own_name(table);
        match known.definition() {
            definition if definition.is_composite() => {
                let message = format!("\"{own}\" is a composite type");
                Err(SqlError::new(state::WRONG_OBJECT_TYPE, message)
                    .with_hint("Use ALTER TYPE instead."))
            }
            definition if definition.is_type() => {
                let message = format!("relation \"{own}\" does not exist");
                Err(SqlError::new(state::UNDEFINED_TABLE, message))
            }
            _ => Ok(()),
        }
    }

    /// As [`table_named`](Self::table_named); with `if_exists` its schema need not be there, either.
    pub(crate) fn table_that_may_be(&self, name: &ObjectName, if_exists: bool) -> Result<String> {
        match self.table_named(name) {
            Err(error) if if_exists && error.state == state::INVALID_SCHEMA => {
                Ok(names::parts(name)?.join("."))
            }
            other => other,
        }
    }

    /// As [`table_named`](Self::table_named), for a table that is to be made.
    pub(crate) fn new_table_named(&self, name: &ObjectName) -> Result<String> {
        match names::table(name)? {
            TableName::User { schema: None, table } => {
                if let Some(schema) = self.current()? {
                    return Ok(schemas::joined(schema, &table));
                }
                let message = "no schema has been selected to create in";
                Err(SqlError::new(state::INVALID_SCHEMA, message))
            }
            _ => self.table_named(name),
        }
    }

    /// The schemas of the path that are there.
    pub(crate) fn schemas(&self) -> Result<Vec<&'b str>> {
        let mut there = Vec::new();
        for schema in self.path {
            if schemas::is_there(self.seen, schema)? {
                there.push(schema.as_str());
            }
        }
        Ok(there)
    }

    /// The schema that new tables are made in.
    pub(crate) fn current(&self) -> Result<Option<&'b str>> {
        Ok(self.schemas()?.into_iter().find(|schema| !schemas::is_temporary(schema)))
    }

    /// The schema of the client's temporary tables.
    fn temporary(&self) -> &'b str {
        let found = self.path.iter().find(|schema| schemas::is_temporary(schema));
        found.map_or(schemas::TEMPORARY, String::as_str)
    }

    /// The engine's name of a temporary table that is to be made.
    pub(crate) fn new_temporary_table_named(&self, name: &ObjectName) -> Result<String> {
        match names::table(name)? {
            TableName::User { schema: None, table } => {
                Ok(schemas::joined(self.temporary(), &table))
            }
            _ => {
                let name = self.table_named(name)?;
                if schemas::has_temporary(&name) {
                    return Ok(name);
                }
                let message = "cannot create temporary relation in non-temporary schema";
                Err(SqlError::new(state::INVALID_TABLE_DEFINITION, message))
            }
        }
    }

    /// The engine's name of a table in a schema.
    pub(crate) fn in_schema(&self, schema: &str, table: &str) -> Result<String> {
        if schema == schemas::TEMPORARY || schema == self.temporary() {
            return Ok(schemas::joined(self.temporary(), table));
        }
        if schemas::is_temporary(schema) {
            let message = "cannot access temporary tables of other sessions";
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let name = schemas::joined(schema, table);
        if self.seen.table(&name).is_ok() || schemas::is_there(self.seen, schema)? {
            return Ok(name);
        }
        Err(no_schema(schema))
    }

    /// The engine's name of the first table of this name on the path; where there is none, of one that
    /// is not there.
    pub(crate) fn on_path(&self, table: &str) -> String {
        let joined = |schema: &String| schemas::joined(schema, table);
        let mut names = self.path.iter().map(joined);
        let found = names.find(|name| self.seen.table(name).is_ok());
        let has_public = self.path.iter().any(|schema| schema == schemas::PUBLIC);
        let mut lasting = self.path.iter().filter(|schema| !schemas::is_temporary(schema));
        let missing = || match lasting.next() {
            Some(schema) if !has_public => schemas::joined(schema, table),
            Some(_) => schemas::joined(schemas::PUBLIC, table),
            // A schema has a name.
            None => format!(".{table}"),
        };
        found.unwrap_or_else(missing)
    }
}

/// There is no such schema.
pub(crate) fn no_schema(name: &str) -> SqlError {
    SqlError::new(state::INVALID_SCHEMA, format!("schema {name:?} does not exist"))
        .with_hint(format!("CREATE SCHEMA {name} makes it."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_list_of_names() {
        let of = |written: &str| schemas_of(written, "ann");
        let names = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect());
        assert_eq!(of(DEFAULT_PATH), names(&["ann", "public"]));
        assert_eq!(of("A, \"B\" ,c"), names(&["a", "B", "c"]));
        assert_eq!(of("\"a\"\"b\""), names(&["a\"b"]));
        assert_eq!(of(""), names(&[]));
        assert_eq!(of("onrush, public"), names(&["public"]));
        for bad in ["a,", ",a", "a,,b", "\"a", "a b", "\"a\"b"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
