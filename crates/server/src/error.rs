//! Errors as clients see them: a SQLSTATE, the cause, and where there is one the cure as a hint.
//!
//! Invariant: what PostgreSQL has words for is said in these ([`postgresql`]); else the engine's stay.

mod postgresql;
mod references;

use std::fmt;
use std::ops::{Deref, DerefMut};

use onrush::expression::EvaluationError;
use onrush::{DataType, Error, NeedsNoRows, TypeError};
use onrush_query::QueryError;
use pgwire::messages::response::ErrorResponse;
pub(crate) use postgresql::{About, key_and_values};
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, Span};

pub(crate) type Result<T> = std::result::Result<T, SqlError>;

/// The SQLSTATEs that this server sends, by the names that PostgreSQL gives them.
pub(crate) mod state {
    pub(crate) const SUCCESSFUL: &str = "00000";
    pub(crate) const WARNING: &str = "01000";
    pub(crate) const CONNECTION_FAILURE: &str = "08006";
    pub(crate) const PROTOCOL_VIOLATION: &str = "08P01";
    pub(crate) const TRANSACTION_RESOLUTION_UNKNOWN: &str = "08007";
    pub(crate) const FEATURE_NOT_SUPPORTED: &str = "0A000";
    pub(crate) const STRING_TOO_LONG: &str = "22001";
    pub(crate) const NEGATIVE_COUNT: &str = "2201W";
    pub(crate) const NEGATIVE_OFFSET: &str = "2201X";
    pub(crate) const SEQUENCE_LIMIT: &str = "2200H";
    pub(crate) const NUMERIC_OUT_OF_RANGE: &str = "22003";
    pub(crate) const INVALID_DATETIME: &str = "22007";
    pub(crate) const TIMESTAMP_OUT_OF_RANGE: &str = "22008";
    pub(crate) const BAD_SUBSTRING: &str = "22011";
    pub(crate) const DIVISION_BY_ZERO: &str = "22012";
    pub(crate) const BAD_ESCAPE_SEQUENCE: &str = "22025";
    pub(crate) const SEVERAL_ROWS: &str = "21000";
    pub(crate) const NOT_IN_REPERTOIRE: &str = "22021";
    pub(crate) const INVALID_PARAMETER_VALUE: &str = "22023";
    pub(crate) const INVALID_TEXT: &str = "22P02";
    pub(crate) const INVALID_BINARY: &str = "22P03";
    pub(crate) const BAD_COPY_FORMAT: &str = "22P04";
    pub(crate) const NOT_NULL_VIOLATION: &str = "23502";
    pub(crate) const FOREIGN_KEY_VIOLATION: &str = "23503";
    pub(crate) const UNIQUE_VIOLATION: &str = "23505";
    pub(crate) const CHECK_VIOLATION: &str = "23514";
    pub(crate) const INVALID_GRANT: &str = "0LP01";
    pub(crate) const ACTIVE_TRANSACTION: &str = "25001";
    pub(crate) const READ_ONLY_TRANSACTION: &str = "25006";
    pub(crate) const NO_ACTIVE_TRANSACTION: &str = "25P01";
    pub(crate) const IN_FAILED_TRANSACTION: &str = "25P02";
    pub(crate) const UNKNOWN_STATEMENT: &str = "26000";
    pub(crate) const INVALID_CURSOR_STATE: &str = "24000";
    pub(crate) const UNKNOWN_PORTAL: &str = "34000";
    pub(crate) const INVALID_SAVEPOINT: &str = "3B001";
    pub(crate) const UNDEFINED_DATABASE: &str = "3D000";
    pub(crate) const INVALID_SCHEMA: &str = "3F000";
    pub(crate) const INVALID_SCHEMA_DEFINITION: &str = "42P15";
    pub(crate) const INVALID_AUTHORIZATION: &str = "28000";
    pub(crate) const INVALID_PASSWORD: &str = "28P01";
    pub(crate) const SERIALIZATION_FAILURE: &str = "40001";
    pub(crate) const DEADLOCK_DETECTED: &str = "40P01";
    pub(crate) const INSUFFICIENT_PRIVILEGE: &str = "42501";
    pub(crate) const DEPENDENT_OBJECTS: &str = "2BP01";
    pub(crate) const SYNTAX_ERROR: &str = "42601";
    pub(crate) const DUPLICATE_COLUMN: &str = "42701";
    pub(crate) const UNDEFINED_COLUMN: &str = "42703";
    pub(crate) const DUPLICATE_OBJECT: &str = "42710";
    pub(crate) const INVALID_NAME: &str = "42602";
    pub(crate) const UNDEFINED_OBJECT: &str = "42704";
    pub(crate) const INVALID_FOREIGN_KEY: &str = "42830";
    pub(crate) const DATATYPE_MISMATCH: &str = "42804";
    pub(crate) const WRONG_OBJECT_TYPE: &str = "42809";
    pub(crate) const DUPLICATE_ALIAS: &str = "42712";
    pub(crate) const UNDEFINED_FUNCTION: &str = "42883";
    pub(crate) const UNDEFINED_TABLE: &str = "42P01";
    pub(crate) const UNDEFINED_PARAMETER: &str = "42P02";
    pub(crate) const DUPLICATE_CURSOR: &str = "42P03";
    pub(crate) const DUPLICATE_STATEMENT: &str = "42P05";
    pub(crate) const DUPLICATE_SCHEMA: &str = "42P06";
    pub(crate) const DUPLICATE_TABLE: &str = "42P07";
    pub(crate) const GENERATED_ALWAYS: &str = "428C9";
    pub(crate) const CANT_CHANGE_PARAMETER: &str = "55P02";
    pub(crate) const RESERVED_NAME: &str = "42939";
    pub(crate) const INVALID_COLUMN_REFERENCE: &str = "42P10";
    pub(crate) const INVALID_TABLE_DEFINITION: &str = "42P16";
    pub(crate) const INVALID_OBJECT_DEFINITION: &str = "42P17";
    pub(crate) const INDETERMINATE_DATATYPE: &str = "42P18";
    pub(crate) const INVALID_RECURSION: &str = "42P19";
    pub(crate) const DISK_FULL: &str = "53100";
    pub(crate) const OUT_OF_MEMORY: &str = "53200";
    pub(crate) const TOO_MANY_CONNECTIONS: &str = "53300";
    pub(crate) const LIMIT_EXCEEDED: &str = "54000";
    pub(crate) const STATEMENT_TOO_COMPLEX: &str = "54001";
    pub(crate) const NOT_IN_PREREQUISITE_STATE: &str = "55000";
    pub(crate) const OBJECT_IN_USE: &str = "55006";
    pub(crate) const LOCK_NOT_AVAILABLE: &str = "55P03";
    pub(crate) const IDLE_IN_TRANSACTION: &str = "25P03";
    pub(crate) const SNAPSHOT_TOO_OLD: &str = "72000";
    pub(crate) const QUERY_CANCELED: &str = "57014";
    pub(crate) const ADMIN_SHUTDOWN: &str = "57P01";
    pub(crate) const IO_ERROR: &str = "58030";
    pub(crate) const INTERNAL: &str = "XX000";
    pub(crate) const DATA_CORRUPTED: &str = "XX001";
}

