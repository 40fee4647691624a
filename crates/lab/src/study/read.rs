//! Reads a study: TOML, with every name checked by hand, so that a message can say where an unknown
//! one stands and which name is the nearest.

use std::collections::BTreeMap;

use crate::error::LabError;
use onrush_measure::nearest::nearest;
use serde::Deserialize;

use crate::study::file::{Axes, Part, Size, Study};
use crate::study::proof;
use crate::study::read_chart::{axis, chart};
use crate::study::setting::Setting;

/// A study as it is written.
#[derive(Deserialize)]
struct Raw {
    name: String,
    title: String,
    #[serde(default)]
    experiment: String,
    #[serde(default)]
    description: String,
    targets: Vec<String>,
    repeats: Option<usize>,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    cumulative: bool,
    #[serde(default)]
    without_permission: bool,
    #[serde(default)]
    settings: toml::Table,
    #[serde(default)]
    target: BTreeMap<String, toml::Table>,
    #[serde(default)]
    part: Vec<toml::Table>,
    chart: Option<toml::Table>,
    #[serde(default)]
    reference: Vec<toml::Table>,
    quick: Option<toml::Table>,
    full: Option<toml::Table>,
}

const STUDY_NAMES: &[&str] = &[
    "name",
    "title",
    "experiment",
    "description",
    "targets",
    "repeats",
    "seed",
    "cumulative",
    "without_permission",
    "settings",
    "target",
    "part",
    "chart",
    "reference",
    "quick",
    "full",
];
const PART_NAMES: &[&str] =
    &["name", "note", "targets", "settings", "target", "proof", "skip", "quick", "full"];
const SIZE_NAMES: &[&str] = &["repeats", "targets", "settings", "target"];
const REFERENCE_NAMES: &[&str] =
    &["label", "x", "rows_per_s", "gb_per_s", "elapsed_s", "note", "conditions"];

/// What a size says differently.
#[derive(Deserialize, Default)]
struct RawSize {
    repeats: Option<usize>,
    targets: Option<Vec<String>>,
    #[serde(default)]
    settings: toml::Table,
    #[serde(default)]
    target: BTreeMap<String, toml::Table>,
}

#[derive(Deserialize)]
struct RawPart {
    name: String,
    #[serde(default)]
    note: String,
    #[serde(default)]
    targets: Vec<String>,
    #[serde(default)]
    settings: toml::Table,
    #[serde(default)]
    target: BTreeMap<String, toml::Table>,
    #[serde(default)]
    proof: Vec<String>,
    skip: Option<String>,
    #[serde(default)]
    quick: toml::Table,
    #[serde(default)]
    full: toml::Table,
}

impl Study {
    /// Reads a study; `source` is its file or name, for messages.
    ///
    /// # Errors
    /// What is wrong, where, and the nearest name for one that is unknown.
    pub fn read(text: &str, source: &str, size: Size) -> Result<Study, LabError> {
        read(text, size).map_err(|what| LabError::Study { source_name: source.to_owned(), what })
    }
}

fn read(text: &str, size: Size) -> Result<Study, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| not_toml(text, &error))?;
    known(&table, STUDY_NAMES, "the study")?;
    let raw: Raw = typed(table, "the study")?;
    let sized = match if size == Size::Quick { raw.quick } else { raw.full } {
        Some(table) => {
            known(&table, SIZE_NAMES, "[quick] or [full]")?;
            typed::<RawSize>(table, "[quick] or [full]")?
        }
        None => RawSize::default(),
    };
    let mut settings = axes(&raw.settings, "[settings]")?;
    settings.extend(axes(&sized.settings, "the settings of [quick] or [full]")?);
    let mut target_settings = target_axes(&raw.target)?;
    for (target, axes) in target_axes(&sized.target)? {
        target_settings.entry(target).or_default().extend(axes);
    }
    let parts = raw.part.into_iter().map(|table| part(table, size)).collect::<Result<_, _>>()?;
    let study = Study {
        name: raw.name,
        title: raw.title,
        experiment: raw.experiment,
        description: raw.description.trim().to_owned(),
        targets: sized.targets.unwrap_or(raw.targets),
        repeats: sized.repeats.or(raw.repeats).unwrap_or(1),
        seed: raw.seed,
        cumulative: raw.cumulative,
        without_permission: raw.without_permission,
        settings,
        target_settings,
        parts,
        chart: chart(raw.chart)?,
        references: raw
            .reference
            .into_iter()
            .map(|table| checked(table, REFERENCE_NAMES, "[[reference]]"))
            .collect::<Result<_, _>>()?,
        size,
    };
    study.check()?;
    Ok(study)
}

