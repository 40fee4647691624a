//! SQL Server: one that runs already, reached by the address in `ONRUSH_SQLSERVER`. The lab makes a
//! database of its own there, and drops it afterwards.
//!
//! - `session.rs`: one connection, by the driver `tiberius`.
//! - `statistics.rs`: its views of waits, latches and spinlocks, under neutral names.
//!
//! The address stands in the environment and in no study, since it holds a password and studies
//! are kept with their results.

mod session;
mod statistics;

use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::LabError;
use onrush::KeyStrategy;
use tiberius::Config;

use super::plan::Plan;
use super::process::Process;
use super::{BaselineServer, Hosted, Refusal, plan};
use crate::study::{Setting, Settings, TargetShown};
use crate::target::{Instance, Target};
use session::Session;

const ADDRESS: &str = "ONRUSH_SQLSERVER";
/// Rows that a VALUES list may hold.
const ROWS_PER_STATEMENT_MAX: u64 = 1000;

/// SQL Server.
pub(in crate::target) struct SqlServer;

impl Target for SqlServer {
    fn name(&self) -> &'static str {
        Database::NAME
    }

    fn missing(&self) -> Option<String> {
        address().err()
    }

    fn impossible(&self, settings: &Settings) -> Option<String> {
        if settings.is_check() {
            return Some("its check has not been tried by the lab, and is left out".into());
        }
        if settings.rows_per_statement() > ROWS_PER_STATEMENT_MAX {
            return Some(format!(
                "a statement takes at most {ROWS_PER_STATEMENT_MAX} rows; set rows_per_statement"
            ));
        }
        if settings.is(Setting::Columns, "random") {
            return Some("rows with random numbers are not sent to it by the lab".into());
        }
        plan::impossible(settings)
    }

    fn shown(&self, settings: &Settings) -> Result<TargetShown, LabError> {
        let told =
            |what: Refusal| super::told::<Database>(format!("cannot be asked: {what}").into());
        let version = address()
            .map_err(Refusal::from)
            .and_then(|address| Session::connect(address, None))
            .and_then(|mut session| session.text(statistics::VERSION))
            .map_err(told)?;
        let plan = Plan::of(settings);
        let shown = [
            ("delayed_durability", delayed_durability(settings.is_durable()).to_owned()),
            ("recovery", "simple".to_owned()),
            ("log file", "4 GB from the start".to_owned()),
            ("connection", "TCP, driver tiberius, sp_executesql".to_owned()),
        ];
        let texts = plan.texts(table, procedure, session::insert_text);
        Ok(TargetShown::of(version, shown.into_iter().chain(texts)))
    }

    fn prepare(&self, settings: &Settings, folder: &Path) -> Result<Box<dyn Instance>, LabError> {
        Ok(Box::new(Hosted::<Database>::prepare(settings, folder)?))
    }
}

fn address() -> Result<Config, String> {
    let text = std::env::var(ADDRESS).unwrap_or_default();
    if text.is_empty() {
        return Err(format!(
            "SQL Server is not started by the lab: start one and set {ADDRESS} to its address, \
             such as \"Server=tcp:127.0.0.1,1433;User Id=sa;Password=...\" or \
             \"jdbc:sqlserver://127.0.0.1:1433;user=sa;password=...\""
        ));
    }
    address_in(&text)
}

fn address_in(text: &str) -> Result<Config, String> {
    let config = match text.starts_with("jdbc:") {
        true => Config::from_jdbc_string(text),
        false => Config::from_ado_string(text),
    };
    // The driver's message may quote the text, and with it the password.
    let mut config = config.map_err(|_| {
        format!(
            "{ADDRESS} holds no address that can be read; give Server=tcp:HOST,PORT;User Id=...;\
             Password=... or jdbc:sqlserver://HOST:PORT;user=...;password=..."
        )
    })?;
    config.application_name("onrush-lab");
    Ok(config)
}

/// `forced` makes every commit of the database delayed, whatever sessions ask for.
fn delayed_durability(is_durable: bool) -> &'static str {
    if is_durable { "disabled" } else { "forced" }
}

/// The classic table, clustered by its key.
fn table(plan: &Plan) -> String {
    let key = match plan.strategy {
        KeyStrategy::Identity { start, .. } => format!("bigint identity({start}, 1) not null"),
        KeyStrategy::UuidV4 => "uniqueidentifier not null default newid()".to_owned(),
        _ if plan.is_uuid() => "uniqueidentifier not null".to_owned(),
        _ => "bigint not null".to_owned(),
    };
    format!(
        "create table my_big_table (c1 {key} primary key clustered, c2 datetime2 not null \
         default sysutcdatetime(), c3 char(111) not null default 'a', c4 int not null default 1, \
         c5 int not null default 2, c6 bigint not null default 42)"
    )
}

