//! Which program measures: its version, and its build, of which there are many under one version.

use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;

use xxhash_rust::xxh3::Xxh3;

/// The program that runs, by its number also when another one has taken its name meanwhile.
const RUNNING: &str = "/proc/self/exe";
/// So much of it is read at a time.
const READ_BYTES: usize = 1 << 20;

/// The commit that the program was built from, where whoever built it says so.
const COMMIT: Option<&str> = option_env!("ONRUSH_COMMIT");

/// The version, the beginning of a hash of the running program, and the commit if it is known:
/// `0.1.0 (build 1f3a9c04, commit be14dfb)`. Without the build where the program cannot be read.
pub(crate) fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let build = File::open(RUNNING).and_then(hash).ok();
        shown(build.map(|hash| format!("{hash:016x}")).as_deref(), COMMIT)
    })
}

fn shown(build: Option<&str>, commit: Option<&str>) -> String {
    let build = build.map(|hash| format!("build {}", &hash[..8]));
    let commit = commit.map(|commit| format!("commit {commit}"));
    let told: Vec<String> = build.into_iter().chain(commit).collect();
    let number = env!("CARGO_PKG_VERSION");
    if told.is_empty() { number.to_owned() } else { format!("{number} ({})", told.join(", ")) }
}

fn hash(mut program: impl Read) -> io::Result<u64> {
    let (mut hash, mut buffer) = (Xxh3::new(), vec![0; READ_BYTES]);
    loop {
        match program.read(&mut buffer) {
            Ok(0) => return Ok(hash.digest()),
            Ok(length) => hash.update(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_named_by_eight_digits_that_stay() {
        let told = version();
        let digits = told.split_once(" (build ").map(|(_, rest)| &rest[..8]).unwrap();
        assert!(digits.chars().all(|one| one.is_ascii_hexdigit()), "{told}");
        let again = hash(File::open(RUNNING).unwrap()).unwrap();
        assert!(format!("{again:016x}").starts_with(digits));
    }

    #[test]
    fn the_version_names_the_commit_where_the_build_was_told_it() {
        let (build, number) = (Some("1f3a9c04aaaaaaaa"), env!("CARGO_PKG_VERSION"));
        let expected = format!("{number} (build 1f3a9c04, commit be14dfb)");
        assert_eq!(shown(build, Some("be14dfb")), expected);
        assert_eq!(shown(build, None), format!("{number} (build 1f3a9c04)"));
        assert_eq!(shown(None, None), number);
    }

    #[test]
    fn programs_that_differ_in_one_byte_are_different_builds() {
        let mut program = vec![7_u8; 3 * READ_BYTES + 1];
        let before = hash(&program[..]).unwrap();
        program[2 * READ_BYTES] = 8;
        assert_ne!(hash(&program[..]).unwrap(), before);
    }
}
