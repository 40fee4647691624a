//! Commits are in the archive when they are answered, for those who ask for that; and a server says how its archive is.

use std::time::Duration;

use onrush::{CheckProgress, Database, Options};
use onrush_archive::{FromArchive, Place};
use onrush_files::{Disk, OsDisk};
use onrush_server::{ArchiveTarget, ServerError, ServerOptions};
use std::sync::Arc;

use crate::common::{World, code};

/// By time alone nothing would come in these tests.
fn archived() -> (World, tempfile::TempDir, String) {
    let store = tempfile::tempdir().unwrap();
    let url = format!("file://{}", store.path().join("archive").display());
    let target = ArchiveTarget { url: url.clone(), interval: Duration::from_secs(3600) };
    let options = ServerOptions { archive: Some(target), ..ServerOptions::default() };
    let engine = Options { archive_log_bytes: 1 << 20, ..Options::small() };
    (World::with_engine(engine, options), store, url)
}

/// What a successor has, while the server lives.
fn numbers_in_archive(url: &str) -> i64 {
    let (url, scratch) = (url.to_owned(), tempfile::tempdir().unwrap());
    // It has a runtime of its own.
    let restoring = std::thread::spawn(move || {
        let (disk, into): (Arc<dyn Disk>, _) =
            (Arc::new(OsDisk::buffered()), scratch.path().join("db"));
        let options = FromArchive { closes: false, ..FromArchive::default() };
        let place = Place::of_url(&url).unwrap();
        onrush_archive::restore(&disk, &place, &into, &options, &CheckProgress::default()).unwrap();
        let database = Database::open(&into, Options::small()).unwrap();
        let mut session = database.session().unwrap();
        let table = database.table("numbers").unwrap();
        let rows = session.scan(&table, &onrush::ScanOptions::default()).unwrap().count();
        i64::try_from(rows).unwrap()
    });
    restoring.join().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_under_remote_write_is_in_the_archive() {
    let (world, _store, url) = archived();
    let client = world.client().await;
    client.batch_execute("CREATE TABLE numbers (n bigint PRIMARY KEY)").await.unwrap();
    client.batch_execute("SET synchronous_commit = remote_write").await.unwrap();
    client.batch_execute("INSERT INTO numbers VALUES (1)").await.unwrap();
    assert_eq!(numbers_in_archive(&url), 1);
    client.execute("INSERT INTO numbers VALUES ($1)", &[&2_i64]).await.unwrap();
    assert_eq!(numbers_in_archive(&url), 2);
    // Of one transaction.
    client.batch_execute("SET synchronous_commit = on").await.unwrap();
    client.batch_execute("INSERT INTO numbers VALUES (3)").await.unwrap();
    let local = "BEGIN; SET LOCAL synchronous_commit = remote_write; INSERT INTO numbers VALUES (4); COMMIT";
    client.batch_execute(local).await.unwrap();
    assert_eq!(numbers_in_archive(&url), 4);
    client.batch_execute("INSERT INTO numbers VALUES (5)").await.unwrap();
    assert_eq!(numbers_in_archive(&url), 4);
    client.batch_execute("CALL onrush.archive_backup()").await.unwrap();
    assert_eq!(numbers_in_archive(&url), 5);
    let view = "SELECT state, cause, behind_bytes, objects > 0, backups, newest_backup_lsn <= safe_lsn, \
                safe_lsn = durable_lsn FROM onrush.archive";
    let row = client.query_one(view, &[]).await.unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, Option<&str>>(1)), ("running", None));
    assert_eq!((row.get::<_, i64>(2), row.get::<_, i64>(4)), (0, 2));
    assert!(row.get::<_, bool>(3) && row.get::<_, bool>(5) && row.get::<_, bool>(6));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_an_archive_says_how_to_get_one() {
    let world = World::new();
    let client = world.client().await;
    let refused = client.batch_execute("SET synchronous_commit = remote_write").await.unwrap_err();
    assert_eq!(code(&refused), "22023");
    assert!(refused.as_db_error().unwrap().hint().unwrap().contains("--archive"));
    let refused = client.batch_execute("CALL onrush.archive_backup()").await.unwrap_err();
    assert_eq!(code(&refused), "55000");
    assert!(client.query("TABLE onrush.archive", &[]).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_fenced_is_not_answered_as_archived() {
    let (world, _store, url) = archived();
    let client = world.client().await;
    client.batch_execute("CREATE TABLE numbers (n bigint PRIMARY KEY)").await.unwrap();
    client.batch_execute("SET synchronous_commit = remote_write").await.unwrap();
    client.batch_execute("INSERT INTO numbers VALUES (1)").await.unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let into = scratch.path().join("successor");
    std::thread::spawn(move || {
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::buffered());
        let (place, options) = (Place::of_url(&url).unwrap(), FromArchive::default());
        onrush_archive::restore(&disk, &place, &into, &options, &CheckProgress::default()).unwrap();
    })
    .join()
    .unwrap();
    let refused = client.batch_execute("INSERT INTO numbers VALUES (2)").await.unwrap_err();
    assert_eq!(code(&refused), "08007");
    let client = world.client().await;
    client.batch_execute("INSERT INTO numbers VALUES (3)").await.unwrap();
    let row = client.query_one("SELECT state, cause FROM onrush.archive", &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "fenced");
    assert!(row.get::<_, &str>(1).contains("was closed"));
}

#[test]
fn a_place_that_is_none_and_an_interval_out_of_range_are_refused() {
    let start = |url: &str, seconds| {
        let target =
            ArchiveTarget { url: url.to_owned(), interval: Duration::from_secs_f64(seconds) };
        let options = ServerOptions { archive: Some(target), ..ServerOptions::default() };
        World::try_with_engine(Options { archive_log_bytes: 1 << 20, ..Options::small() }, options)
    };
    assert!(matches!(start("gs://bucket", 1.0), Err(ServerError::Archive(_))));
    assert!(matches!(start("file:///tmp/a", 0.0), Err(ServerError::BadOption { .. })));
}