/// The loop in the server. A transaction of one statement commits by itself.
fn procedure(plan: &Plan) -> String {
    let mut body = plan.procedure_inserts("@next_key", "c2", "(default)");
    if !plan.is_one_statement() {
        body = format!("begin transaction; {body}commit; ");
    }
    format!(
        "create procedure insert_rows @first_key bigint, @transactions bigint as begin \
         set nocount on; declare @next_key bigint = @first_key, @number bigint = 0; \
         while @number < @transactions begin {body}set @next_key += {rows}; \
         set @number += 1; end end",
        rows = plan.rows_per_commit
    )
}

/// A database in a server that somebody else runs.
struct Database {
    address: Config,
    name: String,
    looks_on: Mutex<Session>,
    process: Option<Process>, // always none: the lab has not started the server
}

impl Database {
    fn execute(&self, text: &str) -> Result<(), Refusal> {
        self.looks_on.lock().unwrap_or_else(PoisonError::into_inner).execute(text)
    }

    fn remove(&self) -> Result<(), Refusal> {
        let name = &self.name;
        self.execute(&format!(
            "use master; if db_id('{name}') is not null begin alter database {name} set \
             single_user with rollback immediate; drop database {name}; end"
        ))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // After an error the server may be gone; its name says whose the database was.
        let _ = self.remove();
    }
}

/// A name that no other database of this server has: of this process, and counted.
fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let micros = onrush_measure::stand::unix_micros();
    format!("onrush_lab_{micros}_{}_{number}", std::process::id())
}

impl BaselineServer for Database {
    const NAME: &'static str = "sqlserver";
    type Connection = Session;

    fn create(_folder: &Path, settings: &Settings, plan: &Plan) -> Result<Self, Refusal> {
        let (address, name) = (address()?, fresh_name());
        let looks_on = Mutex::new(Session::connect(address.clone(), None)?);
        let database = Database { address, name, looks_on, process: None };
        let name = &database.name;
        database.execute(&format!("create database {name}"))?;
        database.execute(&format!("alter database {name} set recovery simple"))?;
        database.execute(&format!(
            "declare @log sysname = (select name from sys.master_files where database_id = \
             db_id('{name}') and type = 1); declare @grow nvarchar(max) = N'alter database {name} \
             modify file (name = ' + quotename(@log) + N', size = 4096MB)'; exec(@grow)"
        ))?;
        database.execute(&format!("use {name}"))?;
        database.execute(&table(plan))?;
        if plan.is_loop_in_server {
            database.execute(&procedure(plan))?;
        }
        database.set_durable(settings.is_durable())?;
        Ok(database)
    }

    fn connect(&self) -> Result<Session, Refusal> {
        Session::connect(self.address.clone(), Some(&self.name))
    }

    fn look_on(&self) -> Result<Session, Refusal> {
        self.connect()
    }

    fn now_micros(&self) -> Result<i64, Refusal> {
        let mut session = self.looks_on.lock().unwrap_or_else(PoisonError::into_inner);
        session.number("select datediff_big(microsecond, '1970-01-01', sysutcdatetime())")
    }

    fn set_durable(&self, is_durable: bool) -> Result<(), Refusal> {
        let word = delayed_durability(is_durable);
        self.execute(&format!("alter database {} set delayed_durability = {word}", self.name))
    }

    fn settle(&self) -> Result<(), Refusal> {
        self.execute("exec sys.sp_flush_log; checkpoint")
    }

    /// It is not the lab's to start, nor to stop. Pages that are on disk are read from there.
    fn start(&mut self) -> Result<(), Refusal> {
        self.execute("checkpoint")
    }

    fn process(&mut self) -> &mut Option<Process> {
        &mut self.process
    }

    fn stop(self) -> Result<(), Refusal> {
        self.remove()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_address_are_read_and_no_password_gets_into_an_error() {
        for text in [
            "Server=tcp:127.0.0.1,1444;User Id=sa;Password=secret",
            "jdbc:sqlserver://127.0.0.1:1444;user=sa;password=secret",
        ] {
            assert_eq!(address_in(text).unwrap().get_addr(), "127.0.0.1:1444", "{text}");
        }
        let error = address_in("jdbc:sqlserver://host:port;password={secret").unwrap_err();
        assert!(error.contains(ADDRESS) && !error.contains("secret"), "{error}");
    }

    #[test]
    fn the_procedure_commits_after_each_transaction_with_keys_of_its_own() {
        let text = procedure(&plan::tests::in_server_by_twos());
        let transaction = "begin transaction; insert into my_big_table (c1) values \
                           (@next_key + 0), (@next_key + 1); insert into my_big_table (c1) \
                           values (@next_key + 2); commit; set @next_key += 3;";
        assert!(text.contains(transaction), "{text}");
    }

    #[test]
    fn statements_longer_than_a_values_list_are_refused() {
        let settings = Settings::default().with(Setting::RowsPerCommit, 2_000);
        assert!(SqlServer.impossible(&settings).unwrap().contains("1000 rows"));
        let settings = settings.with(Setting::RowsPerStatement, 1_000);
        assert_eq!(SqlServer.impossible(&settings), None);
    }
}
