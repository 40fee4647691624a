//! The settings of a session, under PostgreSQL's names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onrush_query::style::{Style, Unsuitable};

use super::known_settings::{CHOICES, FIXED, NOTED};
use super::planner_settings;
use super::setting_values::{bad_value, boolean, duration, on_or_off, shown};
use super::user::{Users, is_of_users};
use crate::defaults::Values;
use crate::error::{Result, SqlError, state};
use crate::schemas::{TEMPORARY, is_temporary};
use crate::sql::{DEFAULT_PATH, Isolation, SettingChange, TransactionModes, schemas_of};

/// How often settings were changed, of all sessions together.
static REVISIONS: AtomicU64 = AtomicU64::new(1);

/// What a session begins with, and goes back to by RESET.
#[derive(Debug, Default)]
pub(super) struct Defaults {
    /// Who `$user` is.
    pub(super) user: Arc<str>,
    /// Whether that one may do everything.
    pub(super) is_superuser: bool,
    /// Where the client's temporary tables are.
    pub(super) temporary_schema: String,
    /// `synchronous_commit`, where the database says nothing of it.
    pub(super) is_durable: bool,
    /// Whether there is an archive that commits can wait for.
    pub(super) is_archived: bool,
    pub(super) connections_max: usize,
    pub(super) connections_reserved: usize,
    /// What ALTER DATABASE says.
    pub(super) of_database: Arc<Values>,
}

impl Defaults {
    /// Where names are looked up: temporary tables first, unless it is said where among the others. Those of other
    /// clients are nowhere.
    fn path(&self, mut schemas: Vec<String>) -> Arc<[String]> {
        schemas.retain(|schema| !is_temporary(schema));
        match schemas.iter_mut().find(|schema| *schema == TEMPORARY) {
            Some(place) => place.clone_from(&self.temporary_schema),
            None => schemas.insert(0, self.temporary_schema.clone()),
        }
        schemas.into()
    }
}

/// The settings of one session.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// `synchronous_commit`: whether commits are answered once they are durable.
    pub(crate) is_durable: bool,
    /// `synchronous_commit` is `remote_write`: commits are answered once they are in the archive, too.
    pub(crate) waits_for_archive: bool,
    /// Zero is none.
    pub(crate) statement_timeout: Duration,
    /// How long a statement waits for another transaction's definition; zero is none.
    pub(crate) lock_timeout: Duration,
    /// Zero is none.
    pub(crate) idle_in_transaction_timeout: Duration,
    /// `transaction_read_only`: whether the transaction, or the next statement outside of one, may
    /// not write.
    pub(super) is_read_only: bool,
    is_read_only_by_default: bool,
    /// `transaction_isolation`: what the transaction, or the next statement outside of one, sees of others.
    pub(super) isolation: Isolation,
    isolation_by_default: Isolation,
    /// Whether the transaction has done something: what it sees and whether it may write stays as it is.
    pub(super) has_begun: bool,
    /// How values are written as text, and the time zone.
    pub(crate) style: Arc<Style>,
    /// A number that no other state of settings has.
    revision: u64,
    noted: BTreeMap<String, String>,
    defaults: Arc<Defaults>,
    /// The schemas of `search_path`, whether they are there or not.
    pub(crate) path: Arc<[String]>,
    pub(super) users: Users,
    /// What they are once the transaction has committed, where it is said of that alone.
    users_after: Option<Users>,
    is_superuser: bool,
    /// As they were when the transaction began, and which of them end with it.
    before: Option<Box<Settings>>,
    local: Vec<String>,
}

impl Settings {
    pub(super) fn new(defaults: Arc<Defaults>) -> Settings {
        let mut settings = Settings {
            path: defaults.path(schemas_of(DEFAULT_PATH, &defaults.user).unwrap_or_default()),
            is_durable: defaults.is_durable,
            waits_for_archive: false,
            users: Users::default(),
            users_after: None,
            is_superuser: defaults.is_superuser,
            defaults: Arc::clone(&defaults),
            statement_timeout: Duration::ZERO,
            lock_timeout: Duration::ZERO,
            idle_in_transaction_timeout: Duration::ZERO,
            is_read_only: false,
            is_read_only_by_default: false,
            isolation: Isolation::default(),
            isolation_by_default: Isolation::default(),
            has_begun: false,
            style: Arc::default(),
            revision: 0,
            noted: BTreeMap::new(),
            before: None,
            local: Vec::new(),
        };
        for name in defaults.of_database.keys() {
            // It could be set when it was kept.
            let _ = settings.set(name, None);
        }
        settings
    }

