//! `onrush serve`: a database for PostgreSQL clients.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use onrush::{Database, MemoryPlan, Options};
use onrush_dashboard::{BoundDashboard, Dashboard, Guard};
use onrush_measure::units::parse_bytes;
use onrush_server::{
    ArchiveTarget, CatalogueConfig, Server, ServerOptions, SpillOptions, TlsFiles,
};
use onrush_terminal::arguments::engine::EngineArguments;
use onrush_terminal::failure::Outcome;
use onrush_terminal::output;
use tracing_subscriber::EnvFilter;

use super::import_mark::unfinished;

/// Serve a database to PostgreSQL clients
#[derive(Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct Serve {
    /// The database's folder; a database is made in it if it is empty or missing
    folder: PathBuf,
    /// A TOML file of these settings by their names, as in `max_connections = 200`; what is typed
    /// counts more than what is in it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The address to listen on; one that other machines reach needs --tls-cert and a role with a
    /// password. Port 0 is any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5433")]
    listen: SocketAddr,
    /// A Unix socket to listen on too; psql finds DIR/.s.PGSQL.PORT by -h DIR -p PORT
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<PathBuf>,
    /// An address for the page that shows what the database does, as in 127.0.0.1:8433; one that other
    /// machines reach needs --tls-cert, and asks for the name and password of a role
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// A PEM file with the server's certificate and those above it: clients that ask for encryption
    /// get it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// A PEM file with the certificate's private key
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Most clients at a time
    #[arg(long, value_name = "COUNT", default_value_t = ServerOptions::default().connections_max)]
    max_connections: usize,
    /// How many of these are kept for superusers with a password, and for the owner at the Unix
    /// socket
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    reserved_connections: usize,
    /// Threads that serve clients; 0 is one for each processor
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    threads: usize,
    /// Memory that all statements together may have for sorting, grouping and joining [default: 512MiB,
    /// or an eighth of --memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    query_memory: Option<u64>,
    /// Memory that one statement may have of it; what a sort or a group needs beyond goes to temporary
    /// files in DIR/spill [default: half of --query-memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    statement_memory: Option<u64>,
    /// The most that temporary files of all queries may take; 0: none are written
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "10GiB")]
    spill: u64,
    /// Memory that all connections together may have: 48 KiB each, and buffers, long messages, prepared
    /// statements, portals and copies [default: 256KiB for each of --max-connections, or a sixteenth of
    /// --memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    connection_memory: Option<u64>,
    /// Which of many nodes the database is, 0 to 92,232: what node_offset() takes, so that keys of several
    /// nodes never meet. Kept in the database from the first start with it; see docs/scale-out.md
    #[arg(long, value_name = "N")]
    node: Option<u32>,
    /// A TOML file of the catalogues of a lake that tables may be attached to, as in [prod] kind = "rest",
    /// uri = "..."; see docs/scale-out.md
    #[arg(long, value_name = "FILE")]
    lake: Option<PathBuf>,
    /// Where log and backups go, so that another machine can go on from there if this one is lost: file:///folder, or
    /// s3://bucket/prefix with the environment variables of S3's own tools; see docs/backup.md
    #[arg(long, value_name = "URL")]
    archive: Option<String>,
    /// Log goes there at most so often: what may be lost with the machine, unless commits wait for it
    /// (synchronous_commit = remote_write)
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, requires = "archive")]
    archive_seconds: f64,
    /// Log that is not archived yet is kept up to so many bytes beside what the database needs itself, while the store
    /// is away; beyond, the archive goes on with a new backup
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "16GiB", requires = "archive")]
    archive_log: u64,
    /// Seconds that a connection may take to begin
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    handshake_seconds: u64,
    /// Write the server's messages as JSON
    #[arg(long)]
    log_json: bool,
    #[command(flatten)]
    engine: EngineArguments,
}

const EXAMPLES: &str = "\
Examples:
  onrush serve shop
  psql -h 127.0.0.1 -p 5433 -c 'CREATE TABLE orders (id bigserial PRIMARY KEY, note text)'
  psql -h 127.0.0.1 -p 5433 -c 'CREATE ROLE admin SUPERUSER LOGIN' -c '\\password admin'
  onrush serve shop --listen 0.0.0.0:5433 --tls-cert server.crt --tls-key server.key
  onrush top shop                           what do its clients wait for right now?
  onrush serve shop --http 127.0.0.1:8433   the same as a page for the browser
  onrush serve shop --http 0.0.0.0:8433 --tls-cert server.crt --tls-key server.key
  onrush serve shop --node 7 --lake lake.toml
  onrush serve shop --archive s3://backups/shop --archive-seconds 1
  onrush serve shop --config shop.toml      what stands there need not be typed

Messages go to standard error; ONRUSH_LOG chooses them, as in ONRUSH_LOG=debug. What of SQL works is
in docs/sql.md.";

/// What queries may have of memory and of the disk.
fn bound_queries(arguments: &Serve, options: &mut ServerOptions) -> anyhow::Result<()> {
    let share = arguments.engine.memory.map(|memory| MemoryPlan::of(memory).queries);
    if let Some(bytes) = arguments.query_memory.or(share) {
        options.query_memory_bytes =
            usize::try_from(bytes).context("--query-memory is too large")?;
    }
    let half = (options.query_memory_bytes / 2).max(1 << 20);
    let statement = arguments.statement_memory.map(usize::try_from).transpose();
    options.statement_memory_bytes =
        statement.context("--statement-memory is too large")?.unwrap_or(half);
    let folder = arguments.folder.join("spill");
    options.spill =
        (arguments.spill > 0).then_some(SpillOptions { folder, bytes_max: arguments.spill });
    Ok(())
}

