//! The command that runs a study again, as results tell it to others, and the one that goes on with it.

use std::path::Path;

/// The command that runs studies.
const PROGRAM: &str = "onrush-lab";

/// A command line as it may be published: the program by its name, of paths that begin at the root the
/// last part only. Where they lie is the business of whoever ran it; the device under them is told.
pub fn command_of(arguments: impl Iterator<Item = String>) -> String {
    let told = |argument: String| {
        let (before, path) = match argument.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (format!("{name}="), value.to_owned()),
            _ => (String::new(), argument),
        };
        let last = Path::new(&path).file_name().map(|name| name.to_string_lossy().into_owned());
        match Path::new(&path).is_absolute() {
            true => before + &last.unwrap_or(path),
            false => before + &path,
        }
    };
    let words: Vec<String> = arguments.skip(1).map(told).map(|word| shell_word(&word)).collect();
    format!("{PROGRAM} {}", words.join(" "))
}

/// A word as a shell takes it: in quotes, where it has blanks or letters that mean something there.
pub fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_=./,:+@%".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The words of a command as a shell takes them apart; None where it is no command line.
pub fn words_of(command: &str) -> Option<Vec<String>> {
    shlex::split(command)
}

/// The words of a command of the lab behind its name; None where it is none. Results of before the lab was a
/// command of its own say `onrush lab`.
pub fn words_of_lab(command: &str) -> Option<Vec<String>> {
    let words = words_of(command)?;
    let rest = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [PROGRAM, ..] => 1,
        ["onrush", "lab", ..] => 2,
        _ => return None,
    };
    Some(words[rest..].to_vec())
}

/// What goes on with a study: the command that began it, with the result file and the folder for
/// databases as they are now, since it may tell but the last part of them.
pub(super) fn continuing(command: &str, results: &Path, folder: &Path) -> String {
    let mut kept = vec![PROGRAM.to_owned()];
    let mut words = words_of_lab(command).unwrap_or_default().into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--out" | "--dir" => _ = words.next(),
            "--resume" => {}
            word if word.starts_with("--out=") || word.starts_with("--dir=") => {}
            word => kept.push(shell_word(word)),
        }
    }
    let place = kept.iter().position(|word| word == "run").map_or(kept.len(), |run| run + 1);
    kept.insert(place, "--resume".to_owned());
    // Of all studies the folder is given, not the file of one.
    let is_of_all = kept.iter().any(|word| word == "all");
    let results = results.parent().filter(|_| is_of_all).unwrap_or(results);
    let path = |path: &Path| shell_word(&path.to_string_lossy());
    format!("{} --dir {} --out {}", kept.join(" "), path(folder), path(results))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_tells_nothing_of_the_folders_it_ran_in() {
        let line = "/home/me/target/release/onrush-lab run keys --dir /mnt/nvme/scratch --quick \
                    --out=/home/me/results/keys.sqlite --set sessions=8 mine/study.toml";
        let told = command_of(line.split_whitespace().map(String::from));
        let expected = "onrush-lab run keys --dir scratch --quick --out=keys.sqlite \
                        --set sessions=8 mine/study.toml";
        assert_eq!(told, expected);
    }

    #[test]
    fn words_that_a_shell_would_split_are_quoted() {
        let words = ["onrush-lab", "run", "my study.toml", "--set", "table=bob's.sql", ""];
        let told = command_of(words.map(String::from).into_iter());
        assert_eq!(told, r"onrush-lab run 'my study.toml' --set 'table=bob'\''s.sql' ''");
        assert_eq!(shlex::split(&told).unwrap(), words);
    }

    #[test]
    fn a_study_goes_on_with_its_own_flags_and_the_places_of_now() {
        let begun = "onrush-lab run 'my study.toml' --out r.sqlite --target null --dir=d --quick";
        let told = continuing(begun, Path::new("/results/r.sqlite"), Path::new("my disk"));
        let expected = "onrush-lab run --resume 'my study.toml' --target null --quick \
                        --dir 'my disk' --out /results/r.sqlite";
        assert_eq!(told, expected);
    }
}