    /// Whether the client wants to be told what is as weighty as this.
    pub(crate) fn wants_notice(&self, is_warning: bool) -> bool {
        match self.noted.get("client_min_messages").map(String::as_str) {
            Some("error") => false,
            Some("warning") => is_warning,
            _ => true,
        }
    }

    /// What the client calls itself.
    pub(crate) fn application(&self) -> &str {
        self.noted.get("application_name").map_or("", String::as_str)
    }

    /// As when the session began. What is said of the transaction stays, and as whom the client acts.
    pub(super) fn reset(&mut self) {
        let fresh = Settings::new(Arc::clone(&self.defaults));
        let old = std::mem::replace(self, fresh);
        (self.users, self.users_after) = (old.users, old.users_after);
        self.follow_user(
            &Arc::clone(self.users.current_user(&self.defaults.user)),
            old.is_superuser,
        );
        if old.before.is_some() {
            (self.is_read_only, self.has_begun) = (old.is_read_only, old.has_begun);
            self.isolation = old.isolation;
            self.before = old.before;
        }
    }

    /// A transaction begins.
    pub(super) fn begin(&mut self, modes: TransactionModes) {
        self.has_begun = false;
        self.before = Some(Box::new(self.clone()));
        self.is_read_only = modes.is_read_only.unwrap_or(self.is_read_only_by_default);
        self.isolation = modes.isolation.unwrap_or(self.isolation_by_default);
    }

    /// What is said of the transaction that is open.
    pub(super) fn modes(&self) -> TransactionModes {
        TransactionModes { is_read_only: Some(self.is_read_only), isolation: Some(self.isolation) }
    }

    /// SET TRANSACTION, which outside of a transaction is over at once.
    pub(super) fn set_modes(&mut self, modes: TransactionModes) -> Result<()> {
        modes.is_read_only.map_or(Ok(()), |is_read_only| self.set_read_only(is_read_only))?;
        modes.isolation.map_or(Ok(()), |isolation| self.set_isolation(isolation))
    }

    /// SET SESSION CHARACTERISTICS.
    pub(super) fn set_default_modes(&mut self, modes: TransactionModes) {
        self.is_read_only_by_default = modes.is_read_only.unwrap_or(self.is_read_only_by_default);
        self.isolation_by_default = modes.isolation.unwrap_or(self.isolation_by_default);
        self.follow_defaults();
    }

    /// Outside of a transaction the defaults are what is.
    fn follow_defaults(&mut self) {
        if self.before.is_none() {
            self.is_read_only = self.is_read_only_by_default;
            self.isolation = self.isolation_by_default;
        }
    }

    fn set_isolation(&mut self, isolation: Isolation) -> Result<()> {
        if self.before.is_none() || isolation == self.isolation {
            return Ok(());
        }
        if self.has_begun {
            let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
            return Err(SqlError::new(state::ACTIVE_TRANSACTION, message));
        }
        self.isolation = isolation;
        Ok(())
    }

    /// `transaction_read_only`, which outside of a transaction is over at once.
    pub(super) fn set_read_only(&mut self, is_read_only: bool) -> Result<()> {
        if self.before.is_none() {
            return Ok(());
        }
        if self.has_begun && self.is_read_only && !is_read_only {
            let message = "transaction read-write mode must be set before any query";
            return Err(SqlError::new(state::ACTIVE_TRANSACTION, message));
        }
        self.is_read_only = is_read_only;
        Ok(())
    }

    /// The transaction is over: a rollback takes back what was set in it, a commit what was set for
    /// it alone.
    pub(super) fn end(&mut self, is_committed: bool) {
        let Some(before) = self.before.take() else { return };
        if !is_committed {
            *self = *before;
            return;
        }
        for name in std::mem::take(&mut self.local) {
            let value = before.show(&name).ok();
            // It was there before, so it can be set again.
            let _ = self.set(&name, value.as_deref());
        }
        if let Some(users) = self.users_after.take() {
            self.users = users;
        }
        self.follow_defaults();
        self.has_begun = false;
    }

    /// SET and RESET.
    pub(super) fn change(&mut self, change: &SettingChange) -> Result<()> {
        let Some(name) = &change.name else {
            self.reset();
            return Ok(());
        };
        let name = name.to_lowercase();
        self.set(&name, change.value.as_deref())?;
        if change.is_local && !self.local.contains(&name) {
            self.local.push(name);
        }
        Ok(())
    }

    /// Refuses what is for a transaction where there is none.
    pub(super) fn check_scope(
        &self,
        change: &SettingChange,
        is_in_transaction: bool,
    ) -> Result<()> {
        match change.is_local && !is_in_transaction {
            false => Ok(()),
            true => Err(SqlError::new(
                state::NO_ACTIVE_TRANSACTION,
                "SET LOCAL stands in a transaction block only",
            )),
        }
    }

