//! SQL Server's views of waits, latches and spinlocks, and its log counters, under neutral names.
//! They count since the server started, of everybody: two moments are subtracted, and nothing else
//! should run there.

use tiberius::Row;

use super::session::column;
use crate::target::record::{self, CounterRecord, Snapshot, Spins, WaitRecord};
use crate::target::server::Refusal;

/// Its version and edition.
pub(super) const VERSION: &str = "select cast(serverproperty('ProductVersion') as nvarchar(64)) \
                                  + N' ' + cast(serverproperty('Edition') as nvarchar(64))";

/// A question, and what to make of each row of the answer.
pub(super) struct View {
    pub(super) text: &'static str,
    pub(super) read: fn(&Row, &mut Snapshot) -> Result<(), Refusal>,
}

/// All views that are read.
pub(super) const VIEWS: &[View] = &[
    View {
        text: "select wait_type, cast(waiting_tasks_count as bigint), \
               cast(wait_time_ms as bigint), cast(max_wait_time_ms as bigint), \
               cast(signal_wait_time_ms as bigint) from sys.dm_os_wait_stats \
               where waiting_tasks_count > 0",
        read: wait,
    },
    View {
        text: "select latch_class, cast(waiting_requests_count as bigint), \
               cast(wait_time_ms as bigint), cast(max_wait_time_ms as bigint) \
               from sys.dm_os_latch_stats where waiting_requests_count > 0",
        read: latch,
    },
    View {
        text: "select name, cast(collisions as bigint), cast(spins as bigint), \
               cast(sleep_time as bigint), cast(backoffs as bigint) \
               from sys.dm_os_spinlock_stats where collisions > 0",
        read: spinlock,
    },
    View {
        text: "select cast(rtrim(counter_name) as nvarchar(128)), cast(cntr_value as bigint) \
               from sys.dm_os_performance_counters where instance_name = db_name() \
               and object_name like '%:Databases%'",
        read: counter,
    },
];

/// Waits of threads that have nothing to do, by their names or how these begin.
const IDLE: &[&str] = &[
    "BROKER_",
    "CHECKPOINT_QUEUE",
    "CLR_AUTO_EVENT",
    "CLR_MANUAL_EVENT",
    "DIRTY_PAGE_POLL",
    "DISPATCHER_QUEUE_SEMAPHORE",
    "FT_IFTS",
    "HADR_",
    "LAZYWRITER_SLEEP",
    "LOGMGR_QUEUE",
    "ONDEMAND_TASK_QUEUE",
    "PARALLEL_REDO_",
    "PREEMPTIVE_XE_",
    "PVS_PREALLOCATE",
    "PWAIT_",
    "QDS_",
    "REQUEST_FOR_DEADLOCK_SEARCH",
    "SERVER_IDLE_CHECK",
    "SLEEP_",
    "SOS_WORK_DISPATCHER",
    "SP_SERVER_DIAGNOSTICS_SLEEP",
    "SQLTRACE_",
    "WAITFOR",
    "WAIT_XTP_",
    "XE_",
];

/// Counters that have a neutral name; rates are sums there, whatever they are called.
const COUNTERS: &[(&str, &str, &str)] = &[
    ("Log Flushes/sec", record::LOG_SYNCS, "1"),
    ("Log Bytes Flushed/sec", record::LOG_BYTES, "bytes"),
    ("Log Flush Waits/sec", "log_flush_waits", "1"),
    ("Log Growths", "log_growths", "1"),
    ("Transactions/sec", "transactions", "1"),
    ("Write Transactions/sec", "write_transactions", "1"),
];

fn seconds(row: &Row, at: usize) -> Result<f64, Refusal> {
    Ok(column::<i64>(row, at)? as f64 / 1000.0)
}

fn count(row: &Row, at: usize) -> Result<u64, Refusal> {
    Ok(u64::try_from(column::<i64>(row, at)?)?)
}

fn wait(row: &Row, into: &mut Snapshot) -> Result<(), Refusal> {
    let name: &str = column(row, 0)?;
    let (all, signal) = (seconds(row, 2)?, seconds(row, 4)?);
    into.waits.push(WaitRecord {
        group: "wait".into(),
        name: name.into(),
        count: count(row, 1)?,
        seconds: all,
        resource_s: Some((all - signal).max(0.0)),
        signal_s: Some(signal),
        max_s: Some(seconds(row, 3)?),
        is_idle: IDLE.iter().any(|idle| name.starts_with(idle)),
        ..WaitRecord::default()
    });
    Ok(())
}

fn latch(row: &Row, into: &mut Snapshot) -> Result<(), Refusal> {
    into.waits.push(WaitRecord {
        group: "latch".into(),
        name: column::<&str>(row, 0)?.into(),
        count: count(row, 1)?,
        seconds: seconds(row, 2)?,
        max_s: Some(seconds(row, 3)?),
        ..WaitRecord::default()
    });
    Ok(())
}

/// The view tells how long threads slept, not how often.
fn spinlock(row: &Row, into: &mut Snapshot) -> Result<(), Refusal> {
    let collisions = count(row, 1)?;
    into.waits.push(WaitRecord {
        group: "spin".into(),
        name: column::<&str>(row, 0)?.into(),
        count: collisions,
        seconds: seconds(row, 3)?,
        spins: Some(Spins {
            collisions,
            spins: count(row, 2)?,
            sleeps: 0,
            backoffs: count(row, 4)?,
        }),
        ..WaitRecord::default()
    });
    Ok(())
}

