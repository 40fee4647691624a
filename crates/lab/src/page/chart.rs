//! Charts as SVG text: drawn here, read by any browser, without a script.
//!
//! [`bars`] draws a bar for each value, [`lines`] a line for each series, [`curve`] one counter over time. Text in a
//! picture that shrinks becomes unreadable, so that bars and lines are drawn twice, for wide and for narrow windows,
//! and the style sheet shows one of them.
//!
//! Invariants
//! 1. No two texts of a chart overlap: space is kept by [`text_width`], an estimate that is wide
//!    enough for every common font.
//! 2. Every chart has a title and a description for those who do not see it.

use maud::{Markup, PreEscaped, html};

/// Size of ordinary text, in pixels.
const TEXT_PX: f64 = 12.0;

/// For which window a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layout {
    width: f64,
    is_narrow: bool,
}

/// A desk.
const WIDE: Layout = Layout { width: 880.0, is_narrow: false };
/// A phone.
const NARROW: Layout = Layout { width: 350.0, is_narrow: true };

/// A drawing and its height.
pub(super) struct Drawing {
    height: f64,
    content: Markup,
}

/// What a chart says in words.
pub(super) struct Words {
    /// Unique on the page.
    pub(super) id: String,
    pub(super) title: String,
    pub(super) description: String,
}

/// The wide chart as a picture file of its own, with the style sheet of the page.
pub(super) fn file(words: &Words, style: &str, draw: impl Fn(&Layout) -> Drawing) -> Markup {
    let drawing = draw(&WIDE);
    let (width, height) = (px(WIDE.width), px(drawing.height));
    html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width} {height}"))
            width=(width) height=(height) {
            style { (PreEscaped(style)) }
            rect width="100%" height="100%" fill="var(--paper)" {}
            (picture(words, "f", WIDE.width, &drawing))
        }
    }
}

/// A chart for both windows.
pub(super) fn both(words: &Words, draw: impl Fn(&Layout) -> Drawing) -> Markup {
    html! {
        div.wide { (picture(words, "w", WIDE.width, &draw(&WIDE))) }
        div.narrow { (picture(words, "n", NARROW.width, &draw(&NARROW))) }
    }
}

/// A drawing with its words.
fn picture(words: &Words, suffix: &str, width: f64, drawing: &Drawing) -> Markup {
    let (title, about) =
        (format!("{}-{suffix}-title", words.id), format!("{}-{suffix}-about", words.id));
    html! {
        svg role="img" aria-labelledby=(format!("{title} {about}"))
            viewBox=(format!("0 0 {} {}", px(width), px(drawing.height)))
            width=(px(width)) height=(px(drawing.height)) {
            title id=(title) { (words.title) }
            desc id=(about) { (words.description) }
            (drawing.content)
        }
    }
}

/// The values of an axis.
struct Scale {
    ticks: Vec<f64>,
    is_log: bool,
}

impl Scale {
    /// From 0 to at least `most`.
    fn to(most: f64, count: usize) -> Scale {
        Scale { ticks: ticks(most, count), is_log: false }
    }

    /// Around these values: of powers, where they are far apart.
    fn around(values: impl Iterator<Item = f64>) -> Scale {
        const LINEAR_RATIO_MAX: f64 = 30.0;
        let (least, most) = values
            .filter(|value| *value > 0.0)
            .fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
                (least.min(value), most.max(value))
            });
        if most == 0.0 || most / least <= LINEAR_RATIO_MAX {
            return Scale::to(most, 5);
        }
        let (from, to) = (least.log10().floor() as i32, most.log10().ceil() as i32);
        Scale { ticks: (from..=to).map(|power| 10_f64.powi(power)).collect(), is_log: true }
    }

    fn low(&self) -> f64 {
        self.ticks.first().copied().unwrap_or(0.0)
    }

    fn high(&self) -> f64 {
        self.ticks.last().copied().unwrap_or(1.0)
    }

    /// Where a value lies, from 0 to 1.
    fn part(&self, value: f64) -> f64 {
        let (low, high) = (self.low(), self.high());
        let part = match self.is_log {
            true => (value.max(low) / low).ln() / (high / low).ln(),
            false => (value - low) / (high - low),
        };
        part.clamp(0.0, 1.0)
    }
}

