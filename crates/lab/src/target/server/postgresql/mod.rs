//! PostgreSQL: a fresh cluster below the case's folder, reached by a socket there.
//!
//! - `statistics.rs`: what the server counts, under neutral names.

mod statistics;

use std::path::{Path, PathBuf};

use crate::error::LabError;
use postgres::Client;
use rustix::process::Signal;

use super::plan::{KeySource, Plan};
use super::process::{Process, Recipe};
use super::session::{self, Dialect, LOAD, LOOK_ON, SOCKET_FOLDER_BYTES_MAX, Session};
use super::watch::Seen;
use super::{BaselineServer, Hosted, Refusal, plan, programs};
use crate::study::{Setting, Settings, TargetShown};
use crate::target::record::Snapshot;
use crate::target::{Instance, Target, checked};
use onrush::KeyStrategy;

const CHECK: &str = "pg_amcheck";
const PROGRAMS: [&str; 2] = ["initdb", "postgres"];

/// PostgreSQL.
pub(in crate::target) struct Postgresql;

impl Target for Postgresql {
    fn name(&self) -> &'static str {
        Cluster::NAME
    }

    fn missing(&self) -> Option<String> {
        programs_folder().err()
    }

    fn impossible(&self, settings: &Settings) -> Option<String> {
        if settings.is_check() {
            let has_check = programs_folder().is_ok_and(|folder| folder.join(CHECK).is_file());
            if !has_check {
                return Some(format!("it has no {CHECK}: that comes with version 14 and newer"));
            }
            if let Some(reason) = checked::impossible(settings, "full", true) {
                return Some(reason);
            }
        }
        plan::impossible(settings)
    }

    fn shown(&self, settings: &Settings) -> Result<TargetShown, LabError> {
        let version = programs_folder()
            .and_then(|folder| version_of(&folder))
            .map_err(|what| LabError::Target { target: Cluster::NAME.to_owned(), what })?;
        let plan = Plan::of(settings);
        let mut shown = settings_of(settings);
        shown.push(("synchronous_commit", on_off(settings.is_durable())));
        shown.push(("runs as", programs::shown(programs::servant("postgres").as_ref())));
        shown.push(("connection", "Unix socket, driver postgres, prepared statements".to_owned()));
        if settings.is_check() {
            let arguments = check_arguments(settings.number(Setting::CheckThreads));
            shown.push(("check", format!("{CHECK} {}", arguments.join(" "))));
        }
        shown.extend(plan.texts(table, procedure, session::insert_text));
        Ok(TargetShown::of(version, shown))
    }

    fn prepare(&self, settings: &Settings, folder: &Path) -> Result<Box<dyn Instance>, LabError> {
        Ok(Box::new(Hosted::<Cluster>::prepare(settings, folder)?))
    }
}

/// The newest installation there is.
fn programs_folder() -> Result<PathBuf, String> {
    let told = programs::output_of(Path::new("pg_config"), &["--bindir"]).map(PathBuf::from);
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<PathBuf> = installed.map(|entry| entry.path().join("bin")).collect();
    versions.sort_by_key(|folder| std::cmp::Reverse(version_in_path(folder)));
    let folders = versions.into_iter().chain(told).chain(programs::search_path());
    programs::folder_with(folders, &PROGRAMS).ok_or_else(|| {
        "PostgreSQL is not installed: its programs initdb and postgres are neither below \
         /usr/lib/postgresql, nor where pg_config says, nor on the PATH; on Debian and Ubuntu: \
         apt-get install postgresql"
            .to_owned()
    })
}

fn version_in_path(folder: &Path) -> u32 {
    let name = folder.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    name.and_then(|name| name.parse().ok()).unwrap_or(0)
}

/// `15.18` out of `postgres (PostgreSQL) 15.18 (Debian ...)`.
fn version_of(folder: &Path) -> Result<String, String> {
    let program = folder.join("postgres");
    let text = programs::output_of(&program, &["--version"])
        .ok_or_else(|| format!("{} --version says nothing", program.display()))?;
    let number = text.split_whitespace().nth(2).unwrap_or(&text);
    Ok(number.to_owned())
}

fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

