//! Which handles may be shared between threads, and which only move: checked by the compiler.

use onrush::{
    CommitToken, Database, Error, Options, Scan, Session, Snapshot, Statistics, Table, Transaction,
};

fn moves<T: Send>() {}
fn is_shared<T: Send + Sync>() {}
fn is_cheap_to_clone<T: Clone>() {}

#[test]
fn handles_are_shared_and_sessions_move() {
    is_shared::<Database>();
    is_shared::<Table>();
    is_shared::<CommitToken>();
    is_shared::<Options>();
    is_shared::<Error>();
    is_shared::<Statistics>();
    moves::<Session>();
    moves::<Transaction<'_>>();
    moves::<Snapshot>();
    is_shared::<Scan>();
    is_cheap_to_clone::<Database>();
    is_cheap_to_clone::<Table>();
    is_cheap_to_clone::<CommitToken>();
}

/// A future that is spawned on a runtime with many threads must be `Send` and own what it needs.
#[test]
fn a_token_can_be_awaited_in_a_spawned_task() {
    fn spawnable<F: Future + Send + 'static>(_: &F) {}
    fn check(token: CommitToken) {
        spawnable(&async move {
            token.await?;
            onrush::Result::Ok(())
        });
    }
    let _: fn(CommitToken) = check;
}
