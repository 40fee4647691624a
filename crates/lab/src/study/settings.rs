//! All settings of one case, every one with a value.

use std::collections::BTreeMap;
use std::time::Duration;

use onrush::KeyStrategy;
use onrush_measure::classic_table::{CLASSIC_ROW_BYTES, NumberColumns};
use onrush_measure::load::client_keys::KeySpread;
use onrush_measure::load::mix::Mix;
use serde::{Deserialize, Serialize};

use crate::study::setting::{Setting, SettingValue};

/// In the order in which `indexes` counts them.
const INDEXED_COLUMNS: [&str; 3] = ["c6", "c5", "c4"];

/// A value for every setting: those of the study, and the defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, SettingValue>")]
pub struct Settings(BTreeMap<Setting, SettingValue>);

impl Default for Settings {
    fn default() -> Self {
        let values = Setting::ALL.iter().map(|setting| (*setting, setting.default_value()));
        Settings(values.collect())
    }
}

impl Settings {
    /// Sets one.
    pub fn set(&mut self, setting: Setting, value: SettingValue) {
        self.0.insert(setting, value);
    }

    /// The same for chains.
    #[must_use]
    pub fn with(mut self, setting: Setting, value: impl Into<SettingValue>) -> Settings {
        self.set(setting, value.into());
        self
    }

    /// A setting's value.
    pub fn value(&self, setting: Setting) -> SettingValue {
        self.0.get(&setting).cloned().unwrap_or_else(|| setting.default_value())
    }

    /// A count or a number of bytes; 0 for settings of another kind.
    pub fn number(&self, setting: Setting) -> u64 {
        match self.value(setting) {
            SettingValue::Number(number) => number,
            SettingValue::Switch(on) => u64::from(on),
            SettingValue::Text(_) => 0,
        }
    }

    /// A count that is kept in memory.
    pub fn size(&self, setting: Setting) -> usize {
        usize::try_from(self.number(setting)).unwrap_or(usize::MAX)
    }

    /// A word or text; for other kinds as it is shown.
    pub fn text(&self, setting: Setting) -> String {
        self.value(setting).to_string()
    }

    /// The same for tables and charts: what an empty text means instead of nothing.
    pub fn shown(&self, setting: Setting) -> String {
        let text = self.text(setting);
        if text.is_empty() { setting.empty_name().to_owned() } else { text }
    }

    /// Whether a setting has this word.
    pub fn is(&self, setting: Setting, word: &str) -> bool {
        matches!(self.value(setting), SettingValue::Text(text) if text == word)
    }

    /// Whether a switch is on.
    pub fn is_on(&self, setting: Setting) -> bool {
        self.value(setting) == SettingValue::Switch(true)
    }

    /// Whether every commit waits until it is on disk.
    pub fn is_durable(&self) -> bool {
        self.is(Setting::Durability, "durable")
    }

    /// Whether the check of what was preloaded is measured, and nothing is inserted.
    pub fn is_check(&self) -> bool {
        self.is(Setting::Operation, "check")
    }

    /// How keys are made.
    pub fn key(&self) -> KeyStrategy {
        self.text(Setting::Key).parse().unwrap_or(KeyStrategy::SessionOffset)
    }

    /// Rows that all sessions insert together, whichever way it was given.
    pub fn rows(&self) -> u64 {
        let (each, ratio) =
            (self.number(Setting::RowsPerSession), self.number(Setting::MemoryRatio));
        match (each, ratio) {
            (0, 0) => self.number(Setting::Rows),
            (0, ratio) => {
                self.number(Setting::CacheBytes).saturating_mul(ratio) / CLASSIC_ROW_BYTES
            }
            (each, _) => each.saturating_mul(self.number(Setting::Sessions)),
        }
    }

    /// How the client's keys lie in the key space.
    pub fn key_spread(&self) -> KeySpread {
        match self.text(Setting::KeySpread).as_str() {
            "zipfian" => KeySpread::Zipfian,
            "hot" => KeySpread::Hot,
            "scattered" => KeySpread::Scattered,
            _ => KeySpread::Even,
        }
    }

