//! Roles: who comes in, and what he may do then.

use crate::common::{World, logged_warnings, query};
use onrush::{Database, Options};
use onrush_server::{Server, ServerError, ServerOptions};
use tokio::net::TcpSocket;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

async fn come_in(
    world: &World,
    user: &str,
    password: &str,
) -> Result<Client, tokio_postgres::Error> {
    let mut config = Config::new();
    config.host("127.0.0.1").port(world.address.port()).user(user).password(password);
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

#[track_caller]
fn state_of<T>(result: Result<T, tokio_postgres::Error>) -> SqlState {
    let Err(error) = result else { panic!("this must be refused") };
    error.code().unwrap_or_else(|| panic!("no answer of the server: {error}")).clone()
}

/// A server with the table `t` and the roles `admin` (a superuser) and `clerk`.
async fn with_roles() -> (World, Client) {
    let world = World::new();
    let owner = world.client().await;
    owner
        .batch_execute(
            "CREATE TABLE t (id bigint PRIMARY KEY, note text);
             INSERT INTO t VALUES (1, 'one')",
        )
        .await
        .unwrap();
    owner.batch_execute("CREATE ROLE admin SUPERUSER LOGIN PASSWORD 'a secret'").await.unwrap();
    owner.batch_execute("CREATE USER clerk PASSWORD 'of the clerk'").await.unwrap();
    (world, owner)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_right_password_lets_in_and_no_other() {
    let (world, _owner) = with_roles().await;
    come_in(&world, "admin", "a secret").await.unwrap();
    let wrong = come_in(&world, "admin", "another").await;
    assert_eq!(state_of(wrong), SqlState::INVALID_PASSWORD);
}

/// Whoever looks after the server can tell from where names and passwords are tried.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_login_is_in_the_log_with_the_clients_address() {
    let lines = logged_warnings();
    let (world, _owner) = with_roles().await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let from = socket.local_addr().unwrap().to_string();
    let stream = socket.connect(world.address).await.unwrap();
    let mut config = Config::new();
    config.user("clerk").password("a guess");
    let refused = config.connect_raw(stream, NoTls).await;
    assert_eq!(state_of(refused), SqlState::INVALID_PASSWORD);
    let lines = lines.lock().unwrap().clone();
    let lines = String::from_utf8(lines).unwrap();
    let told = lines.lines().find(|line| line.contains(&from));
    let told = told.unwrap_or_else(|| panic!("nothing of {from} in {lines}"));
    assert!(told.contains("WARN") && told.contains("user=\"clerk\""), "{told}");
}

/// The page for the browser asks for the same passwords.
#[tokio::test(flavor = "multi_thread")]
async fn other_doors_take_the_passwords_of_roles_that_can_log_in() {
    let world = World::new();
    let server = world.server.as_ref().unwrap();
    let (here, everywhere) = ("127.0.0.1:1".parse().unwrap(), "0.0.0.0:1".parse().unwrap());
    assert!(matches!(server.logins(everywhere).err(), Some(ServerError::NoPassword { .. })));
    assert!(!server.logins(here).unwrap().accepts("clerk", "of the clerk"));

    let owner = world.client().await;
    owner.batch_execute("CREATE ROLE admin SUPERUSER LOGIN PASSWORD 'a secret'").await.unwrap();
    owner.batch_execute("CREATE USER clerk PASSWORD 'of the clerk'").await.unwrap();
    owner.batch_execute("CREATE ROLE team PASSWORD 'of the team'").await.unwrap();
    let logins = server.logins(everywhere).unwrap();
    assert!(logins.accepts("clerk", "of the clerk"));
    for (name, password) in
        [("clerk", "of the team"), ("clerk", ""), ("team", "of the team"), ("nobody", "")]
    {
        assert!(!logins.accepts(name, password), "{name}");
    }
    owner.batch_execute("ALTER ROLE clerk PASSWORD 'a new one'").await.unwrap();
    assert!(logins.accepts("clerk", "a new one") && !logins.accepts("clerk", "of the clerk"));
    owner.batch_execute("DROP ROLE clerk").await.unwrap();
    assert!(!logins.accepts("clerk", "a new one"));
}

/// Whoever tries names must not learn which there are.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_nobody_has_is_refused_like_a_wrong_password() {
    let (world, owner) = with_roles().await;
    owner.batch_execute("CREATE ROLE group_of_people PASSWORD 'x'").await.unwrap();
    for name in ["nobody", "group_of_people"] {
        let refused = come_in(&world, name, "x").await.err().unwrap();
        let told = refused.as_db_error().unwrap().message().to_owned();
        assert_eq!(told, format!("password authentication failed for user {name}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_does_what_was_granted_and_nothing_else() {
    let (world, owner) = with_roles().await;
    let clerk = come_in(&world, "clerk", "of the clerk").await.unwrap();
    let insert = "INSERT INTO t VALUES (2, 'two')";
    assert_eq!(state_of(clerk.batch_execute(insert).await), SqlState::INSUFFICIENT_PRIVILEGE);
    owner.batch_execute("GRANT INSERT ON t TO clerk").await.unwrap();
    clerk.batch_execute(insert).await.unwrap();
    for refused in [
        "SELECT * FROM t",
        "SELECT note FROM t WHERE id = 1",
        "SELECT count(*) FROM (SELECT * FROM t) AS inner_one",
        "EXPLAIN SELECT * FROM t",
        "INSERT INTO t VALUES (3, 'three') RETURNING id",
        "INSERT INTO t VALUES (2, 'x') ON CONFLICT (id) DO UPDATE SET note = 'x'",
        "INSERT INTO t SELECT id + 10, note FROM t",
        "UPDATE t SET note = 'x' WHERE id = 1",
        "DELETE FROM t WHERE id = 1",
        "TRUNCATE t",
        "COPY t TO STDOUT",
        "DROP TABLE t",
        "CREATE TABLE mine (id bigint PRIMARY KEY)",
        "CHECKPOINT",
        "CALL onrush.check()",
        "CREATE ROLE other",
        "ALTER ROLE clerk SUPERUSER",
        "GRANT SELECT ON t TO clerk",
    ] {
        let state = state_of(clerk.batch_execute(refused).await);
        assert_eq!(state, SqlState::INSUFFICIENT_PRIVILEGE, "{refused}");
    }
    owner.batch_execute("GRANT SELECT, UPDATE, DELETE ON t TO clerk").await.unwrap();
    clerk.batch_execute("UPDATE t SET note = 'x' WHERE id = 1").await.unwrap();
    assert_eq!(clerk.query("SELECT * FROM t", &[]).await.unwrap().len(), 2);
    owner.batch_execute("REVOKE ALL ON t FROM clerk").await.unwrap();
    let read = clerk.query("SELECT * FROM t", &[]).await;
    assert_eq!(state_of(read), SqlState::INSUFFICIENT_PRIVILEGE);
}

/// A statement that was prepared before is not a way around.
#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_taken_back_counts_for_prepared_statements() {
    let (world, owner) = with_roles().await;
    owner.batch_execute("GRANT SELECT ON t TO clerk").await.unwrap();
    let clerk = come_in(&world, "clerk", "of the clerk").await.unwrap();
    let prepared = clerk.prepare("SELECT note FROM t WHERE id = $1").await.unwrap();
    clerk.query_one(&prepared, &[&1i64]).await.unwrap();
    owner.batch_execute("REVOKE SELECT ON t FROM clerk").await.unwrap();
    let again = clerk.query_one(&prepared, &[&1i64]).await;
    assert_eq!(state_of(again), SqlState::INSUFFICIENT_PRIVILEGE);
}

#[tokio::test(flavor = "multi_thread")]
async fn everyone_may_change_his_own_password() {
    let (world, _owner) = with_roles().await;
    let clerk = come_in(&world, "clerk", "of the clerk").await.unwrap();
    clerk.batch_execute("ALTER USER clerk PASSWORD 'a new one'").await.unwrap();
    come_in(&world, "clerk", "a new one").await.unwrap();
    let old = come_in(&world, "clerk", "of the clerk").await;
    assert_eq!(state_of(old), SqlState::INVALID_PASSWORD);
    let other = clerk.batch_execute("ALTER USER admin PASSWORD 'mine'").await;
    assert_eq!(state_of(other), SqlState::INSUFFICIENT_PRIVILEGE);
}

/// What psql's `\password` sends: the server never sees the password.
#[tokio::test(flavor = "multi_thread")]
async fn a_password_may_come_as_a_verifier() {
    let (world, owner) = with_roles().await;
    let verifier = postgres_protocol::password::scram_sha_256(b"never sent");
    owner.batch_execute(&format!("ALTER ROLE clerk PASSWORD '{verifier}'")).await.unwrap();
    come_in(&world, "clerk", "never sent").await.unwrap();
}

/// Everyone knows that one.
#[tokio::test(flavor = "multi_thread")]
async fn a_verifier_of_the_empty_password_is_refused() {
    let (world, owner) = with_roles().await;
    let empty = postgres_protocol::password::scram_sha_256(b"");
    for statement in [
        format!("ALTER ROLE clerk PASSWORD '{empty}'"),
        format!("CREATE ROLE other LOGIN PASSWORD '{empty}'"),
        "ALTER ROLE clerk PASSWORD ''".to_owned(),
        "ALTER ROLE clerk PASSWORD '\u{ad}'".to_owned(),
    ] {
        let state = state_of(owner.batch_execute(&statement).await);
        assert_eq!(state, SqlState::INVALID_PARAMETER_VALUE, "{statement}");
    }
    assert_eq!(state_of(come_in(&world, "clerk", "").await), SqlState::INVALID_PASSWORD);
    come_in(&world, "clerk", "of the clerk").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reads_what_is_kept_of_passwords() {
    let (_world, owner) = with_roles().await;
    for statement in [
        "SELECT * FROM \"onrush.roles\"",
        "SELECT * FROM public.\"onrush.roles\"",
        "DELETE FROM \"onrush.roles\"",
        "DROP TABLE \"onrush.grants\"",
        "COPY \"onrush.roles\" TO STDOUT",
        "CREATE TABLE \"onrush.mine\" (id bigint PRIMARY KEY)",
    ] {
        let state = state_of(owner.batch_execute(statement).await);
        assert_eq!(state, SqlState::INSUFFICIENT_PRIVILEGE, "{statement}");
    }
    let listed =
        owner.query("SELECT table_name FROM information_schema.tables", &[]).await.unwrap();
    let names: Vec<String> = listed.iter().map(|row| row.get(0)).collect();
    assert!(names.contains(&"t".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("onrush.")), "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_made_anew_has_no_grants_of_the_old_one() {
    let (world, owner) = with_roles().await;
    owner.batch_execute("GRANT SELECT ON t TO clerk").await.unwrap();
    owner.batch_execute("DROP TABLE t").await.unwrap();
    owner.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY)").await.unwrap();
    let clerk = come_in(&world, "clerk", "of the clerk").await.unwrap();
    let read = clerk.query("SELECT * FROM t", &[]).await;
    assert_eq!(state_of(read), SqlState::INSUFFICIENT_PRIVILEGE);
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_and_grants_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let start = || {
        let database = Database::open_or_create(&path, Options::small()).unwrap();
        let listen = Some("127.0.0.1:0".parse().unwrap());
        Server::start(database, ServerOptions { listen, ..ServerOptions::default() }).unwrap()
    };
    let connect = async |server: &Server, user: &str, password: &str| {
        let mut config = Config::new();
        let port = server.address().unwrap().port();
        config.host("127.0.0.1").port(port).user(user).password(password);
        config.connect(NoTls).await.map(|(client, connection)| {
            tokio::spawn(connection);
            client
        })
    };
    let server = start();
    let owner = connect(&server, "anyone", "").await.unwrap();
    owner.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY)").await.unwrap();
    owner.batch_execute("CREATE ROLE admin SUPERUSER LOGIN PASSWORD 'a secret'").await.unwrap();
    owner.batch_execute("CREATE ROLE clerk LOGIN PASSWORD 'secret'").await.unwrap();
    owner.batch_execute("GRANT INSERT ON t TO clerk").await.unwrap();
    drop(owner);
    server.stop().unwrap();

    let server = start();
    let anyone = connect(&server, "anyone", "").await;
    assert!(anyone.is_err(), "somebody came in without a role");
    let clerk = connect(&server, "clerk", "secret").await.unwrap();
    clerk.batch_execute("INSERT INTO t VALUES (1)").await.unwrap();
    let read = clerk.query("SELECT * FROM t", &[]).await;
    assert_eq!(state_of(read), SqlState::INSUFFICIENT_PRIVILEGE);
    drop(clerk);
    server.stop().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_that_are_not_there_or_are_already_are_told() {
    let (_world, owner) = with_roles().await;
    let again = owner.batch_execute("CREATE ROLE clerk").await;
    assert_eq!(state_of(again), SqlState::DUPLICATE_OBJECT);
    for statement in ["ALTER ROLE nobody LOGIN", "DROP ROLE nobody", "GRANT SELECT ON t TO nobody"]
    {
        let state = state_of(owner.batch_execute(statement).await);
        assert_eq!(state, SqlState::UNDEFINED_OBJECT, "{statement}");
    }
    owner.batch_execute("DROP ROLE IF EXISTS nobody").await.unwrap();
    owner.batch_execute("DROP USER clerk").await.unwrap();
}

/// As psql's `\password` does it, which makes the verifier itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_verifier_is_kept_as_it_came() {
    let (world, owner) = with_roles().await;
    assert_eq!(query(&owner, "SHOW password_encryption").await, ["scram-sha-256"]);
    let verifier = postgres_protocol::password::scram_sha_256(b"of the client");
    owner.batch_execute(&format!("ALTER USER clerk PASSWORD '{verifier}'")).await.unwrap();
    let roles = world.database.table("onrush.roles").unwrap();
    let kept = world.database.session().unwrap().get(&roles, &["clerk".into()]).unwrap().unwrap();
    assert_eq!(kept[1].as_str(), Some(verifier.as_str()));
    come_in(&world, "clerk", "of the client").await.unwrap();
    assert_eq!(state_of(come_in(&world, "clerk", &verifier).await), SqlState::INVALID_PASSWORD);
}

/// Else nobody could administer roles, `postgres` included.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_role_that_can_log_in_by_a_password_must_be_a_superuser() {
    let world = World::new();
    let owner = world.client().await;
    owner.batch_execute("CREATE ROLE team PASSWORD 'of the team'").await.unwrap();
    for without_password in [
        "CREATE USER guest",
        // As PostgreSQL's createuser writes it.
        "CREATE ROLE zz NOSUPERUSER NOCREATEDB NOCREATEROLE INHERIT LOGIN NOREPLICATION NOBYPASSRLS",
    ] {
        owner.batch_execute(without_password).await.unwrap();
    }
    for first in [
        "CREATE ROLE clerk LOGIN PASSWORD 'of the clerk'",
        "ALTER ROLE team LOGIN",
        "ALTER ROLE guest PASSWORD 'of the guest'",
    ] {
        let refused = owner.batch_execute(first).await.err().unwrap();
        let told = refused.as_db_error().unwrap();
        assert_eq!(told.code(), &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "{first}");
        assert!(told.hint().unwrap().contains("CREATE ROLE admin SUPERUSER LOGIN"), "{first}");
    }
    come_in(&world, "postgres", "").await.unwrap();
    owner.batch_execute("CREATE ROLE admin SUPERUSER LOGIN PASSWORD 'a secret'").await.unwrap();
    owner.batch_execute("ALTER ROLE team LOGIN").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_superuser_without_a_password_does_not_lock_everyone_out() {
    let world = World::new();
    let owner = world.client().await;
    owner.batch_execute("CREATE ROLE admin SUPERUSER LOGIN").await.unwrap();
    let clerk = owner.batch_execute("CREATE USER clerk PASSWORD 'of the clerk'").await;
    assert_eq!(state_of(clerk), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
    let again = come_in(&world, "anyone", "").await.unwrap();
    again.batch_execute("ALTER ROLE admin PASSWORD 'a secret'").await.unwrap();
    assert!(come_in(&world, "anyone", "").await.is_err(), "somebody came in without a role");
    come_in(&world, "admin", "a secret").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_superuser_that_can_log_in_stays_one() {
    let (world, owner) = with_roles().await;
    let admin = come_in(&world, "admin", "a secret").await.unwrap();
    let himself = admin.batch_execute("DROP ROLE admin").await;
    assert_eq!(state_of(himself), SqlState::OBJECT_IN_USE);
    let taken_away = [
        "DROP ROLE admin",
        "ALTER ROLE admin NOLOGIN",
        "ALTER ROLE admin NOSUPERUSER",
        "ALTER ROLE admin PASSWORD NULL",
    ];
    for statement in taken_away {
        let refused = owner.batch_execute(statement).await.err().unwrap();
        let told = refused.as_db_error().unwrap();
        assert_eq!(told.code(), &SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "{statement}");
        assert!(told.hint().unwrap().contains("Make another one first"), "{statement}");
    }
    assert!(come_in(&world, "anyone", "").await.is_err(), "somebody came in without a role");
    admin.batch_execute("CREATE ROLE other SUPERUSER LOGIN PASSWORD 'another'").await.unwrap();
    owner.batch_execute(taken_away[0]).await.unwrap();
    come_in(&world, "other", "another").await.unwrap();
}

/// Damage to what is kept of a password takes the role's way in, and opens none.
#[tokio::test(flavor = "multi_thread")]
async fn a_verifier_that_cannot_be_read_lets_nobody_in() {
    let (world, owner) = with_roles().await;
    owner.batch_execute("DROP ROLE clerk").await.unwrap();
    let roles = world.database.table("onrush.roles").unwrap();
    let row = ["admin".into(), "SCRAM-SHA-256$".into(), true.into(), true.into(), 1i64.into()];
    world.database.session().unwrap().upsert(&roles, &row).unwrap();
    let options = ServerOptions {
        listen: Some("127.0.0.1:0".parse().unwrap()),
        threads: 1,
        ..ServerOptions::default()
    };
    let second = Server::start(world.database.clone(), options).unwrap();
    let mut config = Config::new();
    config.host("127.0.0.1").port(second.address().unwrap().port()).user("anyone").password("");
    assert_eq!(state_of(config.connect(NoTls).await), SqlState::INVALID_PASSWORD);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_places_are_for_superusers_and_the_owner() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join(".s.PGSQL.5433");
    let world = World::with(ServerOptions {
        unix_socket: Some(socket.clone()),
        connections_max: 4,
        connections_reserved: 2,
        ..ServerOptions::default()
    });
    let by_socket = || async {
        let mut config = Config::new();
        config.host_path(socket.parent().unwrap()).port(5433).user("whoever");
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok::<_, tokio_postgres::Error>(client)
    };
    // With all rights, but with no proof of anything.
    let one = world.client().await;
    one.batch_execute("CREATE ROLE admin SUPERUSER PASSWORD 'a secret'").await.unwrap();
    one.batch_execute("CREATE ROLE clerk PASSWORD 'of the clerk'").await.unwrap();
    let _two = world.client().await;
    assert_eq!(state_of(world.try_client().await), SqlState::TOO_MANY_CONNECTIONS);
    let _owner = by_socket().await.unwrap();
    one.batch_execute("ALTER ROLE admin LOGIN").await.unwrap();
    one.batch_execute("ALTER ROLE clerk LOGIN").await.unwrap();
    let clerk = come_in(&world, "clerk", "of the clerk").await;
    assert_eq!(state_of(clerk), SqlState::TOO_MANY_CONNECTIONS);
    let _admin = come_in(&world, "admin", "a secret").await.unwrap();
    let admin = come_in(&world, "admin", "a secret").await;
    assert_eq!(state_of(admin), SqlState::TOO_MANY_CONNECTIONS);
    assert_eq!(state_of(by_socket().await), SqlState::TOO_MANY_CONNECTIONS);
}

#[test]
fn not_all_places_can_be_reserved() {
    let options = |most, reserved| ServerOptions {
        connections_max: most,
        connections_reserved: reserved,
        ..ServerOptions::default()
    };
    assert!(options(4, 3).validate().is_ok());
    let setting = match options(3, 3).validate() {
        Err(ServerError::BadOption { setting, .. }) => setting,
        other => panic!("{other:?}"),
    };
    assert_eq!(setting, "connections_reserved");
}

/// As in PostgreSQL: a right on a table is of no use without the right to use its schema.
#[tokio::test(flavor = "multi_thread")]
async fn tables_of_a_schema_are_for_those_who_may_use_it() {
    let (world, owner) = with_roles().await;
    let clerk = come_in(&world, "clerk", "of the clerk").await.unwrap();
    let setup =
        "CREATE SCHEMA s; CREATE TABLE s.t (id bigint PRIMARY KEY); GRANT SELECT ON s.t TO clerk";
    owner.batch_execute(setup).await.unwrap();
    let select = "SELECT * FROM s.t";
    let refused = clerk.batch_execute(select).await.unwrap_err();
    let told = refused.as_db_error().unwrap();
    assert_eq!(told.code(), &SqlState::INSUFFICIENT_PRIVILEGE);
    assert_eq!(told.message(), "permission denied for schema s");
    owner.batch_execute("GRANT USAGE ON SCHEMA s TO clerk").await.unwrap();
    clerk.batch_execute(select).await.unwrap();
    let insert = clerk.batch_execute("INSERT INTO s.t VALUES (1)").await;
    assert_eq!(state_of(insert), SqlState::INSUFFICIENT_PRIVILEGE);
    owner.batch_execute("REVOKE USAGE ON SCHEMA s FROM clerk").await.unwrap();
    assert_eq!(state_of(clerk.batch_execute(select).await), SqlState::INSUFFICIENT_PRIVILEGE);
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_on_a_schema_go_with_it_and_with_their_transaction() {
    let (world, owner) = with_roles().await;
    let clerk = come_in(&world, "clerk", "of the clerk").await.unwrap();
    let setup =
        "CREATE SCHEMA s; CREATE TABLE s.t (id bigint PRIMARY KEY); GRANT SELECT ON s.t TO clerk";
    owner.batch_execute(setup).await.unwrap();
    owner.batch_execute("BEGIN; GRANT USAGE ON SCHEMA s TO clerk; ROLLBACK").await.unwrap();
    let select = clerk.batch_execute("SELECT * FROM s.t").await;
    assert_eq!(state_of(select), SqlState::INSUFFICIENT_PRIVILEGE);
    owner
        .batch_execute("GRANT USAGE ON SCHEMA s TO clerk; ALTER SCHEMA s RENAME TO r")
        .await
        .unwrap();
    clerk.batch_execute("SELECT * FROM r.t").await.unwrap();
    let listed = "SELECT nspacl FROM pg_namespace WHERE nspname = 'r'";
    assert_eq!(query(&owner, listed).await, ["{onrush=UC/onrush,clerk=U/onrush}"]);
    owner.batch_execute("DROP SCHEMA r CASCADE; CREATE SCHEMA r").await.unwrap();
    let setup = "CREATE TABLE r.t (id bigint PRIMARY KEY); GRANT SELECT ON r.t TO clerk";
    owner.batch_execute(setup).await.unwrap();
    let select = clerk.batch_execute("SELECT * FROM r.t").await;
    assert_eq!(state_of(select), SqlState::INSUFFICIENT_PRIVILEGE);
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_make_no_sense_are_refused() {
    let (_world, owner) = with_roles().await;
    owner.batch_execute("CREATE SCHEMA s").await.unwrap();
    for statement in [
        "GRANT SELECT ON SCHEMA s TO clerk",
        "GRANT USAGE ON SCHEMA pg_catalog TO clerk",
        "GRANT USAGE ON SCHEMA absent TO clerk",
        "GRANT USAGE ON SCHEMA s TO absent",
        "GRANT USAGE ON t TO clerk",
    ] {
        let refused = owner.batch_execute(statement).await;
        assert!(refused.is_err(), "{statement}");
    }
}
