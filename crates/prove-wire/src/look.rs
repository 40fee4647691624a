//! Starts a server on what a power cut has left, and looks at it through the wire.
//!
//! Invariant: nothing is looked at but by a client's statements. A name that nobody has is taken at the end, so that
//! what is left of an older table under it shows.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use onrush::{Background, Database, Durability, Options};
use onrush_check::{CheckOptions, Progress, check};
use onrush_files::Disk;
use onrush_server::{Server, ServerOptions};
use onrush_sim::{Call, CrashDisk, Fault, FaultError, Repeat, Unsynced};

use crate::history::Checked;
use crate::state::{
    KEY_TYPES, VALUE_TYPES, column_line, comment_line, default_line, not_null_line, row_line,
    type_line,
};
use crate::wire::{Answer, Client};
use onrush_oracle::violation;

/// Where every round keeps its database.
pub fn folder() -> PathBuf {
    PathBuf::from("/database")
}

/// The engine's settings: one thread at a time, no clock.
pub fn options() -> Options {
    Options {
        durability: Durability::Durable,
        background: Background::Callers,
        delayed_window_ms: 1 << 40,
        cpus_kept_free: usize::MAX,
        ..Options::small()
    }
}

/// The server's.
pub fn server_options() -> ServerOptions {
    let listen = Some(std::net::SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 0)));
    ServerOptions { listen, threads: 1, ..ServerOptions::default() }
}

/// Opens what a round has left while nobody may write: that is refused with its cause, and changes nothing.
///
/// # Errors
/// It opens, or something else is told.
pub fn prove_refused_while_read_only(disk: &CrashDisk) -> Checked<()> {
    disk.clear_faults();
    let before = disk.digest();
    let (call, error) = (Call::AnyChange, FaultError::ReadOnly);
    let (repeat, unsynced) = (Repeat::ForEver, Unsynced::Kept);
    disk.inject(Fault { call, nth: 1, error, repeat, unsynced });
    let opened = Database::open_on(Arc::new(disk.clone()) as Arc<dyn Disk>, folder(), options());
    let refusal = opened.map(drop);
    disk.clear_faults();
    match refusal {
        Ok(()) => violation!("a database opens on a disk that takes no changes"),
        Err(error) if !error.to_string().contains("read-only") => {
            violation!("a disk that takes no changes is not told of: {error}")
        }
        Err(_) if disk.digest() != before => violation!("opening on such a disk has changed it"),
        Err(_) => Ok(()),
    }
}

/// What is found, and how far the disk was then.
#[derive(Clone, Debug)]
pub struct Found {
    /// As [`State::lines`](crate::state::State::lines).
    pub lines: Vec<String>,
    /// Operations of the disk when the server listened.
    pub started_at: usize,
    /// And when all was seen.
    pub seen_at: usize,
}

/// Proves a disk sound as it is, before anybody opens it.
///
/// # Errors
/// What `onrush check` finds.
pub fn prove_sound(disk: &CrashDisk) -> Checked<()> {
    let options = CheckOptions { dop: 1, ..CheckOptions::default() };
    match check(Arc::new(disk.clone()), &folder(), &options, &Progress::default()) {
        Ok(report) if report.is_sound() => Ok(()),
        Ok(report) => violation!("check: {report}"),
        Err(error) => violation!("check: {error}"),
    }
}

/// Starts a server on a disk and looks at everything there is; takes free names where `probes` says so.
///
/// # Errors
/// It does not start, or does not answer as it should.
pub fn look(disk: &CrashDisk, probes: &[&str]) -> Checked<Found> {
    let opened = Database::open_on(Arc::new(disk.clone()) as Arc<dyn Disk>, folder(), options());
    let database = match opened {
        Ok(database) => database,
        Err(error) => violation!("the database does not open: {error}"),
    };
    let server = match Server::start(database.clone(), server_options()) {
        Ok(server) => server,
        Err(error) => violation!("the server does not start: {error}"),
    };
    let started_at = disk.operation_count();
    let mut client = match server.client().and_then(Client::begin) {
        Ok(client) => client.writing_the_log_of(&database),
        Err(error) => violation!("no client gets in: {error}"),
    };
    let lines = see(&mut client)?;
    let seen_at = disk.operation_count();
    let left = take_free_names(&mut client, probes, &lines)?;
    if !left.is_empty() {
        violation!("a new table has something of an older one:\n    {}", left.join("\n    "));
    }
    drop(client);
    drop(server);
    Ok(Found { lines, started_at, seen_at })
}

/// Everything that is there, a line each, sorted.
///
/// # Errors
/// A statement fails.
pub fn see(client: &mut Client) -> Checked<Vec<String>> {
    let mut lines = catalogue(client)?;
    let tables: Vec<String> = tables_of(&lines);
    for table in tables {
        let answer = ask(client, &format!("COPY {table} TO STDOUT"))?;
        lines.extend(answer.rows.iter().map(|row| row_line(&table, row.iter())));
    }
    lines.sort();
    Ok(lines)
}

/// Names with schemas, in order.
fn tables_of(lines: &[String]) -> Vec<String> {
    let of_key = |line: &String| Some(line.strip_prefix("column ")?.strip_suffix(" k")?.to_owned());
    let mut tables: Vec<String> = lines.iter().filter_map(of_key).collect();
    tables.dedup();
    tables
}

