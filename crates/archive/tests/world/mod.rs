//! A database on a disk in memory, and a store that fails as it is told.

#![allow(dead_code, clippy::unwrap_used)]

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::memory::InMemory;
use onrush::{
    Background, CheckOptions, CheckProgress, ColumnDefinition, DataType, Database, Lsn,
    OnlineOptions, Options, ScanOptions, Table, TableDefinition,
};
use onrush_archive::{
    ArchiveError, ArchiveOptions, Archiver, Bucket, Created, FromArchive, FromArchiveReport,
    Listed, Place, Step, Store, StoreError, restore,
};
use onrush_check::check;
use onrush_files::{Disk, MemoryDisk, OpenMode};
use parking_lot::Mutex;

/// What becomes of a request to create an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// It is not done, and nobody knows.
    LoseRequest,
    /// It is done, and nobody knows.
    LoseAnswer,
    /// It is done twice; the second answer comes.
    Twice,
    /// It is done when [`FaultyStore::let_delayed_go`] is called; nobody knows.
    Delay,
    /// It is not done, and said to be there.
    Lie,
}

/// A store in memory.
#[derive(Debug)]
pub struct FaultyStore {
    bucket: Bucket,
    memory: Arc<InMemory>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    faults: VecDeque<Fault>,
    delayed: Vec<(String, Bytes)>,
    is_away: bool,
    is_read_only: bool,
    creates: u64,
}

impl FaultyStore {
    pub fn new() -> Arc<FaultyStore> {
        let memory = Arc::new(InMemory::new());
        let bucket = Bucket::new(Arc::clone(&memory) as _, "prefix".into());
        Arc::new(FaultyStore { bucket, memory, state: Mutex::default() })
    }

    pub fn place(self: &Arc<FaultyStore>) -> Place {
        Place::of_store(Arc::clone(self) as _)
    }

    /// What becomes of the next requests to create something.
    pub fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.lock().faults.extend(faults);
    }

    pub fn set_away(&self, is_away: bool) {
        self.state.lock().is_away = is_away;
    }

    pub fn set_read_only(&self, is_read_only: bool) {
        self.state.lock().is_read_only = is_read_only;
    }

    pub fn creates(&self) -> u64 {
        self.state.lock().creates
    }

    /// Requests that were delayed arrive.
    pub async fn let_delayed_go(&self) {
        let delayed = std::mem::take(&mut self.state.lock().delayed);
        for (name, bytes) in delayed {
            self.bucket.create(&name, bytes).await.unwrap();
        }
    }

    pub async fn names(&self, folder: &str) -> Vec<String> {
        let listed = self.bucket.list(folder).await.unwrap();
        listed.into_iter().map(|listed| listed.name).collect()
    }

    /// Objects of the log, in order.
    pub async fn log(&self, history: u128) -> Vec<String> {
        self.names(&format!("{history:032x}/log")).await
    }

    pub async fn remove(&self, name: &str) {
        use object_store::ObjectStoreExt;
        self.memory.delete(&format!("prefix/{name}").into()).await.unwrap();
    }

    /// Changes a byte in the middle.
    pub async fn damage(&self, name: &str) {
        let bytes = self.bucket.read(name).await.unwrap().unwrap();
        let mut bytes = bytes.to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        self.remove(name).await;
        assert_eq!(self.bucket.create(name, bytes.into()).await.unwrap(), Created::Created);
    }

    fn check(&self, what: &'static str, name: &str) -> Result<(), StoreError> {
        let state = self.state.lock();
        match state.is_away || (state.is_read_only && what == "write") {
            true => Err(failed(what, name)),
            false => Ok(()),
        }
    }
}

fn failed(what: &'static str, name: &str) -> StoreError {
    StoreError { what, name: name.to_owned(), cause: "planted".into() }
}

#[async_trait]
impl Store for FaultyStore {
    async fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
        self.check("write", name)?;
        let fault = {
            let mut state = self.state.lock();
            state.creates += 1;
            state.faults.pop_front().unwrap_or(Fault::None)
        };
        match fault {
            Fault::None => self.bucket.create(name, bytes).await,
            Fault::LoseRequest => Err(failed("write", name)),
            Fault::LoseAnswer => {
                self.bucket.create(name, bytes).await?;
                Err(failed("write", name))
            }
            Fault::Twice => {
                self.bucket.create(name, bytes.clone()).await?;
                self.bucket.create(name, bytes).await
            }
            Fault::Delay => {
                self.state.lock().delayed.push((name.to_owned(), bytes));
                Err(failed("write", name))
            }
            Fault::Lie => Ok(Created::Exists),
        }
    }

    async fn read(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        self.check("read", name)?;
        self.bucket.read(name).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<Listed>, StoreError> {
        self.check("list", folder)?;
        self.bucket.list(folder).await
    }

    async fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.check("list", folder)?;
        self.bucket.folders(folder).await
    }
}

