//! COPY table FROM STDIN, and COPY of a table or a query TO STDOUT.

use onrush::{DefaultValue, Table};
use sqlparser::ast::{
    CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopySource, CopyTarget, Ident, Query,
    SetExpr, Statement,
};

use super::operand::Parameters;
use super::plan;
use super::{Planner, names};
use crate::error::{Result, SqlError, state};
use crate::execute::plan::{Plan, RowsPlan};
use crate::{schemas, views};

/// How rows are written in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyFormat {
    /// PostgreSQL's text format, or CSV.
    Lines(LineFormat),
    /// Each value in its type's binary form, with its length.
    Binary,
}

/// How a row is a line, or with line ends in quotes several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineFormat {
    pub(crate) is_csv: bool,
    pub(crate) delimiter: u8,
    pub(crate) null: String,
    pub(crate) has_header: bool,
    pub(crate) quote: u8,
    pub(crate) escape: u8,
}

/// A COPY, either way.
#[derive(Clone)]
pub(crate) struct CopyPlan {
    pub(crate) table: Table,
    /// Positions of the columns in the stream.
    pub(crate) columns: Vec<usize>,
    pub(crate) format: CopyFormat,
}

/// Plans a COPY.
pub(super) fn plan(
    planner: &Planner<'_>,
    source: &CopySource,
    to: bool,
    target: &CopyTarget,
    options: &[CopyOption],
    legacy: &[CopyLegacyOption],
) -> Result<RowsPlan> {
    let (table_name, columns) = match source {
        CopySource::Table { table_name, columns } => (table_name, columns),
        CopySource::Query(query) => {
            check_target(to, target)?;
            let format = format(options, legacy)?;
            return Ok(RowsPlan::CopyRows(Box::new(rows(planner, query)?), format));
        }
    };
    let table = plan::table(planner, &planner.lookup().table_named(table_name)?)?;
    let definition = table.definition();
    if definition.sequence().is_some() {
        let way = if to { "from" } else { "to" };
        let message = format!("cannot copy {way} sequence {:?}", schemas::own_name(table.name()));
        return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message));
    }
    if definition.any_view().is_some() {
        let (kind, name) = (views::kind(definition), schemas::own_name(table.name()));
        let (message, hint) = match to {
            true => (
                format!("cannot copy from {kind} {name:?}"),
                "Try the COPY (SELECT ...) TO variant.",
            ),
            false => {
                (format!("cannot copy to {kind} {name:?}"), "Copy to the table that it reads.")
            }
        };
        return Err(SqlError::new(state::WRONG_OBJECT_TYPE, message).with_hint(hint));
    }
    let is_generated = |position: &usize| {
        matches!(definition.columns()[*position].default, DefaultValue::Generated(_))
    };
    let mut positions = Vec::new();
    for column in columns {
        let position = definition.shown_column_index(&names::identifier(column))?;
        if positions.contains(&position) {
            return Err(plan::given_twice(definition, position));
        }
        if is_generated(&position) {
            let message =
                format!("column {:?} is a generated column", definition.columns()[position].name);
            return Err(SqlError::new(state::INVALID_COLUMN_REFERENCE, message)
                .with_detail("Generated columns cannot be used in COPY."));
        }
        positions.push(position);
    }
    if positions.is_empty() {
        positions = definition.shown_columns().filter(|position| !is_generated(position)).collect();
    }
    let format = format(options, legacy)?;
    let copy = CopyPlan { table, columns: positions, format };
    check_target(to, target)?;
    Ok(if to { RowsPlan::CopyOut(copy) } else { RowsPlan::CopyIn(copy) })
}

fn check_target(to: bool, target: &CopyTarget) -> Result<()> {
    match (to, target) {
        (false, CopyTarget::Stdin) | (true, CopyTarget::Stdout) => Ok(()),
        _ => Err(SqlError::not_supported(
            "COPY with files or programs of the server",
            "Use COPY ... FROM STDIN or TO STDOUT; psql has \\copy for files of yours.",
        )),
    }
}

/// The rows of a query, or of a statement with RETURNING.
fn rows(planner: &Planner<'_>, query: &Query) -> Result<RowsPlan> {
    let statement = match query.body.as_ref() {
        SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement)
            if query.with.is_none() =>
        {
            statement.clone()
        }
        _ => Statement::Query(Box::new(query.clone())),
    };
    let refused = |message: &str| SqlError::new(state::FEATURE_NOT_SUPPORTED, message);
    match plan::plan(planner, &statement, &mut Parameters::none())? {
        Plan::Rows(rows @ (RowsPlan::Select(_) | RowsPlan::Write(_) | RowsPlan::Steps(_))) => {
            match rows.columns() {
                Some(_) => Ok(rows),
                None => Err(refused("COPY query must have a RETURNING clause")),
            }
        }
        _ => Err(refused("COPY query must be a query, or have a RETURNING clause")),
    }
}

