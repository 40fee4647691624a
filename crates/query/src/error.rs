//! What can go wrong with a query, by what the client can do about it.
//!
//! DataFusion tells some of its errors by their words only. Where those words are read, in [`told`],
//! a test of the server holds the SQLSTATE that follows.

use datafusion::arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use onrush::TypeError;
use thiserror::Error;

/// The result of a step of a query.
pub type Result<T> = std::result::Result<T, QueryError>;

/// Why a query was not run, or not to its end.
#[derive(Clone, Debug, Error)]
pub enum QueryError {
    /// The statement cannot be read.
    #[error("syntax error: {message}")]
    Syntax {
        /// Where and why.
        message: String,
    },
    /// No such table or view.
    #[error("{message}")]
    UnknownTable {
        /// The SQLSTATE: that of an unknown table or schema.
        state: &'static str,
        /// Which.
        message: String,
        /// What there is instead.
        hint: Option<String>,
    },
    /// No such column.
    #[error("there is no column {name}; those in sight are: {known}")]
    UnknownColumn {
        /// The name as it was given.
        name: String,
        /// The columns there are.
        known: String,
    },
    /// The column is in several tables of the query.
    #[error("column {name} is ambiguous: write the name of its table in front of it")]
    AmbiguousColumn {
        /// The name as it was given.
        name: String,
    },
    /// No such function, or not for such arguments.
    #[error("{message}")]
    UnknownFunction {
        /// Which, and which there are.
        message: String,
    },
    /// A column is neither grouped by nor inside of an aggregate.
    #[error("{message}")]
    NotGrouped {
        /// Which.
        message: String,
    },
    /// A window function where none can be.
    #[error("{message}")]
    MisplacedWindow {
        /// Where.
        message: String,
    },
    /// Types that do not go together.
    #[error("{message}")]
    WrongType {
        /// Which.
        message: String,
    },
    /// The query is understood but cannot be done.
    #[error("{message}")]
    NotSupported {
        /// What cannot.
        message: String,
    },
    /// The folder for temporary files cannot be used.
    #[error("temporary files of queries: {0}")]
    SpillFolder(#[from] onrush_files::DiskError),
    /// Something was divided by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// The result of an arithmetic operation, or a value, does not fit its type.
    #[error("{message}")]
    OutOfRange {
        /// Which.
        message: String,
    },
    /// Text that is no value of the wanted type.
    #[error("{message}")]
    BadText {
        /// Which.
        message: String,
    },
    /// A value that is no value of the wanted type; the engine's own words.
    #[error(transparent)]
    Value(#[from] TypeError),
    /// The statement needs more memory than one may have.
    #[error("the query needs more memory than a statement may have: {message}")]
    OutOfMemory {
        /// Which operation asked for how much.
        message: String,
    },
    /// What PostgreSQL has an SQLSTATE of its own for, and nobody tells apart here.
    #[error("{message}")]
    Refused {
        /// That SQLSTATE.
        state: &'static str,
        /// What it is.
        message: String,
    },
    /// LIMIT or OFFSET below zero.
    #[error("{clause} must not be negative")]
    NegativeCount {
        /// Which.
        clause: &'static str,
    },
    /// A subquery that must have one row has several.
    #[error("more than one row returned by a subquery used as an expression")]
    SeveralRows,
    /// The query was given up because nobody waits for its rows any more.
    #[error("the query was given up")]
    GivenUp,
    /// The engine failed while it read.
    #[error(transparent)]
    Engine(#[from] onrush::Error),
    /// Something that should not happen.
    #[error("the query engine failed: {message}")]
    Internal {
        /// In its words.
        message: String,
    },
}

impl QueryError {
    /// What PostgreSQL has this SQLSTATE for.
    pub(crate) fn refused(state: &'static str, message: impl Into<String>) -> QueryError {
        QueryError::Refused { state, message: message.into() }
    }
}

impl From<ArrowError> for QueryError {
    fn from(error: ArrowError) -> QueryError {
        match error {
            ArrowError::DivideByZero => QueryError::DivisionByZero,
            ArrowError::ArithmeticOverflow(message) => QueryError::OutOfRange { message },
            ArrowError::CastError(message) | ArrowError::ParseError(message) => of_cast(message),
            ArrowError::NotYetImplemented(message) => QueryError::NotSupported { message },
            ArrowError::ExternalError(inner) => of_external(inner),
            ArrowError::InvalidArgumentError(message) | ArrowError::ComputeError(message) => {
                told(message)
            }
            other => QueryError::Internal { message: other.to_string() },
        }
    }
}

/// What came through DataFusion from this crate, or from further outside.
fn of_external(error: Box<dyn std::error::Error + Send + Sync>) -> QueryError {
    let error = match error.downcast::<QueryError>() {
        Ok(own) => return *own,
        Err(error) => error,
    };
    let error = match error.downcast::<onrush::Error>() {
        Ok(engine) => return QueryError::Engine(*engine),
        Err(error) => error,
    };
    match error.downcast::<DataFusionError>() {
        Ok(inner) => (*inner).into(),
        Err(error) => match error.downcast::<ArrowError>() {
            Ok(inner) => (*inner).into(),
            Err(error) => QueryError::Internal { message: error.to_string() },
        },
    }
}

impl From<QueryError> for DataFusionError {
    fn from(error: QueryError) -> DataFusionError {
        DataFusionError::External(Box::new(error))
    }
}

impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> QueryError {
        match error {
            DataFusionError::ArrowError(inner, _) => (*inner).into(),
            DataFusionError::External(inner) => of_external(inner),
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
                (*inner).into()
            }
            DataFusionError::Shared(inner) => of_shared(&inner),
            DataFusionError::Collection(mut errors) if !errors.is_empty() => {
                errors.swap_remove(0).into()
            }
            DataFusionError::SQL(error, _) => QueryError::Syntax { message: error.to_string() },
            DataFusionError::NotImplemented(message) => QueryError::NotSupported { message },
            DataFusionError::ResourcesExhausted(message) => {
                QueryError::OutOfMemory { message: first_line(&message) }
            }
            DataFusionError::SchemaError(inner, _) => of_schema(*inner),
            DataFusionError::Plan(message) | DataFusionError::Configuration(message) => {
                told(message)
            }
            DataFusionError::Execution(message) => told_of_value(message),
            other => QueryError::Internal { message: other.to_string() },
        }
    }
}

/// An error that several parts of a plan share can only be looked at.
fn of_shared(error: &DataFusionError) -> QueryError {
    match error.find_root() {
        DataFusionError::ArrowError(inner, _) => match &**inner {
            ArrowError::DivideByZero => QueryError::DivisionByZero,
            ArrowError::ArithmeticOverflow(message) => {
                QueryError::OutOfRange { message: message.clone() }
            }
            ArrowError::CastError(message) | ArrowError::ParseError(message) => {
                of_cast(message.clone())
            }
            ArrowError::ExternalError(inner) => of_shared_external(&**inner),
            other => QueryError::Internal { message: other.to_string() },
        },
        DataFusionError::External(inner) => of_shared_external(&**inner),
        DataFusionError::ResourcesExhausted(message) => {
            QueryError::OutOfMemory { message: first_line(message) }
        }
        DataFusionError::Execution(message) => told_of_value(message.clone()),
        DataFusionError::Plan(message) => told(message.clone()),
        other => QueryError::Internal { message: other.to_string() },
    }
}

fn of_shared_external(error: &(dyn std::error::Error + Send + Sync + 'static)) -> QueryError {
    if let Some(own) = error.downcast_ref::<QueryError>() {
        return own.clone();
    }
    match error.downcast_ref::<onrush::Error>() {
        Some(engine) => QueryError::Engine(engine.clone()),
        None => QueryError::Internal { message: error.to_string() },
    }
}

fn of_schema(error: SchemaError) -> QueryError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => QueryError::UnknownColumn {
            name: field.flat_name(),
            known: valid_fields
                .iter()
                .map(|field| field.flat_name())
                .collect::<Vec<_>>()
                .join(", "),
        },
        SchemaError::AmbiguousReference { field } => {
            QueryError::AmbiguousColumn { name: field.flat_name() }
        }
        other => told(other.to_string()),
    }
}

