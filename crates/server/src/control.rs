//! Functions by which sessions wait, and by which one client stops another or tells it something: `pg_sleep`,
//! `pg_cancel_backend`, `pg_terminate_backend`, `pg_notify`, and `txid_current` and its kin.

use std::sync::Arc;
use std::time::Duration;

use onrush::{DataType, Value};
use onrush_query::{Client, ColumnType, SystemFunction};
use parking_lot::Mutex;

use crate::access::{Access, Identity};
use crate::clients::{ClientEntry, Clients};
use crate::error::{Result, SqlError, state};
use crate::execute::{Patience, control_of};
use crate::notifications::{Notification, Said};
use crate::sequences::refused;
use crate::session_objects::SessionObjects;

/// What one client can do to itself and others.
pub(crate) struct ClientControl {
    pub(crate) clients: Arc<Clients>,
    access: Arc<Access>,
    pub(crate) patience: Patience,
    pub(crate) objects: Arc<SessionObjects>,
    /// What is said to others.
    pub(crate) said: Said,
    /// The number of the open transaction, once it was asked for.
    transaction: Mutex<Option<i64>>,
}

/// Longest that somebody sleeps; longer times are no times.
const SLEEP_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

pub(crate) fn functions() -> Vec<SystemFunction> {
    const TEXT: ColumnType = ColumnType::Stored(DataType::Text);
    const BOOL: ColumnType = ColumnType::Stored(DataType::Boolean);
    const INT8: ColumnType = ColumnType::Stored(DataType::Int64);
    vec![
        function("pg_sleep", TEXT, |control, _, given| control.sleep(given)),
        function("pg_cancel_backend", BOOL, |control, client, given| {
            control.stop(client, given, false)
        }),
        function("pg_terminate_backend", BOOL, |control, client, given| {
            control.stop(client, given, true)
        }),
        function("pg_notify", TEXT, ClientControl::notify_by_call),
        function("txid_current", INT8, |control, _, _| Ok(control.transaction_number())),
        function("pg_current_xact_id", INT8, |control, _, _| Ok(control.transaction_number())),
        function("txid_current_if_assigned", INT8, |control, _, _| Ok(control.number_if_given())),
        function("pg_current_xact_id_if_assigned", INT8, |control, _, _| {
            Ok(control.number_if_given())
        }),
    ]
}

type Call = fn(&ClientControl, &Client, &[Value<'_>]) -> Result<Value<'static>>;

fn function(name: &'static str, returns: ColumnType, call: Call) -> SystemFunction {
    let nobody =
        move || SqlError::not_supported(format!("{name} where no client asks"), "Ask in a query.");
    let of_client = SystemFunction::fallible_of_client(name, returns, move |client, given| {
        let control = control_of(client).ok_or_else(|| refused(nobody()))?;
        call(&control, client, given).map_err(refused)
    });
    of_client.volatile(move |_| Err(refused(nobody())))
}

impl ClientControl {
    pub(crate) fn new(
        clients: &Arc<Clients>,
        access: &Arc<Access>,
        patience: &Patience,
    ) -> ClientControl {
        ClientControl {
            clients: Arc::clone(clients),
            access: Arc::clone(access),
            patience: patience.clone(),
            objects: Arc::default(),
            said: Said::default(),
            transaction: Mutex::new(None),
        }
    }

    /// The transaction is over.
    pub(crate) fn end_transaction(&self) {
        *self.transaction.lock() = None;
    }

    /// Tells something to all who listen to a channel, once the transaction is committed.
    pub(crate) fn notify(&self, sender: i32, channel: &str, payload: &str) -> Result<()> {
        if self.clients.all().iter().any(|client| client.inbox.is_full(channel)) {
            let message = "too many notifications in the NOTIFY queue";
            return Err(SqlError::new(state::LIMIT_EXCEEDED, message)
                .with_hint("A client listens to the channel and does not take what comes."));
        }
        let (channel, payload) = (channel.into(), payload.into());
        self.said.notify(Notification { channel, payload, sender })
    }

    fn notify_by_call(&self, client: &Client, given: &[Value<'_>]) -> Result<Value<'static>> {
        let text = |at: usize| given.get(at).and_then(Value::as_str).unwrap_or_default();
        self.notify(client.number, text(0), text(1))?;
        Ok("".into())
    }

    fn sleep(&self, given: &[Value<'_>]) -> Result<Value<'static>> {
        if given.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        let seconds = match given {
            [Value::Float64(seconds)] => Some(*seconds),
            [Value::Float32(seconds)] => Some((*seconds).into()),
            [given] => given.to_string().parse().ok(),
            _ => None,
        };
        let seconds = seconds.ok_or_else(|| {
            let message = "function pg_sleep takes a number of seconds";
            SqlError::new(state::UNDEFINED_FUNCTION, message)
        })?;
        let length = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(SLEEP_MAX);
        self.patience.sleep(length.min(SLEEP_MAX))?;
        Ok("".into())
    }

    /// Gives up what another client runs, or ends it. False if there is no such client.
    fn stop(&self, client: &Client, given: &[Value<'_>], ends: bool) -> Result<Value<'static>> {
        if given.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        let number = given.first().and_then(Value::as_i64);
        let number = number.ok_or_else(|| {
            let name = if ends { "pg_terminate_backend" } else { "pg_cancel_backend" };
            let message = format!("function {name} takes the number of a client");
            SqlError::new(state::UNDEFINED_FUNCTION, message)
        })?;
        let other = i32::try_from(number).ok().and_then(|number| self.clients.with(number));
        let Some(other) = other else { return Ok(Value::Boolean(false)) };
        self.check_may_stop(client, &other, ends)?;
        match ends {
            true => other.end(),
            false => other.cancel(),
        }
        Ok(Value::Boolean(true))
    }

    fn check_may_stop(&self, client: &Client, other: &ClientEntry, ends: bool) -> Result<()> {
        let settings = client.settings.as_ref();
        let is_superuser = settings.and_then(|settings| settings.setting("is_superuser"));
        if client.user == other.user || is_superuser.as_deref() == Some("on") {
            return Ok(());
        }
        let [asking, asked] = [&client.user, &other.user].map(|name| Identity::named(name));
        let is_of_superuser = self.access.is_superuser(&asked);
        if !is_of_superuser && self.access.acts_as(&asking, &asked.name) {
            return Ok(());
        }
        let message = match ends {
            true if is_of_superuser => "must be a superuser to terminate superuser process",
            false if is_of_superuser => "must be a superuser to cancel superuser query",
            true => {
                "must be a member of the role whose process is being terminated or member of pg_signal_backend"
            }
            false => {
                "must be a member of the role whose query is being canceled or member of pg_signal_backend"
            }
        };
        Err(SqlError::new(state::INSUFFICIENT_PRIVILEGE, message))
    }

    fn transaction_number(&self) -> Value<'static> {
        let mut number = self.transaction.lock();
        Value::Int64(*number.get_or_insert_with(|| self.clients.next_transaction()))
    }

    fn number_if_given(&self) -> Value<'static> {
        self.transaction.lock().map_or(Value::Null, Value::Int64)
    }
}
