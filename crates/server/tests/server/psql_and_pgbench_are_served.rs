//! The programs that come with PostgreSQL, where they are installed.

use std::process::{Command, Output};

use crate::common::World;

/// Runs a program against the server; none if there is no such program.
fn run(world: &World, program: &str, arguments: &[&str]) -> Option<Output> {
    let port = world.address.port().to_string();
    let run = Command::new(program)
        .args(["-h", "127.0.0.1", "-p", &port, "-U", "test"])
        .args(arguments)
        .env_remove("PGOPTIONS")
        .output();
    match run {
        Ok(output) => Some(output),
        Err(_) => {
            eprintln!("{program} is not installed: nothing was tested");
            None
        }
    }
}

#[test]
fn psql_creates_inserts_and_selects() {
    let world = World::new();
    let script = [
        "-X",
        "-A",
        "-t",
        "-v",
        "ON_ERROR_STOP=1",
        "-d",
        "onrush",
        "-c",
        "CREATE TABLE orders (id bigserial PRIMARY KEY, note text, at timestamptz DEFAULT now())",
        "-c",
        "INSERT INTO orders (note) VALUES ('first'), ('second')",
        "-c",
        "SELECT note FROM orders WHERE note <> 'second'",
        "-c",
        "\\copy orders (note) TO STDOUT",
        "-c",
        "SELECT count(*) FROM onrush.wait_stats WHERE count > 0",
    ];
    let Some(output) = run(&world, "psql", &script) else { return };
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{error}");
    assert!(out.starts_with("CREATE TABLE\nINSERT 0 2\nfirst\nfirst\nsecond\n"), "{out}{error}");
}

#[test]
fn pgbench_inserts_with_prepared_statements() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new();
    let create =
        "CREATE TABLE events (id bigint PRIMARY KEY DEFAULT session_offset(), kind int, note text)";
    let Some(created) = run(&world, "psql", &["-X", "-d", "onrush", "-c", create]) else { return };
    assert!(created.status.success(), "{created:?}");
    let script = folder.path().join("insert.sql");
    std::fs::write(
        &script,
        "\\set kind random(1, 10)\nINSERT INTO events (kind, note) VALUES (:kind, 'note');\n",
    )
    .unwrap();
    let script = script.display().to_string();
    let arguments =
        ["-n", "-M", "prepared", "-c", "8", "-j", "2", "-t", "50", "-f", &script, "onrush"];
    let Some(bench) = run(&world, "pgbench", &arguments) else { return };
    let out = String::from_utf8_lossy(&bench.stdout);
    assert!(bench.status.success() && out.contains("400/400"), "{bench:?}");
    let count = ["-X", "-A", "-t", "-d", "onrush", "-c", "SELECT count(*) FROM events"];
    let counted = run(&world, "psql", &count).unwrap();
    assert_eq!(String::from_utf8_lossy(&counted.stdout), "400\n");
}

/// Creates its tables without keys, fills them in a transaction, and adds the keys.
#[test]
fn pgbench_sets_up_and_runs_its_own_scripts() {
    let world = World::with_space();
    let Some(made) = run(&world, "pgbench", &["-i", "onrush"]) else { return };
    assert!(made.status.success(), "{made:?}");
    for script in ["tpcb-like", "simple-update", "select-only"] {
        // As often as it takes: who changes a row that somebody has changed meanwhile begins again.
        let tries = ["--max-tries", "10000", "-n", "-c", "4", "-j", "2", "-t", "10"];
        let bench =
            run(&world, "pgbench", &[&tries[..], &["-b", script, "onrush"]].concat()).unwrap();
        let out = String::from_utf8_lossy(&bench.stdout);
        assert!(bench.status.success() && out.contains("40/40"), "{bench:?}");
    }
    let sums = "SELECT (SELECT sum(delta) FROM pgbench_history) = (SELECT sum(abalance) FROM pgbench_accounts), \
                (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(tbalance) FROM pgbench_tellers), \
                (SELECT count(*) FROM pgbench_history)";
    let told = run(&world, "psql", &["-X", "-A", "-t", "-d", "onrush", "-c", sums]).unwrap();
    assert_eq!(String::from_utf8_lossy(&told.stdout), "t|t|80\n", "{told:?}");
}
