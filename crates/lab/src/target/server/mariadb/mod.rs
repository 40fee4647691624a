//! MariaDB: a fresh data folder below the case's folder, reached by a socket there.
//!
//! - `session.rs`: one connection, by the driver `mysql`.
//! - `statistics.rs`: what the server counts and times, under neutral names.

mod session;
mod statistics;

use std::path::{Path, PathBuf};

use crate::error::LabError;
use mysql::prelude::Queryable;
use onrush::KeyStrategy;
use rustix::process::Signal;

use super::plan::Plan;
use super::process::{Process, Recipe};
use super::{BaselineServer, Hosted, Refusal, plan, programs};
use crate::study::{Setting, Settings, TargetShown};
use crate::target::{Instance, Target, checked};
use session::Session;

const SERVER: &str = "mariadbd";
const CHECK: &str = "check table lab.my_big_table extended";
const INSTALL: &str = "mariadb-install-db";
/// Longest path of a folder for a socket: the system allows 107 bytes with the name.
const SOCKET_FOLDER_BYTES_MAX: usize = 90;
/// The users of the load, and of those that look on.
const LOAD: &str = "lab_load";
const LOOK_ON: &str = "root";
/// The first version whose statements can make random bytes.
const RANDOM_BYTES_SINCE: (u32, u32) = (10, 10);

/// MariaDB.
pub(in crate::target) struct Mariadb;

impl Target for Mariadb {
    fn name(&self) -> &'static str {
        Server::NAME
    }

    fn missing(&self) -> Option<String> {
        program(SERVER).and_then(|_| program(INSTALL)).err()
    }

    fn impossible(&self, settings: &Settings) -> Option<String> {
        if settings.is_check()
            && let Some(reason) = checked::impossible(settings, "full", false)
        {
            return Some(reason);
        }
        match settings.key() {
            KeyStrategy::Identity { start, .. } if start < 1 => {
                return Some(format!("its AUTO_INCREMENT begins at 1 or above, not at {start}"));
            }
            KeyStrategy::UuidV4 => {
                let version = program(SERVER).and_then(|program| version_of(&program));
                let is_old = |version: &String| numbers_of(version) < RANDOM_BYTES_SINCE;
                if let Some(version) = version.ok().filter(is_old) {
                    return Some(format!("{version} makes no random keys; 10.10 and newer do"));
                }
            }
            _ => {}
        }
        plan::impossible(settings)
    }

    fn shown(&self, settings: &Settings) -> Result<TargetShown, LabError> {
        let version = program(SERVER)
            .and_then(|program| version_of(&program))
            .map_err(|what| LabError::Target { target: Server::NAME.to_owned(), what })?;
        let plan = Plan::of(settings);
        let mut shown = settings_of(settings);
        let level = log_level(settings.is_durable());
        shown.push(("innodb_flush_log_at_trx_commit", level.to_string()));
        shown.push(("runs as", programs::shown(programs::servant("mysql").as_ref())));
        shown.push(("connection", "Unix socket, driver mysql, prepared statements".to_owned()));
        if settings.is_check() {
            shown.push(("check", CHECK.to_owned()));
        }
        shown.extend(plan.texts(table, procedure, session::insert_text));
        Ok(TargetShown::of(version, shown))
    }

    fn prepare(&self, settings: &Settings, folder: &Path) -> Result<Box<dyn Instance>, LabError> {
        Ok(Box::new(Hosted::<Server>::prepare(settings, folder)?))
    }
}

fn program(name: &str) -> Result<PathBuf, String> {
    let folder = programs::folder_with(programs::search_path(), &[name]).ok_or_else(|| {
        format!(
            "MariaDB is not installed: {name} is not on the PATH; on Debian and Ubuntu: apt-get \
             install mariadb-server (and stop the service that this starts: systemctl disable \
             --now mariadb)"
        )
    })?;
    Ok(folder.join(name))
}

/// `10.11.19` out of `mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for ...`.
fn version_of(program: &Path) -> Result<String, String> {
    let text = programs::output_of(program, &["--no-defaults", "--version"])
        .ok_or_else(|| format!("{} --version says nothing", program.display()))?;
    let version = text.split_whitespace().skip_while(|word| *word != "Ver").nth(1);
    let number = version.and_then(|version| version.split('-').next()).unwrap_or(&text);
    Ok(number.to_owned())
}

