//! Many threads append through a small ring: every record comes back once, whole, and those of a
//! thread in their order.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

mod common;

use common::*;
use onrush_log::{Log, LogWriter};

fn run(writer: LogWriter, threads: usize, records: usize, durable_every: usize) {
    let mut options = options(threads);
    options.writer = writer;
    options.capacity_bytes = 256 << 20;
    let disk = TestDisk::new();
    let log = Log::create(disk.arc(), options.clone()).unwrap();
    std::thread::scope(|scope| {
        for permit in 0..threads {
            let (log, options) = (&log, &options);
            scope.spawn(move || {
                let recorder = recorder(options);
                for number in 0..records {
                    let filler = record(number, (number * 7 + permit) % 300);
                    let payload_bytes = 8 + filler.len();
                    let bytes = Log::framed_bytes(payload_bytes);
                    while !log.has_space(permit, bytes) {
                        log.wait_for_space(bytes, &recorder).unwrap();
                    }
                    let reservation = log.reserve(permit, payload_bytes);
                    let (thread, number_bytes) =
                        ((permit as u32).to_le_bytes(), (number as u32).to_le_bytes());
                    log.fill(&reservation, &[&thread, &number_bytes, &filler]);
                    log.complete(permit);
                    if number % durable_every == 0 {
                        log.wait_durable(reservation.end, &recorder).unwrap();
                        assert!(log.durable() >= reservation.end);
                    } else {
                        log.note_delayed(reservation.end, &recorder).unwrap();
                    }
                }
            });
        }
    });
    log.close(&recorder(&options)).unwrap();
    assert_eq!(log.durable(), log.tail());
    drop(log);
    let (_, read) = recover(&disk, &options).unwrap();
    assert_eq!(read.len(), threads * records);
    let mut next = vec![0; threads];
    for payload in read {
        let permit = u32::from_le_bytes(payload[0..4].try_into().unwrap()) as usize;
        let number = u32::from_le_bytes(payload[4..8].try_into().unwrap()) as usize;
        assert_eq!(number, next[permit]);
        next[permit] += 1;
        assert_eq!(payload[8..], record(number, (number * 7 + permit) % 300));
    }
}

#[test]
fn appends_come_back_with_a_writer_thread() {
    run(LogWriter::Thread { cpu: None }, 4, 3000, 50);
}

#[test]
fn appends_come_back_when_callers_write() {
    run(LogWriter::Callers, 4, 3000, 10);
}

#[test]
fn every_commit_durable() {
    run(LogWriter::Thread { cpu: Some(0) }, 8, 300, 1);
}