/// Whether the client may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The statement has failed.
    Error,
    /// The connection ends.
    Fatal,
    /// Nothing has failed.
    Warning,
    /// All is as it was asked for.
    Notice,
}

/// One error, ready to be sent. As small as a pointer: nearly everything here returns one or none, and
/// what succeeds should not move the space for an error about.
#[derive(Clone, Debug)]
pub(crate) struct SqlError(Box<Report>);

/// What is told of an error.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) severity: Severity,
    pub(crate) state: &'static str,
    pub(crate) message: String,
    pub(crate) detail: Option<String>,
    /// PostgreSQL's function that tells it, which some drivers know it by.
    pub(crate) routine: Option<&'static str>,
    /// Where it was met, as COPY says it.
    pub(crate) context: Option<String>,
    pub(crate) about: Option<About>,
    pub(crate) hint: Option<String>,
    /// Where in the statement, by lines and columns.
    pub(crate) at: Option<Location>,
    /// The same, counted in characters from 1.
    pub(crate) position: Option<usize>,
    /// The engine's error, for those who can do something about it.
    pub(crate) cause: Option<Box<Error>>,
}

impl SqlError {
    pub(crate) fn new(state: &'static str, message: impl Into<String>) -> SqlError {
        let severity = Severity::Error;
        let message = message.into();
        SqlError(Box::new(Report {
            severity,
            state,
            message,
            detail: None,
            routine: None,
            context: None,
            about: None,
            hint: None,
            at: None,
            position: None,
            cause: None,
        }))
    }

