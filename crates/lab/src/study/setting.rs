//! The list: every setting that a study may turn. Adding one is adding a line, and reading it where
//! it matters; `docs/lab.md` is made from the same list.

use std::fmt;

use onrush::KeyStrategy;
use onrush_measure::nearest::nearest;
use onrush_measure::units::{parse_bytes, parse_count};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// What a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number in a range; texts such as `"48m"` too.
    Count(u64, u64),
    /// Bytes; texts such as `"64KiB"` too.
    Bytes,
    /// `true` or `false`.
    Switch,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// The name of a key strategy, with or without parameters.
    Key,
    /// Any text.
    Text,
}

/// Whom a setting concerns. For the others it is shown as not used, never refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concerns {
    /// Every target.
    All,
    /// Onrush only, embedded or over its protocol.
    Onrush,
    /// Targets that are servers.
    Servers,
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(untagged)]
pub enum SettingValue {
    /// On or off.
    Switch(bool),
    /// A count or a number of bytes.
    Number(u64),
    /// A word, a key strategy, a path.
    Text(String),
}

/// By way of a JSON value: numbers of arbitrary precision and untagged enums do not go together.
impl<'d> Deserialize<'d> for SettingValue {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<SettingValue, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::Bool(on) => Ok(SettingValue::Switch(on)),
            serde_json::Value::String(text) => Ok(SettingValue::Text(text)),
            other => other.as_u64().map(SettingValue::Number).ok_or_else(|| {
                D::Error::custom(format!("{other} is no switch, whole number or text"))
            }),
        }
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Switch(true) => formatter.write_str("on"),
            SettingValue::Switch(false) => formatter.write_str("off"),
            SettingValue::Number(number) => write!(formatter, "{number}"),
            SettingValue::Text(text) => formatter.write_str(text),
        }
    }
}

/// Makes the enum out of a list of `Variant = "name", kind, concerns, "default", "sentence";`.
macro_rules! settings {
    ($($variant:ident = $name:literal, $kind:expr, $concerns:ident, $default:literal,
       $about:literal;)+) => {
        /// A setting that a study may turn.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, Deserialize)]
        pub enum Setting {
            $(#[doc = $about] #[serde(rename = $name)] $variant,)+
        }

        impl Setting {
            /// All of them, in the order of the list.
            pub const ALL: &'static [Setting] = &[$(Setting::$variant),+];

            /// The name in study files.
            pub const fn name(self) -> &'static str {
                match self { $(Setting::$variant => $name),+ }
            }

            /// What it takes.
            pub const fn kind(self) -> Kind {
                match self { $(Setting::$variant => $kind),+ }
            }

            /// Whom it concerns.
            pub const fn concerns(self) -> Concerns {
                match self { $(Setting::$variant => Concerns::$concerns),+ }
            }

            /// Its default, as one would write it.
            pub const fn default_text(self) -> &'static str {
                match self { $(Setting::$variant => $default),+ }
            }

            /// What it does, in one sentence.
            pub const fn about(self) -> &'static str {
                match self { $(Setting::$variant => $about),+ }
            }
        }
    };
}

