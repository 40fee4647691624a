//! Shares of a whole: a full bar for each case, cut into what it consists of.

use maud::{Markup, html};

use super::{Drawing, Layout, TEXT_PX, fitted, px, text_width};

/// One bar of shares.
pub(in crate::page) struct Stack {
    pub(in crate::page) label: String,
    /// What the whole bar is: "12.3 us a row".
    pub(in crate::page) whole: String,
    pub(in crate::page) parts: Vec<Part>,
}

/// One share.
pub(in crate::page) struct Part {
    pub(in crate::page) name: String,
    /// Its class in the style sheet; the same name has the same class in every bar.
    pub(in crate::page) class: String,
    /// Of 1.
    pub(in crate::page) share: f64,
}

const ROW_PX: f64 = 48.0;
const BAR_PX: f64 = 18.0;

/// Draws them below each other.
pub(in crate::page) fn draw(stacks: &[Stack], layout: &Layout) -> Drawing {
    let content = html! {
        @for (index, stack) in stacks.iter().enumerate() {
            (row(stack, index as f64 * ROW_PX, layout))
        }
    };
    Drawing { height: stacks.len() as f64 * ROW_PX, content }
}

fn row(stack: &Stack, y: f64, layout: &Layout) -> Markup {
    let whole_px = text_width(&stack.whole, TEXT_PX);
    let label = fitted(&stack.label, layout.width - whole_px - 16.0, TEXT_PX);
    let starts = stack.parts.iter().scan(0.0, |next, part| {
        let start = *next;
        *next += part.share * layout.width;
        Some(start)
    });
    html! {
        text.label x="0" y=(px(y + 13.0)) { (label) }
        text.value x=(px(layout.width)) y=(px(y + 13.0)) text-anchor="end" { (stack.whole) }
        @for (part, x) in stack.parts.iter().zip(starts) {
            (cut(part, x, y + 20.0, part.share * layout.width))
        }
    }
}

fn cut(part: &Part, x: f64, y: f64, width: f64) -> Markup {
    let percent = format!("{:.0} %", 100.0 * part.share);
    let is_roomy = text_width(&percent, TEXT_PX) + 10.0 < width;
    html! {
        rect class=(format!("part {}", part.class)) x=(px(x)) y=(px(y)) height=(px(BAR_PX))
            width=(px((width - 1.5).max(0.5))) {
            title { (part.name) " " (percent) }
        }
        @if is_roomy {
            text class=(format!("in-part on-{}", part.class)) x=(px(x + 6.0)) y=(px(y + 13.0)) {
                (percent)
            }
        }
    }
}