/// The line that is no TOML, and what a study has.
fn not_toml(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let (why, names) = (error.message().replace('\n', ", "), STUDY_NAMES.join(", "));
    format!(
        "line {line} is no TOML: {why}; a study has {names}; `onrush-lab list --source keys` shows one"
    )
}

fn part(table: toml::Table, size: Size) -> Result<Part, String> {
    let raw: RawPart = checked(table, PART_NAMES, "[[part]]")?;
    let place = format!("part {:?}", raw.name);
    let mut settings = axes(&raw.settings, &place)?;
    let sized = if size == Size::Quick { &raw.quick } else { &raw.full };
    settings.extend(axes(sized, &place)?);
    Ok(Part {
        settings,
        target_settings: target_axes(&raw.target)?,
        name: raw.name,
        note: raw.note,
        targets: raw.targets,
        proof: raw.proof,
        skip: raw.skip,
    })
}

impl Study {
    fn check(&self) -> Result<(), String> {
        if self.repeats == 0 {
            return Err("repeats is 0; give at least 1".to_owned());
        }
        let in_parts = self.parts.iter().flat_map(|part| &part.targets);
        let overridden = self.parts.iter().flat_map(|part| part.target_settings.keys());
        let all = self.targets.iter().chain(in_parts).chain(overridden);
        for target in all.chain(self.target_settings.keys()) {
            crate::target::known(target)?;
        }
        if self.targets.is_empty() && self.parts.iter().any(|part| part.targets.is_empty()) {
            return Err("targets is empty; name at least one, such as \"onrush\"".to_owned());
        }
        let axes = [Some(&self.chart.x), Some(&self.chart.series), self.chart.panel.as_ref()];
        axes.into_iter().flatten().try_for_each(|name| axis(name))?;
        for part in &self.parts {
            // What baselines tell has names that are theirs, and nobody lists.
            let targets = if part.targets.is_empty() { &self.targets } else { &part.targets };
            if targets.iter().all(|target| target.starts_with("onrush")) {
                let told = |error| format!("in part {:?}: {error}", part.name);
                part.proof.iter().try_for_each(|name| proof::known(name)).map_err(told)?;
            }
        }
        let names: Vec<_> = self.parts.iter().map(|part| &part.name).collect();
        match names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
            Some((_, twice)) => Err(format!("two parts are called {twice:?}")),
            None => Ok(()),
        }
    }
}

fn axes(table: &toml::Table, place: &str) -> Result<Axes, String> {
    let mut axes = Axes::new();
    for (name, value) in table {
        let inside = |error: String| format!("in {place}: {error}");
        let setting = Setting::named(name).map_err(inside)?;
        let values = match value {
            toml::Value::Array(values) if values.is_empty() => {
                return Err(inside(format!("{name} is an empty list; give at least one value")));
            }
            toml::Value::Array(values) => {
                values.iter().map(|value| setting.read(value)).collect::<Result<_, _>>()
            }
            value => setting.read(value).map(|value| vec![value]),
        };
        axes.insert(setting, values.map_err(inside)?);
    }
    Ok(axes)
}