    /// Who began the session.
    pub(super) fn came_in(&self) -> &Arc<str> {
        &self.defaults.user
    }

    /// The client acts as others from now on, or until its transaction is over.
    pub(super) fn change_users(&mut self, users: Users, is_local: bool) {
        let before = std::mem::replace(&mut self.users, users);
        self.users_after = match is_local {
            true => Some(self.users_after.take().unwrap_or(before)),
            false => None,
        };
    }

    /// Its rights are those of another: so is what `$user` is.
    pub(super) fn follow_user(&mut self, user: &str, is_superuser: bool) {
        self.is_superuser = is_superuser;
        let written = self.noted.get("search_path").map_or(DEFAULT_PATH, String::as_str);
        // It could be read when it was set.
        self.path = self.defaults.path(schemas_of(written, user).unwrap_or_default());
    }

    /// Is another number once anything was set.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Sets one, or without a value makes it its default.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        self.revision = REVISIONS.fetch_add(1, Ordering::Relaxed);
        let defaults = Arc::clone(&self.defaults);
        let value = value.or_else(|| defaults.of_database.get(name).map(String::as_str));
        let lower = value.map(str::to_lowercase);
        match name {
            "synchronous_commit" => {
                (self.is_durable, self.waits_for_archive) = match lower.as_deref() {
                    None => (defaults.is_durable, false),
                    Some("on" | "true" | "yes" | "1" | "local") => (true, false),
                    Some("remote_write" | "remote_apply") if defaults.is_archived => (true, true),
                    Some("remote_write" | "remote_apply") => return Err(no_archive(name, value)),
                    Some("off" | "false" | "no" | "0") => (false, false),
                    Some(other) => {
                        return Err(bad_value(name, other, "on, off, local or remote_write"));
                    }
                };
            }
            "statement_timeout" => self.statement_timeout = duration(name, lower.as_deref())?,
            "lock_timeout" => self.lock_timeout = duration(name, lower.as_deref())?,
            "idle_in_transaction_session_timeout" => {
                self.idle_in_transaction_timeout = duration(name, lower.as_deref())?;
            }
            "transaction_read_only" => {
                let given = lower.as_deref().map(|value| boolean(name, value)).transpose()?;
                self.set_read_only(given.unwrap_or(self.is_read_only_by_default))?;
            }
            "default_transaction_read_only" => {
                let given = lower.as_deref().map(|value| boolean(name, value)).transpose()?;
                self.is_read_only_by_default = given.unwrap_or(false);
                self.follow_defaults();
            }
            "transaction_isolation" => {
                let given = lower.as_deref().map(Isolation::of).transpose()?;
                self.set_isolation(given.unwrap_or(self.isolation_by_default))?;
            }
            "default_transaction_isolation" => {
                let given = lower.as_deref().map(Isolation::of).transpose()?;
                self.isolation_by_default = given.unwrap_or_default();
                self.follow_defaults();
            }
            "search_path" => {
                let written = value.unwrap_or(DEFAULT_PATH);
                let schemas = schemas_of(written, self.users.current_user(&defaults.user));
                let schemas = schemas.ok_or_else(|| bad_value(name, written, "a list of names"))?;
                self.path = defaults.path(schemas);
                return self.note(name, value);
            }
            "max_connections" | "superuser_reserved_connections" | "is_superuser" => {
                return Err(fixed(name));
            }
            name if is_of_users(name) => return Err(fixed(name)),
            name if Style::names().contains(&name) => {
                let default = Style::default();
                let default = |name| default.setting(name).unwrap_or_default();
                let value = value.map_or_else(|| default(name), str::to_owned);
                let style = self.style.with(name, &value, &Style::default());
                self.style = Arc::new(style.map_err(|why| unsuitable(name, &value, why))?);
            }
            _ => return self.note(name, value),
        }
        Ok(())
    }

    /// Whether sessions can begin with this value.
    pub(super) fn check_default(&self, name: &str, value: Option<&str>) -> Result<()> {
        if matches!(name, "transaction_read_only" | "transaction_isolation") {
            return Err(fixed(name).with_hint(format!("Set default_{name}.")));
        }
        Settings::new(Arc::clone(&self.defaults)).set(name, value)
    }

    fn note(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        if let Some((_, choices)) = CHOICES.iter().find(|(known, _)| *known == name) {
            let shown = value.map(|value| {
                let given = comparable(name, value);
                let known = choices.iter().find(|(choice, _)| *choice == given);
                known.map(|(_, shown)| *shown).ok_or_else(|| {
                    let mut all: Vec<_> = choices.iter().map(|(_, shown)| *shown).collect();
                    all.dedup();
                    bad_value(name, value, &all.join(", "))
                })
            });
            match shown.transpose()? {
                Some(shown) => self.noted.insert(name.to_owned(), shown.to_owned()),
                None => self.noted.remove(name),
            };
            return Ok(());
        }
        if FIXED.iter().any(|(known, _)| *known == name) {
            return Err(fixed(name));
        }
        let value = match (planner_settings::kind_of(name), value) {
            (Some(planner_settings::Kind::Switch), Some(value)) => {
                Some(on_or_off(boolean(name, &value.to_lowercase())?))
            }
            (Some(planner_settings::Kind::Size), Some(value)) => {
                Some(planner_settings::size(name, value)?)
            }
            (Some(planner_settings::Kind::Number), Some(value)) => {
                let is_number = value.parse::<f64>().is_ok_and(|number| number >= -1.0);
                let bad = || bad_value(name, value, "a number");
                Some(is_number.then(|| value.to_owned()).ok_or_else(bad)?)
            }
            (None, _) if !NOTED.iter().any(|(known, _)| *known == name) => {
                return Err(unknown(name));
            }
            (_, value) => value.map(str::to_owned),
        };
        match value {
            Some(value) => self.noted.insert(name.to_owned(), value),
            None => self.noted.remove(name),
        };
        Ok(())
    }

    pub(super) fn show(&self, name: &str) -> Result<String> {
        let lower = name.to_lowercase();
        let shown = match lower.as_str() {
            "synchronous_commit" if self.waits_for_archive => "remote_write".to_owned(),
            "synchronous_commit" => on_or_off(self.is_durable),
            "is_superuser" => on_or_off(self.is_superuser),
            name if is_of_users(name) => self.users.shown(name, &self.defaults.user),
            "max_connections" => self.defaults.connections_max.to_string(),
            "superuser_reserved_connections" => self.defaults.connections_reserved.to_string(),
            "transaction_read_only" => on_or_off(self.is_read_only),
            "default_transaction_read_only" => on_or_off(self.is_read_only_by_default),
            "transaction_isolation" => self.isolation.name().to_owned(),
            "default_transaction_isolation" => self.isolation_by_default.name().to_owned(),
            "statement_timeout" => shown(self.statement_timeout),
            "lock_timeout" => shown(self.lock_timeout),
            "idle_in_transaction_session_timeout" => shown(self.idle_in_transaction_timeout),
            other if Style::names().contains(&other) => {
                self.style.setting(other).unwrap_or_default()
            }
            other => {
                let noted = self.noted.get(other).map(String::as_str);
                let choice = CHOICES.iter().find(|(known, _)| *known == other);
                let choice = choice.and_then(|(_, choices)| Some(choices.first()?.1));
                let mut plain = FIXED.iter().chain(NOTED).chain(planner_settings::all());
                let plain = plain.find(|(known, _)| *known == other);
                let found = noted.or(choice).or(plain.map(|(_, value)| *value));
                found.ok_or_else(|| unknown(name))?.to_owned()
            }
        };
        Ok(shown)
    }

    /// All of them, as they are when a session begins of which nothing is said.
    pub(crate) fn at_the_beginning() -> Vec<(&'static str, String)> {
        let defaults = Defaults { is_durable: true, is_superuser: true, ..Defaults::default() };
        Settings::new(Arc::new(defaults)).all()
    }

    /// All of them, by name.
    pub(super) fn all(&self) -> Vec<(&'static str, String)> {
        let own = [
            "default_transaction_isolation",
            "default_transaction_read_only",
            "idle_in_transaction_session_timeout",
            "lock_timeout",
            "max_connections",
            "statement_timeout",
            "superuser_reserved_connections",
            "synchronous_commit",
            "transaction_isolation",
            "transaction_read_only",
        ];
        let choices = CHOICES.iter().map(|(name, _)| *name);
        let plain = FIXED.iter().chain(NOTED).chain(planner_settings::all());
        let plain = plain.map(|(name, _)| *name);
        let styles = Style::names().iter().copied();
        let names = own.into_iter().chain(styles).chain(choices).chain(plain);
        let mut all: Vec<_> =
            names.filter_map(|name| Some((name, self.show(name).ok()?))).collect();
        all.sort_unstable();
        all
    }

    /// What a client is told at its beginning.
    pub(crate) fn reported(&self) -> Vec<(&'static str, String)> {
        let names = [
            ("server_version", "server_version"),
            ("server_encoding", "server_encoding"),
            ("client_encoding", "client_encoding"),
            ("application_name", "application_name"),
            ("is_superuser", "is_superuser"),
            ("session_authorization", "session_authorization"),
            ("DateStyle", "datestyle"),
            ("IntervalStyle", "intervalstyle"),
            ("TimeZone", "timezone"),
            ("integer_datetimes", "integer_datetimes"),
            ("standard_conforming_strings", "standard_conforming_strings"),
            ("in_hot_standby", "in_hot_standby"),
            ("default_transaction_read_only", "default_transaction_read_only"),
        ];
        let value = |(shown, name)| Some((shown, self.show(name).ok()?));
        names.into_iter().filter_map(value).collect()
    }
}

