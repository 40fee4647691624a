//! Statements about how rows and indexes are stored, which change no answer: what they name must be there. REINDEX
//! builds indexes anew; otherwise there is nothing to do, as rows lie in the order of their key and an index changes
//! with its rows.
//!
//! ```text
//! ALTER TABLE [IF EXISTS] [ONLY] name action [, ...]    ALTER INDEX [IF EXISTS] name action
//!   ALTER [COLUMN] column SET STORAGE | COMPRESSION word   SET STATISTICS n   SET | RESET (attribute, ...)
//!   SET | RESET (storage parameter, ...)   SET WITHOUT CLUSTER   SET WITHOUT OIDS   CLUSTER ON index
//!   REPLICA IDENTITY FULL | NOTHING | DEFAULT | USING INDEX index
//! REINDEX [(option, ...)] TABLE | INDEX | SCHEMA | DATABASE | SYSTEM [CONCURRENTLY] name
//! CLUSTER [VERBOSE] [name [USING index]]
//! ```

use onrush::{Indexed, IndexedColumn};
use sqlparser::tokenizer::Token;

use super::constraints::identifier;
use super::{Planner, no_schema, plan};
use crate::error::{Result, SqlError, state};
use crate::execute::DATABASE;
use crate::execute::plan::DefinitionPlan;
use crate::schemas;

type Name = (Option<String>, String);

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StorageStatement {
    tag: &'static str,
    object: Object,
    if_exists: bool,
    /// Columns of the table that are named.
    columns: Vec<String>,
    /// The place of a column of the index that is named.
    numbered: Option<usize>,
    /// Its index that is named.
    index: Option<String>,
    /// Words that are no such parameter.
    unknown: Option<String>,
    /// REINDEX ... CONCURRENTLY, and of more than a table: what cannot stand in a transaction block.
    alone: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Object {
    Table(Name),
    Index(Name),
    Schema(String),
    Database(Option<String>),
    /// CLUSTER of all tables that were clustered.
    All,
}

/// What is to be looked for when it is run.
#[derive(Clone, Debug)]
pub(crate) struct StoragePlan {
    pub(crate) tag: &'static str,
    /// The engine's name of the table, or of the table of the index.
    pub(crate) table: Option<String>,
    /// What of it cannot stand in a transaction block.
    pub(crate) alone: Option<&'static str>,
    /// The indexes that are to be built anew.
    pub(crate) rebuilt: Rebuilt,
}

/// Which indexes are built anew. The primary key of a table is its rows, and those of the catalogue are made when they
/// are read.
#[derive(Clone, Debug)]
pub(crate) enum Rebuilt {
    Nothing,
    /// The one of this name in the engine.
    Index(String),
    /// Those of the table.
    OfTable,
    /// Those of the tables in a schema.
    OfSchema(String),
    /// All.
    OfDatabase,
}

const REINDEX: &str = "REINDEX";
const REINDEX_SYSTEM: &str = "REINDEX SYSTEM";

const PARAMETERS: [&str; 14] = [
    "fillfactor",
    "parallel_workers",
    "user_catalog_table",
    "vacuum_index_cleanup",
    "vacuum_truncate",
    "toast_tuple_target",
    "n_distinct",
    "n_distinct_inherited",
    "deduplicate_items",
    "fastupdate",
    "buffering",
    "gin_pending_list_limit",
    "pages_per_range",
    "autosummarize",
];

/// Reads a statement whose words these are. None if it is none of this form, or says more.
pub(super) fn read(words: &[&Token]) -> Option<StorageStatement> {
    let lower = lower(words);
    match lower.first()?.as_str() {
        "alter" => alter(words, &lower),
        "reindex" => reindex(words, &lower),
        "cluster" => cluster(words, &lower),
        _ => None,
    }
}

fn alter(words: &[&Token], lower: &[String]) -> Option<StorageStatement> {
    let is_table = match lower.get(1)?.as_str() {
        "table" => true,
        "index" => false,
        _ => return None,
    };
    let mut at = 2;
    let if_exists = lower.get(at..at + 2)? == ["if", "exists"];
    at += if if_exists { 2 } else { 0 };
    at += usize::from(is_table && lower.get(at)? == "only");
    let (name, length) = name(words.get(at..)?)?;
    let mut statement = StorageStatement {
        tag: if is_table { "ALTER TABLE" } else { "ALTER INDEX" },
        object: if is_table { Object::Table(name) } else { Object::Index(name) },
        if_exists,
        columns: Vec::new(),
        numbered: None,
        index: None,
        unknown: None,
        alone: None,
    };
    let rest = words.get(at + length..)?;
    for action in parts(rest) {
        read_action(action, is_table, &mut statement)?;
    }
    (!rest.is_empty()).then_some(statement)
}

fn read_action(action: &[&Token], is_table: bool, statement: &mut StorageStatement) -> Option<()> {
    let lower = lower(action);
    let words: Vec<&str> = lower.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["alter", rest @ ..] => {
            let skipped = 1 + usize::from(rest.first() == Some(&"column"));
            let column = action.get(skipped)?;
            match words.get(skipped + 1..)? {
                ["set", "storage" | "compression", _] if is_table => {}
                ["set", "statistics", "-", number] | ["set", "statistics", number]
                    if number.parse::<u32>().is_ok() => {}
                ["set" | "reset", "(", inner @ .., ")"] if is_table => note(inner, statement),
                _ => return None,
            }
            match column {
                Token::Number(number, _) if !is_table => {
                    statement.numbered = Some(number.parse().ok()?);
                }
                column => statement.columns.push(identifier(column)?),
            }
        }
        ["set" | "reset", "(", inner @ .., ")"] => note(inner, statement),
        ["set", "without", "cluster" | "oids"] if is_table => {}
        ["cluster", "on", _] if is_table => statement.index = Some(identifier(action.last()?)?),
        // What PostgreSQL sends of old rows to subscribers, which there are none of.
        ["replica", "identity", "full" | "nothing" | "default"] if is_table => {}
        ["replica", "identity", "using", "index", _] if is_table => {
            statement.index = Some(identifier(action.last()?)?);
        }
        _ => return None,
    }
    Some(())
}

