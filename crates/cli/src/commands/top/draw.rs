//! One picture of a running database, readable from 80 columns and 24 lines on.

use std::time::Duration;

use onrush::{CheckpointStage, LiveSummary, Rates, RecorderKind};
use onrush_measure::units::{bytes, elapsed, rounded, rounded_if_any};
use onrush_watch::View;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Gauge, Paragraph, Sparkline};

/// Waits that are shown, and sessions at least.
const WAITS: u16 = 6;

/// What a session is called has so many columns in 80, and all that the others leave in more.
const TITLE_COLUMNS: usize = 18;
const OTHER_COLUMNS: usize = 60;

/// Draws what happened from `before` to `now`.
pub fn draw(frame: &mut Frame<'_>, folder: &str, before: &View, now: &View) {
    let rates = match now.statistics.elapsed_nanos > before.statistics.elapsed_nanos {
        true => now.statistics.since(&before.statistics).rates(),
        false => now.statistics.rates(), // the first picture, or somebody has reset the statistics
    };
    let [head, figures, graph, waits, sessions, checkpoint] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(2),
        Constraint::Length(3),
        Constraint::Length(WAITS + 1),
        Constraint::Min(4),
        Constraint::Length(2),
    ])
    .areas(frame.area());
    draw_head(frame, head, folder, now);
    draw_figures(frame, figures, &rates);
    draw_graph(frame, graph, now);
    draw_waits(frame, waits, &rates);
    draw_sessions(frame, sessions, before, now);
    draw_checkpoint(frame, checkpoint, &rates, now);
}

fn titled(title: String) -> Block<'static> {
    let style = Style::new().add_modifier(Modifier::BOLD);
    Block::new().borders(Borders::TOP).title(Span::styled(title, style))
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, folder: &str, now: &View) {
    let up = elapsed(Duration::from_nanos(now.statistics.elapsed_nanos));
    let head = format!(" onrush top   {folder}   process {}   {up}   q quits", now.process);
    let style = Style::new().add_modifier(Modifier::REVERSED);
    frame.render_widget(Paragraph::new(head).style(style), area);
}