/// What connections may have of memory.
fn bound_connections(arguments: &Serve, options: &mut ServerOptions) -> anyhow::Result<()> {
    /// Of a usual client: its place and its buffers, and some statements.
    const CLIENT_BYTES: usize = 256 << 10;
    let share = arguments.engine.memory.map(|memory| MemoryPlan::of(memory).connections);
    options.connection_memory_bytes = match arguments.connection_memory.or(share) {
        Some(bytes) => usize::try_from(bytes).context("--connection-memory is too large")?,
        None => options.connection_memory_bytes.max(CLIENT_BYTES * arguments.max_connections),
    };
    Ok(())
}

/// The catalogues that a file names.
fn catalogues(file: &Path) -> anyhow::Result<BTreeMap<String, CatalogueConfig>> {
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    toml::from_str(&text).with_context(|| format!("{} does not name catalogues", file.display()))
}

fn archive_target(arguments: &Serve) -> anyhow::Result<Option<ArchiveTarget>> {
    let Some(url) = arguments.archive.clone() else { return Ok(None) };
    let interval = Duration::try_from_secs_f64(arguments.archive_seconds)
        .with_context(|| format!("--archive-seconds is {}", arguments.archive_seconds))?;
    Ok(Some(ArchiveTarget { url, interval }))
}

/// Serves until the process is asked to end.
pub fn run(arguments: &Serve) -> Outcome {
    start_messages(arguments.log_json);
    let (told, ended) = mpsc::channel();
    let handler = move || {
        // Nobody listens any more when the process ends for another reason.
        let _ = told.send(());
    };
    ctrlc::set_handler(handler).context("cannot wait for signals")?;
    let tls = arguments.tls_cert.clone().zip(arguments.tls_key.clone());
    let mut server_options = ServerOptions {
        tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
        listen: Some(arguments.listen),
        unix_socket: arguments.unix_socket.clone(),
        connections_max: arguments.max_connections,
        connections_reserved: arguments.reserved_connections,
        threads: arguments.threads,
        node: arguments.node,
        catalogues: arguments.lake.as_deref().map(catalogues).transpose()?.unwrap_or_default(),
        archive: archive_target(arguments)?,
        handshake_timeout: Duration::from_secs(arguments.handshake_seconds),
        ..ServerOptions::default()
    };
    bound_queries(arguments, &mut server_options)?;
    bound_connections(arguments, &mut server_options)?;
    // A wrong flag or an address that is in use makes no database.
    let tls = server_options.tls.clone();
    let server = Server::bind(server_options)?;
    let bind = |address| Dashboard::bind(address, tls.is_some());
    let page = arguments.http.map(bind).transpose()?;
    if Database::is_missing(&arguments.folder)? {
        server.check_without_roles()?;
    }
    let archive_log_bytes = arguments.archive.as_ref().map_or(0, |_| arguments.archive_log);
    let options = Options { archive_log_bytes, ..Options::default() };
    let database = Database::open_or_create(&arguments.folder, arguments.engine.options(options))?;
    let recovery = database.recovery();
    tracing::info!(
        folder = %arguments.folder.display(),
        records_redone = recovery.records,
        rows_redone_per_s = recovery.rows_per_s().unwrap_or(0.0) as u64,
        seconds = recovery.duration.as_secs_f64(),
        "open"
    );
    if let Some(import) = unfinished(&arguments.folder) {
        tracing::warn!("{import}");
    }
    let watch = onrush_watch::Server::in_folder(&database, &arguments.folder)
        .context("cannot listen in the database's folder")?;
    let server = server.start(database.clone())?;
    let start = |page| start_page(&database, page, &server, tls.as_ref());
    let dashboard = page.map(start).transpose()?;
    drop(database);
    if let Some(address) = server.address() {
        output::text(&format!("listening on {address}\n"))?;
    }
    if let Some(dashboard) = &dashboard {
        let scheme = if dashboard.is_guarded() { "https" } else { "http" };
        output::text(&format!("page at {scheme}://{}\n", dashboard.address()))?;
    }
    // The sender lives as long as the process.
    let _ = ended.recv();
    tracing::info!("stopping");
    drop((watch, dashboard));
    server.stop()?;
    tracing::info!("everything is durable; closed");
    Ok(())
}

/// The page: on a loopback address for everyone on this machine, else encrypted and for roles.
fn start_page(
    database: &Database,
    page: BoundDashboard,
    server: &Server,
    tls: Option<&TlsFiles>,
) -> anyhow::Result<Dashboard> {
    let address = page.address();
    let guard = match tls {
        Some(files) if !address.ip().is_loopback() => {
            let logins = server.logins(address)?;
            let may_read =
                Arc::new(move |name: &str, password: &str| logins.accepts(name, password));
            Some(Guard { encryption: files.acceptor()?, may_read })
        }
        _ => None,
    };
    Ok(page.start(database, guard)?)
}

fn start_messages(as_json: bool) {
    let filter = EnvFilter::try_from_env("ONRUSH_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let messages = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match as_json {
        true => messages.json().init(),
        false => messages.with_ansi(false).init(),
    }
}