fn target_axes(tables: &BTreeMap<String, toml::Table>) -> Result<BTreeMap<String, Axes>, String> {
    let read = |(target, table): (&String, &toml::Table)| {
        axes(table, &format!("[target.{target}]")).map(|axes| (target.clone(), axes))
    };
    tables.iter().map(read).collect()
}

/// Whether every name in a table is one of these.
pub(super) fn known(table: &toml::Table, names: &[&str], place: &str) -> Result<(), String> {
    match table.keys().find(|key| !names.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let hint = nearest(key, names.iter().copied());
            let is_setting = Setting::named(key).is_ok();
            let hint = if is_setting { "it is a setting: put it in [settings]" } else { &hint };
            Err(format!("in {place}: there is no {key:?}; {hint}"))
        }
    }
}

/// What a table says; its names are known already.
pub(super) fn typed<T: for<'d> Deserialize<'d>>(
    table: toml::Table,
    place: &str,
) -> Result<T, String> {
    T::deserialize(table).map_err(|error| format!("in {place}: {}", error.message()))
}

fn checked<T: for<'d> Deserialize<'d>>(
    table: toml::Table,
    names: &[&str],
    place: &str,
) -> Result<T, String> {
    known(&table, names, place)?;
    typed(table, place)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::study) const SMALL: &str = r#"
name = "small"
title = "A small study"
targets = ["onrush", "null"]
repeats = 3

[settings]
sessions = [1, 2]
rows = "10k"

[quick]
repeats = 1
settings = { rows = 100 }

[target.onrush]
log_block_bytes_max = ["4KiB", "64KiB"]

[chart]
x = "sessions"

