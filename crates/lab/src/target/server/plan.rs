//! What a load asks of a server: who makes the keys, where the loop runs, and what one statement
//! and one transaction hold.

use onrush::{DataType, KeyStrategy};
use onrush_measure::classic_table::NumberColumns;

use crate::study::{Setting, Settings};

/// Rows of a statement, and of a commit, while preloading.
const PRELOAD_ROWS: usize = 1000;
/// Rows of a statement, at most: servers limit its parameters to 65,535.
const ROWS_PER_STATEMENT_MAX: u64 = 10_000;
/// Sessions, at most: each takes a thread here and a process or thread there.
const SESSIONS_MAX: usize = 1000;

/// Who makes the keys of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeySource {
    /// The column's default in the server.
    Server,
    /// The lab, which sends each one.
    Client,
    /// The procedure: its session's first key, and numbers ascending from there.
    Ascending,
}

/// What a load asks of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) strategy: KeyStrategy,
    pub(super) keys: KeySource,
    pub(super) is_loop_in_server: bool,
    pub(super) rows_per_commit: usize,
    pub(super) rows_per_statement: usize,
    /// What c4, c5 and c6 hold; random numbers are sent with their keys.
    pub(super) numbers: NumberColumns,
    /// Columns with an index of their own.
    pub(super) indexed: &'static [&'static str],
}

impl Plan {
    /// The plan of a case. The strategies that a server makes itself are the same for all of them.
    pub(super) fn of(settings: &Settings) -> Plan {
        let (strategy, is_loop_in_server) =
            (settings.key(), settings.is(Setting::LoopIn, "server"));
        let numbers = settings.number_columns();
        let keys = match strategy {
            _ if numbers == NumberColumns::Random => KeySource::Client,
            KeyStrategy::Identity { .. } | KeyStrategy::UuidV4 => KeySource::Server,
            _ if is_loop_in_server => KeySource::Ascending,
            _ => KeySource::Client,
        };
        let size = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        Plan {
            strategy,
            keys,
            is_loop_in_server,
            rows_per_commit: settings.size(Setting::RowsPerCommit),
            rows_per_statement: size(settings.rows_per_statement()),
            numbers,
            indexed: settings.indexed_columns(),
        }
    }

    /// The same with large transactions sent by the client, since nobody measures them.
    pub(super) fn for_preload(&self) -> Plan {
        let keys = match self.keys {
            KeySource::Ascending => KeySource::Client,
            keys => keys,
        };
        Plan {
            keys,
            is_loop_in_server: false,
            rows_per_commit: PRELOAD_ROWS,
            rows_per_statement: PRELOAD_ROWS,
            ..self.clone()
        }
    }

    /// The columns that the client gives for each row.
    pub(super) fn sent_columns(&self) -> &'static [&'static str] {
        match (self.keys, self.numbers) {
            (KeySource::Server, _) => &[],
            (_, NumberColumns::Constant) => &["c1"],
            (_, NumberColumns::Random) => &["c1", "c4", "c5", "c6"],
        }
    }

    /// The statements that make the indexes.
    pub(super) fn index_texts(&self) -> impl Iterator<Item = String> {
        let text = |column| format!("create index by_{column} on my_big_table ({column})");
        self.indexed.iter().map(text)
    }

    /// Whether keys are UUIDs; else they are 64-bit numbers.
    pub(super) fn is_uuid(&self) -> bool {
        self.strategy.natural_type() == DataType::Uuid
    }

    /// Whether one statement is a transaction, which needs no BEGIN.
    pub(super) fn is_one_statement(&self) -> bool {
        self.rows_per_statement >= self.rows_per_commit
    }

    /// The INSERT statements of one transaction in a procedure. Ascending keys count up from the
    /// variable `next_key`; else the server makes them where a row is `column`, `value`.
    pub(super) fn procedure_inserts(&self, next_key: &str, column: &str, value: &str) -> String {
        let is_ascending = self.keys == KeySource::Ascending;
        let column = if is_ascending { "c1" } else { column };
        let mut text = String::new();
        let mut before = 0;
        for rows in self.statements() {
            let row = |number: usize| match is_ascending {
                true => format!("({next_key} + {})", before + number),
                false => value.to_owned(),
            };
            let values: Vec<String> = (0..rows).map(row).collect();
            text += &format!("insert into my_big_table ({column}) values {}; ", values.join(", "));
            before += rows;
        }
        text
    }

    /// What the server is told, for the record: the table, and how rows are inserted.
    pub(super) fn texts(
        &self,
        table: impl FnOnce(&Plan) -> String,
        procedure: impl FnOnce(&Plan) -> String,
        insert: impl FnOnce(&Plan, usize) -> String,
    ) -> [(&'static str, String); 2] {
        let inserts = match self.is_loop_in_server {
            true => ("procedure", procedure(self)),
            false => ("statement", insert(self, self.rows_per_statement.min(2))),
        };
        let indexes = self.index_texts();
        let tables: Vec<String> = std::iter::once(table(self)).chain(indexes).collect();
        [("table", tables.join("; ")), inserts]
    }

    /// Statements of so many rows that make up one transaction.
    pub(super) fn statements(&self) -> Vec<usize> {
        let (all, each) = (self.rows_per_commit, self.rows_per_statement.max(1));
        let mut statements = vec![each; all / each];
        statements.extend(Some(all % each).filter(|rest| *rest > 0));
        statements
    }
}

