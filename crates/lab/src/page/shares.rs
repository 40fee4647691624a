//! Shares of a whole, laid out by the style sheet, and their colours.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::view::COLOURS;

/// Shares of a whole: a full bar for a case, cut into what it consists of.
pub(super) struct Shares {
    label: String,
    /// What the whole bar is: "12.3 us a row".
    whole: String,
    /// Name, class in the style sheet, and share of 1; the same name has the same class in every bar.
    parts: Vec<(String, String, f64)>,
}

impl Shares {
    pub(super) fn of<'n>(
        label: String,
        whole: String,
        shares: impl Iterator<Item = (&'n str, f64)>,
        colours: &[(String, String)],
    ) -> Shares {
        let class = |name: &str| {
            let found = colours.iter().find(|(one, _)| one == name);
            found.map_or("other".to_owned(), |(_, class)| class.clone())
        };
        let mut parts: Vec<_> =
            shares.map(|(name, share)| (name.to_owned(), class(name), share)).collect();
        let rest = 1.0 - parts.iter().map(|(_, _, share)| share).sum::<f64>();
        if rest > 0.001 {
            parts.push(("the rest".to_owned(), "other".to_owned(), rest));
        }
        Shares { label, whole, parts }
    }

    /// The style sheet lays the parts side by side; those wide enough say how many percent they are.
    pub(super) fn drawn(&self) -> Markup {
        const PART_MIN: f64 = 0.1;
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let told = self.parts.iter().filter(|(_, _, share)| *share >= 0.05);
        let told: Vec<_> =
            told.map(|(name, _, share)| format!("{name} {}", percent(*share))).collect();
        html! {
            p.shares { span { (self.label) } span { (self.whole) } }
            div.parts role="img" aria-label=(format!("{}: {}", self.label, told.join(", "))) {
                @for (name, class, share) in &self.parts {
                    span class=(format!("part {class}")) style=(format!("flex-grow: {share:.4}"))
                        title=(format!("{name} {}", percent(*share))) {
                        @if *share >= PART_MIN { (percent(*share)) }
                    }
                }
            }
        }
    }
}

/// A class for each name, those of the largest sums first; the rest is "other".
pub(super) fn colours(sums: BTreeMap<&str, f64>) -> Vec<(String, String)> {
    let mut names: Vec<_> = sums.into_iter().collect();
    names.sort_by(|left, right| right.1.total_cmp(&left.1));
    let class = |index: usize| match index {
        _ if index < COLOURS => format!("c{index}"),
        _ => "other".to_owned(),
    };
    names.iter().enumerate().map(|(index, (name, _))| ((*name).to_owned(), class(index))).collect()
}

pub(super) fn legend(colours: &[(String, String)]) -> Markup {
    html! {
        ul.legend {
            @for (name, class) in colours.iter().take(COLOURS) {
                li { span class=(format!("swatch {class}")) {} (name) }
            }
            @if colours.len() > COLOURS { li { span.swatch.other {} "others" } }
        }
    }
}
