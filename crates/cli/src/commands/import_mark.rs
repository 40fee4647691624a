//! The mark of an import that runs, in the database's folder: which one, and where to go on if it is cut off.
//!
//! The database is whole all the time, each row of the import is there or not; but nothing else would tell that rows
//! are missing. So the mark keeps nobody out: the next import tells of it, and so do `onrush check` and `onrush serve`.
//! The file is described in docs/data-file.md.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const NAME: &str = "import.unfinished";
const FIRST_LINE: &str = "onrush unfinished import 1";
/// Between two times that the mark is written.
const WRITTEN_EVERY: Duration = Duration::from_secs(1);

/// See the module.
pub struct Mark {
    path: PathBuf,
    table: String,
    from: String,
    written: Option<Instant>,
}

/// An import that was cut off.
pub struct Unfinished {
    path: PathBuf,
    table: String,
    from: String,
    next_line: String,
    command: String,
}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Unfinished { path, table, from, next_line, command } = self;
        let path = path.display();
        write!(
            formatter,
            "an import of {from} into table {table} was cut off: what is in front of line {next_line} is there, what \
             is behind may be. To go on: {command} (--upsert, where the rows have keys of their own); or remove {path}"
        )
    }
}

impl Mark {
    /// For an import into a table of the database in `folder`. Nothing is written yet.
    pub fn new(folder: &Path, table: &str, from: &str) -> Mark {
        let (path, written) = (folder.join(NAME), None);
        Mark { path, table: table.to_owned(), from: from.to_owned(), written }
    }

    /// What an earlier import has left.
    pub fn earlier(&self) -> Option<Unfinished> {
        read(&self.path)
    }

    /// The import is so far; written now and then.
    pub fn advance(&mut self, next_line: u64) {
        if self.written.is_none_or(|written| written.elapsed() >= WRITTEN_EVERY) {
            self.write(next_line);
            self.written = Some(Instant::now());
        }
    }

    /// Writes it. That it cannot be written is no reason to import nothing.
    pub fn write(&self, next_line: u64) {
        let Mark { path, table, from, written: _ } = self;
        let command = command_from(next_line);
        let text = format!(
            "{FIRST_LINE}\ntable: {table}\nfrom: {from}\nnext line: {next_line}\ngo on: {command}\n"
        );
        // Whole or not at all: the old one counts until the new one is there.
        let temporary = path.with_extension("new");
        let written = std::fs::write(&temporary, text);
        let _ = written.and_then(|()| std::fs::rename(&temporary, path));
    }

    /// The import has come to the end of its input.
    pub fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// An import into a table of the database in `folder` that was cut off, if there was one.
pub fn unfinished(folder: &Path) -> Option<Unfinished> {
    read(&folder.join(NAME))
}

fn read(path: &Path) -> Option<Unfinished> {
    let text = std::fs::read_to_string(path).ok()?;
    let field = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or("?").to_owned()
    };
    Some(Unfinished {
        path: path.to_owned(),
        table: field("table: "),
        from: field("from: "),
        next_line: field("next line: "),
        command: field("go on: "),
    })
}

/// This process's command, from another line on.
pub fn command_from(next_line: u64) -> String {
    let words = std::env::args().skip(1);
    let mut kept = vec!["onrush".to_owned()];
    let mut is_value = false;
    for word in words {
        if std::mem::take(&mut is_value) || word.starts_with("--from-line=") {
            continue;
        }
        match word.as_str() {
            "--from-line" => is_value = true,
            _ => kept.push(quoted(&word)),
        }
    }
    kept.push(format!("--from-line {next_line}"));
    kept.join(" ")
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        let quoted = ["a.csv", "two words", "it's", ""].map(quoted);
        assert_eq!(quoted, ["a.csv", "'two words'", "'it'\\''s'", "''"]);
    }

    #[test]
    fn a_mark_tells_where_to_go_on_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut mark = Mark::new(folder.path(), "orders", "orders.csv");
        assert!(mark.earlier().is_none());
        mark.advance(1025);
        mark.advance(2049);
        let told = unfinished(folder.path()).unwrap().to_string();
        assert!(
            told.contains("orders.csv into table orders") && told.contains("line 1025"),
            "{told}"
        );
        mark.write(3073);
        assert!(mark.earlier().unwrap().to_string().contains("--from-line 3073"));
        mark.remove();
        assert!(unfinished(folder.path()).is_none());
    }
}
