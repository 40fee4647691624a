//! The names, parameters and column types of the key strategies.

use std::fmt;
use std::str::FromStr;

use crate::{ColumnName, DataType, TypeError};

/// Highest node number of `node-offset`.
pub const NODE_MAX: u32 = 92_232;

/// The names, for error messages and help.
pub const STRATEGY_NAMES: &str = "identity, uuid-v4, uuid-v7, sequential-guid, session-offset, \
     node-offset, bit-reversed, hash-prefix";

/// How a column makes its keys. See [`crate::generate`] for ranges and the reasons for uniqueness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyStrategy {
    /// Ascending numbers. Unique; with `strict` also handed out in ascending order over all
    /// sessions, one by one; without it each session takes blocks.
    Identity {
        /// The first number; may be negative.
        start: i64,
        /// Draw one number at a time.
        strict: bool,
    },
    /// Random UUIDs.
    UuidV4,
    /// UUIDs that ascend with the clock.
    UuidV7,
    /// UUIDs that ascend with a durable counter.
    SequentialGuid,
    /// Each session ascends in a range of its own.
    SessionOffset,
    /// Each node (database or application server) ascends in a range of its own.
    NodeOffset {
        /// The node, 0 to [`NODE_MAX`]; different for each database whose rows may meet.
        node: u32,
    },
    /// A sequence whose bits are reversed: neighbours in time lie far apart.
    BitReversed,
    /// A sequence with a small hash in front: 256 insert points, each ascending.
    HashPrefix,
}

impl KeyStrategy {
    /// Every strategy, with its parameters at their defaults.
    pub const ALL: [KeyStrategy; 8] = [
        KeyStrategy::Identity { start: 1, strict: false },
        KeyStrategy::UuidV4,
        KeyStrategy::UuidV7,
        KeyStrategy::SequentialGuid,
        KeyStrategy::SessionOffset,
        KeyStrategy::NodeOffset { node: 0 },
        KeyStrategy::BitReversed,
        KeyStrategy::HashPrefix,
    ];

    /// The name, without parameters.
    pub const fn name(self) -> &'static str {
        match self {
            KeyStrategy::Identity { .. } => "identity",
            KeyStrategy::UuidV4 => "uuid-v4",
            KeyStrategy::UuidV7 => "uuid-v7",
            KeyStrategy::SequentialGuid => "sequential-guid",
            KeyStrategy::SessionOffset => "session-offset",
            KeyStrategy::NodeOffset { .. } => "node-offset",
            KeyStrategy::BitReversed => "bit-reversed",
            KeyStrategy::HashPrefix => "hash-prefix",
        }
    }

    /// The column type that fits: `uuid` or `bigint` (identity also takes the smaller integers).
    pub const fn natural_type(self) -> DataType {
        match self {
            KeyStrategy::UuidV4 | KeyStrategy::UuidV7 | KeyStrategy::SequentialGuid => {
                DataType::Uuid
            }
            _ => DataType::Int64,
        }
    }

    /// Whether the strategy needs leases of a durable counter.
    pub const fn needs_counter(self) -> bool {
        !matches!(self, KeyStrategy::UuidV4 | KeyStrategy::UuidV7)
    }

    /// Whether the strategy can make keys for a column of this type.
    pub(crate) fn check(self, data_type: DataType, column: ColumnName) -> Result<(), TypeError> {
        let smaller = matches!(data_type, DataType::Int16 | DataType::Int32);
        let reason = match self {
            KeyStrategy::Identity { start, .. } if smaller || data_type == DataType::Int64 => {
                if start <= largest(data_type) && start >= -largest(data_type) - 1 {
                    return Ok(());
                }
                format!("its start does not fit {data_type}")
            }
            KeyStrategy::Identity { .. } => {
                format!("it needs smallint, integer or bigint, and the column is {data_type}")
            }
            KeyStrategy::NodeOffset { node } if node > NODE_MAX => {
                format!("node numbers are 0 to {NODE_MAX}, and {node} was given")
            }
            _ if data_type == self.natural_type() => return Ok(()),
            _ => format!("it needs {}, and the column is {data_type}", self.natural_type()),
        };
        Err(TypeError::BadStrategy { column, strategy: self, reason: reason.into() })
    }
}

/// The largest value of an integer type.
pub(super) fn largest(data_type: DataType) -> i64 {
    match data_type {
        DataType::Int16 => i64::from(i16::MAX),
        DataType::Int32 => i64::from(i32::MAX),
        _ => i64::MAX,
    }
}

/// The name, and in parentheses the parameters that are not at their defaults.
impl fmt::Display for KeyStrategy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())?;
        match self {
            KeyStrategy::Identity { start: 1, strict: false }
            | KeyStrategy::NodeOffset { node: 0 } => Ok(()),
            KeyStrategy::Identity { start, strict: false } => write!(formatter, "({start})"),
            KeyStrategy::Identity { start, strict: true } => write!(formatter, "({start},strict)"),
            KeyStrategy::NodeOffset { node } => write!(formatter, "({node})"),
            _ => Ok(()),
        }
    }
}

impl FromStr for KeyStrategy {
    type Err = TypeError;

    /// Reads a name with or without parameters: `identity`, `identity(1000)`,
    /// `identity(1,strict)`, `identity(strict)`, `node-offset(7)`.
    fn from_str(text: &str) -> Result<KeyStrategy, TypeError> {
        let unknown = || TypeError::UnknownStrategy { text: text.into() };
        let lower = text.trim().to_ascii_lowercase();
        let (name, arguments) = match lower.split_once('(') {
            None => (lower.as_str(), None),
            Some((name, rest)) => (name, Some(rest.strip_suffix(')').ok_or_else(unknown)?)),
        };
        let plain = KeyStrategy::ALL
            .into_iter()
            .find(|strategy| strategy.name() == name)
            .ok_or_else(unknown)?;
        match (plain, arguments) {
            (plain, None) => Ok(plain),
            (KeyStrategy::Identity { .. }, Some(arguments)) => {
                let (mut start, mut strict) = (1, false);
                for argument in arguments.split(',').map(str::trim) {
                    if argument == "strict" {
                        strict = true;
                    } else {
                        start = argument.parse().map_err(|_| unknown())?;
                    }
                }
                Ok(KeyStrategy::Identity { start, strict })
            }
            (KeyStrategy::NodeOffset { .. }, Some(node)) => {
                let node = node.trim().parse().map_err(|_| unknown())?;
                Ok(KeyStrategy::NodeOffset { node })
            }
            (_, Some(_)) => Err(unknown()),
        }
    }
}
