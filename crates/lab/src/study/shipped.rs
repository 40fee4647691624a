//! The studies that come with the program.

use crate::error::LabError;
use onrush_measure::nearest::nearest;

use crate::study::file::{Size, Study};

/// Name and text of each.
const STUDIES: &[(&str, &str)] = &[
    ("keys", include_str!("../../studies/keys.toml")),
    ("ladder", include_str!("../../studies/ladder.toml")),
    ("batching", include_str!("../../studies/batching.toml")),
    ("layouts", include_str!("../../studies/layouts.toml")),
    ("check", include_str!("../../studies/check.toml")),
    ("pinned", include_str!("../../studies/pinned.toml")),
    ("front", include_str!("../../studies/front.toml")),
    ("phases", include_str!("../../studies/phases.toml")),
    ("population", include_str!("../../studies/population.toml")),
    ("singleton", include_str!("../../studies/singleton.toml")),
    ("sessions", include_str!("../../studies/sessions.toml")),
    ("cores", include_str!("../../studies/cores.toml")),
    ("server", include_str!("../../studies/server.toml")),
    ("indexes", include_str!("../../studies/indexes.toml")),
    ("generator", include_str!("../../studies/generator.toml")),
];

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    STUDIES.iter().map(|(name, _)| *name)
}

/// The text of one.
///
/// # Errors
/// There is none of this name: a sentence with the nearest one.
pub fn source(name: &str) -> Result<&'static str, String> {
    let found = STUDIES.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        format!("there is no study {name:?} and no such file; {}", nearest(name, names()))
    })
}

/// One of them.
///
/// # Errors
/// There is none of this name.
pub fn study(name: &str, size: Size) -> Result<Study, LabError> {
    Study::read(source(name).map_err(LabError::Setting)?, name, size)
}

#[cfg(test)]
mod tests {
    use onrush::KeyStrategy;

    use super::*;
    use crate::study::setting::Setting;

    #[test]
    fn every_shipped_study_is_sound_in_both_sizes_and_quick_is_smaller() {
        for name in names() {
            let [quick, full] = [Size::Quick, Size::Full].map(|size| study(name, size).unwrap());
            assert_eq!(full.name, name);
            let rows = |study: &Study| {
                study.cases().iter().map(|case| case.settings.rows()).sum::<u64>()
                    * study.repeats as u64
            };
            assert!(rows(&quick) < rows(&full), "{name}");
            assert!(!full.description.is_empty() && !full.title.is_empty(), "{name}");
            for reference in &full.references {
                assert!(!reference.conditions.is_empty(), "{name}: {}", reference.label);
            }
        }
    }

    /// Which settings a study's cases take back to a value that they had before, in their order.
    fn taken_back(study: &Study) -> Vec<(String, Setting)> {
        let cases = study.cases();
        let mut back = Vec::new();
        for (place, case) in cases.iter().enumerate().skip(1) {
            for (setting, value) in case.settings.iter() {
                let is_new = *value != cases[place - 1].settings.value(setting);
                let was = cases[..place].iter().any(|one| one.settings.value(setting) == *value);
                if is_new && was {
                    back.push((case.part.clone().unwrap_or_default(), setting));
                }
            }
        }
        back
    }

    #[test]
    fn a_rung_of_the_ladder_keeps_those_before_it_but_for_the_one_that_its_text_names() {
        for size in [Size::Quick, Size::Full] {
            let mut study = study("ladder", size).unwrap();
            study.parts.retain(|part| !part.note.starts_with("No rung: "));
            let kept_free = ("delayed durability".to_owned(), Setting::CpusKeptFree);
            assert_eq!(taken_back(&study), [kept_free]);
            assert!(study.description.contains("One is taken back"), "{}", study.description);
            let [first, second] = [&study.cases()[0], &study.cases()[1]];
            assert!(matches!(first.settings.key(), KeyStrategy::Identity { strict: false, .. }));
            let shared = first.settings.clone().with(Setting::SequentialKeys, "blocks");
            assert_eq!(shared, second.settings, "they differ by the handling of ascending keys");
            for part in study.parts.iter().filter(|part| part.skip.is_none()) {
                assert!(!part.proof.is_empty() && !part.note.is_empty(), "{}", part.name);
            }
        }
    }

    #[test]
    fn the_ladder_ends_with_its_two_lowest_rungs_once_more_not_synced() {
        for size in [Size::Quick, Size::Full] {
            let study = study("ladder", size).unwrap();
            let cases = study.cases();
            for (rung, again) in cases[..2].iter().zip(&cases[cases.len() - 2..]) {
                let delayed = rung.settings.clone().with(Setting::Durability, "delayed");
                let rows = again.settings.number(Setting::RowsPerSession);
                assert_eq!(delayed.with(Setting::RowsPerSession, rows), again.settings);
                let name = format!("{}, delayed", rung.part.as_deref().unwrap());
                assert_eq!(again.part, Some(name));
            }
        }
    }

    #[test]
    fn a_misspelt_study_is_told_with_the_nearest_one() {
        assert!(source("ladders").unwrap_err().contains("did you mean \"ladder\"?"));
    }
}