fn numbers_of(version: &str) -> (u32, u32) {
    let mut numbers = version.split('.').map(|word| word.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// 1 syncs the log for each commit; 2 writes it, and syncs once a second.
fn log_level(is_durable: bool) -> u8 {
    if is_durable { 1 } else { 2 }
}

/// The settings of the server, each chosen in its favour as far as durability stays what the case
/// asks for; `docs/lab-servers.md` gives the reasons.
fn settings_of(settings: &Settings) -> Vec<(&'static str, String)> {
    let sessions = settings.number(Setting::Sessions);
    let cache_mib = (settings.number(Setting::CacheBytes) >> 20).max(16);
    let text = |value: &str| value.to_owned();
    vec![
        ("innodb_buffer_pool_size", format!("{cache_mib}M")),
        ("innodb_log_file_size", text("1G")),
        ("innodb_log_buffer_size", text("64M")),
        ("innodb_flush_method", text("O_DIRECT")),
        ("innodb_doublewrite", text("ON")),
        ("innodb_io_capacity", text("2000")),
        ("innodb_autoinc_lock_mode", text("2")),
        ("innodb_stats_auto_recalc", text("OFF")),
        ("skip_log_bin", text("ON")),
        ("performance_schema", text("ON")),
        ("max_connections", (sessions + 10).to_string()),
        ("max_prepared_stmt_count", text("1048576")),
        ("default_time_zone", text("+00:00")),
    ]
}

/// The classic table; its text in a character set of one byte, so that it is stored in full length.
fn table(plan: &Plan) -> String {
    let (key, start) = match plan.strategy {
        KeyStrategy::Identity { start, .. } => {
            ("bigint not null auto_increment", format!(" auto_increment={start}"))
        }
        _ if plan.is_uuid() => ("binary(16) not null", String::new()),
        _ => ("bigint not null", String::new()),
    };
    format!(
        "create table lab.my_big_table (c1 {key} primary key, c2 timestamp(6) not null default \
         current_timestamp(6), c3 char(111) not null default 'a', c4 int not null default 1, \
         c5 int not null default 2, c6 bigint not null default 42) \
         engine=InnoDB row_format=dynamic character set latin1{start}"
    )
}

/// The column that a statement names, and the value by which the server makes the key.
fn key_by_server(plan: &Plan) -> (&'static str, &'static str) {
    match plan.is_uuid() {
        true => ("c1", "(random_bytes(16))"),
        false => ("c2", "(default)"),
    }
}

/// The loop in the server. A transaction of one statement commits by itself.
fn procedure(plan: &Plan) -> String {
    let (column, value) = key_by_server(plan);
    let mut body = plan.procedure_inserts("next_key", column, value);
    if !plan.is_one_statement() {
        body = format!("start transaction; {body}commit; ");
    }
    format!(
        "create procedure lab.insert_rows(in first_key bigint, in transactions bigint) begin \
         declare next_key bigint default first_key; declare number bigint default 0; \
         while number < transactions do {body}set next_key = next_key + {rows}; \
         set number = number + 1; end while; end",
        rows = plan.rows_per_commit
    )
}

/// A data folder and its server.
struct Server {
    recipe: Recipe,
    socket_folder: programs::SocketFolder,
    process: Option<Process>,
    is_uuid: bool,
}

impl Server {
    fn socket(&self) -> PathBuf {
        self.socket_folder.path().join("s")
    }
}

impl BaselineServer for Server {
    const NAME: &'static str = "mariadb";
    type Connection = Session;

    fn create(folder: &Path, settings: &Settings, plan: &Plan) -> Result<Self, Refusal> {
        let folder = std::path::absolute(folder)?;
        let mut recipe = Recipe {
            program: program(SERVER)?,
            arguments: Vec::new(),
            user: programs::servant("mysql"),
            folder: folder.clone(),
            end: Signal::TERM,
            end_at_once: Signal::KILL,
        };
        recipe.make_folder()?;
        let socket_folder = programs::SocketFolder::make(&recipe, SOCKET_FOLDER_BYTES_MAX)?;
        let data = format!("--datadir={}", folder.join("data").display());
        let install =
            ["--no-defaults", &data, "--auth-root-authentication-method=normal", "--skip-test-db"];
        let install: Vec<String> = install.map(str::to_owned).into();
        recipe.run(&program(INSTALL)?, &install)?;
        let socket = socket_folder.path().join("s");
        recipe.arguments = vec![
            "--no-defaults".to_owned(),
            data,
            format!("--socket={}", socket.display()),
            format!("--pid-file={}", folder.join("server.pid").display()),
            format!("--tmpdir={}", folder.display()),
            "--skip-networking".to_owned(),
        ];
        let own = settings_of(settings).into_iter().map(|(name, value)| match name {
            "skip_log_bin" => "--skip-log-bin".to_owned(),
            _ => format!("--{name}={value}"),
        });
        recipe.arguments.extend(own);
        let mut server = Server { recipe, socket_folder, process: None, is_uuid: plan.is_uuid() };
        server.start()?;
        let mut connection = session::connect(&server.socket(), LOOK_ON, "mysql")?;
        connection.query_drop("create database lab")?;
        connection.query_drop(format!("create user {LOAD}@localhost"))?;
        connection.query_drop(format!("grant all on lab.* to {LOAD}@localhost"))?;
        connection.query_drop(table(plan))?;
        connection.query_drop("use lab")?;
        plan.index_texts().try_for_each(|text| connection.query_drop(text))?;
        if plan.is_loop_in_server {
            connection.query_drop(procedure(plan))?;
        }
        Ok(server)
    }

    fn connect(&self) -> Result<Session, Refusal> {
        Ok(Session::new(session::connect(&self.socket(), LOAD, "lab")?, self.is_uuid))
    }

    fn look_on(&self) -> Result<Session, Refusal> {
        Ok(Session::new(session::connect(&self.socket(), LOOK_ON, "lab")?, self.is_uuid))
    }

    fn set_durable(&self, is_durable: bool) -> Result<(), Refusal> {
        let level = log_level(is_durable);
        let mut connection = session::connect(&self.socket(), LOOK_ON, "lab")?;
        let set = format!("set global innodb_flush_log_at_trx_commit = {level}");
        Ok(connection.query_drop(set)?)
    }

    /// The log is synced; pages are left to the server, which cannot be asked to wait for them.
    fn settle(&self) -> Result<(), Refusal> {
        Ok(session::connect(&self.socket(), LOOK_ON, "lab")?.query_drop("flush engine logs")?)
    }

    fn check(&self, _threads: u64) -> Result<u64, Refusal> {
        let mut connection = session::connect(&self.socket(), LOOK_ON, "lab")?;
        let found: Vec<(String, String, String, String)> = connection.query(CHECK)?;
        let faults: Vec<String> = found
            .into_iter()
            .filter(|(.., kind, text)| kind != "status" || text != "OK")
            .map(|(.., kind, text)| format!("{kind}: {text}"))
            .collect();
        match faults.is_empty() {
            true => {
                Ok(std::fs::metadata(self.recipe.folder.join("data/lab/my_big_table.ibd"))?.len())
            }
            false => Err(format!("it found {}", faults.join("; ")).into()),
        }
    }

    fn start(&mut self) -> Result<(), Refusal> {
        let socket = self.socket();
        let answers = || session::connect(&socket, LOOK_ON, "mysql").is_ok();
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
        let transaction = "start transaction; insert into my_big_table (c1) values \
                           (next_key + 0), (next_key + 1); insert into my_big_table (c1) values \
                           (next_key + 2); commit; set next_key = next_key + 3;";
        assert!(text.contains(transaction), "{text}");
    }

    #[test]
    fn identity_below_one_is_refused() {
        let settings = Settings::default().with(Setting::Key, "identity(-5)");
        assert!(Mariadb.impossible(&settings).unwrap().contains("-5"));
    }

    #[test]
    fn versions_compare_by_their_numbers() {
        assert!(numbers_of("10.6.22") < RANDOM_BYTES_SINCE);
        assert!(numbers_of("10.11.19") > RANDOM_BYTES_SINCE);
        assert!(numbers_of("11.4.2") > RANDOM_BYTES_SINCE);
    }
}
