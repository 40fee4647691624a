//! Queries over Onrush's tables, by DataFusion.
//!
//! The life of one query:
//!
//! 1. **Plan**: the names of a statement that sqlparser has read are resolved (`binder.rs`), it is put into the
//!    words that DataFusion knows (`syntax.rs`), its types are made PostgreSQL's
//!    (`typing.rs`). The [`Query`] is kept; parameters and the clock come later (`query.rs`).
//! 2. **Run**: on the threads of the [`QueryEngine`], for one [`Statement`]: a snapshot that does not
//!    change. Conditions on the table's key, or on that of an index (`access.rs`, `first_rows.rs`),
//!    become ranges of keys (`bounds.rs`, `table.rs`).
//! 3. **Read**: the ranges are read a batch at a time (`scan.rs`, `reader.rs`); each value goes from the row's
//!    bytes straight into the column of its batch (`columns.rs`).
//!    Of a table whose older rows are in files elsewhere both parts are read, each row once (`cold/`).
//! 4. **Answer**: batches wait in a short queue until somebody takes their [`Rows`] (`rows.rs`).
//!    If they are not wanted any more the query ends (`interrupt.rs`).
//!
//! Conditions on single rows, those of CHECK constraints, are asked without a query
//! (`condition.rs`), as values are computed from rows that are written (`computed.rs`).
//!
//! Invariants
//! 1. A query holds no latch, no place inside the engine and no thread of a client while it waits.
//! 2. A condition that became a range of keys is used whole; every other is evaluated for each row.
//! 3. What DataFusion would pass over in silence is refused: clauses in `clauses.rs`, field by field.

mod abbreviations;
mod access;
mod array;
mod binder;
mod bounds;
mod calendar;
mod clauses;
pub mod clock;
mod cold;
mod columns;
mod computed;
mod condition;
mod datetime;
mod distinct_on;
mod engine;
mod enumeration;
mod error;
mod first_rows;
mod functions;
mod in_list;
mod in_turn;
mod interrupt;
mod interval;
mod interval_text;
mod join_order;
mod json_path;
mod memory;
mod no_rows;
mod nothing;
mod numeric;
mod one_row;
mod outer_calls;
mod pattern;
mod postponed;
mod query;
mod reader;
mod relation;
mod resolved;
mod row_by_row;
mod rows;
mod scalar;
mod scan;
mod series;
mod statement;
pub mod style;
mod syntax;
mod table;
mod text;
mod ties;
mod timestamp;
mod types;
mod typing;
mod unkeyed;
mod values;
mod view;

pub use array::{Elements, read_array, write_array};
pub use cold::{ColdCondition, ColdFile, ColdPart, ColdRows, ColdValues};
pub use computed::{RowExpressions, RowValues, RowlessValue};
pub use condition::Condition;
pub use engine::{QueryEngine, QueryOptions, Want};
pub use error::{QueryError, Refusal, Result};
pub use functions::{
    EXCLUSIONS, OPEN_BOUND, SET_ELEMENT, SET_SLICE, SIMILAR_PART, SystemFunction, TO_DOMAIN,
    WITH_TIES, with_backslashes,
};
pub use interval::parse_interval;
pub use memory::{QueryMemory, SpillOptions};
pub use numeric::declared_numeric;
pub use one_row::{NamedColumn, NamedRow, Place};
pub use query::{Query, QueryColumn};
pub use relation::{MadeRows, Relation, Relations};
pub use resolved::{ResolvedNames, StarColumn};
pub use rows::{Batch, Rows};
pub use statement::{Client, SessionSettings, Statement};
pub use syntax::{ALL_FIELDS, is_collation_of_bytes};
pub use text::{name_of, read_text, write_text, write_text_of, written_plainly};
pub use types::ColumnType;
pub use typing::time_type;
pub use view::View;
