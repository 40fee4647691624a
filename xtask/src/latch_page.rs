//! Rule: every lock that threads can meet at stands in `docs/latches.md`, with its file.

use crate::finding::Finding;
use crate::source::Source;

const PAGE: &str = "docs/latches.md";
/// Where locks are looked for.
const FOLDERS: [&str; 4] =
    ["crates/engine/src/", "crates/log/src/", "crates/latch/src/", "crates/waits/src/"];
const LOCKS: [&str; 7] =
    ["Mutex<", "RwLock<", "Condvar,", "Latch<", "VersionLatch,", "FutexWord>", "CheckpointerCell,"];
/// Real threads or the model checker's: the types that stand for locks, not locks of ours.
const SKIPPED: &str = "src/sync.rs";

/// See the module.
pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let page = sources.iter().find(|source| source.path == PAGE);
    let rows: Vec<&str> =
        page.map_or("", |page| &page.text).lines().filter(|line| line.starts_with('|')).collect();
    let mut findings = Vec::new();
    let in_folders = |path: &str| FOLDERS.iter().any(|folder| path.starts_with(folder));
    for source in sources.iter().filter(|source| in_folders(&source.path)) {
        if !source.is_rust() || source.is_aside() || source.path.ends_with(SKIPPED) {
            continue;
        }
        for (line, name) in locks(source) {
            let start = format!("| `{name}` |");
            // The checkpointer's field is in the engine, its type and its story elsewhere.
            let file = source.path.rsplit('/').next().unwrap_or(&source.path);
            let is_there = rows.iter().any(|row| {
                row.starts_with(&start) && (row.contains(file) || name == "checkpointer")
            });
            if !is_there {
                let message = format!("the lock `{name}` has no row in {PAGE}");
                findings.push(Finding::line(&source.path, line, message));
            }
        }
    }
    findings
}

/// Fields of structs whose type is a lock.
fn locks(source: &Source) -> Vec<(usize, &str)> {
    let field = |code: &'_ str| -> Option<(usize, usize)> {
        let declaration = code.trim_end();
        let (name, kind) = declaration.split_once(": ")?;
        let is_lock = declaration.ends_with(',') && LOCKS.iter().any(|lock| kind.contains(lock));
        let is_value = kind.contains('&') || kind.contains("::new(");
        let name_at = name.rfind(' ').map_or(0, |space| space + 1);
        let is_name = name[name_at..].chars().all(|c| c.is_alphanumeric() || c == '_');
        (is_lock && !is_value && is_name).then_some((name_at, name.len()))
    };
    let lines = source.code_lines();
    lines.filter_map(|(line, code)| field(code).map(|(from, to)| (line, &code[from..to]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str) -> Vec<String> {
        let page =
            "| lock | where |\n|---|---|\n| `state` | [pool.rs](../crates/log/src/pool.rs) |\n";
        let sources = [Source::new(PAGE, page), Source::new("crates/log/src/pool.rs", code)];
        check(&sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_lock_without_a_row_is_found() {
        let code = "struct Pool {\n    state: Mutex<State>, // short\n    \
            pub(crate) other: Mutex<()>,\n    more: Mutex<Vec<(u64, Waker)>>,\n}\n";
        let found = found(code);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("pool.rs:3") && found[0].contains("`other`"), "{found:?}");
    }

    #[test]
    fn parameters_and_values_are_no_locks() {
        assert!(
            found("    list: &Mutex<State>,\n    list: Mutex::new(State::new()),\n").is_empty()
        );
    }
}