/// Looks at `name = value, ...`.
fn note(inner: &[&str], statement: &mut StorageStatement) {
    for parameter in inner.split(|word| *word == ",") {
        let name = parameter.first().copied().unwrap_or_default();
        let own = name.strip_prefix("toast.").unwrap_or(name);
        let is_known = PARAMETERS.contains(&own) || own.starts_with("autovacuum_");
        let is_toast = name == "toast" || own == "log_autovacuum_min_duration";
        if !is_known && !is_toast {
            statement.unknown.get_or_insert_with(|| name.to_owned());
        }
    }
}

fn reindex(words: &[&Token], lower: &[String]) -> Option<StorageStatement> {
    let mut at = 1;
    if lower.get(at)? == "(" {
        at += lower[at..].iter().position(|word| word == ")")? + 1;
    }
    let kind = lower.get(at)?.as_str();
    at += 1;
    let is_concurrent = lower.get(at).is_some_and(|word| word == "concurrently");
    at += usize::from(is_concurrent);
    let rest = words.get(at..)?;
    let concurrent = is_concurrent.then_some("REINDEX CONCURRENTLY");
    let (object, alone) = match kind {
        "database" if rest.is_empty() => (Object::Database(None), Some("REINDEX DATABASE")),
        "system" if rest.is_empty() => (Object::Database(None), Some(REINDEX_SYSTEM)),
        _ => {
            let (name, length) = name(rest)?;
            if length != rest.len() {
                return None;
            }
            match kind {
                "table" => (Object::Table(name), concurrent),
                "index" => (Object::Index(name), concurrent),
                "schema" => (Object::Schema(name.1), Some("REINDEX SCHEMA")),
                "database" => (Object::Database(Some(name.1)), Some("REINDEX DATABASE")),
                "system" => (Object::Database(Some(name.1)), Some(REINDEX_SYSTEM)),
                _ => return None,
            }
        }
    };
    Some(StorageStatement {
        tag: REINDEX,
        object,
        if_exists: false,
        columns: Vec::new(),
        numbered: None,
        index: None,
        unknown: None,
        alone,
    })
}

fn cluster(words: &[&Token], lower: &[String]) -> Option<StorageStatement> {
    let at = 1 + usize::from(lower.get(1).is_some_and(|word| word == "verbose"));
    let rest = words.get(at..)?;
    let (object, index) = if rest.is_empty() {
        (Object::All, None)
    } else {
        let (name, length) = name(rest)?;
        let index = match (&lower[at + length..], rest.last()?) {
            ([], _) => None,
            ([using, _], index) if using == "using" => Some(identifier(index)?),
            _ => return None,
        };
        (Object::Table(name), index)
    };
    let (columns, unknown, if_exists) = (Vec::new(), None, false);
    Some(StorageStatement {
        tag: "CLUSTER",
        alone: (object == Object::All).then_some("CLUSTER"),
        object,
        if_exists,
        columns,
        numbered: None,
        index,
        unknown,
    })
}