/// Names of encodings are compared by their letters and digits, as in PostgreSQL: some drivers send
/// `'utf-8'`, with the quotes.
fn comparable(name: &str, value: &str) -> String {
    let lower = value.to_lowercase();
    match name {
        "client_encoding" => lower.chars().filter(char::is_ascii_alphanumeric).collect(),
        _ => lower,
    }
}

/// As PostgreSQL spells them.
fn spelled(name: &str) -> &str {
    match name {
        "datestyle" => "DateStyle",
        "timezone" => "TimeZone",
        name => name,
    }
}

fn unsuitable(name: &str, value: &str, why: Unsuitable) -> SqlError {
    let name = spelled(name);
    match why {
        Unsuitable::Choices(choices) => bad_value(name, value, choices),
        Unsuitable::Message(message) => SqlError::new(state::INVALID_PARAMETER_VALUE, message),
        Unsuitable::Detail(detail) => {
            let message = format!("invalid value for parameter {name:?}: \"{value}\"");
            SqlError::new(state::INVALID_PARAMETER_VALUE, message).with_detail(detail)
        }
    }
}

fn fixed(name: &str) -> SqlError {
    SqlError::new(state::CANT_CHANGE_PARAMETER, format!("parameter {name:?} cannot be changed"))
}

fn no_archive(name: &str, value: Option<&str>) -> SqlError {
    let message =
        format!("{name} cannot be {}: this server has no archive", value.unwrap_or_default());
    SqlError::new(state::INVALID_PARAMETER_VALUE, message).with_hint(
        "Start it with --archive URL, or set it to on: commits are durable on this machine then.",
    )
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(state::UNDEFINED_OBJECT, format!("unrecognized configuration parameter {name:?}")).with_hint(
        "There are synchronous_commit, statement_timeout, idle_in_transaction_session_timeout and \
         the usual ones of clients; onrush.settings shows those of the engine.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durable() -> Settings {
        Settings::new(Arc::new(Defaults { is_durable: true, ..Defaults::default() }))
    }

    #[test]
    fn what_is_set_for_a_transaction_ends_with_it() {
        let mut settings = durable();
        settings.begin(TransactionModes::default());
        let change = SettingChange {
            name: Some("synchronous_commit".into()),
            value: Some("off".into()),
            is_local: true,
            is_reset: false,
        };
        settings.change(&change).expect("it can be set");
        assert!(!settings.is_durable);
        settings.end(true);
        assert!(settings.is_durable);
    }

    #[test]
    fn commits_wait_for_an_archive_where_there_is_one() {
        let mut settings = durable();
        let refused = settings.set("synchronous_commit", Some("remote_write")).unwrap_err();
        assert_eq!(refused.state, "22023");
        assert!(refused.hint.as_ref().is_some_and(|hint| hint.contains("--archive")));
        let defaults = Defaults { is_durable: true, is_archived: true, ..Defaults::default() };
        let mut settings = Settings::new(Arc::new(defaults));
        settings.set("synchronous_commit", Some("remote_write")).expect("there is one");
        assert!(settings.is_durable && settings.waits_for_archive);
        assert_eq!(settings.show("synchronous_commit").expect("known"), "remote_write");
        settings.set("synchronous_commit", Some("on")).expect("it can be set");
        assert!(settings.is_durable && !settings.waits_for_archive);
    }

    #[test]
    fn times_have_units() {
        let mut settings = durable();
        settings.set("statement_timeout", Some("2s")).expect("a time");
        assert_eq!(settings.statement_timeout, Duration::from_secs(2));
        assert_eq!(settings.show("statement_timeout").expect("known"), "2000ms");
        assert_eq!(settings.set("statement_timeout", Some("soon")).unwrap_err().state, "22023");
        assert_eq!(settings.set("no_such", Some("1")).unwrap_err().state, "42704");
    }
}
