//! What can go wrong with a query, by what the client can do about it.
//!
//! No words of an error decide anything. What PostgreSQL has an SQLSTATE for is told by `binder.rs` before a query is
//! planned, or by functions of this crate while it runs; what DataFusion tells beyond is one of a few kinds,
//! by its variant.

use datafusion::arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::tokenizer::{Location, Span};
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
    /// No such function, or not for such arguments.
    #[error("{message}")]
    UnknownFunction {
        /// Which, and which there are.
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
    /// The planner behind does not take the statement, and nothing here knows why.
    #[error("{message}")]
    NotPlanned {
        /// In its words.
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
    /// What PostgreSQL has an SQLSTATE and a text of its own for.
    #[error("{}", .0.message)]
    Refused(Box<Refusal>),
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

/// What is told of something that PostgreSQL refuses, too.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Its SQLSTATE.
    pub state: &'static str,
    /// Its text.
    pub message: String,
    /// What there is to say further.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Where in the statement.
    pub at: Option<Location>,
}

impl QueryError {
    /// What PostgreSQL has this SQLSTATE for.
    #[must_use]
    pub fn refused(state: &'static str, message: impl Into<String>) -> QueryError {
        let message = message.into();
        QueryError::Refused(Box::new(Refusal {
            state,
            message,
            detail: None,
            hint: None,
            at: None,
        }))
    }

    /// Where it is, unless that is known; a part of a statement that nobody wrote is nowhere.
    #[must_use]
    pub(crate) fn at(mut self, span: Span) -> QueryError {
        if let QueryError::Refused(refusal) = &mut self
            && span.start.line > 0
        {
            refusal.at.get_or_insert(span.start);
        }
        self
    }

    /// What there is to say further.
    #[must_use]
    pub(crate) fn detail(mut self, detail: impl Into<String>) -> QueryError {
        if let QueryError::Refused(refusal) = &mut self {
            refusal.detail = Some(detail.into());
        }
        self
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> QueryError {
        if let QueryError::Refused(refusal) = &mut self {
            refusal.hint = Some(hint.into());
        }
        self
    }
}

impl From<ArrowError> for QueryError {
    fn from(error: ArrowError) -> QueryError {
        of_arrow(&error)
    }
}

impl From<QueryError> for DataFusionError {
    fn from(error: QueryError) -> DataFusionError {
        DataFusionError::External(Box::new(error))
    }
}

impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> QueryError {
        of_datafusion(&error)
    }
}

/// By its variant alone: what PostgreSQL tells of was told before, by the binder or by functions of this crate.
fn of_datafusion(error: &DataFusionError) -> QueryError {
    let message = || first_line(&error.strip_backtrace());
    match error {
        DataFusionError::ArrowError(inner, _) => of_arrow(inner),
        DataFusionError::External(inner) => of_external(&**inner),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            of_datafusion(inner)
        }
        DataFusionError::Shared(inner) => of_datafusion(inner),
        DataFusionError::Collection(errors) if let Some(first) = errors.first() => {
            of_datafusion(first)
        }
        DataFusionError::SQL(error, _) => QueryError::Syntax { message: error.to_string() },
        DataFusionError::ResourcesExhausted(message) => {
            QueryError::OutOfMemory { message: first_line(message) }
        }
        DataFusionError::SchemaError(inner, _) => match &**inner {
            SchemaError::FieldNotFound { field, .. } => {
                let message = format!("column {} does not exist", field.flat_name());
                QueryError::refused("42703", message)
            }
            SchemaError::AmbiguousReference { field } => {
                let message = format!("column reference \"{}\" is ambiguous", field.name);
                QueryError::refused("42702", message)
            }
            _ => QueryError::NotPlanned { message: message() },
        },
        DataFusionError::Plan(_)
        | DataFusionError::Configuration(_)
        | DataFusionError::NotImplemented(_) => QueryError::NotPlanned { message: message() },
        // It was met while the query ran, so it is of a value.
        DataFusionError::Execution(_) => QueryError::refused("22000", message()),
        _ => QueryError::Internal { message: message() },
    }
}

fn of_arrow(error: &ArrowError) -> QueryError {
    match error {
        ArrowError::DivideByZero => QueryError::DivisionByZero,
        // Of a kernel that computes: what it comes to does not fit.
        ArrowError::ArithmeticOverflow(message) | ArrowError::ComputeError(message) => {
            QueryError::OutOfRange { message: message.clone() }
        }
        ArrowError::CastError(message) | ArrowError::ParseError(message) => {
            QueryError::BadText { message: message.clone() }
        }
        ArrowError::NotYetImplemented(message) => {
            QueryError::NotPlanned { message: message.clone() }
        }
        ArrowError::ExternalError(inner) => of_external(&**inner),
        other => QueryError::Internal { message: other.to_string() },
    }
}

/// What came through DataFusion from this crate, or from further outside.
fn of_external(error: &(dyn std::error::Error + Send + Sync + 'static)) -> QueryError {
    if let Some(own) = error.downcast_ref::<QueryError>() {
        return own.clone();
    }
    if let Some(engine) = error.downcast_ref::<onrush::Error>() {
        return QueryError::Engine(engine.clone());
    }
    if let Some(inner) = error.downcast_ref::<DataFusionError>() {
        return of_datafusion(inner);
    }
    match error.downcast_ref::<ArrowError>() {
        Some(inner) => of_arrow(inner),
        None => QueryError::Internal { message: error.to_string() },
    }
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}
