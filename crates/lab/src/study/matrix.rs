//! From a study to its cases: the product of all lists, for every target of every part.
//!
//! What stands closer to a case wins: defaults, then the study, then (on a ladder) the parts
//! before, then its part, then its target.

use serde::{Deserialize, Serialize};

use crate::study::file::{Axes, Part, Study};
use crate::study::settings::Settings;

/// One case of the matrix: a target and all its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Its place in the study, from 0. The order of results, not that of running.
    pub number: usize,
    /// Who is measured.
    pub target: String,
    /// The part it belongs to.
    pub part: Option<String>,
    /// All settings.
    pub settings: Settings,
    /// Why it is not run, where the study itself says so.
    pub skip: Option<String>,
}

impl Study {
    /// Its cases, in the order in which results are shown.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        if self.parts.is_empty() {
            for target in &self.targets {
                self.cases_of(None, target, &mut cases);
            }
        }
        for index in 0..self.parts.len() {
            let own = &self.parts[index].targets;
            for target in if own.is_empty() { &self.targets } else { own } {
                self.cases_of(Some(index), target, &mut cases);
            }
        }
        cases
    }

    fn cases_of(&self, part: Option<usize>, target: &str, cases: &mut Vec<Case>) {
        let mut axes = self.settings.clone();
        let parts: &[Part] = match part {
            None => &[],
            Some(index) if self.cumulative => &self.parts[..=index],
            Some(index) => &self.parts[index..=index],
        };
        for part in parts {
            extend(&mut axes, &part.settings);
        }
        let of_target = [&self.target_settings]
            .into_iter()
            .chain(parts.iter().map(|part| &part.target_settings))
            .filter_map(|settings| settings.get(target));
        for settings in of_target {
            extend(&mut axes, settings);
        }
        let part = part.map(|index| &self.parts[index]);
        for settings in product(&axes) {
            cases.push(Case {
                number: cases.len(),
                target: target.to_owned(),
                part: part.map(|part| part.name.clone()),
                settings,
                skip: part.and_then(|part| part.skip.clone()),
            });
        }
    }
}

fn extend(axes: &mut Axes, over: &Axes) {
    axes.extend(over.iter().map(|(setting, values)| (*setting, values.clone())));
}

/// Every combination; the last axis turns fastest.
fn product(axes: &Axes) -> Vec<Settings> {
    let mut all = vec![Settings::default()];
    for (setting, values) in axes {
        let mut longer = Vec::with_capacity(all.len() * values.len());
        for settings in &all {
            for value in values {
                longer.push(settings.clone().with(*setting, value.clone()));
            }
        }
        all = longer;
    }
    all
}
