//! After restarts, failures of the store, and log that was let go.

#![allow(clippy::unwrap_used)]

mod world;

use onrush_archive::{ArchiveError, FromArchive};
use world::*;

fn all(to: i64) -> Vec<i64> {
    (0..to).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_leaves_no_gap_however_the_database_ended() {
    let (mut machine, store) = (Machine::new(), FaultyStore::new());
    machine.insert(0..20);
    let mut archiver = machine.archiver(&store);
    archiver.back_up().await.unwrap();
    for round in 1..6 {
        let at = round * 150;
        // Log that a checkpoint no longer needs, and that is not archived.
        machine.insert(if round == 1 { 20..at } else { at - 150..at });
        machine.db.checkpoint().unwrap();
        if round % 2 == 0 {
            machine.db.clone().close().unwrap();
        }
        machine = machine.restarted();
        archiver = machine.archiver(&store);
        catch_up(&mut archiver).await.unwrap();
        assert_eq!(archiver.totals().gaps, 0);
        assert_eq!(archiver.behind_bytes(), 0);
        if round % 2 == 0 {
            archiver.note().unwrap();
        }
    }
    assert_eq!(restored(&store).numbers(), all(750));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_failure_of_the_store_is_got_over() {
    use Fault::*;
    let (machine, store) = (Machine::new(), FaultyStore::new());
    store.plan([
        LoseRequest,
        LoseAnswer,
        Twice,
        None,
        LoseAnswer,
        LoseRequest,
        Lie,
        Twice,
        LoseAnswer,
    ]);
    let mut archiver = machine.archiver(&store);
    let mut to = 0;
    for _ in 0..8 {
        machine.insert(to..to + 10);
        to += 10;
        catch_up(&mut archiver).await.unwrap();
    }
    archiver.back_up().await.unwrap();
    assert_eq!(restored(&store).numbers(), all(to));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_a_predecessor_that_comes_late_is_taken_for_what_it_is() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    machine.insert(0..20);
    let mut archiver = machine.archiver(&store);
    archiver.back_up().await.unwrap();
    machine.insert(20..25);
    store.plan([Fault::Delay]);
    assert!(matches!(archiver.step().await, Err(ArchiveError::Away(_))));
    let machine = machine.restarted();
    machine.insert(25..30);
    let mut archiver = machine.archiver(&store);
    // The predecessor's object is shorter, and comes after the end of the archive was looked for.
    store.plan([Fault::LoseRequest]);
    assert!(archiver.step().await.is_err());
    store.let_delayed_go().await;
    catch_up(&mut archiver).await.unwrap();
    assert_eq!(restored(&store).numbers(), all(30));
}

#[tokio::test(flavor = "multi_thread")]
async fn inserts_go_on_while_the_store_is_away_or_read_only() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    machine.insert(0..20);
    let mut archiver = machine.archiver(&store);
    archiver.back_up().await.unwrap();
    let safe = archiver.safe_lsn();
    for (round, away) in [(1, true), (2, false)] {
        store.set_away(away);
        store.set_read_only(!away);
        machine.insert(round * 20..round * 20 + 20);
        assert!(matches!(archiver.step().await, Err(ArchiveError::Away(_))));
        assert_eq!(archiver.safe_lsn(), safe);
    }
    store.set_read_only(false);
    catch_up(&mut archiver).await.unwrap();
    assert_eq!(restored(&store).numbers(), all(60));
}

#[tokio::test(flavor = "multi_thread")]
async fn log_that_takes_too_much_is_let_go_and_a_new_backup_closes_the_gap() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    machine.insert(0..20);
    let mut archiver = machine.archiver(&store);
    archiver.back_up().await.unwrap();
    let safe = archiver.safe_lsn();
    store.set_away(true);
    let mut to = 20;
    while archiver.totals().gaps == 0 && to < 20_000 {
        machine.insert(to..to + 400);
        to += 400;
        machine.db.checkpoint().unwrap();
        archiver.while_away().unwrap();
        // More than is kept, and less than the log has space for beside it.
        assert!(archiver.held_bytes() <= archive_options().log_bytes_max + (1 << 20));
        let _ = archiver.step().await;
    }
    assert_eq!(archiver.totals().gaps, 1);
    store.set_away(false);
    catch_up(&mut archiver).await.unwrap();
    // What is behind the gap counts only with the new backup.
    assert_eq!(archiver.safe_lsn(), safe);
    assert!(archiver.is_backup_due());
    let look = FromArchive { closes: false, ..FromArchive::default() };
    let refused = try_restored(&store, &look).map(drop).unwrap_err();
    assert!(refused.to_string().contains("was let go"), "{refused}");
    let far = FromArchive { as_far_as_possible: true, ..look };
    assert_eq!(try_restored(&store, &far).unwrap().0.numbers(), all(20));
    archiver.back_up().await.unwrap();
    assert_eq!(restored(&store).numbers(), all(to));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_keeps_no_log_for_an_archive_is_refused() {
    let (machine, store) = (Machine::new(), FaultyStore::new());
    let disk = machine.disk.copy();
    drop(machine);
    let options = onrush::Options { archive_log_bytes: 0, ..options() };
    let db = onrush::Database::open_on(shared(&disk), "/db", options).unwrap();
    let mut archiver = onrush_archive::Archiver::new(&db, store.place(), archive_options());
    let refused = archiver.step().await.unwrap_err();
    assert!(refused.to_string().contains("archive_log_bytes"), "{refused}");
}
