//! Paths of SQL/JSON, as PostgreSQL has them: `$.a[*] ? (@.b > 1)`.
//!
//! Not all of them: what computes with numbers, regular expressions and the methods for numbers, dates and the fields
//! of objects are refused by their names.

mod parse;
mod run;

use serde_json::Value as Json;

pub(crate) use run::{Fault, Run};

/// A path that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath {
    is_lax: bool,
    steps: Steps,
}

/// Steps one after the other; the first says where they begin.
type Steps = Vec<Step>;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Root,
    Current,
    /// The place of the last element of the array whose element is asked for.
    Last,
    Value(Json),
    Variable(String),
    Key(String),
    AnyKey,
    /// So many levels further inside, up to so many.
    Inside(u32, u32),
    AnyElement,
    /// From one place to another.
    Elements(Vec<(Steps, Option<Steps>)>),
    Filter(Box<Predicate>),
    /// What a predicate comes to.
    Truth(Box<Predicate>),
    Type,
    Size,
}

#[derive(Clone, Debug, PartialEq)]
enum Predicate {
    And(Box<Predicate>, Box<Predicate>),
    Or(Box<Predicate>, Box<Predicate>),
    Not(Box<Predicate>),
    IsUnknown(Box<Predicate>),
    Exists(Steps),
    Compare(Comparison, Steps, Steps),
    StartsWith(Steps, Steps),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}