/// One bar, or one point of a line.
pub(super) struct Mark {
    /// What it is called: of a point, its line.
    pub(super) label: String,
    /// Its class in the style sheet, which gives it its colour.
    pub(super) class: String,
    pub(super) value: f64,
    pub(super) confidence: Option<(f64, f64)>,
    /// Stands behind the value: "not synchronous".
    pub(super) flag: &'static str,
    /// Shown to who points at it.
    pub(super) hint: String,
}

impl Mark {
    fn text(&self) -> String {
        [&compact(self.value), self.flag].join(" ").trim_end().to_owned()
    }
}

/// The marks of one value of the axis.
pub(super) struct Group {
    pub(super) label: String,
    pub(super) marks: Vec<Mark>,
}

/// Where bars lie.
struct Rows<'l> {
    layout: &'l Layout,
    label_px: f64,
    plot_px: f64,
    scale: Scale,
}

impl Rows<'_> {
    fn x(&self, value: f64) -> f64 {
        self.label_px + self.plot_px * self.scale.part(value)
    }
}

/// Draws horizontal bars below each other, group by group.
pub(super) fn bars(groups: &[Group], layout: &Layout) -> Drawing {
    const GROUP_PX: f64 = 24.0;
    const GAP_PX: f64 = 12.0;
    /// Whiskers longer than the axis are cut here, as a part of the longest bar.
    const WHISKER_MAX: f64 = 1.25;
    let marks = || groups.iter().flat_map(|group| &group.marks);
    let widest = |text: &dyn Fn(&Mark) -> String| {
        marks().map(|mark| text_width(&text(mark), TEXT_PX)).fold(0.0, f64::max)
    };
    let label_px =
        if layout.is_narrow { 0.0 } else { widest(&|mark| mark.label.clone()).min(250.0) + 10.0 };
    let plot_px = layout.width - label_px - widest(&Mark::text) - 14.0;
    let longest = marks().map(|mark| mark.value).fold(0.0, f64::max);
    let reach = |mark: &Mark| mark.confidence.map_or(mark.value, |(_, high)| high.max(mark.value));
    let most = marks().map(reach).fold(0.0, f64::max).min(longest * WHISKER_MAX);
    let (row_px, ticks) = if layout.is_narrow { (36.0, 3) } else { (22.0, 5) };
    let rows = Rows { layout, label_px, plot_px, scale: Scale::to(most, ticks) };
    let mut bottom = 0.0;
    let drawn: Vec<Markup> = groups
        .iter()
        .map(|group| {
            let top = bottom;
            bottom += GROUP_PX + GAP_PX + group.marks.len() as f64 * row_px;
            html! {
                text.group x="0" y=(px(top + 16.0)) {
                    (fitted(&group.label, layout.width, TEXT_PX + 1.0))
                }
                @for (index, mark) in group.marks.iter().enumerate() {
                    (bar(mark, &rows, top + GROUP_PX + index as f64 * row_px))
                }
            }
        })
        .collect();
    let content = html! {
        @for tick in &rows.scale.ticks {
            @let x = px(rows.x(*tick));
            line.grid x1=(x) x2=(x) y1=(px(GROUP_PX)) y2=(px(bottom)) {}
            text.tick x=(x) y=(px(bottom + 15.0))
                text-anchor=(if *tick == 0.0 { "start" } else { "middle" }) { (compact(*tick)) }
        }
        @for group in drawn { (group) }
    };
    Drawing { height: bottom + 22.0, content }
}

