//! A PostgreSQL of one's own, for as long as it is held: what answers are compared with.

use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tokio_postgres::{Client, Config, NoTls};

/// The user that PostgreSQL's packages make; PostgreSQL does not run as root.
const SERVANT: &str = "postgres";

pub struct Cluster {
    programs: PathBuf,
    folder: TempDir,
}

impl Cluster {
    /// None where PostgreSQL is not installed, which is told, and with `ONRUSH_REQUIRE_SERVERS` set
    /// is a failure.
    pub fn start() -> Option<Cluster> {
        let Some(programs) = programs() else {
            let told = "PostgreSQL is not installed: apt-get install postgresql";
            assert!(std::env::var_os("ONRUSH_REQUIRE_SERVERS").is_none(), "{told}");
            eprintln!("left out: {told}");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        if let Some((user, group)) = servant() {
            chown(folder.path(), Some(user), Some(group)).unwrap();
        }
        let cluster = Cluster { programs, folder };
        let data = cluster.data();
        let text = |text: &'static str| OsStr::new(text);
        let initialise = [text("-D"), data.as_os_str(), text("-U"), text("onrush")];
        let plain = ["-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"].map(OsStr::new);
        cluster.run("initdb", &[&initialise[..], &plain[..]].concat());
        let options = format!(
            "-k {} -c listen_addresses= -c fsync=off -c timezone=UTC",
            cluster.folder.path().display()
        );
        let log = cluster.folder.path().join("log");
        let start = [text("-D"), data.as_os_str(), text("-w"), text("-l"), log.as_os_str()];
        cluster
            .run("pg_ctl", &[&start[..], &[text("-o"), options.as_ref(), text("start")]].concat());
        Some(cluster)
    }

    /// Where it is reached.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn run(&self, program: &str, arguments: &[&OsStr]) {
        let mut command = Command::new(self.programs.join(program));
        command.args(arguments).current_dir(self.folder.path());
        // The server that pg_ctl leaves behind would hold a pipe open.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((user, group)) = servant() {
            command.uid(user).gid(group);
        }
        let status = command.status().unwrap();
        assert!(status.success(), "{program} {arguments:?}: {status}");
    }

    /// A client in a new, empty database.
    pub async fn client_in_new_database(&self, name: &str) -> Client {
        let first = self.client("postgres").await;
        first.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        self.client(name).await
    }

    async fn client(&self, database: &str) -> Client {
        let mut config = Config::new();
        config.host_path(self.folder.path()).user("onrush").dbname(database);
        let (client, connection) = config.connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let data = self.data();
        let arguments = ["-D".as_ref(), data.as_os_str(), "-m".as_ref(), "immediate".as_ref()];
        self.run("pg_ctl", &[&arguments[..], &["stop".as_ref()]].concat());
    }
}

/// Where the newest installation has its programs.
fn programs() -> Option<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let version = |entry: &std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let newest = installed.max_by_key(version)?.path().join("bin");
    newest.join("initdb").is_file().then_some(newest)
}

/// User and group that run the programs where this process is root's.
fn servant() -> Option<(u32, u32)> {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let mut users = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let user = users.find(|user| user[0] == SERVANT)?;
    Some((user.get(2)?.parse().ok()?, user.get(3)?.parse().ok()?))
}
