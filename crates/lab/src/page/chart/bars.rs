//! Horizontal bars in groups, each with its name, its value and how sure it is.

use maud::{Markup, html};

use super::{Drawing, Layout, TEXT_PX, compact, fitted, px, text_width, ticks};

/// One bar.
pub(in crate::page) struct Bar {
    pub(in crate::page) label: String,
    /// Its class in the style sheet, which gives it its colour.
    pub(in crate::page) class: String,
    pub(in crate::page) value: f64,
    pub(in crate::page) confidence: Option<(f64, f64)>,
    /// Stands behind the value: "not synchronous".
    pub(in crate::page) flag: &'static str,
    /// Shown to who points at it.
    pub(in crate::page) hint: String,
}

/// Bars that belong together.
pub(in crate::page) struct Group {
    pub(in crate::page) label: String,
    pub(in crate::page) bars: Vec<Bar>,
}

const GROUP_PX: f64 = 24.0;
const GAP_PX: f64 = 12.0;
const AXIS_PX: f64 = 22.0;
/// Whiskers longer than the axis are cut here, as a part of the longest bar.
const WHISKER_MAX: f64 = 1.25;

struct Places {
    label_px: f64,
    plot_px: f64,
    row_px: f64,
    bar_y: f64,
    bar_px: f64,
    most: f64,
    ticks: Vec<f64>,
}

impl Places {
    fn new(groups: &[Group], layout: &Layout) -> Places {
        let bars = || groups.iter().flat_map(|group| &group.bars);
        let widest = |texts: &mut dyn Iterator<Item = String>| {
            texts.map(|text| text_width(&text, TEXT_PX)).fold(0.0, f64::max)
        };
        let label_px = match layout.is_narrow {
            true => 0.0,
            false => widest(&mut bars().map(|bar| bar.label.clone())).min(250.0) + 10.0,
        };
        let value_px = widest(&mut bars().map(value_text)) + 14.0;
        let longest = bars().map(|bar| bar.value).fold(0.0, f64::max);
        let reach = |bar: &Bar| bar.confidence.map_or(bar.value, |(_, high)| high.max(bar.value));
        let most = bars().map(reach).fold(0.0, f64::max).min(longest * WHISKER_MAX);
        let ticks = ticks(most, if layout.is_narrow { 3 } else { 5 });
        Places {
            label_px,
            plot_px: layout.width - label_px - value_px,
            row_px: if layout.is_narrow { 36.0 } else { 22.0 },
            bar_y: if layout.is_narrow { 18.0 } else { 5.0 },
            bar_px: 12.0,
            most: ticks.last().copied().unwrap_or(1.0),
            ticks,
        }
    }

    fn x(&self, value: f64) -> f64 {
        self.label_px + self.plot_px * (value / self.most).clamp(0.0, 1.0)
    }
}

fn value_text(bar: &Bar) -> String {
    match bar.flag {
        "" => compact(bar.value),
        flag => format!("{} {flag}", compact(bar.value)),
    }
}

/// Draws them below each other.
pub(in crate::page) fn draw(groups: &[Group], layout: &Layout) -> Drawing {
    let places = Places::new(groups, layout);
    let rows: usize = groups.iter().map(|group| group.bars.len()).sum();
    let bottom = groups.len() as f64 * (GROUP_PX + GAP_PX) + rows as f64 * places.row_px;
    let content = html! {
        (grid(&places, bottom))
        @for (group, y) in groups.iter().zip(tops(groups, &places)) {
            text.group x="0" y=(px(y + 16.0)) {
                (fitted(&group.label, layout.width, TEXT_PX + 1.0))
            }
            @for (index, bar) in group.bars.iter().enumerate() {
                (row(bar, &places, layout, y + GROUP_PX + index as f64 * places.row_px))
            }
        }
    };
    Drawing { height: bottom + AXIS_PX, content }
}

/// Where each group begins.
fn tops<'g>(groups: &'g [Group], places: &Places) -> impl Iterator<Item = f64> + use<'g> {
    let row_px = places.row_px;
    groups.iter().scan(0.0, move |next, group| {
        let top = *next;
        *next += GROUP_PX + GAP_PX + group.bars.len() as f64 * row_px;
        Some(top)
    })
}

fn grid(places: &Places, bottom: f64) -> Markup {
    html! {
        @for tick in &places.ticks {
            @let x = px(places.x(*tick));
            line.grid x1=(x) x2=(x) y1=(px(GROUP_PX)) y2=(px(bottom)) {}
            text.tick x=(x) y=(px(bottom + 15.0))
                text-anchor=(if *tick == 0.0 { "start" } else { "middle" }) { (compact(*tick)) }
        }
    }
}

fn row(bar: &Bar, places: &Places, layout: &Layout, y: f64) -> Markup {
    let (start, end) = (places.x(0.0), places.x(bar.value));
    let middle = y + places.bar_y + places.bar_px / 2.0;
    let text_y = px(middle + 4.5);
    let mut value_x = end;
    let whisker = bar.confidence.map(|(low, high)| {
        let (low_x, high_x) = (places.x(low), places.x(high));
        value_x = value_x.max(high_x);
        let ends = [(low_x, low >= 0.0), (high_x, high <= places.most)];
        html! {
            line.whisker x1=(px(low_x)) x2=(px(high_x)) y1=(px(middle)) y2=(px(middle)) {}
            @for (x, is_inside) in ends {
                @if is_inside {
                    line.whisker x1=(px(x)) x2=(px(x)) y1=(px(middle - 4.0)) y2=(px(middle + 4.0)) {}
                }
            }
        }
    });
    html! {
        @if layout.is_narrow {
            text.label x="0" y=(px(y + 13.0)) { (fitted(&bar.label, layout.width, TEXT_PX)) }
        } @else {
            text.label x=(px(places.label_px - 10.0)) y=(text_y) text-anchor="end" {
                (fitted(&bar.label, places.label_px - 10.0, TEXT_PX))
            }
        }
        rect class=(format!("bar {}", bar.class)) x=(px(start)) y=(px(y + places.bar_y))
            width=(px((end - start).max(1.0))) height=(px(places.bar_px)) rx="2" {
            title { (bar.hint) }
        }
        @if let Some(whisker) = whisker { (whisker) }
        text.value x=(px(value_x + 7.0)) y=(text_y) { (value_text(bar)) }
    }
}
