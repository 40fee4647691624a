//! Every kept input, and some made from them, are read or refused: no panic, and the reader goes on.
//! For longer: `cargo run -p onrush-fuzz --release -- run --seconds 600`.

#![allow(clippy::unwrap_used)]

use onrush_fuzz::{TARGETS, kept, mutate, target};
use onrush_sim::Random;

/// Inputs made for each reader.
const MADE: u64 = 300;

fn read_all(name: &str) {
    let target = target(name).unwrap();
    let inputs = kept(&target).unwrap();
    assert!(inputs.len() >= 2, "{name} has {} inputs", inputs.len());
    for (file, input) in &inputs {
        println!("{name}/{file}");
        (target.read)(input);
    }
    let inputs: Vec<Vec<u8>> = inputs.into_iter().map(|(_, input)| input).collect();
    let mut random = Random::new(20_261_121);
    for number in 0..MADE {
        let input = mutate::mutated(&inputs, &mut random);
        println!("{name}, made input {number}: {} bytes", input.len());
        (target.read)(&input);
    }
}

#[test]
fn superblocks() {
    read_all("superblock");
}

#[test]
fn roots() {
    read_all("root");
}

#[test]
fn directory_segments() {
    read_all("directory");
}

#[test]
fn images() {
    read_all("image");
}

#[test]
fn log_blocks() {
    read_all("log_block");
}

#[test]
fn files_to_import() {
    read_all("import_csv");
    read_all("import_json");
}

#[test]
fn studies() {
    read_all("study");
}

#[test]
fn what_clients_send() {
    read_all("wire_before_start");
    read_all("wire_after_start");
}

#[test]
fn every_reader_is_here() {
    let source = include_str!("kept_inputs_are_read.rs");
    for target in TARGETS {
        assert!(source.contains(&format!("read_all(\"{}\")", target.name)), "{}", target.name);
    }
}
