//! What MariaDB counts (global status) and times (performance_schema), under neutral names.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::target::record::{self, CounterRecord, Snapshot, WaitRecord};
use crate::target::server::Refusal;

/// Picoseconds of the performance schema in a second.
const PICOS_PER_S: f64 = 1e12;

/// Counters of the global status: its name, ours, the unit, and whether it is a level.
const COUNTERS: &[(&str, &str, &str, bool)] = &[
    ("Innodb_os_log_written", record::LOG_RECORD_BYTES, "bytes", false),
    ("Innodb_log_writes", record::LOG_BLOCKS, "1", false),
    // Of log and data files together: newer versions count no syncs of the log alone.
    ("Innodb_data_fsyncs", record::LOG_SYNCS, "1", false),
    ("Innodb_log_waits", "innodb_log_waits", "1", false),
    ("Innodb_data_written", "innodb_data_written", "bytes", false),
    ("Innodb_data_read", "innodb_data_read", "bytes", false),
    ("Innodb_buffer_pool_pages_flushed", "innodb_pages_written_back", "pages", false),
    ("Innodb_buffer_pool_pages_dirty", "innodb_pages_dirty", "pages", true),
    ("Innodb_checkpoint_age", "innodb_checkpoint_age", "bytes", true),
    ("Innodb_row_lock_waits", "innodb_row_lock_waits", "1", false),
    ("Handler_commit", "handler_commit", "1", false),
    ("Handler_write", "handler_write", "1", false),
];

/// Reads all counts and times.
pub(super) fn read(connection: &mut Conn) -> Result<Snapshot, Refusal> {
    let status: Vec<(String, String)> = connection.query("show global status")?;
    // Waits of tables hold the waits for files and locks within them: those would count twice.
    let waits: Vec<(String, u64, u64, u64)> = connection.query(
        "select event_name, count_star, sum_timer_wait, max_timer_wait \
         from performance_schema.events_waits_summary_global_by_event_name \
         where count_star > 0 and event_name like 'wait/%' \
         and event_name not like 'wait/io/table/%'",
    )?;
    Ok(Snapshot {
        waits: waits.into_iter().map(wait).collect(),
        counters: counters(&status),
        ..Snapshot::default()
    })
}

fn counters(status: &[(String, String)]) -> Vec<CounterRecord> {
    let found = |theirs: &str| {
        let (_, value) = status.iter().find(|(name, _)| name.eq_ignore_ascii_case(theirs))?;
        value.parse::<f64>().ok()
    };
    let one = |(theirs, ours, unit, is_level): &(&str, &str, &str, bool)| {
        Some(CounterRecord {
            name: (*ours).to_owned(),
            unit: (*unit).to_owned(),
            value: found(theirs)?,
            is_level: *is_level,
        })
    };
    COUNTERS.iter().filter_map(one).collect()
}

/// `wait/io/file/innodb/innodb_data_file`: the group is its first three words.
fn wait((name, count, sum_ps, max_ps): (String, u64, u64, u64)) -> WaitRecord {
    let third = name.match_indices('/').nth(2).map_or(name.len(), |(at, _)| at);
    let (group, rest) = name.split_at(third);
    WaitRecord {
        group: group.to_owned(),
        name: rest.trim_start_matches('/').to_owned(),
        count,
        seconds: sum_ps as f64 / PICOS_PER_S,
        max_s: Some(max_ps as f64 / PICOS_PER_S),
        ..WaitRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_named_by_its_place_in_the_performance_schema() {
        let name = "wait/io/file/innodb/innodb_data_file".to_owned();
        let wait = wait((name, 196, 2_000_000_000_000, 500_000_000_000));
        assert_eq!((&*wait.group, &*wait.name), ("wait/io/file", "innodb/innodb_data_file"));
        assert_eq!((wait.count, wait.seconds, wait.max_s), (196, 2.0, Some(0.5)));
    }

    #[test]
    fn counters_that_a_version_does_not_have_are_left_out() {
        let status = [("Innodb_log_writes".to_owned(), "35".to_owned())];
        let counters = counters(&status);
        assert_eq!(counters.len(), 1);
        assert_eq!((&*counters[0].name, counters[0].value), (record::LOG_BLOCKS, 35.0));
    }
}
