//! `pg_stat_activity`: each client and each thread of the engine, and what it waits for now.

use std::sync::Arc;

use onrush::{Database, LiveSummary, RecorderKind, Row, Value};
use onrush_query::{ColumnType, MadeRows, Statement};

use super::kinds::{INT4, NAME, OID, TEXT, TIMESTAMP};
use super::{names, oid};
use crate::access::Access;
use crate::clients::{ClientEntry, Clients};

pub(super) const NAME_OF_VIEW: &str = "pg_stat_activity";

const COLUMNS: &[(&str, ColumnType)] = &[
    ("datid", OID),
    ("datname", NAME),
    ("pid", INT4),
    ("usename", NAME),
    ("application_name", TEXT),
    ("backend_start", TIMESTAMP),
    ("query_start", TIMESTAMP),
    ("state_change", TIMESTAMP),
    ("wait_event_type", TEXT),
    ("wait_event", TEXT),
    ("state", TEXT),
    ("query", TEXT),
    ("backend_type", TEXT),
];

/// The view, and what it tells about.
pub(super) struct ActivityView {
    pub(super) database: Database,
    pub(super) clients: Arc<Clients>,
    pub(super) access: Arc<Access>,
}

impl std::fmt::Debug for ActivityView {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(NAME_OF_VIEW)
    }
}

impl MadeRows for ActivityView {
    fn columns(&self) -> Vec<(&str, ColumnType)> {
        COLUMNS.to_vec()
    }

    fn rows(&self, statement: &Statement) -> Vec<Row> {
        let sessions = self.database.sessions();
        let clients = self.clients.all();
        let of_clients = clients.iter().map(|client| {
            let session = sessions.iter().find(|session| session.id == client.session);
            self.of_client(client, session, statement)
        });
        let threads = sessions.iter().filter(|one| one.kind != RecorderKind::Session);
        of_clients.chain(threads.map(of_thread)).collect()
    }
}

impl ActivityView {
    fn of_client(
        &self,
        client: &ClientEntry,
        session: Option<&LiveSummary>,
        statement: &Statement,
    ) -> Row {
        let activity = client.activity();
        let wait = session.and_then(|session| session.waits_now);
        let (wait_type, wait) = match wait {
            Some(wait) => ("Onrush".into(), wait.name().into()),
            None if activity.state == "active" => (Value::Null, Value::Null),
            None => ("Client".into(), "ClientRead".into()),
        };
        // What others say to the database is not everyone's business.
        let text = if self.access.sees_statements(&statement.client.user, &client.user) {
            activity.statement.to_string()
        } else {
            "<insufficient privilege>".to_owned()
        };
        vec![
            oid(names::DATABASE_OID),
            statement.client.database.to_string().into(),
            Value::Int32(client.number),
            client.user.to_string().into(),
            activity.application.to_string().into(),
            Value::TimestampTz(client.began_micros),
            activity.statement_micros.map_or(Value::Null, Value::TimestampTz),
            Value::TimestampTz(activity.state_micros),
            wait_type,
            wait,
            activity.state.into(),
            text.into(),
            "client backend".into(),
        ]
    }
}

fn of_thread(thread: &LiveSummary) -> Row {
    let wait = thread.waits_now.map(|wait| wait.name());
    let mut row = vec![Value::Null; COLUMNS.len()];
    row[4] = thread.name.clone().into();
    row[8] = wait.map_or(Value::Null, |_| "Onrush".into());
    row[9] = wait.map_or(Value::Null, Value::from);
    row[12] = "background worker".into();
    row
}
