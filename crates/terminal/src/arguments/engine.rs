//! The engine's settings as flags.

use clap::Args;
use onrush::Options;
use onrush_measure::units::parse_bytes;

use super::words::{LargePages, PastMemory, SequentialKeys, Switch, cpu_mask};

/// Settings of the engine.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Settings of the engine")]
pub struct EngineArguments {
    /// Memory of the whole process, divided among its parts; other flags go before its choice
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory: Option<u64>,
    /// Memory for leaves; tables may be larger [default: 1GiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub leaf_memory: Option<u64>,
    /// Largest block of the log, 512 bytes to 1MiB [default: 1MiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub log_block: Option<u64>,
    /// Space for the log; when it is used up, inserts wait for a checkpoint [default: 4GiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub log_capacity: Option<u64>,
    /// Size of one log file [default: 64MiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub log_segment: Option<u64>,
    /// Memory between inserters and the log's device, a power of two [default: 64MiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub log_ring: Option<u64>,
    /// Start a checkpoint after so much log [default: 1GiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub checkpoint_log: Option<u64>,
    /// Start a checkpoint after so many seconds; 0 is never [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub checkpoint_seconds: Option<u64>,
    /// Delayed commits: sync within so many milliseconds [default: 10]
    #[arg(long, value_name = "MS")]
    pub window_ms: Option<u64>,
    /// Delayed commits: never more log than this is not on disk [default: 16MiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub window_bytes: Option<u64>,
    /// How long a waiting commit may poll before it sleeps; 0 is never [default: 1000]
    #[arg(long, value_name = "US")]
    pub commit_polling_us: Option<u64>,
    /// Leave columns at their default out of the log [default: on]
    #[arg(long, value_name = "SWITCH")]
    pub elide_defaults: Option<Switch>,
    /// What happens where many sessions insert ascending keys [default: blocks]
    #[arg(long, value_name = "HOW")]
    pub sequential_keys: Option<SequentialKeys>,
    /// Random keys in tables larger than memory: keep cold key ranges in stocks [default: auto]
    #[arg(long, value_name = "HOW")]
    pub past_memory: Option<PastMemory>,
    /// Start a checkpoint before redoing the log would take longer; 0 is never [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub recovery_seconds: Option<u64>,
    /// Large pages for the memory of leaves [default: try]
    #[arg(long, value_name = "HOW")]
    pub large_pages: Option<LargePages>,
    /// Touch all memory for leaves before the first insert [default: on in the lab, else off]
    #[arg(long, value_name = "SWITCH")]
    pub prefault_leaf_memory: Option<Switch>,
    /// Processors for the engine's own threads, as a mask such as 0x3 [default: all]
    #[arg(long, value_name = "MASK", value_parser = cpu_mask)]
    pub cpu_mask: Option<u64>,
    /// Processors that sessions leave free [default: 0]
    #[arg(long, value_name = "COUNT")]
    pub cpus_kept_free: Option<usize>,
    /// Processor of the log writer [default: any]
    #[arg(long, value_name = "CPU")]
    pub log_writer_cpu: Option<usize>,
}

/// The flag of each setting of the engine that has one.
const FLAGS: [(&str, &str); 20] = [
    ("memory_bytes", "memory"),
    ("leaf_memory_bytes", "leaf-memory"),
    ("log_block_bytes_max", "log-block"),
    ("log_capacity_bytes", "log-capacity"),
    ("log_segment_bytes", "log-segment"),
    ("log_ring_bytes", "log-ring"),
    ("checkpoint_log_bytes", "checkpoint-log"),
    ("checkpoint_seconds", "checkpoint-seconds"),
    ("delayed_window_ms", "window-ms"),
    ("delayed_window_bytes", "window-bytes"),
    ("commit_polling_us", "commit-polling-us"),
    ("elide_defaults", "elide-defaults"),
    ("sequential_keys", "sequential-keys"),
    ("past_memory", "past-memory"),
    ("recovery_seconds", "recovery-seconds"),
    ("large_pages", "large-pages"),
    ("prefault_leaf_memory", "prefault-leaf-memory"),
    ("cpu_mask", "cpu-mask"),
    ("cpus_kept_free", "cpus-kept-free"),
    ("log_writer_cpu", "log-writer-cpu"),
];