fn of_cast(message: String) -> QueryError {
    let lower = message.to_lowercase();
    if lower.contains("overflow")
        || lower.contains("out of range")
        || lower.contains("can't cast value")
    {
        return QueryError::OutOfRange { message };
    }
    QueryError::BadText { message }
}

/// As [`told`], of an error that was met while a query ran: it is of a value, whatever else it is.
fn told_of_value(message: String) -> QueryError {
    match told(message) {
        QueryError::Syntax { message } => QueryError::Refused { state: "22000", message },
        other => other,
    }
}

/// Words that tell of what PostgreSQL has an SQLSTATE for.
const STATES: &[(&str, &str)] = &[
    ("square root of a negative", "2201F"),
    ("zero raised to a negative power", "2201F"),
    ("non UTF-8", "22021"),
    ("duplicate qualified field name", "42712"),
    ("Order by column out of bounds", "42P10"),
];

/// What only the words of an error tell.
fn told(message: String) -> QueryError {
    let has = |words: &str| message.contains(words);
    if let Some((_, state)) = STATES.iter().find(|(words, _)| has(words)) {
        // DataFusion says where it met some of them.
        let message = first_line(&message).replacen("Execution error: ", "", 1);
        return QueryError::Refused { state, message };
    }
    if has("failed to match any signature") {
        let name = message.split('\'').nth(1).unwrap_or_default();
        let message = format!("there is no function {name} for values of these types");
        return QueryError::UnknownFunction { message };
    }
    if has("Aggregate functions are not allowed") {
        return QueryError::NotGrouped { message };
    }
    if has("does not support logical expression WindowFunction") {
        let message = "window functions are allowed among the columns of an answer and in ORDER BY";
        return QueryError::MisplacedWindow { message: message.to_owned() };
    }
    if let Some(rest) = message.strip_prefix("Invalid function '")
        && let Some((name, _)) = rest.split_once('\'')
    {
        let message = format!("function {name} does not exist");
        return QueryError::UnknownFunction { message };
    }
    if has("Invalid function") || has("No function matches") || has("table function") {
        return QueryError::UnknownFunction { message: first_line(&message) };
    }
    if has("must be in GROUP BY") {
        return QueryError::NotGrouped { message };
    }
    if has("Divide by zero") || has("divide by zero") {
        return QueryError::DivisionByZero;
    }
    if has("overflow") || has("Overflow") || has("out of range") || has("too large to store") {
        return QueryError::OutOfRange { message };
    }
    if has("coerce") || has("cannot be cast") || has("Cannot infer common") || has("type mismatch")
    {
        return QueryError::WrongType { message: first_line(&message) };
    }
    if has("not supported") || has("Unsupported") || has("unsupported") || has("not implemented") {
        return QueryError::NotSupported { message: first_line(&message) };
    }
    QueryError::Syntax { message: first_line(&message) }
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}
