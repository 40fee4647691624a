//! A lake in a PostgreSQL, behind a proxy that fails on demand at the one place that matters: the
//! end of a transaction.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};

use onrush_lake::{CatalogueConfig, CatalogueKind, DrainCatalogue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::{Mutex as AsyncMutex, Notify, mpsc};
use tokio_postgres::Client;

use super::catalogue::Fault;
use super::lake::LakeRow;
use super::postgresql::Cluster;

/// All tests of a file share one; the last one that holds it stops it.
static CLUSTER: AsyncMutex<Weak<Cluster>> = AsyncMutex::const_new(Weak::new());

pub struct PostgresLake {
    cluster: Arc<Cluster>,
    client: Client,
    proxy: Arc<Proxy>,
    port: u16,
    database: String,
}

impl PostgresLake {
    /// None where PostgreSQL is not installed.
    pub async fn start() -> Option<PostgresLake> {
        let cluster = {
            let mut shared = CLUSTER.lock().await;
            match shared.upgrade() {
                Some(cluster) => cluster,
                None => {
                    let cluster = tokio::task::block_in_place(Cluster::start).map(Arc::new)?;
                    *shared = Arc::downgrade(&cluster);
                    cluster
                }
            }
        };
        Some(PostgresLake::within(cluster).await)
    }

    pub async fn another(&self) -> PostgresLake {
        PostgresLake::within(Arc::clone(&self.cluster)).await
    }

    async fn within(cluster: Arc<Cluster>) -> PostgresLake {
        let database = format!("lake_{}", uuid::Uuid::new_v4().simple());
        let client = cluster.client_in_new_database(&database).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = Arc::new(Proxy::default());
        tokio::spawn(serve(Arc::clone(&proxy), listener, cluster.folder().join(".s.PGSQL.5432")));
        PostgresLake { cluster, client, proxy, port, database }
    }

    pub fn catalogue(&self) -> DrainCatalogue {
        DrainCatalogue::Configured(CatalogueConfig {
            kind: CatalogueKind::Postgres,
            uri: Some(format!("postgres://onrush@127.0.0.1:{}/{}", self.port, self.database)),
            warehouse: None,
            token_variable: None,
            credential_variable: None,
            allow_plain_text: false,
            properties: Default::default(),
        })
    }

    /// The database, not by way of the proxy.
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn fail_commits(&self, faults: impl IntoIterator<Item = Fault>) {
        self.proxy.state.lock().unwrap().faults.extend(faults);
    }

    pub fn go_away_after_commit(&self) {
        self.proxy.state.lock().unwrap().goes_away_next = true;
    }

    pub fn heal(&self) {
        let mut state = self.proxy.state.lock().unwrap();
        state.faults.clear();
        (state.is_away, state.goes_away_next) = (false, false);
    }

    pub async fn release(&self) -> Option<bool> {
        self.proxy.release().await
    }

    pub async fn rows(&self, table: &str) -> Vec<LakeRow> {
        let query = format!("SELECT id, _node, _lsn FROM lake.{table}");
        let rows = self.client.query(&query, &[]);
        let row = |row: &tokio_postgres::Row| LakeRow {
            id: row.get(0),
            node: row.get(1),
            lsn: row.get(2),
        };
        let mut rows: Vec<LakeRow> = rows.await.unwrap().iter().map(row).collect();
        rows.sort_unstable();
        rows
    }
}

#[derive(Default)]
struct Proxy {
    state: Mutex<State>,
    /// Connections end when the lake goes away.
    gone: Notify,
}

#[derive(Default)]
struct State {
    faults: VecDeque<Fault>,
    is_away: bool,
    /// With the next commit.
    goes_away_next: bool,
    delayed: VecDeque<Delayed>,
}

/// A client that is paused before its last statement but COMMIT.
struct Delayed {
    server: Server,
    statement: Message,
}

/// The way to the server, and what comes from it.
struct Server {
    write: tokio::net::unix::OwnedWriteHalf,
    messages: mpsc::UnboundedReceiver<Message>,
}

type Message = Vec<u8>;

impl Proxy {
    /// Lets the oldest client that is paused go on, as its code would: whether it committed.
    async fn release(&self) -> Option<bool> {
        let Delayed { mut server, statement } = self.state.lock().unwrap().delayed.pop_front()?;
        let answer = server.ask(&statement).await;
        if !answer.iter().any(|it| it[0] == b'C' && it.ends_with(b" 1\0")) {
            return Some(false);
        }
        let answer = server.ask(&query("COMMIT")).await;
        Some(answer.iter().any(|it| it[0] == b'C' && it.ends_with(b"COMMIT\0")))
    }

    /// The fault of the next commit, if it is one of these.
    fn take(&self, is_meant: impl Fn(Fault) -> bool) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        let fault = state.faults.front().copied().filter(|fault| is_meant(*fault))?;
        state.faults.pop_front();
        Some(fault)
    }

    /// A commit was dealt with.
    fn end_commit(&self) {
        let mut state = self.state.lock().unwrap();
        if std::mem::take(&mut state.goes_away_next) {
            state.is_away = true;
            self.gone.notify_waiters();
        }
    }
}

