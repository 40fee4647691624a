//! Settings of PostgreSQL's planner and the like. They say how an answer is found and never which, so scripts that set
//! them run here unchanged: what is set is shown again, and has no effect.

use crate::error::Result;

use super::setting_values::bad_value;

/// Those that are on or off, and what they are at the beginning.
const SWITCHES: &[(&str, &str)] = &[
    // Of functions, which nobody can make.
    ("check_function_bodies", "on"),
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
    // Of strings with a backslash, where that is not a character as any other.
    ("escape_string_warning", "on"),
    ("geqo", "on"),
    // Of large objects, which there are none of.
    ("lo_compat_privileges", "off"),
    ("parallel_leader_participation", "on"),
    // Rows come in the order of their key.
    ("synchronize_seqscans", "on"),
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

/// Those that are sizes.
const SIZES: &[(&str, &str)] = &[
    ("effective_cache_size", "4GB"),
    ("maintenance_work_mem", "64MB"),
    ("min_parallel_index_scan_size", "512kB"),
    ("min_parallel_table_scan_size", "8MB"),
    ("work_mem", "4MB"),
];

/// Units of sizes, the largest first.
const UNITS: &[(&str, u64)] =
    &[("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10), ("B", 1)];

/// All of them, and what they are at the beginning.
pub(super) fn all() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    SWITCHES.iter().chain(NUMBERS).chain(SIZES)
}

/// What such a setting can be.
pub(super) enum Kind {
    Switch,
    Number,
    Size,
}

pub(super) fn kind_of(name: &str) -> Option<Kind> {
    let has = |list: &[(&str, &str)]| list.iter().any(|(known, _)| *known == name);
    match (has(SWITCHES), has(NUMBERS), has(SIZES)) {
        (true, ..) => Some(Kind::Switch),
        (_, true, _) => Some(Kind::Number),
        (.., true) => Some(Kind::Size),
        _ => None,
    }
}

/// A size as it is shown: in the largest unit that it is a whole number of.
pub(super) fn size(name: &str, value: &str) -> Result<String> {
    let bad = || bad_value(name, value, "a size such as 64kB, 8MB or 1GB");
    let value = value.trim();
    let digits = value.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let unit = match value[digits.len()..].trim() {
        // Of what is counted in pages a page.
        "" if matches!(name, "work_mem" | "maintenance_work_mem") => 1 << 10,
        "" => 8 << 10,
        given => UNITS
            .iter()
            .find(|(unit, _)| *unit == given)
            .map(|(_, bytes)| *bytes)
            .ok_or_else(bad)?,
    };
    let number = digits.trim().parse::<u64>().map_err(|_| bad())?;
    let bytes = number.checked_mul(unit).ok_or_else(bad)?;
    let unit = UNITS.iter().find(|(_, unit)| bytes % unit == 0);
    Ok(match unit {
        Some((name, unit)) if bytes > 0 => format!("{}{name}", bytes / unit),
        _ => "0".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_shown_in_its_largest_whole_unit() {
        for (name, given, shown) in [
            ("work_mem", "64", "64kB"),
            ("work_mem", "2048kB", "2MB"),
            ("work_mem", "1500kB", "1500kB"),
            ("min_parallel_table_scan_size", "0", "0"),
            ("min_parallel_table_scan_size", "1024", "8MB"),
            ("effective_cache_size", "1 GB", "1GB"),
        ] {
            assert_eq!(size(name, given).unwrap(), shown, "{name} = {given}");
        }
        assert!(size("work_mem", "much").is_err());
        assert!(size("work_mem", "1mb").is_err());
    }
}
