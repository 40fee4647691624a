//! A database may go on at the beginning of a log segment, where the archive knows the end of the one before. It is the
//! same place.

#![allow(clippy::unwrap_used)]

mod world;

use world::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_segment_is_the_beginning_of_the_next() {
    // Commits of every number, so that one of them ends its segment.
    for count in 1..120 {
        let store = FaultyStore::new();
        let first = Machine::new();
        first.insert(0..count);
        let mut archiver = first.archiver(&store);
        archiver.back_up().await.unwrap();
        let second = restored(&store);
        assert_eq!(second.numbers().len() as i64, count);
        second.insert(count..count + 1);
        second.db.clone().close().unwrap();
        let second = second.restarted();
        second.db.checkpoint().unwrap();
        let mut archiver = second.archiver(&store);
        archiver.back_up().await.unwrap();
        catch_up(&mut archiver).await.unwrap();
        let place = store.place().of_history(second.db.id());
        let (third, _) = try_restored_of(&place, &Default::default()).unwrap();
        assert_eq!(third.numbers().len() as i64, count + 1, "{count}");
    }
}
