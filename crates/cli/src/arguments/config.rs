//! A file of settings for a command: TOML whose keys are the command's flags.
//!
//! Its settings are put in front of the flags that were typed, so that those win, and clap reads and
//! checks both alike.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Context;
use clap::Command;
use onrush_measure::nearest::most_alike;
use onrush_terminal::failure::usage_error;
use toml::{Table, Value};

/// The words of a command line, `onrush COMMAND ...`, with the settings of the file in it.
pub fn with_file(
    words: &[OsString],
    command: &Command,
    file: &Path,
) -> anyhow::Result<Vec<OsString>> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the settings in {}", file.display()))?;
    let flags = flags(command, &text)
        .map_err(|error| usage_error(format!("{}: {error:#}", file.display())))?;
    let (command, typed) = words.split_at(words.len().min(2));
    Ok(command
        .iter()
        .cloned()
        .chain(flags.into_iter().map(OsString::from))
        .chain(typed.iter().cloned())
        .collect())
}

/// The settings as the flags that mean the same.
fn flags(command: &Command, text: &str) -> anyhow::Result<Vec<String>> {
    let settings: Table = text.parse().context("this is not TOML")?;
    let mut flags = Vec::new();
    for (name, value) in &settings {
        let long = name.replace('_', "-");
        let is_known = |argument: &&clap::Arg| argument.get_long() == Some(long.as_str());
        let Some(argument) = command.get_arguments().find(is_known).filter(|_| long != "config")
        else {
            return Err(anyhow::anyhow!("there is no setting {name}{}", nearest(command, &long)));
        };
        let takes_value = argument.get_action().takes_values();
        match value {
            Value::Boolean(is_set) if !takes_value => {
                flags.extend(is_set.then(|| format!("--{long}")));
            }
            _ if !takes_value => {
                return Err(anyhow::anyhow!(
                    "{name} is true or false, not of type {}",
                    value.type_str()
                ));
            }
            Value::String(text) => flags.push(format!("--{long}={text}")),
            Value::Integer(number) => flags.push(format!("--{long}={number}")),
            other => {
                return Err(anyhow::anyhow!(
                    "{name} is a text or a whole number, not of type {}",
                    other.type_str()
                ));
            }
        }
    }
    Ok(flags)
}

fn nearest(command: &Command, given: &str) -> String {
    match most_alike(given, command.get_arguments().filter_map(clap::Arg::get_long)) {
        Some(name) => format!("; did you mean {}?", name.replace('-', "_")),
        None => format!("; `onrush {} --help` has them all, as flags", command.get_name()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction};

    use super::*;

    fn command() -> Command {
        Command::new("serve")
            .arg(Arg::new("max_connections").long("max-connections"))
            .arg(Arg::new("listen").long("listen"))
            .arg(Arg::new("log_json").long("log-json").action(ArgAction::SetTrue))
    }

    #[test]
    fn settings_are_the_flags_of_the_same_names() {
        let text = "max_connections = 20\nlisten = \"[::1]:5433\"\nlog-json = true\n";
        let found = flags(&command(), text).expect("settings");
        assert_eq!(found, ["--listen=[::1]:5433", "--log-json", "--max-connections=20"]);
        assert!(flags(&command(), "log_json = false").expect("settings").is_empty());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, words) in [
            ("max_connection = 1", "did you mean max_connections?"),
            ("zzz = 1", "`onrush serve --help`"),
            ("log_json = 1", "log_json is true or false, not of type integer"),
            ("listen = [1]", "listen is a text or a whole number"),
            ("listen 5", "not TOML"),
        ] {
            let error = format!("{:#}", flags(&command(), text).expect_err(text));
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn typed_flags_come_behind_those_of_the_file() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "listen = \"a\"").expect("written");
        let words = ["onrush", "serve", "shop", "--listen", "b"].map(OsString::from);
        let all = with_file(&words, &command(), file.path()).expect("words");
        assert_eq!(
            all,
            ["onrush", "serve", "--listen=a", "shop", "--listen", "b"].map(OsString::from)
        );
    }
}
