//! What is typed wrongly is told with what is right, and every command shows how it is used.

#![allow(clippy::unwrap_used)]

mod command;

use command::World;

fn refused(world: &World, arguments: &[&str], words: &[&str]) {
    let ran = world.run(arguments);
    assert_eq!(ran.code, 2, "{arguments:?}: {}{}", ran.out, ran.err);
    for word in words {
        assert!(ran.err.contains(word), "{arguments:?}: {word}: {}", ran.err);
    }
}

#[test]
fn a_table_that_cannot_be_advised_on() {
    let world = World::new();
    world.write("keyless.sql", "CREATE TABLE t (id int, note text);");
    world.write("short.csv", "id,note\n1\n");
    refused(&world, &["advise", "none.sql"], &["none.sql", "cannot read the table"]);
    refused(&world, &["advise", "keyless.sql"], &["keyless.sql", "PRIMARY KEY"]);
    refused(&world, &["advise", "--sample", "short.csv"], &["row 1 has 1 columns"]);
    refused(&world, &["advise", "--target", "onrus"], &["onrus", "onrush"]);
}

#[test]
fn what_cannot_be_measured_is_told_before_anything_is_measured_or_written() {
    let world = World::new();
    world.write("old.sqlite", "");
    let all: [(&[&str], &str); 4] = [
        (&["--set", "rows=0"], "rows is"),
        (&["--out", "old.sqlite"], "--resume"),
        (&["--out", "new/r.sqlite"], "no folder new"),
        (&["--metrics", "127.0.0.1:0"], "give a port"),
    ];
    for (arguments, words) in all {
        let ran = world.run(&[&["run", "keys", "--dir", "new"], arguments].concat());
        assert!(matches!(ran.code, 1 | 2), "{arguments:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(words), "{arguments:?}: {}", ran.err);
        assert!(!ran.err.contains("measuring"), "{arguments:?}: {}", ran.err);
        assert_eq!(world.list(), ["old.sqlite"], "{arguments:?}");
    }
}

#[test]
fn every_command_has_examples() {
    let world = World::new();
    let commands = ["run", "run challenge", "list", "show", "report", "compare", "advise", ""];
    for command in commands {
        let help = world.ok(&command.split_whitespace().chain(["--help"]).collect::<Vec<_>>());
        assert!(help.contains("Examples:\n  onrush-lab "), "{command:?}\n{help}");
    }
}