/// What a setting of the engine is called where it is typed.
pub fn flag_of(setting: &str) -> Option<String> {
    let flag = FLAGS.iter().find(|(known, _)| *known == setting);
    flag.map(|(_, flag)| format!("--{flag}"))
}

impl EngineArguments {
    /// The options with the given flags in them. The engine checks the ranges.
    pub fn options(&self, mut options: Options) -> Options {
        fn set<T>(place: &mut T, value: Option<impl TryInto<T>>) {
            // What does not fit the machine's word is out of any range; the engine says so.
            if let Some(value) = value.and_then(|value| value.try_into().ok()) {
                *place = value;
            }
        }
        if let Some(memory) = self.memory {
            options = options.divided(memory);
        }
        set(&mut options.leaf_memory_bytes, self.leaf_memory);
        set(&mut options.log_block_bytes_max, self.log_block);
        set(&mut options.log_capacity_bytes, self.log_capacity);
        set(&mut options.log_segment_bytes, self.log_segment);
        set(&mut options.log_ring_bytes, self.log_ring);
        set(&mut options.checkpoint_log_bytes, self.checkpoint_log);
        set(&mut options.checkpoint_seconds, self.checkpoint_seconds);
        set(&mut options.recovery_seconds, self.recovery_seconds);
        set(&mut options.delayed_window_ms, self.window_ms);
        set(&mut options.delayed_window_bytes, self.window_bytes);
        set(&mut options.commit_polling_us, self.commit_polling_us);
        set(&mut options.elide_defaults, self.elide_defaults.map(|word| word == Switch::On));
        set(&mut options.sequential_keys, self.sequential_keys);
        set(&mut options.past_memory, self.past_memory);
        set(&mut options.large_pages, self.large_pages);
        let prefault = self.prefault_leaf_memory.map(|word| word == Switch::On);
        set(&mut options.prefault_leaf_memory, prefault);
        set(&mut options.cpus_kept_free, self.cpus_kept_free);
        options.cpu_mask = self.cpu_mask;
        options.log_writer_cpu = self.log_writer_cpu;
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_is_that_of_a_setting() {
        let command = EngineArguments::augment_args(clap::Command::new("serve"));
        let flags: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
        assert_eq!(flags, FLAGS.map(|(_, flag)| flag));
    }

    #[test]
    fn without_flags_options_stay() {
        let options = Options { prefault_leaf_memory: true, ..Options::default() };
        assert_eq!(EngineArguments::default().options(options.clone()), options);
    }

    #[test]
    fn a_part_that_is_given_goes_before_what_the_memory_divides() {
        let (memory, leaf_memory) = (Some(1 << 30), Some(100 << 20));
        let arguments = EngineArguments { memory, leaf_memory, ..EngineArguments::default() };
        let options = arguments.options(Options::default());
        assert_eq!(options.memory_bytes, memory);
        assert_eq!(options.leaf_memory_bytes, 100 << 20);
        assert_eq!(options.log_ring_bytes, Options::within(1 << 30).log_ring_bytes);
    }

    #[test]
    fn a_flag_sets_its_option() {
        let arguments = EngineArguments {
            log_block: Some(61_440),
            elide_defaults: Some(Switch::Off),
            sequential_keys: Some(SequentialKeys::SharedEdge),
            ..EngineArguments::default()
        };
        let options = arguments.options(Options::default());
        assert_eq!(options.log_block_bytes_max, 61_440);
        assert!(!options.elide_defaults);
        assert_eq!(options.sequential_keys, onrush::SequentialKeys::SharedEdge);
    }
}