impl Server {
    async fn say(&mut self, message: &[u8]) -> bool {
        self.write.write_all(message).await.is_ok()
    }

    /// What is answered to a statement, up to where the server is ready again.
    async fn ask(&mut self, message: &[u8]) -> Vec<Message> {
        let mut answer = Vec::new();
        if self.say(message).await {
            while let Some(message) = self.messages.recv().await {
                let is_ready = message[0] == b'Z';
                answer.push(message);
                if is_ready {
                    break;
                }
            }
        }
        answer
    }
}

fn query(statement: &str) -> Message {
    let mut message = vec![b'Q'];
    message.extend((statement.len() as u32 + 5).to_be_bytes());
    message.extend(statement.as_bytes());
    message.push(0);
    message
}

/// The text of a statement of the simple protocol.
fn statement(message: &[u8]) -> Option<&str> {
    let text = message.strip_prefix(b"Q")?.get(4..)?;
    std::str::from_utf8(text.strip_suffix(&[0])?).ok()
}

async fn serve(proxy: Arc<Proxy>, listener: TcpListener, socket: std::path::PathBuf) {
    while let Ok((client, _)) = listener.accept().await {
        if proxy.state.lock().unwrap().is_away {
            continue;
        }
        let Ok(server) = UnixStream::connect(&socket).await else { continue };
        let proxy = Arc::clone(&proxy);
        tokio::spawn(async move {
            let gone = proxy.gone.notified();
            let (from_client, mut to_client) = client.into_split();
            let (from_server, write) = server.into_split();
            let mut clients = messages(from_client, true);
            let mut server = Server { write, messages: messages(from_server, false) };
            tokio::select! {
                () = gone => {}
                delayed = pass_on(&proxy, &mut clients, &mut to_client, &mut server) => {
                    if let Some(statement) = delayed {
                        let delayed = Delayed { server, statement };
                        proxy.state.lock().unwrap().delayed.push_back(delayed);
                        drop(to_client);
                        proxy.end_commit();
                    }
                }
            }
        });
    }
}

/// The messages of one side. The client's first one has no kind.
fn messages(
    mut from: impl AsyncReadExt + Unpin + Send + 'static,
    mut is_start: bool,
) -> mpsc::UnboundedReceiver<Message> {
    let (send, receive) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let kind = if std::mem::take(&mut is_start) { 0 } else { 1 };
            let mut message = vec![0; kind + 4];
            if from.read_exact(&mut message).await.is_err() {
                return;
            }
            let length = u32::from_be_bytes(message[kind..].try_into().unwrap()) as usize;
            message.resize(kind + length, 0);
            if from.read_exact(&mut message[kind + 4..]).await.is_err()
                || send.send(message).is_err()
            {
                return;
            }
        }
    });
    receive
}

/// Passes messages on until the connection is to end; gives the statement before which the client is paused.
async fn pass_on(
    proxy: &Proxy,
    clients: &mut mpsc::UnboundedReceiver<Message>,
    to_client: &mut tokio::net::tcp::OwnedWriteHalf,
    server: &mut Server,
) -> Option<Message> {
    loop {
        let message = tokio::select! {
            message = clients.recv() => message?,
            message = server.messages.recv() => {
                to_client.write_all(&message?).await.ok()?;
                continue;
            }
        };
        let text = statement(&message).unwrap_or_default();
        if text.starts_with("BEGIN") && proxy.take(|it| it == Fault::AfterDelayed).is_some() {
            while proxy.release().await.is_some() {}
        }
        let moves_mark = text.contains("onrush_marks")
            && (text.starts_with("UPDATE") || text.starts_with("INSERT"));
        if moves_mark && proxy.take(|it| it == Fault::Delay).is_some() {
            return Some(message);
        }
        if text != "COMMIT" {
            server.say(&message).await.then_some(())?;
            continue;
        }
        let fault = proxy.take(|_| true).unwrap_or(Fault::None);
        let mut answer = Vec::new();
        match fault {
            Fault::LoseRequest => {}
            Fault::LoseAnswer => drop(server.ask(&message).await),
            Fault::Twice => {
                server.ask(&message).await;
                answer = server.ask(&message).await;
            }
            Fault::Lie => answer = vec![b"C\0\0\0\x0bCOMMIT\0".to_vec(), b"Z\0\0\0\x05I".to_vec()],
            Fault::Hang => std::future::pending().await,
            Fault::None | Fault::Delay | Fault::AfterDelayed => answer = server.ask(&message).await,
        }
        for message in &answer {
            to_client.write_all(message).await.ok()?;
        }
        proxy.end_commit();
        if answer.is_empty() || fault == Fault::Lie {
            return None;
        }
    }
}