fn bar(bar: &Mark, rows: &Rows<'_>, y: f64) -> Markup {
    const BAR_PX: f64 = 12.0;
    let Rows { layout, label_px, scale, .. } = rows;
    let bar_y = y + if layout.is_narrow { 18.0 } else { 5.0 };
    let middle = bar_y + BAR_PX / 2.0;
    let (start, end) = (rows.x(0.0), rows.x(bar.value));
    let whisker = bar.confidence.map(|(low, high)| {
        let is_seen = |value: f64| (0.0..=scale.high()).contains(&value);
        (rows.x(low), rows.x(high), [low, high].map(|end| (rows.x(end), is_seen(end))))
    });
    let value_x = whisker.map_or(end, |(_, high, _)| end.max(high)) + 7.0;
    html! {
        @if layout.is_narrow {
            text.label x="0" y=(px(y + 13.0)) { (fitted(&bar.label, layout.width, TEXT_PX)) }
        } @else {
            text.label x=(px(label_px - 10.0)) y=(px(middle + 4.5)) text-anchor="end" {
                (fitted(&bar.label, label_px - 10.0, TEXT_PX))
            }
        }
        rect class=(format!("bar {}", bar.class)) x=(px(start)) y=(px(bar_y))
            width=(px((end - start).max(1.0))) height=(px(BAR_PX)) rx="2" {
            title { (bar.hint) }
        }
        @if let Some((low, high, ends)) = whisker {
            line.whisker x1=(px(low)) x2=(px(high)) y1=(px(middle)) y2=(px(middle)) {}
            @for (x, _) in ends.iter().filter(|(_, is_seen)| *is_seen) {
                line.whisker x1=(px(*x)) x2=(px(*x)) y1=(px(middle - 4.0)) y2=(px(middle + 4.0)) {}
            }
        }
        text.value x=(px(value_x)) y=(px(middle + 4.5)) { (bar.text()) }
    }
}

/// Draws a line through the marks of each label, over the groups; `name` stands below the axis.
pub(super) fn lines<'g>(groups: &'g [Group], name: &str, layout: &Layout) -> Drawing {
    const PLOT_PX: f64 = 280.0;
    let of_group = |(x, group): (usize, &'g Group)| group.marks.iter().map(move |mark| (x, mark));
    let marks: Vec<(usize, &Mark)> = groups.iter().enumerate().flat_map(of_group).collect();
    let mut labels: Vec<&str> = Vec::new();
    for (_, mark) in &marks {
        if !labels.contains(&mark.label.as_str()) {
            labels.push(&mark.label);
        }
    }
    let points_of =
        |label: &&str| marks.iter().filter(|(_, mark)| mark.label == *label).copied().collect();
    let all: Vec<Vec<(usize, &Mark)>> = labels.iter().map(points_of).collect();
    let (legend, legend_px) = legend(&all, layout);
    let scale = Scale::around(marks.iter().map(|(_, mark)| mark.value));
    let (left, right, top) = (46.0, layout.width - 22.0, legend_px + 12.0);
    let bottom = top + PLOT_PX;
    let step = (right - left - 28.0) / (groups.len().max(2) - 1) as f64;
    let x = |index: usize| left + 14.0 + step * if groups.len() == 1 { 0.5 } else { index as f64 };
    let y = |value: f64| bottom - PLOT_PX * scale.part(value);
    let text_px = groups.iter().map(|group| text_width(&group.label, TEXT_PX)).fold(0.0, f64::max);
    let every = ((text_px + 8.0) / step).ceil().max(1.0) as usize;
    let content = html! {
        (legend)
        @for tick in &scale.ticks {
            line.grid x1=(px(left)) x2=(px(right)) y1=(px(y(*tick))) y2=(px(y(*tick))) {}
            text.tick x=(px(left - 6.0)) y=(px(y(*tick) + 4.0)) text-anchor="end" { (compact(*tick)) }
        }
        @for (index, group) in groups.iter().enumerate().step_by(every) {
            text.tick x=(px(x(index))) y=(px(bottom + 18.0)) text-anchor="middle" { (group.label) }
        }
        text.tick x=(px((left + right) / 2.0)) y=(px(bottom + 36.0)) text-anchor="middle" { (name) }
        @for (number, points) in all.iter().enumerate() {
            @let class = points.first().map_or("", |(_, mark)| &mark.class);
            path class=(format!("line {class}"))
                d=(path(points.iter().map(|(at, mark)| (x(*at), y(mark.value))))) {}
            @for (at, mark) in points {
                @if let Some((low, high)) = mark.confidence {
                    line.whisker x1=(px(x(*at))) x2=(px(x(*at))) y1=(px(y(low))) y2=(px(y(high))) {}
                }
                (shape(number, mark, (x(*at), y(mark.value))))
            }
        }
    };
    Drawing { height: bottom + 42.0, content }
}

/// Names with their marks, in as many rows as they need.
fn legend(lines: &[Vec<(usize, &Mark)>], layout: &Layout) -> (Markup, f64) {
    const ROW_PX: f64 = 20.0;
    let (mut x, mut y) = (0.0, 0.0);
    let firsts = lines.iter().filter_map(|points| points.first());
    let placed: Vec<_> = firsts
        .enumerate()
        .map(|(number, (_, mark))| {
            let width = 20.0 + text_width(&mark.label, TEXT_PX) + 14.0;
            if x > 0.0 && x + width > layout.width {
                (x, y) = (0.0, y + ROW_PX);
            }
            let place = (x, y);
            x += width;
            (number, mark, place)
        })
        .collect();
    let content = html! {
        @for (number, mark, (x, y)) in placed {
            (shape(number, mark, (x + 8.0, y + 10.0)))
            text.label x=(px(x + 20.0)) y=(px(y + 14.0)) { (mark.label) }
        }
    };
    (content, y + ROW_PX)
}

/// A shape for each line, for who cannot tell the colours apart: circle, square, diamond, triangles.
fn shape(number: usize, mark: &Mark, (x, y): (f64, f64)) -> Markup {
    let corners: &[(f64, f64)] = match number % 5 {
        0 => &[],
        1 => &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)],
        2 => &[(0.0, -5.5), (5.5, 0.0), (0.0, 5.5), (-5.5, 0.0)],
        3 => &[(0.0, -5.0), (5.0, 4.0), (-5.0, 4.0)],
        _ => &[(0.0, 5.0), (5.0, -4.0), (-5.0, -4.0)],
    };
    let class = format!("mark {}", mark.class);
    let corners: Vec<String> =
        corners.iter().map(|(dx, dy)| format!("{},{}", px(x + dx), px(y + dy))).collect();
    html! {
        @if corners.is_empty() {
            circle class=(class) cx=(px(x)) cy=(px(y)) r="4.5" { title { (mark.hint) } }
        } @else {
            polygon class=(class) points=(corners.join(" ")) { title { (mark.hint) } }
        }
    }
}

