//! `pg_stat_activity`: who is there, what each does, and what it waits for.

use crate::common::{World, message, query, read_message};
use onrush::{RecorderKind, SessionClient, Wait};
use tokio::io::AsyncWriteExt;
use tokio_postgres::{Client, Config, NoTls};

async fn number_of(client: &Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0)
}

/// Columns of one client's row, as another sees it.
async fn seen(by: &Client, number: i32, columns: &str) -> String {
    let text = format!("SELECT {columns} FROM pg_stat_activity WHERE pid = {number}");
    query(by, &text).await.remove(0)
}

/// The same, once the client has been answered: the answer comes a moment before it rests.
async fn seen_at_rest(by: &Client, number: i32, columns: &str) -> String {
    while seen(by, number, "state").await == "active" {
        tokio::task::yield_now().await;
    }
    seen(by, number, columns).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_sees_itself_by_its_own_number() {
    let world = World::new();
    let client = world.client().await;
    client.batch_execute("SET application_name = 'till 3'").await.unwrap();
    let number = number_of(&client).await;
    let columns = "usename, application_name, state, query, backend_type";
    let itself = seen(&client, number, columns).await;
    let text = format!("SELECT {columns} FROM pg_stat_activity WHERE pid = {number}");
    assert_eq!(itself, format!("test|till 3|active|{text}|client backend"));
}

/// What the page, `onrush top` and `onrush stats` are made of.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_the_engine_carries_its_clients_application_user_and_address() {
    let world = World::new();
    let mut socket = world.raw_client().await;
    let from = socket.local_addr().unwrap().to_string();
    let own = || {
        let clients = world.database.sessions().into_iter().filter_map(|session| session.client);
        clients.filter(|client| client.address == from).collect::<Vec<_>>()
    };
    let called = |application: &str| {
        vec![SessionClient {
            application: application.into(),
            user: "test".into(),
            address: from.clone(),
        }]
    };
    assert_eq!(own(), called(""));
    for (said, application) in [
        ("SET application_name = 'till 3'", "till 3"),
        ("BEGIN", "till 3"),
        ("SELECT set_config('application_name', 'till 4', false)", "till 4"),
        ("COMMIT", "till 4"),
        ("DISCARD ALL", ""),
    ] {
        socket.write_all(&message(b'Q', format!("{said}\0").as_bytes())).await.unwrap();
        while read_message(&mut socket).await.unwrap().0 != b'Z' {}
        assert_eq!(own(), called(application), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_at_rest_waits_for_its_client() {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    let number = number_of(&one).await;
    one.batch_execute("BEGIN; SELECT 7").await.unwrap();
    let columns = "state, wait_event_type, wait_event, query";
    assert_eq!(
        seen_at_rest(&other, number, columns).await,
        "idle in transaction|Client|ClientRead|BEGIN; SELECT 7"
    );
    one.batch_execute("COMMIT").await.unwrap();
    assert_eq!(seen_at_rest(&other, number, "state, query").await, "idle|COMMIT");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_gone_is_not_seen() {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    let number = number_of(&one).await;
    drop(one);
    let count = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {number}");
    while query(&other, &count).await != ["0"] {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_durable_commit_is_its_sessions_wait_for_the_log() {
    let world = World::new();
    let client = world.client().await;
    client.batch_execute("CREATE TABLE t (id bigserial PRIMARY KEY)").await.unwrap();
    let waited = || {
        let sessions = world.database.sessions().into_iter();
        let clients = sessions.filter(|session| session.kind == RecorderKind::Session);
        let mut waits = clients.flat_map(|session| session.waits);
        waits.any(|total| total.wait == Wait::WriteLog && total.nanos > 0)
    };
    // Now and then the log is faster than the answer.
    while !waited() {
        client.batch_execute("INSERT INTO t DEFAULT VALUES").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_may_have_a_password_in_them_are_not_shown() {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    let number = number_of(&one).await;
    one.batch_execute("CREATE ROLE admin SUPERUSER PASSWORD 'a secret'").await.unwrap();
    assert_eq!(
        seen_at_rest(&other, number, "query").await,
        "<not shown: there may be a password in it>"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_say_is_for_superusers_only() {
    let world = World::new();
    let owner = world.client().await;
    let number = number_of(&owner).await;
    for (role, password) in [("admin SUPERUSER LOGIN", "a"), ("clerk LOGIN", "c")] {
        let create = format!("CREATE ROLE {role} PASSWORD '{password}'");
        owner.batch_execute(&create).await.unwrap();
    }
    owner.batch_execute("SELECT 'a secret'").await.unwrap();
    for (role, password, text) in
        [("admin", "a", "SELECT 'a secret'"), ("clerk", "c", "<insufficient privilege>")]
    {
        let mut config = Config::new();
        config.host("127.0.0.1").port(world.address.port()).user(role).password(password);
        let (client, connection) = config.connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        assert_eq!(seen_at_rest(&client, number, "query").await, text, "{role}");
    }
}