/// The settings of the server, each chosen in its favour as far as durability stays what the case
/// asks for; `docs/lab-servers.md` gives the reasons.
fn settings_of(settings: &Settings) -> Vec<(&'static str, String)> {
    let sessions = settings.number(Setting::Sessions);
    let cache_mib = (settings.number(Setting::CacheBytes) >> 20).max(16);
    let text = |value: &str| value.to_owned();
    vec![
        ("shared_buffers", format!("{cache_mib}MB")),
        ("huge_pages", text("try")),
        ("fsync", text("on")),
        ("full_page_writes", text("on")),
        ("wal_level", text("minimal")),
        ("max_wal_senders", text("0")),
        ("wal_buffers", text("64MB")),
        ("wal_compression", text("off")),
        ("min_wal_size", text("1GB")),
        ("max_wal_size", text("4GB")),
        ("checkpoint_timeout", text("15min")),
        ("checkpoint_completion_target", text("0.9")),
        ("autovacuum", text("off")),
        ("jit", text("off")),
        ("max_connections", (sessions + 10).to_string()),
        ("max_parallel_workers_per_gather", text("0")),
        ("track_io_timing", text("on")),
        ("track_wal_io_timing", text("on")),
        ("timezone", text("UTC")),
    ]
}

/// The classic table.
fn table(plan: &Plan) -> String {
    let key = match plan.strategy {
        KeyStrategy::Identity { start, .. } => {
            let lowest = start.min(1);
            format!("bigint generated by default as identity (minvalue {lowest} start {start})")
        }
        KeyStrategy::UuidV4 => "uuid default gen_random_uuid()".to_owned(),
        _ if plan.is_uuid() => "uuid".to_owned(),
        _ => "bigint".to_owned(),
    };
    format!(
        "create table my_big_table (c1 {key} primary key, c2 timestamptz not null default \
         clock_timestamp(), c3 char(111) not null default 'a', c4 integer not null default 1, \
         c5 integer not null default 2, c6 bigint not null default 42)"
    )
}

/// The loop in the server: whole transactions, each committed before the next one begins.
fn procedure(plan: &Plan) -> String {
    let mut body = plan.procedure_inserts("next_key", "c2", "(default)");
    if plan.keys == KeySource::Ascending {
        body += &format!("next_key := next_key + {}; ", plan.rows_per_commit);
    }
    format!(
        "create or replace procedure insert_rows(first_key bigint, transactions bigint) \
         language plpgsql as $$ declare next_key bigint := first_key; begin \
         for number in 1 .. transactions loop {body}commit; end loop; end $$"
    )
}

/// The heap and every entry of the index, each against the other; a job takes a whole table or index.
fn check_arguments(threads: u64) -> Vec<String> {
    let fixed = ["--username=onrush", "--install-missing", "--heapallindexed"];
    let fixed = fixed.into_iter().map(str::to_owned);
    fixed.chain([format!("--jobs={threads}"), "--table=my_big_table".to_owned()]).collect()
}

/// What PostgreSQL calls things.
struct Own;

impl Dialect for Own {
    const DATABASE: &'static str = "postgres";
    const CALL: &'static str = "call insert_rows($1, $2)";

    fn call_parameters(_: &Plan, first_key: i64, transactions: i64) -> [i64; 2] {
        [first_key, transactions]
    }

    fn look(&mut self, client: &mut Client, seen: &mut dyn FnMut(Seen)) -> Result<(), Refusal> {
        // A session without a wait event runs, or waits for a processor.
        const SEEN: &str = "select coalesce(wait_event_type, 'CPU'), \
             coalesce(wait_event, 'running'), count(*) from pg_stat_activity \
             where application_name = $1 group by 1, 2";
        for row in client.query(SEEN, &[&LOAD]).map_err(session::refusal)? {
            let (group, name): (String, String) = (row.get(0), row.get(1));
            let sessions = u64::try_from(row.get::<_, i64>(2))?;
            let is_idle = group == "Client"; // the next statement is not there yet
            seen(Seen { group, name, sessions, is_idle });
        }
        Ok(())
    }

    fn statistics(&mut self, client: &mut Client) -> Result<Snapshot, Refusal> {
        statistics::read(client)
    }
}

/// A cluster and its server.
struct Cluster {
    recipe: Recipe,
    socket_folder: programs::SocketFolder,
    process: Option<Process>,
    is_durable: std::sync::atomic::AtomicBool,
}

impl BaselineServer for Cluster {
    const NAME: &'static str = "postgresql";
    type Connection = Session<Own>;