/// A machine: its disk, with a database in `/db`.
pub struct Machine {
    pub disk: MemoryDisk,
    pub db: Database,
    pub table: Table,
}

pub fn shared(disk: &MemoryDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

pub fn options() -> Options {
    Options { background: Background::Callers, archive_log_bytes: 1 << 20, ..Options::small() }
}

pub fn archive_options() -> ArchiveOptions {
    ArchiveOptions {
        object_bytes: 64 << 10,
        part_bytes: 64 << 10,
        log_bytes_max: 1 << 20,
        backup_log_bytes: 256 << 10,
        online: OnlineOptions {
            compare_rows: false,
            busy_percent: 100,
            ..OnlineOptions::default()
        },
        ..ArchiveOptions::default()
    }
}

impl Machine {
    /// With a new database.
    pub fn new() -> Machine {
        let disk = MemoryDisk::new();
        let db = Database::create_on(shared(&disk), "/db", options()).unwrap();
        let table = TableDefinition::builder("numbers")
            .column(ColumnDefinition::new("n", DataType::Int64).not_null())
            .column(ColumnDefinition::new("text", DataType::Text))
            .primary_key(["n"]);
        let table = db.create_table(table.build().unwrap()).unwrap();
        Machine { disk, db, table }
    }

    /// With what is on the disk.
    pub fn open(disk: MemoryDisk, folder: &str) -> Machine {
        let db = Database::open_on(shared(&disk), folder, options()).unwrap();
        let table = db.table("numbers").unwrap();
        Machine { disk, db, table }
    }

    /// The process is killed and started again.
    pub fn restarted(&self) -> Machine {
        Machine::open(self.disk.copy(), self.db.folder().to_str().unwrap())
    }

    /// Commits each number, and returns the end of the last commit.
    pub fn insert(&self, numbers: std::ops::Range<i64>) -> Lsn {
        let mut session = self.db.session().unwrap();
        let mut end = Lsn::ZERO;
        for number in numbers {
            let text = "t".repeat((number % 700) as usize);
            let values = [number.into(), text.into()];
            let token = session.insert_token(&self.table, &values).unwrap();
            token.wait().unwrap();
            end = token.lsn();
        }
        end
    }

    pub fn numbers(&self) -> Vec<i64> {
        let mut session = self.db.session().unwrap();
        let scan = session.scan(&self.table, &ScanOptions::default()).unwrap();
        scan.map(|row| row.unwrap()[0].as_i64().unwrap()).collect()
    }

    pub fn archiver(&self, store: &Arc<FaultyStore>) -> Archiver {
        Archiver::new(&self.db, store.place(), archive_options())
    }
}

/// Steps until everything is archived; failures of the store are passed over.
pub async fn catch_up(archiver: &mut Archiver) -> Result<(), ArchiveError> {
    let mut failures = 0;
    loop {
        match archiver.step().await {
            Ok(Step::Archived) => {}
            Ok(Step::UpToDate) => return Ok(()),
            Err(ArchiveError::Away(_)) if failures < 100 => failures += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Restores onto a new machine, and checks what is there.
pub fn try_restored(
    store: &Arc<FaultyStore>,
    options: &FromArchive,
) -> Result<(Machine, FromArchiveReport), ArchiveError> {
    try_restored_of(&store.place(), options)
}

pub fn try_restored_of(
    place: &Place,
    options: &FromArchive,
) -> Result<(Machine, FromArchiveReport), ArchiveError> {
    let disk = MemoryDisk::new();
    let into = Path::new("/successor");
    let (place, options, on) = (place.clone(), options.clone(), shared(&disk));
    // It has a runtime of its own.
    let restoring =
        std::thread::spawn(move || restore(&on, &place, into, &options, &CheckProgress::default()));
    let report = restoring.join().unwrap()?;
    let checked =
        check(shared(&disk), into, &CheckOptions::default(), &CheckProgress::default()).unwrap();
    assert!(checked.is_sound(), "{checked}");
    Ok((Machine::open(disk, "/successor"), report))
}

pub fn restored(store: &Arc<FaultyStore>) -> Machine {
    try_restored(store, &FromArchive::default()).unwrap().0
}

/// The bytes of a file.
pub fn file(disk: &MemoryDisk, path: &str) -> Vec<u8> {
    let file = disk.open(Path::new(path), OpenMode::ReadOnly).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}
