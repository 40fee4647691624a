//! One counter over time, with its marks: small, so that many stand side by side.

use maud::html;

use super::{Drawing, TEXT_PX, compact, fitted, px, text_width, ticks};

/// What is drawn.
pub(in crate::page) struct Curve<'r> {
    pub(in crate::page) name: &'r str,
    pub(in crate::page) unit: &'r str,
    /// Seconds and values.
    pub(in crate::page) points: &'r [(f64, f64)],
    /// Seconds at which a checkpoint ended.
    pub(in crate::page) marks: &'r [f64],
    /// Where time ends, the same for all curves of a case.
    pub(in crate::page) end_s: f64,
}

/// Width of one.
pub(in crate::page) const WIDTH: f64 = 280.0;
const TOP_PX: f64 = 30.0;
const PLOT_PX: f64 = 76.0;
/// More points than this cannot be told apart in this width.
const POINTS_MAX: usize = 140;

/// Draws one.
pub(in crate::page) fn draw(curve: &Curve<'_>) -> Drawing {
    let points = thinned(curve.points);
    let most = points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let top = ticks(most, 2).last().copied().unwrap_or(1.0);
    let end_s = curve.end_s.max(1e-9);
    let x = |at: f64| WIDTH * (at / end_s).clamp(0.0, 1.0);
    let y = |value: f64| TOP_PX + PLOT_PX * (1.0 - (value / top).clamp(0.0, 1.0));
    let bottom = TOP_PX + PLOT_PX;
    let path: String = points
        .iter()
        .enumerate()
        .map(|(index, (at, value))| {
            format!("{}{} {}", if index == 0 { 'M' } else { 'L' }, px(x(*at)), px(y(*value)))
        })
        .collect();
    let first_x = points.first().map_or(0.0, |(at, _)| x(*at));
    let last_x = points.last().map_or(0.0, |(at, _)| x(*at));
    let area = format!("{path}L{} {b}L{} {b}Z", px(last_x), px(first_x), b = px(bottom));
    let scale = format!("{} {}", compact(top), curve.unit);
    let name_px = WIDTH - text_width(&scale, TEXT_PX) - 10.0;
    let end = format!("{} s", compact(end_s));
    let content = html! {
        text.label x="0" y="14" { (fitted(curve.name, name_px, TEXT_PX)) }
        text.tick x=(px(WIDTH)) y="14" text-anchor="end" { (scale) }
        line.grid x1="0" x2=(px(WIDTH)) y1=(px(TOP_PX)) y2=(px(TOP_PX)) {}
        line.grid x1="0" x2=(px(WIDTH)) y1=(px(bottom)) y2=(px(bottom)) {}
        path.area d=(area) {}
        path.line.own d=(path) {}
        @for mark in curve.marks {
            line.checkpoint x1=(px(x(*mark))) x2=(px(x(*mark))) y1=(px(TOP_PX - 6.0))
                y2=(px(bottom)) {}
        }
        text.tick x="0" y=(px(bottom + 15.0)) { "0" }
        text.tick x=(px(WIDTH)) y=(px(bottom + 15.0)) text-anchor="end" { (end) }
    };
    Drawing { height: bottom + 22.0, content }
}

/// Fewer points, each the mean of its neighbours, so that no peak of a whole stretch is lost.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let size = points.len().div_ceil(POINTS_MAX).max(1);
    let mean = |chunk: &[(f64, f64)]| {
        let count = chunk.len() as f64;
        let sum = chunk.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        (sum.0 / count, sum.1 / count)
    };
    points.chunks(size).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_mean() {
        let points: Vec<(f64, f64)> = (0..1000).map(|n| (f64::from(n), f64::from(n % 2))).collect();
        let thin = thinned(&points);
        assert!(thin.len() <= POINTS_MAX);
        assert!(thin.iter().all(|(_, value)| (0.3..0.7).contains(value)));
    }
}