    /// What the rows hold in c4, c5 and c6.
    pub fn number_columns(&self) -> NumberColumns {
        match self.is(Setting::Columns, "random") {
            true => NumberColumns::Random,
            false => NumberColumns::Constant,
        }
    }

    /// The columns with an index of their own.
    pub fn indexed_columns(&self) -> &'static [&'static str] {
        &INDEXED_COLUMNS[..self.size(Setting::Indexes).min(INDEXED_COLUMNS.len())]
    }

    /// Reads and updates beside the inserts.
    pub fn mix(&self) -> Mix {
        Mix {
            reads_per_100_rows: self.number(Setting::ReadsPer100Rows),
            updates_per_100_rows: self.number(Setting::UpdatesPer100Rows),
        }
    }

    /// Why no target can load with these keys, or with reads and updates beside; None if one can.
    pub fn impossible_client(&self) -> Option<String> {
        let spread = self.key_spread().impossible(self.key()).map(str::to_owned);
        let is_single =
            self.number(Setting::RowsPerCommit) == 1 && self.is(Setting::Driver, "threads");
        let mixed = (!self.mix().is_inserts_only() && !is_single)
            .then(|| "reads and updates go between commits of one row, by threads".to_owned());
        let indexed = (!self.indexed_columns().is_empty()
            && self.number_columns() == NumberColumns::Constant)
            .then(|| "indexes are of random numbers: set columns to \"random\"".to_owned());
        spread.or(mixed).or(indexed)
    }

    /// After what time the measured load ends though rows are left.
    pub fn time_max(&self) -> Option<Duration> {
        let seconds = self.number(Setting::SecondsMax);
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// Rows that one call or statement brings.
    pub fn rows_per_statement(&self) -> u64 {
        let rows_per_commit = self.number(Setting::RowsPerCommit);
        match self.number(Setting::RowsPerStatement) {
            0 => rows_per_commit,
            rows => rows.min(rows_per_commit),
        }
    }

    /// Every setting with its value, in the order of the list.
    pub fn iter(&self) -> impl Iterator<Item = (Setting, &SettingValue)> {
        self.0.iter().map(|(setting, value)| (*setting, value))
    }

    /// The settings that are not at their default.
    pub fn changed(&self) -> impl Iterator<Item = (Setting, &SettingValue)> {
        self.iter().filter(|(setting, value)| **value != setting.default_value())
    }
}

/// Settings that this version does not know, from results of another one, are left out.
impl From<BTreeMap<String, SettingValue>> for Settings {
    fn from(values: BTreeMap<String, SettingValue>) -> Settings {
        let mut settings = Settings::default();
        for (name, value) in values {
            if let Ok(setting) = Setting::named(&name) {
                settings.set(setting, value);
            }
        }
        settings
    }
}

impl From<u64> for SettingValue {
    fn from(number: u64) -> SettingValue {
        SettingValue::Number(number)
    }
}

impl From<bool> for SettingValue {
    fn from(on: bool) -> SettingValue {
        SettingValue::Switch(on)
    }
}

impl From<&str> for SettingValue {
    fn from(text: &str) -> SettingValue {
        SettingValue::Text(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_keep_their_values_through_json() {
        let settings = Settings::default()
            .with(Setting::Key, "identity(1,strict)")
            .with(Setting::ElideDefaults, false)
            .with(Setting::Rows, 7);
        let text = serde_json::to_string(&settings).unwrap();
        let back: Settings = serde_json::from_str(&text).unwrap();
        assert_eq!(back, settings);
        assert_eq!(back.changed().count(), 3);
        assert_eq!(back.key(), KeyStrategy::Identity { start: 1, strict: true });
    }

    #[test]
    fn rows_for_each_session_take_the_place_of_rows() {
        let settings =
            Settings::default().with(Setting::RowsPerSession, 10).with(Setting::Sessions, 3);
        assert_eq!(settings.rows(), 30);
    }

    #[test]
    fn a_memory_ratio_takes_the_place_of_rows() {
        let settings = Settings::default()
            .with(Setting::CacheBytes, 163 << 10)
            .with(Setting::MemoryRatio, 8)
            .with(Setting::Rows, 3);
        assert_eq!(settings.rows(), 8 << 10);
    }
}