/// What the options say, before the defaults of the format are known.
#[derive(Default)]
struct Given {
    kind: Kind,
    delimiter: Option<char>,
    null: Option<String>,
    has_header: bool,
    quote: Option<char>,
    escape: Option<char>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Text,
    Csv,
    Binary,
}

fn format(options: &[CopyOption], legacy: &[CopyLegacyOption]) -> Result<CopyFormat> {
    let mut given = Given::default();
    for option in options {
        match option {
            CopyOption::Format(name) => given.kind = kind(name)?,
            CopyOption::Delimiter(character) => given.delimiter = Some(*character),
            CopyOption::Null(text) => given.null = Some(text.clone()),
            CopyOption::Header(has_header) => given.has_header = *has_header,
            CopyOption::Quote(character) => given.quote = Some(*character),
            CopyOption::Escape(character) => given.escape = Some(*character),
            // A hint about how rows are stored, which says nothing here.
            CopyOption::Freeze(_) => {}
            CopyOption::Encoding(name) if is_utf8(name) => {}
            other => return Err(unknown(other)),
        }
    }
    for option in legacy {
        match option {
            CopyLegacyOption::Csv(options) => {
                given.kind = Kind::Csv;
                for option in options {
                    match option {
                        CopyLegacyCsvOption::Header => given.has_header = true,
                        CopyLegacyCsvOption::Quote(character) => given.quote = Some(*character),
                        CopyLegacyCsvOption::Escape(character) => given.escape = Some(*character),
                        other => return Err(unknown(other)),
                    }
                }
            }
            CopyLegacyOption::Delimiter(character) => given.delimiter = Some(*character),
            CopyLegacyOption::Null(text) => given.null = Some(text.clone()),
            CopyLegacyOption::Header => given.has_header = true,
            CopyLegacyOption::Binary => given.kind = Kind::Binary,
            other => return Err(unknown(other)),
        }
    }
    if given.kind == Kind::Binary {
        return given.of_lines().map_or(Ok(CopyFormat::Binary), |option| {
            let message = format!("{option} is for lines, and a binary copy has none");
            Err(SqlError::new(state::INVALID_PARAMETER_VALUE, message))
        });
    }
    let is_csv = given.kind == Kind::Csv;
    let quote = byte(given.quote.unwrap_or('"'), "QUOTE")?;
    Ok(CopyFormat::Lines(LineFormat {
        is_csv,
        delimiter: byte(given.delimiter.unwrap_or(if is_csv { ',' } else { '\t' }), "DELIMITER")?,
        null: given.null.unwrap_or_else(|| if is_csv { "" } else { "\\N" }.to_owned()),
        has_header: given.has_header,
        quote,
        escape: given.escape.map_or(Ok(quote), |character| byte(character, "ESCAPE"))?,
    }))
}

impl Given {
    /// An option that says how lines are written, if there is one.
    fn of_lines(&self) -> Option<&'static str> {
        let options = [
            ("DELIMITER", self.delimiter.is_some()),
            ("NULL", self.null.is_some()),
            ("HEADER", self.has_header),
            ("QUOTE", self.quote.is_some()),
            ("ESCAPE", self.escape.is_some()),
        ];
        options.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }
}

fn kind(name: &Ident) -> Result<Kind> {
    match name.value.to_lowercase().as_str() {
        "text" => Ok(Kind::Text),
        "csv" => Ok(Kind::Csv),
        "binary" => Ok(Kind::Binary),
        other => Err(SqlError::not_supported(
            format!("the COPY format {other}"),
            "Use the format text, csv or binary.",
        )),
    }
}

fn is_utf8(name: &str) -> bool {
    matches!(name.to_lowercase().as_str(), "utf8" | "utf-8")
}

fn byte(character: char, option: &str) -> Result<u8> {
    match u8::try_from(character) {
        Ok(byte) if byte.is_ascii() && byte != b'\n' && byte != b'\r' => Ok(byte),
        _ => Err(SqlError::new(
            state::INVALID_PARAMETER_VALUE,
            format!("{option} must be one ASCII character that does not end a line"),
        )),
    }
}

fn unknown(option: &dyn std::fmt::Display) -> SqlError {
    SqlError::not_supported(
        format!("the COPY option {option}"),
        "There are FORMAT, DELIMITER, NULL, HEADER, QUOTE and ESCAPE.",
    )
}
