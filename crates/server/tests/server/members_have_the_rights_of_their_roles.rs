//! Roles in roles over the wire: after a restart, in a backup, for others' sessions, in circles. What SQL says about
//! them is in `slt/members.slt` and `slt/owner_members.slt`.

use onrush::{CheckProgress, Database, OnlineOptions, Options};
use onrush_server::{Server, ServerOptions};
use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::common::{World, client_of, code, failure, query};

/// What a role may do by way of others.
const ASKED: &str = "SELECT pg_has_role('anna', 'board', 'USAGE'), pg_has_role('anna', 'staff', 'USAGE'), \
                     pg_has_role('anna', 'staff', 'MEMBER'), pg_has_role('anna', 'board', 'MEMBER WITH ADMIN OPTION')";
const MEMBERS: [&str; 4] = [
    "CREATE ROLE staff",
    "CREATE ROLE board NOINHERIT IN ROLE staff",
    "CREATE ROLE anna",
    "GRANT board TO anna WITH ADMIN OPTION",
];

/// A client of this name, which comes in as long as no role has a password.
async fn named(world: &World, user: &str) -> Client {
    let settings = format!("host=127.0.0.1 port={} user={user}", world.address.port());
    let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_there_after_a_restart_and_in_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let serve = |database: Database| {
        let listen = Some("127.0.0.1:0".parse().unwrap());
        Server::start(database, ServerOptions { listen, ..ServerOptions::default() }).unwrap()
    };
    let [path, copy] = ["db", "copy"].map(|name| folder.path().join(name));
    let server = serve(Database::create(&path, Options::small()).unwrap());
    let client = client_of(&server).await;
    for statement in MEMBERS {
        query(&client, statement).await;
    }
    drop(client);
    server.stop().unwrap();
    let database = Database::open(&path, Options::small()).unwrap();
    database.backup(&copy, &OnlineOptions::default(), &CheckProgress::default()).unwrap();
    for database in [database, Database::open(&copy, Options::small()).unwrap()] {
        let server = serve(database);
        assert_eq!(query(&client_of(&server).await, ASKED).await, ["t|f|t|t"]);
        server.stop().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_membership_that_ends_takes_its_rights_from_prepared_statements() {
    let world = World::new();
    let owner = world.client().await;
    for statement in
        ["CREATE TABLE t (id int PRIMARY KEY)", "CREATE ROLE staff", "CREATE ROLE anna"]
    {
        query(&owner, statement).await;
    }
    query(&owner, "GRANT SELECT ON t TO staff").await;
    query(&owner, "GRANT staff TO anna").await;
    let anna = world.client().await;
    query(&anna, "SET ROLE anna").await;
    let prepared = anna.prepare("SELECT id FROM t WHERE id = $1").await.unwrap();
    assert!(anna.query(&prepared, &[&1]).await.unwrap().is_empty());
    query(&owner, "REVOKE staff FROM anna").await;
    let refused = anna.query(&prepared, &[&1]).await.unwrap_err();
    assert_eq!(code(&refused), "42501");
}

/// Each of the two is no circle by itself.
#[tokio::test(flavor = "multi_thread")]
async fn two_transactions_together_make_no_circle() {
    let world = World::new();
    let (one, other) = (world.client().await, world.client().await);
    for statement in ["CREATE ROLE a", "CREATE ROLE b", "CREATE ROLE c", "GRANT c TO a"] {
        query(&one, statement).await;
    }
    for client in [&one, &other] {
        query(client, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
        query(client, "SELECT count(*) FROM pg_auth_members").await;
    }
    // One of them waits for the other, or is too late.
    let run =
        async |client: Client, grant: &str| failure(&client, &format!("{grant}; COMMIT")).await;
    let (first, second) = tokio::join!(run(one, "GRANT a TO b"), run(other, "GRANT b TO a"));
    let told = [&*first, &*second];
    assert!(told.contains(&"no error") && told.contains(&"40001"), "{told:?}");
    let rows = "SELECT count(*) FROM pg_auth_members";
    assert_eq!(query(&world.client().await, rows).await, ["2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_see_and_stop_what_their_role_runs_but_not_a_superuser() {
    let world = World::new();
    let owner = world.client().await;
    for statement in MEMBERS {
        query(&owner, statement).await;
    }
    query(&owner, "CREATE ROLE chief SUPERUSER ROLE anna").await;
    let (staff, board, chief) =
        (named(&world, "staff").await, named(&world, "board").await, named(&world, "chief").await);
    let anna = world.client().await;
    query(&anna, "SET SESSION AUTHORIZATION anna").await;
    let number = async |client: &Client| query(client, "SELECT pg_backend_pid()").await.remove(0);
    for (client, told) in [(&board, "no error"), (&staff, "42501"), (&chief, "42501")] {
        let text = format!("SELECT pg_cancel_backend({})", number(client).await);
        assert_eq!(failure(&anna, &text).await, told);
    }
    let text = format!("SELECT pg_terminate_backend({})", number(&chief).await);
    let refused = anna.simple_query(&text).await.unwrap_err();
    let told = refused.as_db_error().unwrap().message();
    assert_eq!(told, "must be a superuser to terminate superuser process");
}

/// What is so already is told, and is no error.
#[tokio::test(flavor = "multi_thread")]
async fn clients_are_told_of_members_that_are_so_already() {
    let world = World::new();
    let settings = format!("host=127.0.0.1 port={} user=test", world.address.port());
    let (client, mut connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
    let (told, mut notices) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut next = std::future::poll_fn(|context| connection.poll_message(context)).await;
        while let Some(Ok(message)) = next {
            if let AsyncMessage::Notice(notice) = message {
                let code = notice.code().code();
                let line = format!("{} {code} {}", notice.severity(), notice.message());
                told.send(line).unwrap();
            }
            next = std::future::poll_fn(|context| connection.poll_message(context)).await;
        }
    });
    for statement in MEMBERS {
        query(&client, statement).await;
    }
    query(&client, "GRANT board TO anna").await;
    query(&client, "REVOKE staff FROM anna").await;
    for expected in [
        "NOTICE 00000 role \"anna\" is already a member of role \"board\"",
        "WARNING 01000 role \"anna\" is not a member of role \"staff\"",
    ] {
        assert_eq!(notices.recv().await.unwrap(), expected);
    }
}