settings! {
    Operation = "operation", Kind::Word(&["insert", "check"]), All, "insert",
        "What is measured: inserts, or the check of what was preloaded.";
    Sessions = "sessions", Kind::Count(1, 65_536), All, "24",
        "Concurrent sessions, of all instances together.";
    Rows = "rows", Kind::Count(1, u64::MAX), All, "1m",
        "Rows that all sessions insert together.";
    RowsPerSession = "rows_per_session", Kind::Count(0, u64::MAX), All, "0",
        "Rows that each session inserts; when given it takes the place of rows.";
    MemoryRatio = "memory_ratio", Kind::Count(0, 4096), All, "0",
        "The rows, of 163 bytes each, take so many times cache_bytes; when given it takes the place of rows.";
    Tables = "tables", Kind::Count(1, 10_000), Onrush, "1",
        "Tables that sessions insert into, one after the other.";
    SecondsMax = "seconds_max", Kind::Count(0, 864_000), All, "0",
        "The load ends after so many seconds though rows are left; 0 is never.";
    RowsPerSecondMax = "rows_per_s_max", Kind::Count(0, u64::MAX), Onrush, "0",
        "All sessions together insert no more rows a second; 0 is as many as they can.";
    RowsPerCommit = "rows_per_commit", Kind::Count(1, 1_000_000), All, "1",
        "Rows that each transaction inserts.";
    RowsPerStatement = "rows_per_statement", Kind::Count(0, 1_000_000), All, "0",
        "Rows that one call or INSERT statement brings; 0 is all of a transaction.";
    Table = "table", Kind::Text, Onrush, "",
        "A file with a CREATE TABLE statement; empty is the classic table.";
    Key = "key", Kind::Key, All, "session-offset",
        "How keys are made.";
    KeySource = "key_source", Kind::Word(&["engine", "client"]), Onrush, "engine",
        "Whether the engine makes the keys, or each row comes with its own, as it does for every other target.";
    KeySpread = "key_spread", Kind::Word(&["even", "zipfian", "hot", "scattered"]), All, "even",
        "How the client's keys lie: as made; uuid-v4 zipfian or hot, nine in ten in a hundredth; identity scattered.";
    Columns = "columns", Kind::Word(&["constant", "random"]), All, "constant",
        "What c4, c5 and c6 hold: their defaults, or random numbers that the client brings with the key.";
    Indexes = "indexes", Kind::Count(0, 3), All, "0",
        "Secondary indexes: of c6, of c5 and of c4, in this order, none of them unique.";
    ReadsPer100Rows = "reads_per_100_rows", Kind::Count(0, 1_000_000), All, "0",
        "Point reads of a session's own rows for every hundred rows that it inserts.";
    UpdatesPer100Rows = "updates_per_100_rows", Kind::Count(0, 1_000_000), All, "0",
        "Updates of a session's own rows for every hundred rows that it inserts.";
    Durability = "durability", Kind::Word(&["durable", "delayed"]), All, "durable",
        "Whether a commit waits until it is on disk.";
    Driver = "driver", Kind::Word(&["threads", "tasks"]), All, "threads",
        "A thread for each session, or all sessions as tasks on one thread a processor.";
    LoopIn = "loop_in", Kind::Word(&["client", "server"]), Servers, "client",
        "Where the insert loop runs: in the lab, or in a procedure of the server.";
    PreloadRows = "preload_rows", Kind::Count(0, u64::MAX), All, "0",
        "Rows that are there before the clock starts.";
    WarmupRows = "warmup_rows", Kind::Count(0, u64::MAX), All, "0",
        "Rows inserted just before the measured ones, by the same sessions in the same way.";
    Instances = "instances", Kind::Count(1, 256), All, "1",
        "Databases side by side, each in a process of its own, sharing sessions and rows.";
    Pinning = "pinning", Kind::Word(&["none", "instance", "session"]), All, "none",
        "Whether each instance or each session keeps to a processor of its own.";
    DataFiles = "data_files", Kind::Count(1, 16), Onrush, "1",
        "Data files inside the database's folder.";
    DataFolders = "data_folders", Kind::Text, Onrush, "",
        "Folders for data files, separated by commas, in place of data_files; relative ones below each run's own.";
    LogFolder = "log_folder", Kind::Text, Onrush, "",
        "Folder for the log, a relative one below each run's own; empty is beside the data.";
    CacheBytes = "cache_bytes", Kind::Bytes, All, "1GiB",
        "Memory for data: leaves, pages or blocks, whatever the target calls it.";
    PastMemory = "past_memory", Kind::Word(&["off", "auto"]), Onrush, "auto",
        "Whether key ranges that are written to at random places, and are not in memory, keep their rows in stocks.";
    CheckpointSeconds = "checkpoint_seconds", Kind::Count(0, 86_400), Onrush, "60",
        "A checkpoint starts after so many seconds; 0 is never by time.";
    CheckpointLogBytes = "checkpoint_log_bytes", Kind::Bytes, Onrush, "1GiB",
        "A checkpoint starts after so many bytes of log.";
    LogBlockBytesMax = "log_block_bytes_max", Kind::Bytes, Onrush, "1MiB",
        "Largest block of the log, 512 bytes to 1 MiB.";
    LogCapacityBytes = "log_capacity_bytes", Kind::Bytes, Onrush, "4GiB",
        "Space for the log; when it is used up, inserts wait for a checkpoint.";
    ElideDefaults = "elide_defaults", Kind::Switch, Onrush, "true",
        "Whether log records leave out columns that have their constant default.";
    SequentialKeys = "sequential_keys", Kind::Word(&["blocks", "shared-edge"]), Onrush, "blocks",
        "Identity keys: a block of values and a leaf for each session, or one leaf for all.";
    LargePages = "large_pages", Kind::Word(&["off", "try", "require"]), Onrush, "try",
        "Large pages for the memory of leaves.";
    PrefaultLeafMemory = "prefault_leaf_memory", Kind::Switch, Onrush, "true",
        "Whether all memory for leaves is touched before the load.";
    DelayedWindowMs = "delayed_window_ms", Kind::Count(1, 3_600_000), Onrush, "10",
        "Delayed commits: the sync is issued within so many milliseconds.";
    DelayedWindowBytes = "delayed_window_bytes", Kind::Bytes, Onrush, "16MiB",
        "Delayed commits: never more log than this is not on disk.";
    CommitPollingUs = "commit_polling_us", Kind::Count(0, 1_000_000), Onrush, "1000",
        "How long a waiting commit may poll before it sleeps, in microseconds; 0 is never.";
    CpuMask = "cpu_mask", Kind::Text, Onrush, "",
        "Processors for the engine's own threads, as a mask such as 0x3; empty is all.";
    CpusKeptFree = "cpus_kept_free", Kind::Count(0, 4096), Onrush, "0",
        "Processors that sessions leave free.";
    Front = "front", Kind::Switch, Onrush, "false",
        "Sessions insert into a table that is not logged, and a drain moves its rows on.";
    DrainIntervalMs = "drain_interval_ms", Kind::Count(1, 60_000), Onrush, "100",
        "The drain of a front begins a pass every so many milliseconds.";
    DrainRows = "drain_rows", Kind::Count(1, 1_000_000), Onrush, "1000",
        "Rows that one transaction of the drain moves.";
    LogWriterCpu = "log_writer_cpu", Kind::Text, Onrush, "",
        "Processor of the log writer; empty is any.";
    Leave = "leave", Kind::Word(&["close", "drop"]), Onrush, "close",
        "How the database is left before it is opened again and compared.";
    CheckThreads = "check_threads", Kind::Count(1, 4096), All, "1",
        "Degree of parallelism of a check.";
    CheckDepth = "check_depth", Kind::Word(&["full", "physical"]), All, "full",
        "What a check looks at: everything, or pages and their checksums only.";
    CheckStreamPerFile = "check_stream_per_file", Kind::Switch, Onrush, "false",
        "A check reads each data file from front to back, one read at a time.";
    CheckOneBatch = "check_one_batch", Kind::Switch, Onrush, "false",
        "A check takes all tables at once, in the order of the disk.";
    CheckReads = "check_reads", Kind::Word(&["memory", "device"]), All, "memory",
        "Where a check reads: what an earlier check left in memory, or the device past all caches.";
}