[[reference]]
label = "classic"
rows_per_s = 565000.0
conditions = "a machine"
"#;

    pub(in crate::study) fn refused(from: &str, to: &str) -> String {
        let text = SMALL.replace(from, to);
        assert_ne!(text, SMALL, "{from}");
        Study::read(&text, "small.toml", Size::Full).unwrap_err().to_string()
    }

    #[test]
    fn lists_make_a_matrix_for_each_target() {
        let study = Study::read(SMALL, "small.toml", Size::Full).unwrap();
        let cases = study.cases();
        assert_eq!(cases.len(), 2 * 2 + 2);
        let of = |target: &str| cases.iter().filter(|case| case.target == target).count();
        assert_eq!((of("onrush"), of("null")), (4, 2));
        assert!(cases.iter().enumerate().all(|(place, case)| case.number == place));
        assert!(cases.iter().all(|case| case.settings.rows() == 10_000));
    }

    #[test]
    fn the_quick_size_changes_what_it_names_and_nothing_else() {
        let study = Study::read(SMALL, "small.toml", Size::Quick).unwrap();
        assert_eq!(study.repeats, 1);
        assert_eq!(study.cases().len(), 6);
        assert!(study.cases().iter().all(|case| case.settings.rows() == 100));
    }

    #[test]
    fn a_setting_for_all_cases_wins_over_parts_and_targets() {
        let mut study = Study::read(SMALL, "small.toml", Size::Full).unwrap();
        study.set_everywhere("log_block_bytes_max=8KiB").unwrap();
        study.set_everywhere("sessions = 7").unwrap();
        let cases = study.cases();
        assert_eq!(cases.len(), 2, "no lists are left");
        for case in cases {
            assert_eq!(case.settings.number(Setting::LogBlockBytesMax), 8192);
            assert_eq!(case.settings.number(Setting::Sessions), 7);
        }
        let refused = study.set_everywhere("sesions=7").unwrap_err();
        assert!(refused.contains("did you mean \"sessions\"?"), "{refused}");
        assert!(study.set_everywhere("sessions=many").unwrap_err().contains("a whole number"));
        assert!(study.set_everywhere("sessions").unwrap_err().contains("NAME=VALUE"));
    }

    #[test]
    fn a_target_that_is_asked_for_is_measured_where_parts_name_none() {
        let parts = "[[part]]\nname = \"own\"\ntargets = [\"null\"]\n\n[chart]";
        let own = SMALL.replace("[chart]", parts);
        let mut study = Study::read(&own, "small.toml", Size::Full).unwrap();
        let refused = study.measure_also("redb").unwrap_err();
        assert!(refused.contains("none of them is redb"), "{refused}");
        let both = own.replace("[chart]", "[[part]]\nname = \"all\"\n\n[chart]");
        let mut study = Study::read(&both, "small.toml", Size::Full).unwrap();
        study.measure_also("redb").unwrap();
        let cases = study.cases();
        let parts = cases.iter().filter(|case| case.target == "redb").map(|case| &case.part);
        assert!(parts.eq([&Some("all".into()), &Some("all".into())]), "two values of sessions");
        study.measure_also("null").unwrap();
        assert_eq!(study.cases(), cases, "it was measured already");
    }

    #[test]
    fn an_unknown_name_is_told_with_the_nearest_one() {
        let message = refused("sessions = [1, 2]", "sesions = [1, 2]");
        assert!(message.contains("small.toml"), "{message}");
        assert!(message.contains("did you mean \"sessions\"?"), "{message}");
        let message = refused("\"null\"]", "\"nul\"]");
        assert!(message.contains("did you mean \"null\"?"), "{message}");
        let message = refused("repeats = 3", "repaets = 3");
        assert!(message.contains("did you mean \"repeats\"?"), "{message}");
        let message = refused("x = \"sessions\"", "x = \"session\"");
        assert!(message.contains("[chart]") && message.contains("sessions"), "{message}");
        let message = refused("repeats = 3", "rows_per_commit = 3");
        assert!(message.contains("put it in [settings]"), "{message}");
    }

    #[test]
    fn a_proof_that_onrush_does_not_tell_is_refused_and_one_of_baselines_is_not() {
        let part = "[[part]]\nname = \"one\"\nproof = [\"WRITELOGS\"]\n\n[chart]";
        let of_baselines = SMALL.replace("[chart]", part);
        Study::read(&of_baselines, "small.toml", Size::Full).unwrap();
        let own = of_baselines.replace("\"onrush\", \"null\"", "\"onrush\"");
        let refused = Study::read(&own, "small.toml", Size::Full).unwrap_err().to_string();
        assert!(refused.contains("in part \"one\""), "{refused}");
        assert!(refused.contains("did you mean \"WRITELOG\"?"), "{refused}");
    }

    #[test]
    fn values_that_cannot_be_are_refused_where_they_stand() {
        assert!(refused("[1, 2]", "[0, 2]").contains("in [settings]: sessions is 0"));
        assert!(refused("[1, 2]", "[]").contains("empty list"));
        assert!(refused("repeats = 3", "repeats = 0").contains("at least 1"));
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_line_and_what_a_study_has() {
        let message = refused("[settings]", "[settings");
        assert!(message.contains("line 7 is no TOML"), "{message}");
        assert!(message.contains("targets, repeats") && !message.contains('\n'), "{message}");
    }

    #[test]
    fn rungs_keep_what_the_rungs_before_them_set() {
        let ladder = SMALL.replace("repeats = 3", "repeats = 3\ncumulative = true")
            + r#"
[[part]]
name = "one"
settings = { key = "sequential-guid" }

[[part]]
name = "two"
settings = { durability = "delayed" }
skip = "not on this machine"
"#;
        let study = Study::read(&ladder, "ladder.toml", Size::Full).unwrap();
        let cases = study.cases();
        let last = cases.last().unwrap();
        assert_eq!(last.part.as_deref(), Some("two"));
        assert_eq!(last.settings.text(Setting::Key), "sequential-guid");
        assert!(!last.settings.is_durable());
        assert_eq!(last.skip.as_deref(), Some("not on this machine"));
        assert!(cases[0].settings.is_durable());
    }
}