/// A name, with how many words it takes.
fn name(words: &[&Token]) -> Option<(Name, usize)> {
    match words {
        [schema, Token::Period, own, ..] => {
            Some(((Some(identifier(schema)?), identifier(own)?), 3))
        }
        [own, ..] => Some(((None, identifier(own)?), 1)),
        [] => None,
    }
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

fn lower(words: &[&Token]) -> Vec<String> {
    words.iter().map(|word| word.to_string().to_lowercase()).collect()
}

/// Plans it: looks for what is named.
pub(super) fn plan(planner: &Planner<'_>, statement: &StorageStatement) -> Result<DefinitionPlan> {
    let StorageStatement { tag, object, if_exists, columns, index, unknown, alone, .. } = statement;
    let table = match object {
        Object::Table((schema, name)) => match plan::table_in(planner, schema.as_deref(), name) {
            Err(error) if *if_exists && error.state == state::UNDEFINED_TABLE => {
                return Ok(skipped(tag, name));
            }
            Err(error) if error.state == state::WRONG_OBJECT_TYPE => {
                return Err(is_no_table(tag, name));
            }
            Ok(found) if !found.definition().is_table() => return Err(is_no_table(tag, name)),
            found => Some(found?),
        },
        Object::Index((schema, name)) => match table_of_index(planner, schema.as_deref(), name)? {
            None if *if_exists => return Ok(skipped(tag, name)),
            None => {
                let message = format!("relation \"{name}\" does not exist");
                return Err(SqlError::new(state::UNDEFINED_TABLE, message));
            }
            Some(found) => {
                check_statistics(&found, name, statement)?;
                Some(found)
            }
        },
        Object::Schema(name) => {
            if !super::is_builtin(name) && !schemas::is_there(planner.seen, name)? {
                return Err(no_schema(name));
            }
            None
        }
        Object::Database(Some(name)) if name != DATABASE => {
            let message = "can only reindex the currently open database";
            return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        Object::Database(_) | Object::All => None,
    };
    if let (Object::Table(_), Some(table)) = (object, &table) {
        let own = schemas::own_name(table.name());
        for column in columns {
            table.definition().shown_column_index(column).map_err(|_| {
                let message = format!("column \"{column}\" of relation \"{own}\" does not exist");
                SqlError::new(state::UNDEFINED_COLUMN, message)
            })?;
        }
        if let Some(index) = index {
            check_has_index(table, index)?;
        }
    }
    if let Some(unknown) = unknown {
        let message = format!("unrecognized parameter \"{unknown}\"");
        return Err(SqlError::new(state::INVALID_PARAMETER_VALUE, message));
    }
    let rebuilt = rebuilt(statement, table.as_ref());
    let table = table.map(|table| table.name().to_owned());
    Ok(DefinitionPlan::Storage(StoragePlan { tag, table, alone: *alone, rebuilt }))
}

fn rebuilt(statement: &StorageStatement, table: Option<&onrush::Table>) -> Rebuilt {
    if statement.tag != REINDEX {
        return Rebuilt::Nothing;
    }
    match &statement.object {
        Object::Table(_) => Rebuilt::OfTable,
        Object::Index((_, name)) => {
            let mut indexes = table.into_iter().flat_map(|table| table.definition().indexes());
            let found = indexes.find(|index| schemas::own_name(&index.name) == name);
            found.map_or(Rebuilt::Nothing, |index| Rebuilt::Index(index.name.clone()))
        }
        Object::Schema(name) => Rebuilt::OfSchema(name.clone()),
        Object::Database(_) if statement.alone == Some(REINDEX_SYSTEM) => Rebuilt::Nothing,
        Object::Database(_) => Rebuilt::OfDatabase,
        Object::All => Rebuilt::Nothing,
    }
}

fn is_no_table(tag: &str, name: &str) -> SqlError {
    let message = match tag {
        REINDEX => format!("\"{name}\" is not a table or materialized view"),
        _ => format!("\"{name}\" is not a table"),
    };
    SqlError::new(state::WRONG_OBJECT_TYPE, message)
}

pub(super) fn table_of_index(
    planner: &Planner<'_>,
    schema: Option<&str>,
    name: &str,
) -> Result<Option<onrush::Table>> {
    let is_in = |table: &onrush::Table| {
        let (own, _) = schemas::parts(table.name());
        match schema {
            Some(schema) => own == schema,
            None => planner.path.iter().any(|schema| schema == own),
        }
    };
    let tables = planner.seen.tables().into_iter();
    let mut found = tables.filter(is_in).filter(|table| has_index(table, name));
    if let Some(found) = found.next() {
        return Ok(Some(found));
    }
    match plan::table_in(planner, schema, name) {
        Ok(_) => {
            let message = format!("\"{name}\" is not an index");
            Err(SqlError::new(state::WRONG_OBJECT_TYPE, message))
        }
        Err(_) => Ok(None),
    }
}

/// Statistics are kept of expressions that an index has alone.
fn check_statistics(table: &onrush::Table, index: &str, given: &StorageStatement) -> Result<()> {
    let Some(numbered) = given.numbered else { return Ok(()) };
    let definition = table.definition();
    let known = definition.indexes().iter().find(|it| schemas::own_name(&it.name) == index);
    let (columns, keys): (Vec<Option<usize>>, usize) = match known {
        Some(it) => {
            let number = |column: &IndexedColumn| match column.of {
                Indexed::Column(number) => Some(number),
                Indexed::Expression(_) => None,
            };
            let numbers =
                it.columns.iter().map(number).chain(it.included.iter().copied().map(Some));
            let position = |number: Option<u16>| definition.column_with_number(number?);
            (numbers.map(position).collect(), it.columns.len())
        }
        None => {
            let key = definition.primary_key();
            (key.iter().copied().map(Some).collect(), key.len())
        }
    };
    let Some(at) = numbered.checked_sub(1).filter(|at| *at < columns.len()) else {
        let message = format!("column number {numbered} of relation \"{index}\" does not exist");
        return Err(SqlError::new(state::UNDEFINED_COLUMN, message));
    };
    // Of an expression there is nothing to be kept either: no way is chosen by statistics.
    let Some(column) = columns[at] else { return Ok(()) };
    let column = &definition.columns()[column].name;
    let kind = if at < keys { "non-expression" } else { "included" };
    let message =
        format!("cannot alter statistics on {kind} column \"{column}\" of index \"{index}\"");
    let error = SqlError::new(state::FEATURE_NOT_SUPPORTED, message);
    Err(if at < keys {
        error.with_hint("Alter statistics on table column instead.")
    } else {
        error
    })
}

fn has_index(table: &onrush::Table, name: &str) -> bool {
    let definition = table.definition();
    definition.indexes().iter().any(|index| schemas::own_name(&index.name) == name)
        || schemas::has_key_named(definition, name)
}

fn check_has_index(table: &onrush::Table, index: &str) -> Result<()> {
    if has_index(table, index) {
        return Ok(());
    }
    let own = schemas::own_name(table.name());
    let message = format!("index \"{index}\" for table \"{own}\" does not exist");
    Err(SqlError::new(state::UNDEFINED_OBJECT, message))
}

fn skipped(tag: &'static str, name: &str) -> DefinitionPlan {
    let message = format!("relation \"{name}\" does not exist, skipping");
    let missing = vec![SqlError::new(state::UNDEFINED_TABLE, message).notice()];
    DefinitionPlan::DropNothing { tag, missing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Option<StorageStatement> {
        let tokens = super::super::tokens(text).expect("words");
        let words = tokens.iter().map(|token| &token.token);
        read(&words.filter(|token| !matches!(token, Token::Whitespace(_))).collect::<Vec<_>>())
    }

    #[test]
    fn every_form_is_read() {
        for text in [
            "ALTER TABLE ONLY s.t ALTER COLUMN a SET STORAGE EXTERNAL, ALTER b SET STATISTICS -1",
            "ALTER TABLE t ALTER a SET (n_distinct = -0.5), SET (fillfactor = 70)",
            "ALTER TABLE IF EXISTS t CLUSTER ON i",
            "ALTER TABLE t SET WITHOUT CLUSTER",
            "ALTER INDEX i ALTER COLUMN 1 SET STATISTICS 1000",
            "ALTER INDEX i RESET (fillfactor)",
            "REINDEX (VERBOSE) TABLE CONCURRENTLY t",
            "REINDEX DATABASE",
            "CLUSTER t USING i",
            "CLUSTER",
        ] {
            assert!(read_text(text).is_some(), "{text}");
        }
        for text in [
            "ALTER TABLE t ADD COLUMN a int, SET (fillfactor = 70)",
            "ALTER TABLE t ALTER COLUMN a SET DEFAULT 1",
            "ALTER INDEX i RENAME TO j",
            "REINDEX t",
        ] {
            assert_eq!(read_text(text), None, "{text}");
        }
    }

    #[test]
    fn parameters_are_known_by_name() {
        let unknown = |text: &str| read_text(text).expect("it is read").unknown;
        assert_eq!(unknown("ALTER TABLE t SET (autovacuum_enabled = off, fillfactor = 10)"), None);
        assert_eq!(unknown("ALTER TABLE t SET (colour = 1)"), Some("colour".to_owned()));
    }
}