impl Setting {
    /// The setting with this name.
    ///
    /// # Errors
    /// A sentence with the nearest name there is.
    pub fn named(name: &str) -> Result<Setting, String> {
        let found = Setting::ALL.iter().find(|setting| setting.name() == name);
        found.copied().ok_or_else(|| {
            let names = Setting::ALL.iter().map(|setting| setting.name());
            format!("there is no setting {name:?}; {}", nearest(name, names))
        })
    }

    /// What an empty text of it means, as a word for tables and charts.
    pub const fn empty_name(self) -> &'static str {
        match self {
            Setting::LogFolder => "beside the data",
            Setting::DataFolders => "inside the database",
            Setting::CpuMask => "all",
            Setting::LogWriterCpu => "any",
            Setting::Table => "classic",
            _ => "",
        }
    }

    /// Its default.
    pub fn default_value(self) -> SettingValue {
        let text = toml::Value::String(self.default_text().to_owned());
        self.read(&text).unwrap_or_else(|_| SettingValue::Text(self.default_text().to_owned()))
    }

    /// Reads one value.
    ///
    /// # Errors
    /// A sentence that says what is expected.
    pub fn read(self, value: &toml::Value) -> Result<SettingValue, String> {
        let given = serde_json::to_string(value).unwrap_or_default();
        let wrong = |expected: String| format!("{} is {given}; give {expected}", self.name());
        match (self.kind(), value) {
            (Kind::Switch, toml::Value::Boolean(on)) => Ok(SettingValue::Switch(*on)),
            (Kind::Switch, toml::Value::String(text)) if text == "true" || text == "false" => {
                Ok(SettingValue::Switch(text == "true"))
            }
            (Kind::Switch, _) => Err(wrong("true or false".into())),
            (Kind::Count(least, most), _) => {
                let number = whole(value, parse_count)
                    .ok_or_else(|| wrong("a whole number, such as 4000000 or \"4m\"".to_owned()))?;
                if !(least..=most).contains(&number) {
                    let range = if most == u64::MAX {
                        format!("at least {least}")
                    } else {
                        format!("{least} to {most}")
                    };
                    return Err(wrong(range));
                }
                Ok(SettingValue::Number(number))
            }
            (Kind::Bytes, _) => whole(value, parse_bytes)
                .map(SettingValue::Number)
                .ok_or_else(|| wrong("a size, such as 65536 or \"64KiB\"".to_owned())),
            (Kind::Word(words), _) => match value.as_str() {
                Some(word) if words.contains(&word) => Ok(SettingValue::Text(word.to_owned())),
                _ => Err(wrong(format!("one of {}", words.join(", ")))),
            },
            (Kind::Key, _) => {
                let text = value.as_str().ok_or_else(|| wrong("a key strategy".to_owned()))?;
                let strategy: KeyStrategy =
                    text.parse().map_err(|error| format!("{}: {error}", self.name()))?;
                Ok(SettingValue::Text(strategy.to_string()))
            }
            (Kind::Text, toml::Value::String(text)) => Ok(SettingValue::Text(text.clone())),
            (Kind::Text, toml::Value::Integer(number)) => {
                Ok(SettingValue::Text(number.to_string()))
            }
            (Kind::Text, _) => Err(wrong("a text in quotes".to_owned())),
        }
    }
}

