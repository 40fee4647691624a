//! What PostgreSQL counts: pg_stat_wal, pg_stat_io, checkpoints, transactions.
//!
//! Sessions hand in what they counted at most once a second, and when they end. So the counts are
//! read after the sessions of the load have gone.

use std::time::{Duration, Instant};

use postgres::Client;

use crate::target::record::{self, CounterRecord, Snapshot};
use crate::target::server::Refusal;
use crate::target::server::session::{LOAD, refusal};

/// First version whose log counts stand in pg_stat_io, and that of its other views.
const LOG_IN_IO: i32 = 180_000;
const CHECKPOINTER: i32 = 170_000;
const IO: i32 = 160_000;
const LOG: i32 = 140_000;

/// Longest time that a session takes to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A question with one row of numbers, and their names and units.
struct Question {
    text: &'static str,
    names: &'static [(&'static str, &'static str)],
}

/// What to ask a server of this version.
fn questions(version: i32) -> Vec<Question> {
    let log_bytes = Question {
        text: "select wal_bytes::float8, wal_records::float8, wal_fpi::float8, \
               wal_buffers_full::float8 from pg_stat_wal",
        names: &[
            (record::LOG_RECORD_BYTES, "bytes"),
            ("wal_records", "1"),
            ("wal_fpi", "1"),
            ("wal_buffers_full", "1"),
        ],
    };
    let log_writes = Question {
        text: match version >= LOG_IN_IO {
            true => {
                "select sum(writes)::float8, sum(fsyncs)::float8, sum(write_time)::float8, \
                 sum(fsync_time)::float8 from pg_stat_io where object = 'wal'"
            }
            false => {
                "select wal_write::float8, wal_sync::float8, wal_write_time::float8, \
                 wal_sync_time::float8 from pg_stat_wal"
            }
        },
        names: &[
            (record::LOG_BLOCKS, "1"),
            (record::LOG_SYNCS, "1"),
            ("wal_write_time", "ms"),
            ("wal_sync_time", "ms"),
        ],
    };
    let checkpoints = Question {
        text: match version >= CHECKPOINTER {
            true => {
                "select (num_timed + num_requested)::float8, buffers_written::float8 \
                 from pg_stat_checkpointer"
            }
            false => {
                "select (checkpoints_timed + checkpoints_req)::float8, \
                 buffers_checkpoint::float8 from pg_stat_bgwriter"
            }
        },
        names: &[(record::CHECKPOINTS, "1"), ("checkpoint_buffers", "pages")],
    };
    let io = Question {
        text: "select sum(reads)::float8, sum(writes)::float8, sum(extends)::float8, \
               sum(evictions)::float8, sum(fsyncs)::float8 from pg_stat_io \
               where object = 'relation'",
        names: &[
            ("io_reads", "1"),
            ("io_writes", "1"),
            ("io_extends", "1"),
            ("io_evictions", "1"),
            ("io_fsyncs", "1"),
        ],
    };
    let transactions = Question {
        text: "select xact_commit::float8, tup_inserted::float8 from pg_stat_database \
               where datname = current_database()",
        names: &[("xact_commit", "1"), ("tup_inserted", "1")],
    };
    let mut questions = vec![checkpoints, transactions];
    if version >= LOG {
        questions.extend([log_bytes, log_writes]);
    }
    if version >= IO {
        questions.push(io);
    }
    questions
}

/// Reads all counts.
pub(super) fn read(client: &mut Client) -> Result<Snapshot, Refusal> {
    let version: String = client.query_one("show server_version_num", &[]).map_err(refusal)?.get(0);
    let mut counters = Vec::new();
    for question in questions(version.parse()?) {
        let row = client.query_one(question.text, &[]).map_err(refusal)?;
        for (column, (name, unit)) in question.names.iter().enumerate() {
            let value = row.get::<_, Option<f64>>(column).unwrap_or(0.0);
            counters.push(CounterRecord {
                name: (*name).into(),
                unit: (*unit).into(),
                value,
                is_level: false,
            });
        }
    }
    Ok(Snapshot { counters, ..Snapshot::default() })
}

/// Waits until the sessions of a load have gone, so that what they counted is there.
pub(super) fn wait_for_sessions(client: &mut Client) -> Result<(), Refusal> {
    const LEFT: &str = "select count(*) from pg_stat_activity where application_name = $1";
    let until = Instant::now() + PATIENCE;
    while client.query_one(LEFT, &[&LOAD]).map_err(refusal)?.get::<_, i64>(0) > 0 {
        if Instant::now() > until {
            return Err("sessions of the load did not end".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_is_asked_what_it_has() {
        let asked = |version| {
            let all: Vec<_> = questions(version).iter().map(|question| question.text).collect();
            all.join("; ")
        };
        assert!(
            asked(150_018).contains("wal_sync::float8") && !asked(150_018).contains("pg_stat_io")
        );
        assert!(asked(160_000).contains("pg_stat_io") && asked(160_000).contains("bgwriter"));
        assert!(
            asked(180_000).contains("object = 'wal'") && asked(180_000).contains("checkpointer")
        );
        assert!(!asked(130_000).contains("pg_stat_wal"));
    }
}