/// Why no server of others can run this case.
pub(super) fn impossible(settings: &Settings) -> Option<String> {
    load_impossible(settings).or_else(|| keys_impossible(settings))
}

/// Why no server at all can run this case.
pub(super) fn load_impossible(settings: &Settings) -> Option<String> {
    if settings.is(Setting::Driver, "tasks") {
        return Some("its driver waits for each commit: a thread for each session".into());
    }
    if !settings.is(Setting::KeySpread, "even") || !settings.mix().is_inserts_only() {
        return Some("a key_spread, reads and updates are measured on embedded targets".into());
    }
    let is_random = settings.number_columns() == NumberColumns::Random;
    if is_random && settings.is(Setting::LoopIn, "server") {
        return Some("random numbers come from the client: put the loop there".into());
    }
    if let Some(reason) = settings.impossible_client() {
        return Some(reason);
    }
    if settings.size(Setting::Sessions) > SESSIONS_MAX {
        return Some(format!("more than {SESSIONS_MAX} sessions are too many for it"));
    }
    if settings.rows_per_statement() > ROWS_PER_STATEMENT_MAX {
        return Some(format!(
            "a statement takes at most {ROWS_PER_STATEMENT_MAX} rows; set rows_per_statement"
        ));
    }
    None
}

/// Why a procedure cannot make the keys of this case.
fn keys_impossible(settings: &Settings) -> Option<String> {
    let plan = Plan::of(settings);
    if plan.keys == KeySource::Ascending
        && !matches!(plan.strategy, KeyStrategy::SessionOffset | KeyStrategy::NodeOffset { .. })
    {
        return Some(format!(
            "its procedures cannot make {} keys; put the loop into the client, or take identity, \
             uuid-v4 or session-offset",
            plan.strategy
        ));
    }
    if let KeyStrategy::NodeOffset { .. } = plan.strategy
        && plan.is_loop_in_server
    {
        return Some(
            "in a procedure all sessions of a node would need one counter; put the loop into the \
             client, or take identity or session-offset"
                .into(),
        );
    }
    None
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn settings(rows_per_commit: u64, rows_per_statement: u64) -> Settings {
        Settings::default()
            .with(Setting::RowsPerCommit, rows_per_commit)
            .with(Setting::RowsPerStatement, rows_per_statement)
    }

    /// The loop in the server, its transactions of two rows and one.
    pub(in super::super) fn in_server_by_twos() -> Plan {
        Plan::of(&settings(3, 2).with(Setting::LoopIn, "server"))
    }

    fn plan(rows_per_commit: u64, rows_per_statement: u64) -> Plan {
        Plan::of(&settings(rows_per_commit, rows_per_statement))
    }

    #[test]
    fn a_transaction_is_cut_into_statements_that_hold_all_its_rows() {
        assert_eq!(plan(1, 0).statements(), [1]);
        assert_eq!(plan(10, 0).statements(), [10]);
        assert_eq!(plan(10, 4).statements(), [4, 4, 2]);
        assert!(plan(10, 0).is_one_statement() && !plan(10, 4).is_one_statement());
    }

    #[test]
    fn keys_that_a_procedure_cannot_make_are_refused_before_the_run_with_the_cure() {
        let server = Settings::default().with(Setting::LoopIn, "server");
        for key in ["identity", "uuid-v4", "session-offset"] {
            assert_eq!(impossible(&server.clone().with(Setting::Key, key)), None, "{key}");
        }
        for key in ["uuid-v7", "bit-reversed", "hash-prefix", "sequential-guid", "node-offset"] {
            let reason = impossible(&server.clone().with(Setting::Key, key)).unwrap();
            assert!(reason.contains("the client"), "{key}: {reason}");
            let client = server.clone().with(Setting::LoopIn, "client").with(Setting::Key, key);
            assert_eq!(impossible(&client), None, "{key}");
        }
    }

    #[test]
    fn random_numbers_come_with_their_key_and_indexes_are_of_them() {
        let random = Settings::default().with(Setting::Columns, "random");
        let indexed = random.clone().with(Setting::Indexes, 2);
        let plan = Plan::of(&indexed.clone().with(Setting::Key, "identity"));
        assert_eq!(plan.sent_columns(), ["c1", "c4", "c5", "c6"]);
        let texts: Vec<String> = plan.index_texts().collect();
        assert_eq!(texts[1], "create index by_c5 on my_big_table (c5)");
        assert_eq!(impossible(&indexed), None);
        let in_server = impossible(&random.with(Setting::LoopIn, "server")).unwrap();
        assert!(in_server.contains("client"), "{in_server}");
        let constant = impossible(&indexed.with(Setting::Columns, "constant")).unwrap();
        assert!(constant.contains("set columns to \"random\""), "{constant}");
    }

    #[test]
    fn what_no_server_can_do_is_refused() {
        let refused = |setting, value: &str| impossible(&Settings::default().with(setting, value));
        assert!(refused(Setting::Driver, "tasks").is_some());
        assert!(impossible(&Settings::default().with(Setting::Sessions, 5_000)).is_some());
        let large = Settings::default().with(Setting::RowsPerCommit, 100_000);
        assert!(impossible(&large).unwrap().contains("rows_per_statement"));
    }
}