/// Tables by their number, with their columns. Each catalogue is read whole and by itself: a join would take the
/// server longer than everything else here.
fn catalogue(client: &mut Client) -> Checked<Vec<String>> {
    let mut lines = Vec::new();
    let mut table = |text: &str| -> Checked<Vec<Vec<String>>> {
        let rows = ask(client, text)?.rows.into_iter();
        Ok(rows.map(|row| row.into_iter().map(Option::unwrap_or_default).collect()).collect())
    };
    let roles = table("SELECT rolname FROM pg_roles")?;
    lines.extend(
        roles.iter().filter(|row| is_ours(&row[0], 'r')).map(|row| format!("role {}", row[0])),
    );
    let schemas = table("SELECT oid, nspname FROM pg_namespace")?;
    let made = schemas.iter().filter(|row| is_ours(&row[1], 's'));
    lines.extend(made.map(|row| format!("schema {}", row[1])));
    let is_users = |name: &str| name == "public" || is_ours(name, 's');
    let users: BTreeMap<&str, &str> = schemas
        .iter()
        .map(|row| (row[0].as_str(), row[1].as_str()))
        .filter(|(_, name)| is_users(name))
        .collect();
    let classes = table("SELECT oid, relnamespace, relname, relkind, relacl FROM pg_class")?;
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for row in classes.iter().filter(|row| row[3] == "r") {
        let Some(schema) = users.get(row[1].as_str()) else { continue };
        let name = format!("{schema}.{}", row[2]);
        lines.extend(grant_lines(&name, row[4].trim_matches(['{', '}'])));
        names.insert(&row[0], name);
    }
    let attributes =
        table("SELECT attrelid, attnum, attname, atttypid, attnotnull FROM pg_attribute")?;
    let mut columns: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for row in attributes.iter().filter(|row| !row[1].starts_with('-')) {
        let Some(name) = names.get(row[0].as_str()) else { continue };
        lines.push(column_line(name, &row[2]));
        lines.push(type_line(name, &row[2], type_name(&row[3])));
        lines.extend((row[4] == "t" && row[2] != "k").then(|| not_null_line(name, &row[2])));
        columns.insert((&row[0], &row[1]), &row[2]);
    }
    for row in &table("SELECT adrelid, adnum, pg_get_expr(adbin, adrelid) FROM pg_attrdef")? {
        let Some(name) = names.get(row[0].as_str()) else { continue };
        let column = columns.get(&(row[0].as_str(), row[1].as_str())).unwrap_or(&"");
        // As `'text'::text`.
        let text = row[2].split('\'').nth(1).unwrap_or(&row[2]);
        lines.push(default_line(name, column, text));
    }
    for row in &table("SELECT objoid, objsubid, description FROM pg_description")? {
        let Some(name) = names.get(row[0].as_str()) else { continue };
        let column = columns.get(&(row[0].as_str(), row[1].as_str())).unwrap_or(&"");
        lines.push(comment_line(name, column, &row[2]));
    }
    lines.sort();
    Ok(lines)
}

/// Of a type's number.
fn type_name(number: &str) -> &str {
    match number {
        "20" => KEY_TYPES[0],
        "23" => KEY_TYPES[1],
        "25" => VALUE_TYPES[0],
        "1043" => VALUE_TYPES[1],
        other => other,
    }
}

/// Roles and schemas of the clients have names of a letter and a digit.
fn is_ours(name: &str, letter: char) -> bool {
    name.strip_prefix(letter)
        .is_some_and(|rest| rest.len() == 1 && rest.as_bytes()[0].is_ascii_digit())
}

/// Of an access list such as `postgres=arwdD/postgres,r1=r/postgres`.
fn grant_lines(table: &str, list: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in list.split(',') {
        let Some((role, rights)) = entry.split_once('=').filter(|(role, _)| role.starts_with('r'))
        else {
            continue;
        };
        let letters = rights.split('/').next().unwrap_or_default().chars();
        lines.extend(letters.map(|letter| {
            let right = match letter {
                'r' => "SELECT",
                'a' => "INSERT",
                'w' => "UPDATE",
                'd' => "DELETE",
                _ => "TRUNCATE",
            };
            format!("grant {table} {right} to {role}")
        }));
    }
    lines
}

/// Makes a table under each name that nobody has; gives what is there of it besides its columns.
fn take_free_names(client: &mut Client, names: &[&str], seen: &[String]) -> Checked<Vec<String>> {
    let is_free = |name: &&&str| !seen.contains(&column_line(&format!("public.{name}"), "k"));
    let free: Vec<&&str> = names.iter().filter(is_free).collect();
    if free.is_empty() {
        return Ok(Vec::new());
    }
    for name in &free {
        ask(client, &format!("CREATE TABLE {name} (k bigint PRIMARY KEY, v text)"))?;
    }
    let is_of = |line: &String, name: &str| {
        ["row", "grant", "comment", "default", "not-null"]
            .iter()
            .any(|what| line.starts_with(&format!("{what} public.{name} ")))
    };
    let lines = see(client)?;
    Ok(lines.into_iter().filter(|line| free.iter().any(|name| is_of(line, name))).collect())
}

fn ask(client: &mut Client, text: &str) -> Checked<Answer> {
    let answer = match client.ask(text) {
        Ok(answer) => answer,
        Err(error) => violation!("{text}: {error}"),
    };
    match &answer.error {
        Some((state, message)) => violation!("{text}: {state} {message}"),
        None if answer.is_over => violation!("{text}: the server hung up"),
        None => Ok(answer),
    }
}