    fn create(folder: &Path, settings: &Settings, plan: &Plan) -> Result<Self, Refusal> {
        let programs = programs_folder()?;
        let folder = std::path::absolute(folder)?;
        let user = programs::servant("postgres");
        let mut recipe = Recipe {
            program: programs.join("postgres"),
            arguments: Vec::new(),
            user,
            folder: folder.clone(),
            end: Signal::INT, // fast: sessions are cut off, then a checkpoint
            end_at_once: Signal::QUIT, // the server ends its processes too
        };
        recipe.make_folder()?;
        let socket_folder = programs::SocketFolder::make(&recipe, SOCKET_FOLDER_BYTES_MAX)?;
        let data = folder.join("data").display().to_string();
        let initialise = ["-D", &data, "-U", "onrush", "-A", "trust", "-E", "UTF8", "--locale=C"];
        let initialise: Vec<String> = initialise.map(str::to_owned).into();
        recipe.run(&programs.join("initdb"), &initialise)?;
        recipe.arguments = vec!["-D".to_owned(), data];
        let own = [
            ("listen_addresses", String::new()),
            ("unix_socket_directories", socket_folder.path().display().to_string()),
            ("unix_socket_permissions", "0700".to_owned()),
        ];
        for (name, value) in own.into_iter().chain(settings_of(settings)) {
            recipe.arguments.extend(["-c".to_owned(), format!("{name}={value}")]);
        }
        let is_durable = settings.is_durable().into();
        let mut cluster = Cluster { recipe, socket_folder, process: None, is_durable };
        cluster.start()?;
        let mut connection = session::connect::<Own>(cluster.socket_folder.path(), LOOK_ON)?;
        connection.batch_execute(&table(plan)).map_err(session::refusal)?;
        for text in plan.index_texts() {
            connection.batch_execute(&text).map_err(session::refusal)?;
        }
        if plan.is_loop_in_server {
            connection.batch_execute(&procedure(plan)).map_err(session::refusal)?;
        }
        cluster.settle()?;
        Ok(cluster)
    }

    fn connect(&self) -> Result<Session<Own>, Refusal> {
        let client = session::connect::<Own>(self.socket_folder.path(), LOAD)?;
        Session::new(client, Own, self.is_durable.load(std::sync::atomic::Ordering::Relaxed))
    }

    fn look_on(&self) -> Result<Session<Own>, Refusal> {
        Session::new(session::connect::<Own>(self.socket_folder.path(), LOOK_ON)?, Own, true)
    }

    fn set_durable(&self, is_durable: bool) -> Result<(), Refusal> {
        self.is_durable.store(is_durable, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    fn settle(&self) -> Result<(), Refusal> {
        let mut connection = session::connect::<Own>(self.socket_folder.path(), LOOK_ON)?;
        connection.batch_execute("checkpoint").map_err(session::refusal)
    }

    fn check(&self, threads: u64) -> Result<u64, Refusal> {
        let mut connection = session::connect::<Own>(self.socket_folder.path(), LOOK_ON)?;
        let size = "select pg_total_relation_size('my_big_table')";
        let bytes: i64 = connection.query_one(size, &[]).map_err(session::refusal)?.get(0);
        let mut arguments = vec![format!("--host={}", self.socket_folder.path().display())];
        arguments.extend(check_arguments(threads));
        arguments.push("postgres".to_owned());
        self.recipe.run(&programs_folder()?.join(CHECK), &arguments)?;
        Ok(u64::try_from(bytes)?)
    }

    fn wait_for_sessions(&self) -> Result<(), Refusal> {
        statistics::wait_for_sessions(&mut session::connect::<Own>(
            self.socket_folder.path(),
            LOOK_ON,
        )?)
    }

    fn start(&mut self) -> Result<(), Refusal> {
        let answers = || session::connect::<Own>(self.socket_folder.path(), LOOK_ON).is_ok();
        self.process = Some(Process::start(&self.recipe, answers)?);
        Ok(())
    }

    fn process(&mut self) -> &mut Option<Process> {
        &mut self.process
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_procedure_commits_after_each_transaction_with_keys_of_its_own() {
        let text = procedure(&plan::tests::in_server_by_twos());
        let transaction = "insert into my_big_table (c1) values (next_key + 0), (next_key + 1); \
                           insert into my_big_table (c1) values (next_key + 2); \
                           next_key := next_key + 3; commit; end loop";
        assert!(text.contains(transaction), "{text}");
    }

    #[test]
    fn newer_installations_come_first() {
        let number = |path: &str| version_in_path(Path::new(path));
        assert!(number("/usr/lib/postgresql/17/bin") > number("/usr/lib/postgresql/9/bin"));
    }
}