/// One counter over time.
pub(super) struct Curve<'r> {
    pub(super) name: &'r str,
    pub(super) unit: &'r str,
    /// Seconds and values.
    pub(super) points: &'r [(f64, f64)],
    /// Seconds at which a checkpoint ended.
    pub(super) marks: &'r [f64],
    /// Where time ends, the same for all curves of a case.
    pub(super) end_s: f64,
}

/// Draws a counter with its marks: small, so that many stand side by side.
pub(super) fn curve(words: &Words, curve: &Curve<'_>) -> Markup {
    const WIDTH: f64 = 280.0;
    const TOP: f64 = 30.0;
    const BOTTOM: f64 = 106.0;
    let points = thinned(curve.points);
    let scale = Scale::to(points.iter().map(|(_, value)| *value).fold(0.0, f64::max), 2);
    let end_s = curve.end_s.max(1e-9);
    let x = |at: f64| WIDTH * (at / end_s).clamp(0.0, 1.0);
    let places: Vec<(f64, f64)> = points
        .iter()
        .map(|(at, value)| (x(*at), BOTTOM - (BOTTOM - TOP) * scale.part(*value)))
        .collect();
    let line = path(places.iter().copied());
    let ends = (
        places.first().copied().unwrap_or_default().0,
        places.last().copied().unwrap_or_default().0,
    );
    let most = format!("{} {}", compact(scale.high()), curve.unit);
    let name_px = WIDTH - text_width(&most, TEXT_PX) - 10.0;
    let content = html! {
        text.label x="0" y="14" { (fitted(curve.name, name_px, TEXT_PX)) }
        text.tick x=(px(WIDTH)) y="14" text-anchor="end" { (most) }
        @for y in [TOP, BOTTOM] { line.grid x1="0" x2=(px(WIDTH)) y1=(px(y)) y2=(px(y)) {} }
        path.area d=(format!("{line}L{} {BOTTOM}L{} {BOTTOM}Z", px(ends.1), px(ends.0))) {}
        path.line.own d=(line) {}
        @for mark in curve.marks {
            line.checkpoint x1=(px(x(*mark))) x2=(px(x(*mark))) y1=(px(TOP - 6.0)) y2=(px(BOTTOM)) {}
        }
        text.tick x="0" y=(px(BOTTOM + 15.0)) { "0" }
        text.tick x=(px(WIDTH)) y=(px(BOTTOM + 15.0)) text-anchor="end" { (compact(end_s)) " s" }
    };
    picture(words, "c", WIDTH, &Drawing { height: BOTTOM + 22.0, content })
}

