//! The page: one text with everything in it.

use std::sync::LazyLock;

/// The page as it is sent.
pub(crate) static PAGE: LazyLock<String> = LazyLock::new(|| {
    let parts = [
        ("/* uplot.css */", include_str!("../assets/uplot.css")),
        ("/* page.css */", include_str!("../assets/page.css")),
        ("/* uplot.js */", include_str!("../assets/uplot.js")),
        ("/* page.js */", include_str!("../assets/page.js")),
    ];
    let page = include_str!("../assets/page.html").to_owned();
    parts.into_iter().fold(page, |page, (place, text)| page.replacen(place, text, 1))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_nothing() {
        for reference in [
            "<script src",
            "<link rel=\"stylesheet",
            "@import",
            "url(http",
            "src=\"http",
            "href=\"http",
        ] {
            assert!(!PAGE.contains(reference), "{reference}");
        }
    }

    #[test]
    fn every_part_is_in_its_place() {
        for place in ["/* uplot.css */", "/* page.css */", "/* uplot.js */", "/* page.js */"] {
            assert!(!PAGE.contains(place), "{place}");
        }
        assert!(PAGE.contains("var uPlot="), "the charts");
    }
}
