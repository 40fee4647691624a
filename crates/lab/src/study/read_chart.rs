//! Reads the chart of a study; what cannot be drawn is told with the names there are.

use onrush_measure::nearest::nearest;

use crate::study::file::Chart;
use crate::study::read::{known, typed};
use crate::study::setting::Setting;

const CHART_NAMES: &[&str] = &["kind", "x", "series", "panel", "y", "unit"];
const CHART_KINDS: &[&str] = &["bars", "lines"];
/// What stands along an axis of a chart, beside the settings.
const AXES_BESIDE_SETTINGS: [&str; 2] = ["target", "part"];

/// Reads the chart of a study.
pub(super) fn chart(table: Option<toml::Table>) -> Result<Chart, String> {
    let names = CHART_NAMES.join(", ");
    let Some(table) = table else {
        return Err(format!(
            "there is no [chart]; it takes {names}, and needs x: x = \"sessions\""
        ));
    };
    known(&table, CHART_NAMES, "[chart]")?;
    if !table.contains_key("x") {
        return Err(format!("in [chart]: there is no x; it takes {names}, and needs x"));
    }
    match table.get("kind") {
        Some(kind) if !CHART_KINDS.iter().any(|known| kind.as_str() == Some(known)) => {
            let (given, kinds) = (serde_json::to_string(kind), CHART_KINDS.join(", "));
            Err(format!("in [chart]: kind is {}; give one of {kinds}", given.unwrap_or_default()))
        }
        _ => typed(table, "[chart]"),
    }
}

/// Whether a chart can have this along an axis.
pub(super) fn axis(name: &str) -> Result<(), String> {
    let settings = Setting::ALL.iter().map(|setting| setting.name());
    let names: Vec<&str> = settings.chain(AXES_BESIDE_SETTINGS).collect();
    match names.contains(&name) {
        true => Ok(()),
        false => {
            let hint = nearest(name, names.into_iter());
            Err(format!("in [chart]: {name:?} is no setting, and not target or part; {hint}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::study::file::{Size, Study};
    use crate::study::read::tests::{SMALL, refused};

    #[test]
    fn an_axis_is_told_the_nearest_of_settings_target_and_part() {
        for (given, meant) in [("tagret", "target"), ("prat", "part"), ("sesions", "sessions")] {
            let message = refused("\nx =", &format!("\nseries = \"{given}\"\nx ="));
            let hint = format!("did you mean \"{meant}\"?");
            assert!(message.contains("[chart]") && message.contains(&hint), "{message}");
        }
    }

    #[test]
    fn a_chart_that_cannot_be_is_told_with_what_a_chart_takes() {
        let message = refused("x = \"sessions\"", "kind = \"pie\"\nx = \"sessions\"");
        assert!(message.contains("kind is \"pie\"; give one of bars, lines"), "{message}");
        for (from, to) in [("x = \"sessions\"", ""), ("[chart]\nx = \"sessions\"", "")] {
            let message = refused(from, to);
            assert!(
                message.contains("[chart]") && message.contains("kind, x, series"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_misspelt_setting_is_told_though_the_chart_is_missing() {
        let text = SMALL.replace("[chart]\nx = \"sessions\"", "").replace("rows =", "rwos =");
        let message = Study::read(&text, "small.toml", Size::Full).unwrap_err().to_string();
        assert!(message.contains("did you mean \"rows\"?"), "{message}");
    }
}