fn draw_figures(frame: &mut Frame<'_>, area: Rect, rates: &Rates) {
    let first = format!(
        " {} rows/s   {} commits/s   {} commits/sync   {} MB/s log",
        rounded(rates.rows),
        rounded(rates.commits),
        rounded_if_any(rates.commits_per_sync),
        rounded(rates.log_bytes / 1e6)
    );
    let second = format!(
        " log write {} us, p99 {} us   queue {}   {} pages/s   {} evictions/s",
        rounded_if_any(rates.log_write_us),
        rounded_if_any(rates.log_write_p99_us),
        rates.log_queue,
        rounded(rates.pages_allocated),
        rounded(rates.evictions)
    );
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let lines = vec![Line::styled(first, bold), Line::raw(second)];
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_graph(frame: &mut Frame<'_>, area: Rect, now: &View) {
    let shown = usize::from(area.width);
    let from = now.history.len().saturating_sub(shown);
    let rows: Vec<u64> = now.history[from..].iter().map(|rates| rates.rows as u64).collect();
    let most = rounded(rows.iter().copied().max().unwrap_or(0) as f64);
    let title = format!(" rows/s of the last {} s, at most {most} ", rows.len());
    let graph = Sparkline::default().data(&rows).style(Style::new().fg(Color::Green));
    frame.render_widget(graph.block(titled(title)), area);
}

fn draw_waits(frame: &mut Frame<'_>, area: Rect, rates: &Rates) {
    let all: f64 = rates.waits.iter().map(|wait| wait.sessions).sum();
    let space = usize::from(area.width).saturating_sub(60);
    let line = |wait: &onrush::WaitRate| {
        let share = if all > 0.0 { wait.sessions / all } else { 0.0 };
        let bar = "█".repeat((share * space as f64).round() as usize);
        Line::from(vec![
            Span::raw(format!(
                " {:20} {:>8} sessions {:>9}/s {:>4.0} %  ",
                wait.wait.name(),
                rounded(wait.sessions),
                rounded(wait.count),
                share * 100.0
            )),
            Span::styled(bar, Style::new().fg(Color::Yellow)),
        ])
    };
    let mut lines: Vec<Line<'_>> = rates.waits.iter().take(WAITS.into()).map(line).collect();
    if lines.is_empty() {
        lines.push(Line::raw(" nobody waited"));
    }
    let title = format!(" waits: {} sessions on average ", rounded(all));
    frame.render_widget(Paragraph::new(lines).block(titled(title)), area);
}

/// The beginning of a text that is too long.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

fn draw_sessions(frame: &mut Frame<'_>, area: Rect, before: &View, now: &View) {
    let nanos = now.statistics.elapsed_nanos.saturating_sub(before.statistics.elapsed_nanos);
    let seconds = (nanos as f64 / 1e9).max(1e-9);
    let calls = |one: &LiveSummary| {
        let earlier = before.sessions.iter().find(|other| other.id == one.id);
        (one.calls - earlier.map_or(0, |earlier| earlier.calls).min(one.calls)) as f64 / seconds
    };
    let mut all: Vec<&LiveSummary> = now.sessions.iter().collect();
    // Sessions first, those that wait before the others.
    all.sort_by_key(|one| (one.kind != RecorderKind::Session, one.waits_now.is_none(), one.id));
    let title_columns = usize::from(area.width).saturating_sub(OTHER_COLUMNS).max(TITLE_COLUMNS);
    let line = |one: &&LiveSummary| {
        let longest = one.waits.iter().max_by_key(|total| total.nanos);
        let longest = longest.map_or("-", |total| total.wait.name());
        let calls = match one.kind {
            RecorderKind::Session => rounded(calls(one)),
            RecorderKind::Background => String::new(),
        };
        let now = one.waits_now.map_or("-", |wait| wait.name());
        let title = cut(&one.title(), title_columns);
        let number = one.id;
        Line::raw(format!(" {number:>6} {title:title_columns$} {now:20} {calls:>8} {longest:20}"))
    };
    let waiting = all.iter().filter(|one| one.waits_now.is_some()).count();
    let title = format!(" {} sessions and threads, {waiting} wait now ", all.len());
    let head = format!(
        " {:>6} {:title_columns$} {:20} {:>8} {:20}",
        "number", "name", "waits now for", "calls/s", "waited most for"
    );
    let mut lines = vec![Line::styled(head, Style::new().add_modifier(Modifier::DIM))];
    lines.extend(all.iter().take(usize::from(area.height).saturating_sub(2)).map(line));
    frame.render_widget(Paragraph::new(lines).block(titled(title)), area);
}

fn draw_checkpoint(frame: &mut Frame<'_>, area: Rect, rates: &Rates, now: &View) {
    let checkpoint = &rates.checkpoint;
    let (in_use, capacity) = now.statistics.log_space_bytes;
    let title = format!(" checkpoint   log in use {} of {} ", bytes(in_use), bytes(capacity));
    let done = checkpoint.written as f64 / checkpoint.leaves.max(1) as f64;
    let (ratio, label) = match checkpoint.stage {
        CheckpointStage::None => (0.0, "none is being taken".to_owned()),
        CheckpointStage::WriteBack => {
            let pages = rounded(rates.checkpoint_pages);
            (done, format!("{} of {}, {pages} pages/s", checkpoint.written, checkpoint.leaves))
        }
        CheckpointStage::Walk => (1.0, "directory".to_owned()),
        CheckpointStage::Install => (1.0, "making it durable".to_owned()),
    };
    let gauge = Gauge::default().ratio(ratio.clamp(0.0, 1.0)).label(label);
    let gauge = gauge.gauge_style(Style::new().fg(Color::Blue));
    frame.render_widget(gauge.block(titled(title)), area);
}

#[cfg(test)]
mod tests {
    use onrush::{ColumnDefinition, DataType, Database, Options, TableDefinition};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    /// The picture as text, line by line.
    fn picture(width: u16, height: u16) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let database = Database::create(folder.path(), Options::small()).expect("a database");
        let id = ColumnDefinition::new("id", DataType::Int64).not_null();
        let table = TableDefinition::builder("t").column(id).primary_key(["id"]);
        let table = database.create_table(table.build().expect("a table")).expect("created");
        let before = View::of(&database);
        let mut session = database.session().expect("a session");
        let client = onrush::SessionClient {
            application: "till 3".to_owned(),
            user: "cashier".to_owned(),
            address: "10.0.0.7:5000".to_owned(),
        };
        database.set_session_client(session.id(), client);
        for id in 0..100i64 {
            session.insert(&table, &[id.into()]).expect("inserted");
        }
        let now = View::of(&database);
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(frame, "shop", &before, &now)).expect("drawn");
        let buffer = terminal.backend().buffer().clone();
        let lines = buffer.content().chunks(usize::from(width));
        lines.map(|line| line.iter().map(|case| case.symbol()).collect()).collect()
    }

    #[test]
    fn every_panel_is_readable_in_80_columns() {
        let lines = picture(80, 24);
        for words in [
            "onrush top",
            "q quits",
            "rows/s",
            "commits/sync",
            "MB/s log",
            "log write",
            "WRITELOG",
            "waits now for",
            "waited most for",
            "till 3 cashier@10.0…",
            "checkpoint",
            "none is being taken",
        ] {
            assert!(lines.iter().any(|line| line.contains(words)), "{words} in {lines:#?}");
        }
    }

    #[test]
    fn a_wide_terminal_shows_whose_each_session_is() {
        let lines = picture(100, 24);
        let title = "till 3 cashier@10.0.0.7:5000";
        assert!(lines.iter().any(|line| line.contains(title)), "{lines:#?}");
    }

    #[test]
    fn a_tiny_terminal_is_no_error() {
        assert_eq!(picture(20, 5).len(), 5);
    }
}
