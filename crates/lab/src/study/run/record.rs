//! The command that runs a study again, as results tell it to others.

use std::path::Path;

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
    let words: Vec<String> = arguments.skip(1).map(told).collect();
    format!("onrush {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_tells_nothing_of_the_folders_it_ran_in() {
        let line = "/home/me/target/release/onrush lab run keys --dir /mnt/nvme/scratch --quick \
                    --out=/home/me/results/keys.sqlite --set sessions=8 mine/study.toml";
        let told = command_of(line.split_whitespace().map(String::from));
        let expected = "onrush lab run keys --dir scratch --quick --out=keys.sqlite \
                        --set sessions=8 mine/study.toml";
        assert_eq!(told, expected);
    }
}