fn counter(row: &Row, into: &mut Snapshot) -> Result<(), Refusal> {
    let theirs: &str = column(row, 0)?;
    if let Some((_, name, unit)) = COUNTERS.iter().find(|(known, ..)| *known == theirs) {
        into.counters.push(CounterRecord {
            name: (*name).into(),
            unit: (*unit).into(),
            value: column::<i64>(row, 1)? as f64,
            is_level: false,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tiberius::{ColumnData, ColumnType};

    use super::*;

    /// Rows as the views would answer, before and after a load. Written by hand in the form of the
    /// views' documentation, with invented figures: they come from no run of a server.
    const INVENTED: [[&str; 4]; 2] = [
        [
            "WRITELOG 1000 4000 30 200|PAGELATCH_EX 500 100 9 40|SLEEP_TASK 70 90000 1000 2",
            "BUFFER 40 300 20|LOG_MANAGER 2 10 8",
            "LOGCACHE_ACCESS 100 25000 2 30|XDESMGR 7 900 0 1",
            "Log Flushes/sec 400|Log Bytes Flushed/sec 200000|Percent Log Used 3",
        ],
        [
            "WRITELOG 25000 64000 45 3200|PAGELATCH_EX 9500 2100 12 840|SLEEP_TASK 90 120000 1000 3",
            "BUFFER 4040 6300 25|LOG_MANAGER 2 10 8",
            "LOGCACHE_ACCESS 4100 925000 52 530|XDESMGR 7 900 0 1",
            "Log Flushes/sec 9400|Log Bytes Flushed/sec 8200000|Percent Log Used 9",
        ],
    ];

    fn row(text: &str) -> Row {
        let words: Vec<&str> = text.rsplitn(text.matches(' ').count() + 1, ' ').collect();
        let is_number = |word: &&&str| word.parse::<i64>().is_ok();
        let numbers: Vec<i64> =
            words.iter().take_while(is_number).map(|word| word.parse().unwrap()).collect();
        let name = words.iter().skip(numbers.len()).rev().copied().collect::<Vec<_>>().join(" ");
        let name = ColumnData::String(Some(name.into()));
        let mut row = Row::builder().column("name", ColumnType::NVarchar, name);
        for number in numbers.into_iter().rev() {
            row = row.column("", ColumnType::Int8, ColumnData::I64(Some(number)));
        }
        row.build()
    }

    fn snapshot(rows_of_views: [&str; 4]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (view, rows) in VIEWS.iter().zip(rows_of_views) {
            for text in rows.split('|') {
                (view.read)(&row(text), &mut snapshot).unwrap();
            }
        }
        snapshot
    }

    fn during_the_load() -> Snapshot {
        let [before, after] = INVENTED;
        snapshot(after).since(&snapshot(before))
    }

    fn found<'s>(snapshot: &'s Snapshot, group: &str, name: &str) -> Option<&'s WaitRecord> {
        snapshot.waits.iter().find(|wait| wait.group == group && wait.name == name)
    }

    #[test]
    fn the_documents_say_that_no_server_was_there() {
        let page = include_str!("../../../../../../docs/lab-servers.md");
        let (_, about) = page.split_once("\n## SQL Server\n").unwrap();
        assert!(
            about.contains("**This target has not been run against a server by the project.**")
        );
        let targets = include_str!("../../../../../../docs/lab.md");
        let row = targets.lines().find(|line| line.starts_with("| `sqlserver` |")).unwrap();
        assert!(row.contains("not run against a server by the project"), "{row}");
    }

    #[test]
    fn waits_are_split_into_resource_and_signal() {
        let snapshot = during_the_load();
        let log = found(&snapshot, "wait", "WRITELOG").unwrap();
        assert_eq!((log.count, log.seconds), (24_000, 60.0));
        assert_eq!((log.resource_s, log.signal_s, log.max_s), (Some(57.0), Some(3.0), Some(0.045)));
        assert!(!log.is_idle && found(&snapshot, "wait", "SLEEP_TASK").unwrap().is_idle);
    }

    #[test]
    fn the_top_leaves_idling_latches_and_spins_out() {
        let snapshot = during_the_load();
        let top: Vec<_> = record::top_waits(&snapshot.waits);
        let names: Vec<&str> = top.iter().map(|(wait, _)| wait.name.as_str()).collect();
        assert_eq!(names, ["WRITELOG"]);
    }

    #[test]
    fn latches_and_spinlocks_keep_what_they_collided_and_what_did_not_move_is_left_out() {
        let snapshot = during_the_load();
        let buffer = found(&snapshot, "latch", "BUFFER").unwrap();
        assert_eq!((buffer.count, buffer.seconds), (4_000, 6.0));
        let spin = found(&snapshot, "spin", "LOGCACHE_ACCESS").unwrap();
        let spins = Spins { collisions: 4_000, spins: 900_000, sleeps: 0, backoffs: 500 };
        assert_eq!(spin.spins, Some(spins));
        assert!((spin.seconds - 0.05).abs() < 1e-9);
        assert!(found(&snapshot, "latch", "LOG_MANAGER").is_none());
        assert!(found(&snapshot, "spin", "XDESMGR").is_none());
    }

    #[test]
    fn log_counters_get_their_neutral_names() {
        let snapshot = during_the_load();
        assert_eq!(snapshot.counter(record::LOG_SYNCS), Some(9_000.0));
        assert_eq!(snapshot.counter(record::LOG_BYTES), Some(8_000_000.0));
        assert_eq!(snapshot.counters.len(), 2);
    }

    #[test]
    fn a_null_where_a_number_belongs_is_an_error() {
        let null = Row::builder()
            .column("latch_class", ColumnType::NVarchar, ColumnData::String(Some("BUFFER".into())))
            .column("waiting_requests_count", ColumnType::Int8, ColumnData::I64(None))
            .build();
        let error = latch(&null, &mut Snapshot::default()).unwrap_err();
        assert_eq!(error.to_string(), "column 2 is null");
    }
}
