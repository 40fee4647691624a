//! Studies: a matrix of loads over several targets, run so that their results can be compared.
//!
//! - [`mod@file`]: what a study says; read from TOML. [`setting`]: the list of what it may turn.
//! - [`matrix`]: its cases.
//! - [`outcome`]: what was found, as plain data; [`summary`]: what repeats say together.
//! - [`run`]: runs all of it, and keeps each run in the result file.
//!   [`proof`]: what a part shows as its proof.
//! - [`table`]: results as text. [`shipped`]: the studies that come with the program.
//!   [`page`]: the settings for `docs/lab.md`.
//!
//! What is measured stands behind [`Target`](crate::target::Target).

mod device;
pub mod file;
pub mod matrix;
pub mod outcome;
pub mod page;
pub(crate) mod proof;
mod read;
mod read_chart;
pub mod run;
pub mod setting;
pub mod settings;
pub mod shipped;
pub mod summary;
pub mod table;

pub use file::{Axes, Chart, ChartKind, Part, Reference, Size, Study};
pub use matrix::Case;
pub use outcome::{CaseOutcome, DeviceUse, Repeat, StudyResult, TargetShown};
pub use setting::{Concerns, Kind, Setting, SettingValue};
pub use settings::Settings;
pub use summary::Summary;