/// No more points than can be told apart, each the mean of its neighbours, so that no peak of a whole stretch is
/// lost.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    const POINTS_MAX: usize = 140;
    let size = points.len().div_ceil(POINTS_MAX).max(1);
    let mean = |chunk: &[(f64, f64)]| {
        let count = chunk.len() as f64;
        let sum = chunk.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        (sum.0 / count, sum.1 / count)
    };
    points.chunks(size).map(mean).collect()
}

/// The path through these places.
fn path(places: impl Iterator<Item = (f64, f64)>) -> String {
    let step =
        |(index, (x, y))| format!("{}{} {}", if index == 0 { 'M' } else { 'L' }, px(x), px(y));
    places.enumerate().map(step).collect()
}

/// A coordinate: a tenth of a pixel is enough.
fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}
/// How wide a text is at most, in pixels.
fn text_width(text: &str, size_px: f64) -> f64 {
    let of = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | ' ' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.0,
        _ if c.is_uppercase() => 0.78,
        _ => 0.65,
    };
    text.chars().map(of).sum::<f64>() * size_px
}

/// A text that fits; what does not is left out, and an ellipsis says so.
fn fitted(text: &str, width: f64, size_px: f64) -> String {
    if text_width(text, size_px) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        short.push(c);
        if text_width(&short, size_px) + size_px > width {
            short.pop();
            break;
        }
    }
    format!("{}\u{2026}", short.trim_end_matches([' ', ',']))
}

/// A number in a few characters: `1.18M`, `368k`, `42.1k`, `612`, `0.62`.
pub(super) fn compact(value: f64) -> String {
    let scaled = |value: f64, unit: &str| match value {
        _ if value.abs() >= 99.95 => format!("{value:.0}{unit}"),
        _ if value.abs() >= 9.995 => trimmed(&format!("{value:.1}"), unit),
        _ => trimmed(&format!("{value:.2}"), unit),
    };
    match value.abs() {
        size if !size.is_finite() => "-".to_owned(),
        size if size >= 999.5e6 => scaled(value / 1e9, "G"),
        size if size >= 999.5e3 => scaled(value / 1e6, "M"),
        size if size >= 999.5 => scaled(value / 1e3, "k"),
        _ => scaled(value, ""),
    }
}

fn trimmed(number: &str, unit: &str) -> String {
    let short = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    format!("{short}{unit}")
}

/// Round numbers from 0 to at least `most`, about `count` of them.
fn ticks(most: f64, count: usize) -> Vec<f64> {
    if !(most.is_finite() && most > 0.0) {
        return vec![0.0, 1.0];
    }
    let rough = most / count.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let mut all = vec![0.0];
    while all.last().is_some_and(|last| *last < most * 0.999) {
        all.push(all.len() as f64 * step);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits_and_their_unit() {
        let cases = [
            (1_179_574.0, "1.18M"),
            (999_600.0, "1M"),
            (368_286.0, "368k"),
            (42_142.0, "42.1k"),
            (1_000.0, "1k"),
            (612.4, "612"),
            (0.62, "0.62"),
            (0.0, "0"),
        ];
        for (value, text) in cases {
            assert_eq!(compact(value), text, "{value}");
        }
    }

    #[test]
    fn ticks_are_round_and_reach_the_largest_value() {
        assert_eq!(ticks(7.3, 4), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(ticks(1_000_000.0, 4), [0.0, 250e3, 500e3, 750e3, 1e6]);
        assert_eq!(ticks(0.0, 4), [0.0, 1.0]);
        assert!(ticks(f64::NAN, 4).len() == 2);
    }

    #[test]
    fn long_texts_end_with_an_ellipsis_and_fit() {
        let text = fitted("a rather long name of a case", 80.0, 12.0);
        assert!(text.ends_with('\u{2026}') && text_width(&text, 12.0) <= 80.0, "{text}");
        assert_eq!(fitted("short", 80.0, 12.0), "short");
    }
}
