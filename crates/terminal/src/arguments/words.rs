//! The words of the command line for the engine's choices.

use clap::ValueEnum;
use onrush::KeyStrategy;

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// Once it is on disk: it survives a power cut.
    Durable,
    /// At once: a crash can take back the last few milliseconds.
    Delayed,
}

impl From<Durability> for onrush::Durability {
    fn from(word: Durability) -> onrush::Durability {
        match word {
            Durability::Durable => onrush::Durability::Durable,
            Durability::Delayed => onrush::Durability::Delayed,
        }
    }
}

/// Who runs the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Driver {
    /// A thread for each session.
    Threads,
    /// All sessions on one thread a processor, each with one commit on its way.
    Tasks,
}

impl From<Driver> for onrush_measure::Driver {
    fn from(word: Driver) -> onrush_measure::Driver {
        match word {
            Driver::Threads => onrush_measure::Driver::Threads,
            Driver::Tasks => onrush_measure::Driver::Tasks,
        }
    }
}

/// How the database is left before it is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Leave {
    /// Closed, with a last checkpoint.
    Close,
    /// Dropped without a checkpoint: opening replays the log.
    Drop,
}

impl From<Leave> for onrush_measure::Leave {
    fn from(word: Leave) -> onrush_measure::Leave {
        match word {
            Leave::Close => onrush_measure::Leave::Close,
            Leave::Drop => onrush_measure::Leave::Drop,
        }
    }
}

/// Large pages for the memory of leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LargePages {
    /// Ordinary pages.
    Off,
    /// Large ones where the system gives them.
    Try,
    /// Large ones, or an error.
    Require,
}

impl From<LargePages> for onrush::LargePages {
    fn from(word: LargePages) -> onrush::LargePages {
        match word {
            LargePages::Off => onrush::LargePages::Off,
            LargePages::Try => onrush::LargePages::Try,
            LargePages::Require => onrush::LargePages::Require,
        }
    }
}

/// What happens where many sessions insert ascending keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SequentialKeys {
    /// A block of keys and a leaf of its own for each session.
    Blocks,
    /// All sessions meet on the last leaf, as in classic engines.
    SharedEdge,
}

impl From<SequentialKeys> for onrush::SequentialKeys {
    fn from(word: SequentialKeys) -> onrush::SequentialKeys {
        match word {
            SequentialKeys::Blocks => onrush::SequentialKeys::Blocks,
            SequentialKeys::SharedEdge => onrush::SequentialKeys::SharedEdge,
        }
    }
}

/// What becomes of tables that are larger than memory and whose keys come in no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PastMemory {
    /// Each insert into a leaf that is not in memory reads it.
    Off,
    /// Key ranges whose leaves are read for inserts again and again get a stock.
    Auto,
}

impl From<PastMemory> for onrush::PastMemory {
    fn from(word: PastMemory) -> onrush::PastMemory {
        match word {
            PastMemory::Off => onrush::PastMemory::Off,
            PastMemory::Auto => onrush::PastMemory::Auto,
        }
    }
}

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// Reads a key strategy by its name.
///
/// # Errors
/// The names there are.
pub fn key_strategy(text: &str) -> Result<KeyStrategy, String> {
    text.parse().map_err(|error: onrush::TypeError| error.to_string())
}

/// Reads a set of processors: a mask in hexadecimal (`0x3`) or decimal.
///
/// # Errors
/// What is expected.
pub fn cpu_mask(text: &str) -> Result<u64, String> {
    let mask = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    mask.map_err(|_| format!("{text:?} is not a mask of processors; write for example 0x3"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read_in_both_bases() {
        assert_eq!(cpu_mask("0xF"), Ok(15));
        assert_eq!(cpu_mask("3"), Ok(3));
        assert!(cpu_mask("all").is_err());
    }

    #[test]
    fn an_unknown_key_strategy_is_answered_with_the_known_ones() {
        assert!(key_strategy("uuid-v4").is_ok());
        assert!(key_strategy("guid").unwrap_err().contains("session-offset"));
    }
}
