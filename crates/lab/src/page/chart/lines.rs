//! Lines over ordered values, each with a mark of its own, for who cannot tell the colours apart.

use maud::{Markup, html};

use super::{Drawing, Layout, TEXT_PX, compact, px, text_width, ticks};

/// One line.
pub(in crate::page) struct Line {
    pub(in crate::page) label: String,
    /// Its class in the style sheet.
    pub(in crate::page) class: String,
    pub(in crate::page) points: Vec<Point>,
}

/// One value of a line.
pub(in crate::page) struct Point {
    /// Which value of the axis.
    pub(in crate::page) x: usize,
    pub(in crate::page) value: f64,
    pub(in crate::page) confidence: Option<(f64, f64)>,
    pub(in crate::page) hint: String,
}

const PLOT_PX: f64 = 280.0;
const LEGEND_PX: f64 = 20.0;
/// Values further apart than this are drawn on a scale of powers.
const LINEAR_RATIO_MAX: f64 = 30.0;

struct Places {
    left: f64,
    right: f64,
    top: f64,
    count: usize,
    low: f64,
    high: f64,
    is_log: bool,
    ticks: Vec<f64>,
}

impl Places {
    fn new(lines: &[Line], x_count: usize, top: f64, layout: &Layout) -> Places {
        let values = lines.iter().flat_map(|line| line.points.iter().map(|point| point.value));
        let positive = values.filter(|value| *value > 0.0);
        let (least, most) = positive.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let is_log = most > 0.0 && most / least > LINEAR_RATIO_MAX;
        let ticks = if is_log { powers(least, most) } else { ticks(most, 5) };
        Places {
            left: 46.0,
            right: layout.width - 22.0,
            top,
            count: x_count,
            low: ticks.first().copied().unwrap_or(0.0),
            high: ticks.last().copied().unwrap_or(1.0),
            is_log,
            ticks,
        }
    }

    fn x(&self, index: usize) -> f64 {
        let steps = self.count.max(2) as f64 - 1.0;
        let offset = if self.count == 1 { 0.5 } else { index as f64 };
        self.left + 14.0 + (self.right - self.left - 28.0) * offset / steps
    }

    fn y(&self, value: f64) -> f64 {
        let part = match self.is_log {
            true => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.top + PLOT_PX * (1.0 - part.clamp(0.0, 1.0))
    }
}

fn powers(least: f64, most: f64) -> Vec<f64> {
    let (from, to) = (least.log10().floor() as i32, most.log10().ceil() as i32);
    (from..=to).map(|power| 10_f64.powi(power)).collect()
}

/// Draws them in one picture, names above.
pub(in crate::page) fn draw(
    lines: &[Line],
    axis: &[String],
    name: &str,
    layout: &Layout,
) -> Drawing {
    let (legend, legend_px) = legend(lines, layout);
    let places = Places::new(lines, axis.len(), legend_px + 12.0, layout);
    let bottom = places.top + PLOT_PX;
    let content = html! {
        (legend)
        @for tick in &places.ticks {
            @let y = places.y(*tick);
            line.grid x1=(px(places.left)) x2=(px(places.right)) y1=(px(y)) y2=(px(y)) {}
            text.tick x=(px(places.left - 6.0)) y=(px(y + 4.0)) text-anchor="end" {
                (compact(*tick))
            }
        }
        (axis_texts(axis, &places, bottom))
        text.tick x=(px((places.left + places.right) / 2.0)) y=(px(bottom + 36.0))
            text-anchor="middle" { (name) }
        @for (index, line) in lines.iter().enumerate() { (one(line, index, &places)) }
    };
    Drawing { height: bottom + 42.0, content }
}

/// Names with their marks, in as many rows as they need.
fn legend(lines: &[Line], layout: &Layout) -> (Markup, f64) {
    let (mut x, mut y) = (0.0, 0.0);
    let mut placed = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let width = 20.0 + text_width(&line.label, TEXT_PX) + 14.0;
        if x > 0.0 && x + width > layout.width {
            (x, y) = (0.0, y + LEGEND_PX);
        }
        placed.push((index, line, x, y));
        x += width;
    }
    let content = html! {
        @for (index, line, x, y) in placed {
            (mark(index, &line.class, x + 8.0, y + 10.0, ""))
            text.label x=(px(x + 20.0)) y=(px(y + 14.0)) { (line.label) }
        }
    };
    (content, y + LEGEND_PX)
}

/// As many names of values as there is space for.
fn axis_texts(axis: &[String], places: &Places, bottom: f64) -> Markup {
    let widest = axis.iter().map(|text| text_width(text, TEXT_PX)).fold(0.0, f64::max) + 8.0;
    let step = if axis.len() > 1 { places.x(1) - places.x(0) } else { f64::INFINITY };
    let every = (widest / step).ceil().max(1.0) as usize;
    html! {
        @for (index, text) in axis.iter().enumerate().step_by(every) {
            text.tick x=(px(places.x(index))) y=(px(bottom + 18.0)) text-anchor="middle" { (text) }
        }
    }
}

fn one(line: &Line, index: usize, places: &Places) -> Markup {
    let at = |point: &Point| (places.x(point.x), places.y(point.value));
    let path: Vec<String> = line
        .points
        .iter()
        .map(at)
        .enumerate()
        .map(|(index, (x, y))| format!("{}{} {}", if index == 0 { 'M' } else { 'L' }, px(x), px(y)))
        .collect();
    html! {
        path class=(format!("line {}", line.class)) d=(path.concat()) {}
        @for point in &line.points {
            @let (x, y) = at(point);
            @if let Some((low, high)) = point.confidence {
                line.whisker x1=(px(x)) x2=(px(x)) y1=(px(places.y(low.max(places.low))))
                    y2=(px(places.y(high))) {}
            }
            (mark(index, &line.class, x, y, &point.hint))
        }
    }
}

/// A shape for each line: circle, square, diamond, triangles.
fn mark(index: usize, class: &str, x: f64, y: f64, hint: &str) -> Markup {
    let corners: &[(f64, f64)] = match index % 5 {
        0 => &[],
        1 => &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)],
        2 => &[(0.0, -5.5), (5.5, 0.0), (0.0, 5.5), (-5.5, 0.0)],
        3 => &[(0.0, -5.0), (5.0, 4.0), (-5.0, 4.0)],
        _ => &[(0.0, 5.0), (5.0, -4.0), (-5.0, -4.0)],
    };
    let class = format!("mark {class}");
    let corners: Vec<String> =
        corners.iter().map(|(dx, dy)| format!("{},{}", px(x + dx), px(y + dy))).collect();
    html! {
        @if corners.is_empty() {
            circle class=(class) cx=(px(x)) cy=(px(y)) r="4.5" { title { (hint) } }
        } @else {
            polygon class=(class) points=(corners.join(" ")) { title { (hint) } }
        }
    }
}
