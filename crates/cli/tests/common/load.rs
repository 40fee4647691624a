//! A load that goes on in a process of its own, until it is interrupted.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use super::{PROGRAM, World};

/// `onrush lab insert`.
pub struct Load {
    child: Child,
    rest: JoinHandle<()>,
}

impl Load {
    /// Starts it in `world`; returns with the first line that holds `words`. What else it tells is read, so that
    /// it is never held up. One that ends before fails with all that it has told.
    pub fn start(world: &World, flags: &[&str], words: &str) -> (Load, String) {
        let mut child = Command::new(PROGRAM)
            .args(["lab", "insert"])
            .args(flags)
            .current_dir(world.path(""))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut told = Vec::new();
        let line = loop {
            match lines.next() {
                Some(line) if line.contains(words) => break line,
                Some(line) => told.push(line),
                None => panic!("no line tells {words:?}, but: {told:#?}"),
            }
        };
        (Load { child, rest: std::thread::spawn(move || lines.for_each(drop)) }, line)
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Presses Ctrl-C and waits; returns the exit code.
    pub fn interrupt(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        self.rest.join().unwrap();
        self.child.wait().unwrap().code()
    }
}
