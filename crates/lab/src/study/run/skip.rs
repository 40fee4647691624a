//! Cases that cannot be run, each with its reason, found before the first one runs.

use onrush_measure::machine;

use crate::study::file::Study;
use crate::study::matrix::Case;
use crate::study::setting::Setting;
use crate::target::{Target, instances};

/// Where the runner finds its targets: [`crate::target::find`], or planted ones in tests.
pub type FindTarget<'f> = &'f dyn Fn(&str) -> Result<Box<dyn Target>, String>;

/// Why a case is not run; or, if it is, what it has to do without: a permission that is missing is left
/// out of the settings where the study goes on without it.
pub(super) fn reason(
    study: &Study,
    case: &mut Case,
    find: FindTarget<'_>,
) -> Result<Vec<String>, String> {
    if let Some(reason) = &case.skip {
        return Err(reason.clone());
    }
    let target = find(&case.target)?;
    let impossible = || target.impossible(&case.settings);
    let reason = target.missing().or_else(impossible);
    if let Some(reason) = reason.or_else(|| instances::impossible(&case.settings)) {
        return Err(reason);
    }
    let mut given_up = Vec::new();
    for (setting, without, missing) in
        [(Setting::Pinning, "none", pinning(case)), (Setting::LargePages, "try", large_pages(case))]
    {
        let Some(reason) = missing else { continue };
        if !study.without_permission {
            return Err(reason);
        }
        let name = setting.name();
        given_up.push(format!("ran with {name} = \"{without}\": {reason}"));
        case.settings.set(setting, without.into());
    }
    Ok(given_up)
}

fn pinning(case: &Case) -> Option<String> {
    let wants = !case.settings.is(Setting::Pinning, "none");
    wants.then(|| machine::may_pin().err()).flatten().map(|error| error.to_string())
}

fn large_pages(case: &Case) -> Option<String> {
    let bytes = case.settings.number(Setting::CacheBytes);
    let wants = case.settings.is(Setting::LargePages, "require");
    let missing = wants.then(|| machine::large_pages_missing(bytes)).flatten();
    missing.map(|what| format!("{what} large_pages = \"try\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::file::Size;

    /// A study that wants more large pages than any machine has.
    fn study(without_permission: bool) -> Study {
        let text = format!(
            "name = \"s\"\ntitle = \"S\"\ntargets = [\"null\"]\n\
             without_permission = {without_permission}\n[settings]\ndurability = \"delayed\"\n\
             large_pages = \"require\"\ncache_bytes = \"1024TiB\"\n[chart]\nx = \"target\"\n"
        );
        Study::read(&text, "s.toml", Size::Full).unwrap()
    }

    #[test]
    fn what_a_database_cannot_have_is_told_before_the_run() {
        let folders = vec!["data"; 17].join(",");
        for (setting, words) in [
            (format!("data_folders = \"{folders}\""), "17 folders; a database has at most 16"),
            ("rows_per_commit = \"1m\"\nsessions = 1".to_owned(), "an eighth of the log ring"),
            ("log_capacity_bytes = 1".to_owned(), "log_capacity_bytes is 1"),
        ] {
            let text = format!(
                "name = \"s\"\ntitle = \"S\"\ntargets = [\"onrush\"]\n[settings]\n{setting}\n\
                 [chart]\nx = \"target\"\n"
            );
            let study = Study::read(&text, "s.toml", Size::Full).unwrap();
            let mut case = study.cases().remove(0);
            let find = &|name: &str| crate::target::find(name);
            let skipped = reason(&study, &mut case, find).unwrap_err();
            assert!(skipped.contains(words), "{skipped}");
        }
    }

    #[test]
    fn what_is_not_permitted_is_skipped_or_given_up_and_told_with_its_cure() {
        let find = &|name: &str| crate::target::find(name);
        let mut case = study(false).cases().remove(0);
        let skipped = reason(&study(false), &mut case, find).unwrap_err();
        assert!(skipped.contains("/proc/sys/vm/nr_hugepages"), "{skipped}");
        assert!(case.settings.is(Setting::LargePages, "require"));
        let told = reason(&study(true), &mut case, find).unwrap();
        let [told] = &told[..] else { panic!("{told:?}") };
        assert!(told.starts_with("ran with large_pages = \"try\": needs"), "{told}");
        assert!(told.contains("/proc/sys/vm/nr_hugepages"), "{told}");
        assert!(case.settings.is(Setting::LargePages, "try"));
    }
}
