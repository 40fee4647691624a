//! Settings of PostgreSQL's planner. They say how an answer is found and never which, so scripts that set them run
//! here unchanged: what is set is shown again, and has no effect.

/// Those that are on or off, and what they are at the beginning.
const SWITCHES: &[(&str, &str)] = &[
    ("enable_async_append", "on"),
    ("enable_bitmapscan", "on"),
    ("enable_gathermerge", "on"),
    ("enable_hashagg", "on"),
    ("enable_hashjoin", "on"),
    ("enable_incremental_sort", "on"),
    ("enable_indexonlyscan", "on"),
    ("enable_indexscan", "on"),
    ("enable_material", "on"),
    ("enable_memoize", "on"),
    ("enable_mergejoin", "on"),
    ("enable_nestloop", "on"),
    ("enable_parallel_append", "on"),
    ("enable_parallel_hash", "on"),
    ("enable_partition_pruning", "on"),
    ("enable_partitionwise_aggregate", "off"),
    ("enable_partitionwise_join", "off"),
    ("enable_seqscan", "on"),
    ("enable_sort", "on"),
    ("enable_tidscan", "on"),
    ("geqo", "on"),
    ("parallel_leader_participation", "on"),
];

/// Those that are numbers.
const NUMBERS: &[(&str, &str)] = &[
    ("cpu_index_tuple_cost", "0.005"),
    ("cpu_operator_cost", "0.0025"),
    ("cpu_tuple_cost", "0.01"),
    ("cursor_tuple_fraction", "0.1"),
    ("default_statistics_target", "100"),
    ("from_collapse_limit", "8"),
    ("geqo_threshold", "12"),
    ("hash_mem_multiplier", "2"),
    ("jit_above_cost", "100000"),
    ("jit_inline_above_cost", "500000"),
    ("jit_optimize_above_cost", "500000"),
    ("join_collapse_limit", "8"),
    ("max_parallel_workers", "8"),
    ("max_parallel_workers_per_gather", "2"),
    ("parallel_setup_cost", "1000"),
    ("parallel_tuple_cost", "0.1"),
    ("random_page_cost", "4"),
    ("seq_page_cost", "1"),
];

/// All of them, and what they are at the beginning.
pub(super) fn all() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    SWITCHES.iter().chain(NUMBERS)
}

/// What such a setting can be.
pub(super) enum Kind {
    Switch,
    Number,
}

pub(super) fn kind_of(name: &str) -> Option<Kind> {
    let has = |list: &[(&str, &str)]| list.iter().any(|(known, _)| *known == name);
    match (has(SWITCHES), has(NUMBERS)) {
        (true, _) => Some(Kind::Switch),
        (_, true) => Some(Kind::Number),
        _ => None,
    }
}