/// A whole number, written as such or as a text with a unit.
fn whole(value: &toml::Value, parse: impl Fn(&str) -> Result<u64, String>) -> Option<u64> {
    match value {
        toml::Value::Integer(number) => u64::try_from(*number).ok(),
        toml::Value::String(text) => parse(text).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_value_of_its_kind() {
        for setting in Setting::ALL {
            let text = toml::Value::String(setting.default_text().into());
            setting.read(&text).unwrap();
        }
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_the_range() {
        let refused = |setting: Setting, value: toml::Value| setting.read(&value).unwrap_err();
        let message = refused(Setting::Sessions, 0.into());
        assert_eq!(message, "sessions is 0; give 1 to 65536");
        assert!(refused(Setting::CacheBytes, "much".into()).contains("64KiB"));
        assert!(refused(Setting::Durability, "later".into()).contains("durable, delayed"));
        assert!(refused(Setting::Key, "guid".into()).contains("uuid-v4"));
    }

    #[test]
    fn counts_and_sizes_are_read_with_their_units() {
        assert_eq!(Setting::Rows.read(&"48m".into()), Ok(SettingValue::Number(48_000_000)));
        let block = Setting::LogBlockBytesMax.read(&"60KiB".into());
        assert_eq!(block, Ok(SettingValue::Number(61_440)));
    }
}
