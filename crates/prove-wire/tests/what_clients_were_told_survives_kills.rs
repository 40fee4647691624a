//! Kill -9 of a server's process while clients work: each client's names hold what it was told, by its own record.
//!
//! The same at length: `cargo xtask prove-wire --kill 10000`.

use onrush_prove_wire::kill::Killing;
use onrush_prove_wire::kinds::Kinds;
use onrush_prove_wire::summary::Summary;

#[test]
fn what_clients_were_told_is_there_after_kills() {
    let killing = Killing {
        program: env!("CARGO_BIN_EXE_onrush-prove-wire").into(),
        arguments: vec!["--serve".into()],
        between: Vec::new(),
        kinds: Kinds::all(),
        seed: 1,
    };
    let mut summary = Summary::default();
    if let Err(violation) = killing.run(40, None, &mut summary, |_| {}) {
        panic!("{}", violation.0);
    }
    println!("{summary}");
    assert!(summary.kills >= 40 && summary.statements > 200);
}
