//! Expressions that tables keep, in a form that is understood here: CHECK constraints and defaults that
//! are computed for each row. Whoever writes a row evaluates them, so that they hold for an embedded
//! program as they do for SQL.
//!
//! An [`Expression`] is what somebody writes: columns by name, literals without a type. For a table it is
//! bound once ([`bind`]): columns become numbers, every operand gets the type that PostgreSQL gives it, and
//! every cast is written down. What comes out, a [`TypedExpression`], is what the catalogue keeps
//! ([`codec`]) and what is evaluated ([`evaluate`]).
//!
//! Invariants
//! 1. Every node was made by [`tree::Node::new`], which refuses operands that do not suit: binding and
//!    decoding both go through it, so evaluation meets no others.
//! 2. A tree is at most [`DEPTH_MAX`] deep. Binding, decoding and evaluation cannot overflow the stack.
//! 3. Evaluation does not panic; what PostgreSQL tells as an error is an [`EvaluationError`].
//! 4. A column compared with a constant takes no memory.

mod bind;
mod codec;
mod decimal;
mod evaluate;
mod field;
mod function;
mod number;
mod pattern;
mod prepared;
mod random;
mod strings;
mod syntax;
mod timestamp;
mod tree;
mod written;

pub use evaluate::EvaluationError;
pub use field::Field;
pub use function::Function;
pub use pattern::Pattern;
pub use prepared::{PreparedDefault, PreparedExpression};
pub use syntax::Expression;
// Expressions shift timestamps by it.
pub use crate::Interval;
pub(crate) use tree::Kind;
pub use tree::{Arithmetic, Comparison, Truth, TypedExpression};

/// Deepest tree.
pub const DEPTH_MAX: usize = 100;
/// Longest encoded form, in bytes.
pub const FORM_BYTES_MAX: usize = 16_000;
