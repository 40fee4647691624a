//! Settings that are known by name and mean nothing else here: those that stand, those that clients set for themselves,
//! and those with a few values.

use crate::sql::DEFAULT_PATH;

/// What cannot be changed, and what it is.
pub(super) const FIXED: &[(&str, &str)] = &[
    ("integer_datetimes", "on"),
    ("in_hot_standby", "off"),
    // JDBC asks for it before it looks for foreign keys.
    ("max_index_keys", "32"),
    // Drivers ask for it before they try PREPARE TRANSACTION, which there is none of.
    ("max_prepared_transactions", "0"),
    ("server_encoding", "UTF8"),
    ("server_version", "15.0"),
    ("server_version_num", "150000"),
];

/// What clients set for themselves and no answer depends on.
pub(super) const NOTED: &[(&str, &str)] = &[
    ("application_name", ""),
    // Who waits in a circle is found when the last of them begins to wait.
    ("deadlock_timeout", "1s"),
    ("jit", "off"),
    ("row_security", "off"),
    ("search_path", DEFAULT_PATH),
];

/// What can be set to some values only: those that say what is done, in lower case and as they are shown, the default
/// first. Any other would change answers, and is refused.
pub(super) const CHOICES: &[(&str, &[(&str, &str)])] = &[
    ("backslash_quote", &[("safe_encoding", "safe_encoding")]),
    (
        "client_min_messages",
        &[
            ("notice", "notice"),
            ("debug5", "debug5"),
            ("debug4", "debug4"),
            ("debug3", "debug3"),
            ("debug2", "debug2"),
            ("debug1", "debug1"),
            ("debug", "debug2"),
            ("log", "log"),
            ("warning", "warning"),
            ("error", "error"),
        ],
    ),
    // There are no inherited tables that it could leave out.
    ("constraint_exclusion", &[("partition", "partition"), ("on", "on"), ("off", "off")]),
    // What dumps name is what there is here in its place.
    ("default_table_access_method", &[("heap", "heap"), ("onrush", "heap")]),
    ("default_tablespace", &[("", "")]),
    // Only what a serializable transaction waits for hangs on it.
    (
        "default_transaction_deferrable",
        &[("off", "off"), ("on", "on"), ("false", "off"), ("true", "on")],
    ),
    ("default_toast_compression", &[("pglz", "pglz"), ("lz4", "lz4")]),
    // Where a query runs changes nothing of its answer.
    (
        "force_parallel_mode",
        &[
            ("off", "off"),
            ("on", "on"),
            ("regress", "regress"),
            ("0", "off"),
            ("1", "on"),
            ("false", "off"),
            ("true", "on"),
        ],
    ),
    ("lc_messages", &[("c", "C")]),
    ("lc_monetary", &[("c", "C")]),
    ("lc_numeric", &[("c", "C")]),
    ("lc_time", &[("c", "C")]),
    // psql's \password asks for it, and makes the verifier itself.
    ("password_encryption", &[("scram-sha-256", "scram-sha-256")]),
    ("standard_conforming_strings", &[("on", "on"), ("true", "on"), ("yes", "on"), ("1", "on")]),
    // Of XML, which there is none of.
    ("xmloption", &[("content", "content"), ("document", "document")]),
];
