//! What a study says, as `read.rs` takes it from its file.
//!
//! Lists in `[settings]` are axes: their product is the matrix. `[[part]]` puts matrices of their
//! own into the same study, or, with `cumulative`, rungs of a ladder that keep those before them.

use std::collections::BTreeMap;
use std::time::Duration;

use onrush_measure::units::{elapsed, rounded};
use serde::{Deserialize, Serialize};

use crate::study::setting::{Setting, SettingValue};

/// Which of its two sizes a study runs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// A minute or two on two processors.
    Quick,
    /// The classic row counts.
    #[default]
    Full,
}

/// How results are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChartKind {
    /// A bar for each value of the axis and each series.
    #[default]
    Bars,
    /// A line for each series along the axis.
    Lines,
}

/// The chart of a study. An axis is a setting's name, `target` or `part`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// Bars or lines.
    #[serde(default)]
    pub kind: ChartKind,
    /// What stands along the axis.
    pub x: String,
    /// What is told apart by colour.
    #[serde(default = "target_axis")]
    pub series: String,
    /// A chart of its own for each value of this one.
    pub panel: Option<String>,
    /// What is drawn: `rows_per_s`, `elapsed_s`, `commits_per_sync`, ...
    #[serde(default = "rows_per_s")]
    pub y: String,
    /// Its unit, for people.
    #[serde(default = "rows_per_s_unit")]
    pub unit: String,
}

fn target_axis() -> String {
    "target".to_owned()
}

fn rows_per_s() -> String {
    "rows_per_s".to_owned()
}

fn rows_per_s_unit() -> String {
    "rows/s".to_owned()
}

/// A classic result that stands beside ours, with the conditions under which it was reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// What was measured: "random GUID".
    pub label: String,
    /// The value of the chart's x axis that it belongs to.
    pub x: Option<String>,
    /// Rows a second.
    pub rows_per_s: Option<f64>,
    /// Billions of bytes checked a second.
    pub gb_per_s: Option<f64>,
    /// Seconds for the whole load.
    pub elapsed_s: Option<f64>,
    /// What it says beyond that.
    pub note: Option<String>,
    /// Machine, sessions, durability, rows per commit: without them a figure is worth nothing.
    pub conditions: String,
}

/// Stands wherever references do: nobody is to take them for something that was measured beside ours.
pub const NO_SERVER: &str =
    "No server was there for them: they stand in the study as they were published.";

impl Reference {
    /// Its figures and its note.
    pub(crate) fn figures(&self) -> Vec<String> {
        let rate = self.rows_per_s.map(|rate| format!("{} rows/s", rounded(rate)));
        let bytes = self.gb_per_s.map(|bytes| format!("{} GB/s", rounded(bytes)));
        let time = self.elapsed_s.map(|time| elapsed(Duration::from_secs_f64(time)));
        rate.into_iter().chain(bytes).chain(time).chain(self.note.clone()).collect()
    }
}

/// The values of each setting that is turned; more than one make an axis.
pub type Axes = BTreeMap<Setting, Vec<SettingValue>>;

/// A matrix of its own within a study, or a rung of a ladder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// What it is called in tables and charts.
    pub name: String,
    /// What it shows.
    pub note: String,
    /// Its targets; empty: those of the study.
    pub targets: Vec<String>,
    /// Its settings, over those of the study.
    pub settings: Axes,
    /// Settings for one target only, over all others.
    pub target_settings: BTreeMap<String, Axes>,
    /// Counters and waits to show with it: the proof that a problem does or does not exist.
    pub proof: Vec<String>,
    /// Why there is nothing to run for it here, if so.
    pub skip: Option<String>,
}

/// A study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Study {
    /// A short name: `keys`.
    pub name: String,
    /// A heading.
    pub title: String,
    /// Which classic experiment it repeats: `E1`.
    pub experiment: String,
    /// What it asks, in a few sentences.
    pub description: String,
    /// Who is measured.
    pub targets: Vec<String>,
    /// How often each case runs.
    pub repeats: usize,
    /// Where the shuffle of the cases begins.
    pub seed: u64,
    /// Whether each part keeps the settings of those before it.
    pub cumulative: bool,
    /// Whether it goes on without a permission that is missing, saying so; else such cases are
    /// skipped.
    pub without_permission: bool,
    /// The settings.
    pub settings: Axes,
    /// Settings for one target only, over those of study and part.
    pub target_settings: BTreeMap<String, Axes>,
    /// The parts; none: the settings alone are the matrix.
    pub parts: Vec<Part>,
    /// How it is drawn.
    pub chart: Chart,
    /// The classic results.
    pub references: Vec<Reference>,
    /// What is different in the size it was read for.
    pub size: Size,
}

impl Study {
    /// Has a target measured that no case has, wherever the targets are those of the study. One that
    /// is measured already stays where it is.
    ///
    /// # Errors
    /// A sentence: each part names targets of its own, so that there is no place for another one.
    pub fn measure_also(&mut self, target: &str) -> Result<(), String> {
        let is_measured = |study: &Study| study.cases().iter().any(|case| case.target == target);
        if is_measured(self) {
            return Ok(());
        }
        self.targets.push(target.to_owned());
        match is_measured(self) {
            true => Ok(()),
            false => Err(format!(
                "each part of the study {} names its own targets, and none of them is {target}; \
                 name it in a part of a study file of your own",
                self.name
            )),
        }
    }

    /// Gives a setting one value in all cases, whatever the study, its parts and its targets say;
    /// `given` is `NAME=VALUE`.
    ///
    /// # Errors
    /// A sentence: no such setting, with the nearest one, or no such value of it.
    pub fn set_everywhere(&mut self, given: &str) -> Result<(), String> {
        let (name, value) = given
            .split_once('=')
            .ok_or_else(|| format!("{given:?} is no NAME=VALUE, such as rows=100k"))?;
        let setting = Setting::named(name.trim())?;
        let value = setting.read(&toml::Value::String(value.trim().to_owned()))?;
        let of_parts = self
            .parts
            .iter_mut()
            .flat_map(|part| part.target_settings.values_mut().chain([&mut part.settings]));
        for axes in of_parts.chain(self.target_settings.values_mut()) {
            axes.remove(&setting);
        }
        self.settings.insert(setting, vec![value]);
        Ok(())
    }
}