    /// `what` is SQL that is understood but cannot be done here; `instead` is the nearest thing that
    /// works.
    pub(crate) fn not_supported(
        what: impl std::fmt::Display,
        instead: impl Into<String>,
    ) -> SqlError {
        SqlError::new(state::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
            .with_hint(instead)
    }

    pub(crate) fn protocol(message: impl Into<String>) -> SqlError {
        SqlError::new(state::PROTOCOL_VIOLATION, message).fatal()
    }

    pub(crate) fn into_report(self) -> Report {
        *self.0
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> SqlError {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> SqlError {
        self.detail = Some(detail.into());
        self
    }

    pub(crate) fn about(mut self, about: About) -> SqlError {
        self.about = Some(about);
        self
    }

    /// Where in its text the statement is wrong; what nobody wrote is nowhere.
    pub(crate) fn at(mut self, span: Span) -> SqlError {
        if span.start.line > 0 {
            self.at.get_or_insert(span.start);
        }
        self
    }

    pub(crate) fn without_place(mut self) -> SqlError {
        self.at = None;
        self
    }

    /// Counts the place as a position in `text`, of which the statement was read.
    pub(crate) fn placed_in(mut self, text: &str) -> SqlError {
        let Some(Location { line, column }) = self.at.take() else { return self };
        let lines_before = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
        let lines_before = text.split_inclusive('\n').take(lines_before);
        let before: usize = lines_before.map(|line| line.chars().count()).sum();
        self.position = usize::try_from(column).ok().map(|column| before + column);
        self
    }

    pub(crate) fn fatal(mut self) -> SqlError {
        self.severity = Severity::Fatal;
        self
    }

    pub(crate) fn warning(mut self) -> SqlError {
        self.severity = Severity::Warning;
        self
    }

    pub(crate) fn notice(mut self) -> SqlError {
        self.severity = Severity::Notice;
        self
    }

    /// Drivers know the error by this function of PostgreSQL's.
    pub(crate) fn told_by(mut self, routine: &'static str) -> SqlError {
        self.routine = Some(routine);
        self
    }

    pub(crate) fn is_warning(&self) -> bool {
        matches!(self.severity, Severity::Warning | Severity::Notice)
    }

    /// Whether the query engine may be able to do what cannot be done the short way.
    pub(crate) fn is_beyond_the_short_way(&self) -> bool {
        matches!(self.state, state::FEATURE_NOT_SUPPORTED | state::UNDEFINED_FUNCTION)
    }

    /// Whether the row was there already.
    pub(crate) fn is_duplicate_key(&self) -> bool {
        let taken = self.cause.as_deref();
        matches!(taken, Some(Error::DuplicateKey { .. } | Error::UniqueViolated { .. }))
    }

    /// Whether the row that was there already has the same primary key.
    pub(crate) fn is_of_primary_key(&self) -> bool {
        matches!(self.cause.as_deref(), Some(Error::DuplicateKey { .. }))
    }

    /// Whether the name was another table's or index's.
    pub(crate) fn is_table_exists(&self) -> bool {
        matches!(self.cause.as_deref(), Some(Error::TableExists { .. }))
    }

    /// Whether another transaction came first, so that the same statement may succeed now.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self.cause.as_deref(), Some(Error::Conflict { .. }))
    }

    /// Whether a snapshot was given up, so that a new one may do.
    pub(crate) fn is_too_old(&self) -> bool {
        matches!(self.cause.as_deref(), Some(Error::SnapshotTooOld { .. }))
    }

    /// Whether the engine was told to give up what it waited for.
    pub(crate) fn is_interrupted(&self) -> bool {
        matches!(self.cause.as_deref(), Some(Error::Interrupted))
    }

    /// Whether there is no index of the name that was given, or its table is gone.
    pub(crate) fn is_unknown_index(&self) -> bool {
        let cause = self.cause.as_deref();
        matches!(cause, Some(Error::UnknownIndex { .. } | Error::UnknownTable { .. }))
    }

    /// Whether there is no table of this name.
    pub(crate) fn is_unknown_table(&self, table: &str) -> bool {
        matches!(self.cause.as_deref(), Some(Error::UnknownTable { name }) if name == table)
    }

    /// Whether the table that a prepared statement was made for is no longer there.
    pub(crate) fn is_table_changed(&self) -> bool {
        matches!(self.cause.as_deref(), Some(Error::TableChanged { .. }))
    }

    /// The fields of the message.
    pub(crate) fn to_response(&self) -> ErrorResponse {
        let severity = match self.severity {
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
            Severity::Warning => "WARNING",
            Severity::Notice => "NOTICE",
        };
        let mut fields = vec![
            (b'S', severity.to_owned()),
            (b'V', severity.to_owned()),
            (b'C', self.state.to_owned()),
            (b'M', without_zero_bytes(&self.message)),
        ];
        let mut more = |kind, text: Option<&String>| {
            fields.extend(text.map(|text| (kind, without_zero_bytes(text))));
        };
        more(b'D', self.detail.as_ref());
        more(b'H', self.hint.as_ref());
        more(b'W', self.context.as_ref());
        more(b'R', self.routine.map(str::to_owned).as_ref());
        if let Some(About { schema, table, column, data_type, constraint }) = &self.about {
            more(b's', Some(schema));
            more(b't', Some(table).filter(|table| !table.is_empty()));
            more(b'c', column.as_ref());
            more(b'd', data_type.as_ref());
            more(b'n', constraint.as_ref());
        }
        fields.extend(self.position.map(|position| (b'P', position.to_string())));
        ErrorResponse::new(fields)
    }
}

impl Deref for SqlError {
    type Target = Report;

    fn deref(&self) -> &Report {
        &self.0
    }
}

impl DerefMut for SqlError {
    fn deref_mut(&mut self) -> &mut Report {
        &mut self.0
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for SqlError {}

/// A zero byte would end the field too early.
fn without_zero_bytes(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

impl From<Error> for SqlError {
    fn from(error: Error) -> SqlError {
        // Of whoever looks at rows for CHECK constraints: our own, or the engine itself.
        if let Error::CheckFailed(cause) = &error {
            if let Some(told) = cause.downcast_ref::<SqlError>() {
                return told.clone();
            }
            if let Some(told) = cause.downcast_ref::<EvaluationError>() {
                return SqlError::new(state_of_evaluation(told), told.to_string());
            }
        }
        if let Error::Type(TypeError::BadText {
            data_type: DataType::Json | DataType::Jsonb,
            reason,
            ..
        }) = &error
        {
            let message = "invalid input syntax for type json";
            return SqlError::new(state::INVALID_TEXT, message).with_hint(reason.to_string());
        }
        let code = match &error {
            Error::Type(inner) => state_of_type_error(inner),
            Error::DuplicateKey { .. } | Error::UniqueViolated { .. } => state::UNIQUE_VIOLATION,
            Error::UnknownIndex { .. } => state::UNDEFINED_OBJECT,
            Error::IsIndex { .. } | Error::IsView { .. } => state::WRONG_OBJECT_TYPE,
            Error::AppendsOnly { .. } => state::NOT_IN_PREREQUISITE_STATE,
            Error::ReferenceMissing { .. }
            | Error::ReferenceMixed { .. }
            | Error::StillReferenced { .. } => state::FOREIGN_KEY_VIOLATION,
            Error::TableReferenced { .. } => state::DEPENDENT_OBJECTS,
            Error::NoReferencedKey { .. } => state::INVALID_FOREIGN_KEY,
            Error::ReferenceTypes { .. } => state::DATATYPE_MISMATCH,
            Error::DomainViolated(of) | Error::RowsViolateDomain(of) => match of.constraint {
                Some(_) => state::CHECK_VIOLATION,
                None => state::NOT_NULL_VIOLATION,
            },
            Error::CheckViolated { .. } | Error::RowsViolateCheck { .. } => state::CHECK_VIOLATION,
            Error::RowsHoldNull { .. } => state::NOT_NULL_VIOLATION,
            Error::UnknownTable { .. } => state::UNDEFINED_TABLE,
            Error::TableExists { .. } => state::DUPLICATE_TABLE,
            Error::RowsInTheWay { reason: NeedsNoRows::NoValue, .. } => state::NOT_NULL_VIOLATION,
            Error::RowsInTheWay { .. } => state::FEATURE_NOT_SUPPORTED,
            Error::TableChanged { .. } | Error::Conflict { .. } | Error::NotSerializable => {
                state::SERIALIZATION_FAILURE
            }
            Error::Deadlock { .. } => state::DEADLOCK_DETECTED,
            Error::LockTimeout { .. } => state::LOCK_NOT_AVAILABLE,
            Error::Interrupted => state::QUERY_CANCELED,
            Error::BadOption { .. } => state::INVALID_PARAMETER_VALUE,
            Error::TransactionTooLarge { .. } => state::LIMIT_EXCEEDED,
            Error::DefinedTooLate { .. } => state::FEATURE_NOT_SUPPORTED,
            // A view of a transaction that is read after its end.
            Error::TransactionEnded => state::NO_ACTIVE_TRANSACTION,
            Error::SnapshotTooOld { .. } => state::SNAPSHOT_TOO_OLD,
            Error::LeafMemoryTooSmall { .. } => state::OUT_OF_MEMORY,
            Error::DiskFull { .. } => state::DISK_FULL,
            Error::OutcomeUnknown { .. } => state::TRANSACTION_RESOLUTION_UNKNOWN,
            Error::Stopped { .. } | Error::Disk(_) => state::IO_ERROR,
            Error::Closed => state::ADMIN_SHUTDOWN,
            Error::Damaged(_) | Error::DamagedLog(_) => state::DATA_CORRUPTED,
            _ => state::INTERNAL,
        };
        let ends = error.is_fatal() || matches!(error, Error::Closed);
        let mut told = postgresql::told(code, &error);
        told.cause = Some(Box::new(error));
        if ends { told.fatal() } else { told }
    }
}

impl From<TypeError> for SqlError {
    fn from(error: TypeError) -> SqlError {
        Error::from(error).into()
    }
}

impl From<QueryError> for SqlError {
    fn from(error: QueryError) -> SqlError {
        let message = error.to_string();
        let told = |code| SqlError::new(code, message.clone());
        match error {
            QueryError::Engine(error) => error.into(),
            QueryError::Value(error) => error.into(),
            QueryError::Syntax { .. } => told(state::SYNTAX_ERROR),
            QueryError::UnknownFunction { .. } => told(state::UNDEFINED_FUNCTION)
                .with_hint("docs/sql.md names those that differ from PostgreSQL's."),
            QueryError::WrongType { .. } => told(state::DATATYPE_MISMATCH)
                .with_hint("Write a cast: CAST(value AS type) or value::type."),
            QueryError::NotSupported { .. } | QueryError::NotPlanned { .. } => {
                told(state::FEATURE_NOT_SUPPORTED)
                    .with_hint("docs/sql.md lists what queries may have.")
            }
            QueryError::DivisionByZero => told(state::DIVISION_BY_ZERO),
            QueryError::OutOfRange { .. } => told(state::NUMERIC_OUT_OF_RANGE),
            QueryError::BadText { .. } => told(state::INVALID_TEXT),
            QueryError::OutOfMemory { .. } => told(state::OUT_OF_MEMORY).with_hint(
                "Read fewer rows, or start the server with a larger --statement-memory, \
                 --query-memory or --spill.",
            ),
            QueryError::Refused(refusal) => {
                let mut told = told(refusal.state);
                told.detail = refusal.detail;
                told.hint = refusal.hint;
                told.at = refusal.at;
                told
            }
            QueryError::NegativeCount { clause: "OFFSET" } => told(state::NEGATIVE_OFFSET),
            QueryError::NegativeCount { .. } => told(state::NEGATIVE_COUNT),
            QueryError::SeveralRows => told(state::SEVERAL_ROWS),
            QueryError::GivenUp => told(state::QUERY_CANCELED),
            _ => told(state::INTERNAL),
        }
    }
}

fn state_of_evaluation(error: &EvaluationError) -> &'static str {
    match error {
        EvaluationError::DivisionByZero => state::DIVISION_BY_ZERO,
        EvaluationError::OutOfRange(_) => state::NUMERIC_OUT_OF_RANGE,
        EvaluationError::TimestampOutOfRange(_) => state::TIMESTAMP_OUT_OF_RANGE,
        EvaluationError::NegativeLength(_) => state::BAD_SUBSTRING,
        EvaluationError::BadPattern => state::BAD_ESCAPE_SEQUENCE,
        EvaluationError::Type(error) => state_of_type_error(error),
        _ => state::INTERNAL,
    }
}

fn state_of_type_error(error: &TypeError) -> &'static str {
    match error {
        TypeError::NullValue(_) | TypeError::MissingValue(_) => state::NOT_NULL_VIOLATION,
        TypeError::OutOfRange { data_type, .. } if data_type.is_text() => state::STRING_TOO_LONG,
        TypeError::OutOfRange { .. } | TypeError::KeysExhausted { .. } => {
            state::NUMERIC_OUT_OF_RANGE
        }
        TypeError::BadText { data_type, text, .. } => match data_type {
            DataType::Date
            | DataType::Time
            | DataType::TimeTz
            | DataType::Timestamp
            | DataType::TimestampTz => state::INVALID_DATETIME,
            _ if data_type.is_text() => state::STRING_TOO_LONG,
            DataType::Int16 | DataType::Int32 | DataType::Int64 if is_whole_number(text) => {
                state::NUMERIC_OUT_OF_RANGE
            }
            DataType::Enum(_) => state::INVALID_TEXT,
            DataType::Float32 | DataType::Float64 if text.trim().parse::<f64>().is_ok() => {
                state::NUMERIC_OUT_OF_RANGE
            }
            _ => state::INVALID_TEXT,
        },
        TypeError::InColumn { cause, .. } => state_of_type_error(cause),
        TypeError::WrongType { .. } | TypeError::ComputedDefault(_) => state::DATATYPE_MISMATCH,
        TypeError::UnknownColumn { .. } => state::UNDEFINED_COLUMN,
        TypeError::KeyColumnStays(_)
        | TypeError::GeneratedKey(_)
        | TypeError::NoOrder { .. }
        | TypeError::KeyWithoutScale(_) => state::FEATURE_NOT_SUPPORTED,
        TypeError::UsedByGenerated { .. } => state::DEPENDENT_OBJECTS,
        TypeError::GeneratedValue(_) => state::GENERATED_ALWAYS,
        TypeError::AlteredTooOften { .. } | TypeError::TooManyChecks { .. } => {
            state::LIMIT_EXCEEDED
        }
        TypeError::DuplicateColumn(_) | TypeError::DuplicateKeyColumn(_) => state::DUPLICATE_COLUMN,
        TypeError::UnknownDataType { .. }
        | TypeError::ImpossibleDataType { .. }
        | TypeError::UnknownStrategy { .. }
        | TypeError::UnknownCheck { .. } => state::UNDEFINED_OBJECT,
        TypeError::DuplicateCheck { .. } => state::DUPLICATE_OBJECT,
        TypeError::KeyTooLarge { .. }
        | TypeError::RowTooLarge { .. }
        | TypeError::CheckTooLong { .. } => state::LIMIT_EXCEEDED,
        TypeError::ValueCount { .. } => state::SYNTAX_ERROR,
        _ if error.is_damage() => state::DATA_CORRUPTED,
        _ => state::INVALID_TABLE_DEFINITION,
    }
}

fn is_whole_number(text: &str) -> bool {
    let digits = text.trim().trim_start_matches(['-', '+']);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

impl From<ParserError> for SqlError {
    fn from(error: ParserError) -> SqlError {
        match error {
            ParserError::RecursionLimitExceeded => {
                SqlError::new(state::STATEMENT_TOO_COMPLEX, "the statement is nested too deeply")
                    .with_hint("Nest expressions less than about 50 deep.")
            }
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
                // The parser has no other way to say where.
                let (message, place) = match message.rsplit_once(" at Line: ") {
                    Some((message, place)) => (message, place.split_once(", Column: ")),
                    None => (message.as_str(), None),
                };
                let told = SqlError::new(state::SYNTAX_ERROR, format!("syntax error: {message}"));
                let place = place.map(|(line, column)| (line.parse(), column.parse()));
                let Some((Ok(line), Ok(column))) = place else { return told };
                let start = Location { line, column };
                told.at(Span { start, end: start })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_transactions_and_snapshots_meet_has_a_state_of_its_own() {
        let table = || "t".to_owned();
        for (error, state) in [
            (Error::DefinedTooLate { table: table() }, "0A000"),
            (Error::TransactionEnded, "25P01"),
            (Error::SnapshotTooOld { table: table(), limit_bytes: 1 << 20 }, "72000"),
            (Error::Conflict { table: table(), key: onrush::KeyInWords(Vec::new()) }, "40001"),
        ] {
            let told = SqlError::from(error);
            assert_eq!((told.state, told.severity), (state, Severity::Error), "{told}");
        }
    }
}
