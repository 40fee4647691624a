//! `onrush top`: a running database, live.

mod draw;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use onrush_terminal::failure::{Outcome, usage_error};
use onrush_watch::{View, WatchError, look};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

/// Watch a running database: rates, waits, sessions, checkpoint; q quits
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Top {
    /// The database's folder
    folder: PathBuf,
    /// Milliseconds from one look to the next
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(100..=60_000))]
    every: u64,
}

const EXAMPLES: &str = "\
Examples:
  onrush lab run singleton --dir /mnt/nvme/test --keep &
  onrush top /mnt/nvme/test";

/// Shows the database until q is pressed or it is gone.
pub fn run(arguments: &Top) -> Outcome {
    if !std::io::stdout().is_terminal() {
        return Err(usage_error("top needs a terminal; for a file or a pipe use `onrush stats`"));
    }
    let first = look(&arguments.folder)?;
    let mut terminal = ratatui::try_init()?;
    let outcome = watch(arguments, first, &mut terminal);
    ratatui::try_restore()?;
    if outcome? == End::Gone {
        println!("The process that had the database open has closed it.");
    }
    Ok(())
}

/// Why it ended.
#[derive(PartialEq, Eq)]
enum End {
    Quit,
    Gone,
}

fn watch(
    arguments: &Top,
    first: View,
    terminal: &mut ratatui::DefaultTerminal,
) -> anyhow::Result<End> {
    let folder = arguments.folder.display().to_string();
    let every = Duration::from_millis(arguments.every);
    let (mut before, mut now) = (first.clone(), first);
    loop {
        terminal.draw(|frame| draw::draw(frame, &folder, &before, &now))?;
        let due = Instant::now() + every;
        while let Some(left) = due.checked_duration_since(Instant::now()) {
            if event::poll(left)? && quits(&event::read()?) {
                return Ok(End::Quit);
            }
            terminal.draw(|frame| draw::draw(frame, &folder, &before, &now))?;
        }
        let later = match look(&arguments.folder) {
            Err(WatchError::NotServed { .. }) => return Ok(End::Gone),
            later => later?,
        };
        before = std::mem::replace(&mut now, later);
    }
}

fn quits(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let interrupts =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    let quits = matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) || interrupts;
    key.kind == KeyEventKind::Press && quits
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::KeyEvent;

    use super::*;

    fn key(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    #[test]
    fn q_escape_and_control_c_quit_and_nothing_else_does() {
        let none = KeyModifiers::NONE;
        for (code, modifiers, expected) in [
            (KeyCode::Char('q'), none, true),
            (KeyCode::Esc, none, true),
            (KeyCode::Char('c'), KeyModifiers::CONTROL, true),
            (KeyCode::Char('c'), none, false),
            (KeyCode::Char('x'), none, false),
            (KeyCode::Enter, none, false),
        ] {
            assert_eq!(quits(&Event::Key(key(code, modifiers))), expected, "{code:?}");
        }
        let released = KeyEvent { kind: KeyEventKind::Release, ..key(KeyCode::Char('q'), none) };
        assert!(!quits(&Event::Key(released)));
        assert!(!quits(&Event::Resize(80, 24)));
    }
}
