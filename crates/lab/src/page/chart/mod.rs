//! Charts as SVG text: drawn here, read by any browser, without a script.
//!
//! - [`bars`]: a bar for each value. [`lines`]: a line for each series.
//! - [`stacks`]: shares of a whole. [`time`]: one counter over time.
//!
//! Text in a picture that shrinks becomes unreadable, so that each chart is drawn twice, for wide
//! and for narrow windows, and the style sheet shows one of them.
//!
//! Invariants
//! 1. No two texts of a chart overlap: space is kept by [`text_width`], an estimate that is wide
//!    enough for every common font.
//! 2. Every chart has a title and a description for those who do not see it.

pub(super) mod bars;
pub(super) mod lines;
pub(super) mod stacks;
pub(super) mod time;

use maud::{Markup, PreEscaped, html};

/// Size of ordinary text, in pixels.
pub(super) const TEXT_PX: f64 = 12.0;

/// For which window a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) is_narrow: bool,
}

/// A desk.
pub(super) const WIDE: Layout = Layout { width: 880.0, is_narrow: false };
/// A phone.
pub(super) const NARROW: Layout = Layout { width: 350.0, is_narrow: true };

/// A drawing and its height.
pub(super) struct Drawing {
    pub(super) height: f64,
    pub(super) content: Markup,
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
        div.wide { (one(words, "w", &WIDE, &draw)) }
        div.narrow { (one(words, "n", &NARROW, &draw)) }
    }
}

fn one(words: &Words, suffix: &str, layout: &Layout, draw: impl Fn(&Layout) -> Drawing) -> Markup {
    let drawing = draw(layout);
    picture(words, suffix, layout.width, &drawing)
}

/// A drawing with its words.
pub(super) fn picture(words: &Words, suffix: &str, width: f64, drawing: &Drawing) -> Markup {
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

/// A coordinate: a tenth of a pixel is enough.
pub(super) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// How wide a text is at most, in pixels.
pub(super) fn text_width(text: &str, size_px: f64) -> f64 {
    let of = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | ' ' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.0,
        _ if c.is_uppercase() => 0.78,
        _ => 0.65,
    };
    text.chars().map(of).sum::<f64>() * size_px
}

/// A text that fits; what does not is left out, and an ellipsis says so.
pub(super) fn fitted(text: &str, width: f64, size_px: f64) -> String {
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
pub(super) fn ticks(most: f64, count: usize) -> Vec<f64> {
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
