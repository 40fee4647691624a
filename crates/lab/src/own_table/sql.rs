//! A CREATE TABLE statement as a table, in the words of most databases.

use onrush::{ColumnDefinition, DataType};
use sqlparser::ast::{
    ColumnDef, ColumnOption, CreateTable, Expr, IndexColumn, Statement, TableConstraint, Value,
};
use sqlparser::dialect::{Dialect, GenericDialect, MsSqlDialect};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Tokenizer};

use super::OwnTable;

/// Types of other databases, and ours.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("bit", "boolean"),
    ("tinyint", "smallint"),
    ("int2", "smallint"),
    ("smallserial", "smallint"),
    ("mediumint", "integer"),
    ("int4", "integer"),
    ("serial", "integer"),
    ("int8", "bigint"),
    ("bigserial", "bigint"),
    ("float4", "real"),
    ("float", "double"),
    ("float8", "double"),
    ("number", "decimal"),
    ("money", "decimal(19,4)"),
    ("nchar", "char"),
    ("nvarchar", "varchar"),
    ("varchar2", "varchar"),
    ("character varying", "varchar"),
    ("char varying", "varchar"),
    ("string", "text"),
    ("ntext", "text"),
    ("clob", "text"),
    ("json", "text"),
    ("jsonb", "text"),
    ("xml", "text"),
    ("blob", "bytes"),
    ("binary", "bytes"),
    ("varbinary", "bytes"),
    ("uniqueidentifier", "uuid"),
    ("datetime", "timestamp"),
    ("datetime2", "timestamp"),
    ("smalldatetime", "timestamp"),
    ("timestamp without time zone", "timestamp"),
    ("datetimeoffset", "timestamptz"),
    ("time without time zone", "time"),
];

/// Reads the only CREATE TABLE of a text.
pub(crate) fn read(text: &str) -> Result<OwnTable, String> {
    // Names in brackets are SQL Server's alone, and would be something else elsewhere.
    let (statements, is_unlogged) = parse(&GenericDialect {}, text).or_else(|reason| {
        parse(&MsSqlDialect {}, text)
            .map_err(|_| format!("this is no SQL that can be read: {reason}"))
    })?;
    let mut tables = statements.into_iter().filter_map(|statement| match statement {
        Statement::CreateTable(table) => Some(table),
        _ => None,
    });
    match (tables.next(), tables.next()) {
        (Some(table), None) => of(table, !is_unlogged),
        (None, _) => Err("it has no CREATE TABLE statement; give one".into()),
        _ => Err("it has several CREATE TABLE statements; give one at a time".into()),
    }
}

/// The statements, and whether one of them began with CREATE UNLOGGED: a word of PostgreSQL's that
/// sqlparser does not know, so it is left out before.
fn parse(dialect: &dyn Dialect, text: &str) -> Result<(Vec<Statement>, bool), ParserError> {
    let mut tokens = Tokenizer::new(dialect, text).tokenize_with_location()?;
    let is = |at: usize, name: &str| match &tokens[at].token {
        Token::Word(word) => word.value.eq_ignore_ascii_case(name),
        _ => false,
    };
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let words: Vec<usize> = (0..tokens.len()).filter(is_word).collect();
    let mut pairs = words.windows(2);
    let unlogged = pairs.find(|pair| is(pair[0], "create") && is(pair[1], "unlogged"));
    let unlogged = unlogged.map(|pair| pair[1]);
    if let Some(at) = unlogged {
        tokens.remove(at);
    }
    let mut parser = Parser::new(dialect).with_tokens_with_locations(tokens);
    Ok((parser.parse_statements()?, unlogged.is_some()))
}

fn of(table: CreateTable, is_logged: bool) -> Result<OwnTable, String> {
    // Of a name with a schema only the last part counts.
    let name = table.name.to_string();
    let name = plain(name.rsplit('.').next().unwrap_or(&name));
    let mut columns = Vec::new();
    let mut key: Vec<String> = Vec::new();
    for column in &table.columns {
        let (definition, is_key) = column_of(column)?;
        if is_key {
            key.push(definition.name.clone());
        }
        columns.push(definition);
    }
    for constraint in &table.constraints {
        if let TableConstraint::PrimaryKey(primary) = constraint {
            key = primary.columns.iter().map(name_of).collect();
        }
    }
    if key.is_empty() {
        return Err(format!("{name} has no primary key; Onrush needs one: add PRIMARY KEY (...)"));
    }
    OwnTable::new(name, columns, key, is_logged)
}

fn column_of(column: &ColumnDef) -> Result<(ColumnDefinition, bool), String> {
    let name = plain(&column.name.to_string());
    let data_type = data_type_of(&name, &column.data_type.to_string())?;
    let mut definition = ColumnDefinition::new(&name, data_type);
    let mut is_key = false;
    for option in &column.options {
        match &option.option {
            ColumnOption::NotNull => definition = definition.not_null(),
            ColumnOption::PrimaryKey(_) => is_key = true,
            ColumnOption::Default(value) => {
                definition = with_default(definition, value).map_err(|reason| {
                    format!("the default {value} of column {name} cannot be used: {reason}")
                })?;
            }
            // What remains says nothing about the bytes of a row.
            _ => {}
        }
    }
    Ok((definition, is_key))
}

/// A constant or the clock; of any other default, such as the key generator of another database, a
/// typical value takes the place.
fn with_default(column: ColumnDefinition, value: &Expr) -> Result<ColumnDefinition, String> {
    let text = match value {
        Expr::Value(value) => match &value.value {
            Value::Null => return Ok(column.default_value(onrush::Value::Null)),
            Value::Number(number, _) => number.clone(),
            Value::SingleQuotedString(text) => text.clone(),
            Value::Boolean(on) => on.to_string(),
            _ => return Ok(column),
        },
        Expr::UnaryOp { .. } => value.to_string(),
        other => {
            let call = other.to_string().to_ascii_lowercase();
            let clocks = ["now", "current_timestamp", "current_date", "getdate", "sysdate"];
            let is_clock = clocks.iter().any(|clock| call.starts_with(clock));
            return Ok(if is_clock { column.default_now() } else { column });
        }
    };
    let value = onrush_types::text::parse(column.data_type, &text);
    Ok(column.default_value(value.map_err(|error| error.to_string())?.into_owned()))
}

fn data_type_of(column: &str, written: &str) -> Result<DataType, String> {
    let lower = written.to_ascii_lowercase().replace(" unsigned", "");
    let (name, arguments) = match lower.split_once('(') {
        Some((name, arguments)) => (name.trim(), format!("({arguments}")),
        None => (lower.as_str(), String::new()),
    };
    let known = OTHER_NAMES.iter().find(|(other, _)| *other == name);
    let ours = known.map_or(name, |(_, ours)| ours);
    // Some types have a length elsewhere that ours do not have.
    let found = format!("{ours}{arguments}").parse().or_else(|_| ours.parse());
    match (ours, found) {
        ("varchar", Err(_)) => Ok(DataType::Text),
        ("decimal" | "numeric", Err(_)) => Ok(DataType::Decimal { precision: 18, scale: 4 }),
        (_, found) => found.map_err(|_| {
            format!(
                "column {column} has type {written}, which Onrush does not have; put the nearest \
                 one of: {}",
                onrush_types::data_type::TYPE_NAMES
            )
        }),
    }
}

fn name_of(column: &IndexColumn) -> String {
    plain(&column.column.expr.to_string())
}

/// A name without the quotes of any dialect.
fn plain(name: &str) -> String {
    name.trim_matches(|quote| matches!(quote, '"' | '`' | '[' | ']')).to_owned()
}
