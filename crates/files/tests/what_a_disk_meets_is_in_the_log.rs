//! The operator's log says that the disk failed, and that it is full: what failed, what follows, and no line for each
//! insert.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use onrush_files::{Disk, MemoryDisk, OpenMode, StickyDisk};
use tracing_subscriber::fmt::MakeWriter;

/// Lines that were logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Log {
    type Writer = Log;

    fn make_writer(&'w self) -> Log {
        self.clone()
    }
}

/// What is logged while `work` runs.
fn logged(work: impl FnOnce()) -> Vec<String> {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    tracing::subscriber::with_default(subscriber, work);
    let bytes = log.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

fn sticky(capacity_bytes: u64) -> (MemoryDisk, StickyDisk) {
    let memory = MemoryDisk::with_capacity(capacity_bytes);
    let disk = StickyDisk::new(Arc::new(memory.clone()));
    disk.create_folder(Path::new("/data")).unwrap();
    (memory, disk)
}

#[test]
fn a_failed_write_is_one_error_that_names_the_file_and_says_that_the_engine_has_stopped() {
    let (_memory, disk) = sticky(8192);
    let file = disk.open(Path::new("/data/log-1"), OpenMode::CreateNew).unwrap();
    let lines = logged(|| {
        for _ in 0..10 {
            file.write_at(&[1; 100_000], 0).unwrap_err();
        }
    });
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    for part in ["ERROR", "/data/log-1", "the engine has stopped"] {
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn a_full_disk_is_one_warning_however_often_it_is_met_and_one_line_when_there_is_space() {
    let (memory, disk) = sticky(8192);
    let file = disk.open(Path::new("/data/data-00"), OpenMode::CreateNew).unwrap();
    let lines = logged(|| {
        for _ in 0..100 {
            file.allocate(1 << 20).unwrap_err();
        }
        memory.set_capacity(u64::MAX);
        file.allocate(1 << 20).unwrap();
        file.allocate(1 << 20).unwrap();
    });
    let [full, space] = lines.as_slice() else { panic!("{lines:?}") };
    for part in ["WARN", "/data/data-00", "the disk is full", "nothing was lost"] {
        assert!(full.contains(part), "{full}");
    }
    assert!(space.contains("INFO") && space.contains("space"), "{space}");
}
