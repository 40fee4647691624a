//! The table of settings in `docs/lab.md`, made from the list.

use std::fmt::Write;

use crate::study::setting::{Concerns, Kind, Setting};

/// Every setting as a Markdown table.
pub fn settings_table() -> String {
    let mut text = String::from("| setting | takes | default | for | what it does |\n");
    text += "|---|---|---|---|---|\n";
    for setting in Setting::ALL {
        let takes = match setting.kind() {
            Kind::Count(least, u64::MAX) => format!("a number, at least {least}"),
            Kind::Count(least, most) => format!("{least} to {most}"),
            Kind::Bytes => "bytes".to_owned(),
            Kind::Switch => "true, false".to_owned(),
            Kind::Word(words) => words.join(", "),
            Kind::Key => "a key strategy".to_owned(),
            Kind::Text => "text".to_owned(),
        };
        let default = match setting.default_text() {
            "" => String::new(),
            text => format!("`{text}`"),
        };
        let whom = match setting.concerns() {
            Concerns::All => "all",
            Concerns::Onrush => "Onrush",
            Concerns::Servers => "servers",
        };
        let (name, about) = (setting.name(), setting.about());
        writeln!(text, "| `{name}` | {takes} | {default} | {whom} | {about} |")
            .expect("writing to a String cannot fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_setting_as_it_is() {
        let page = include_str!("../../../../docs/lab.md");
        let cure = "put what `onrush-lab list --settings` prints into docs/lab.md";
        assert!(page.contains(&settings_table()), "{cure}");
    }

    #[test]
    fn the_page_tells_of_every_study_and_target() {
        let page = include_str!("../../../../docs/lab.md");
        let named = crate::study::shipped::names().chain(
            crate::target::NAMES.iter().copied().filter(|name| crate::target::find(name).is_ok()),
        );
        for name in named {
            assert!(page.contains(&format!("| `{name}` |")), "{name}");
        }
    }
}
