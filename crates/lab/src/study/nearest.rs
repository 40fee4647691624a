//! The nearest of the names there are, for messages about a name that there is not.

/// Below this likeness a name is no help.
const LIKENESS_MIN: f64 = 0.6;
/// So many names are listed; of more, none.
const LISTED_MAX: usize = 12;

/// "did you mean ...", or the names there are.
pub(crate) fn nearest<'n>(given: &str, names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    let likeness = |name: &str| strsim::jaro_winkler(given, name);
    let best = names.iter().max_by(|left, right| likeness(left).total_cmp(&likeness(right)));
    match best {
        Some(best) if likeness(best) >= LIKENESS_MIN => format!("did you mean {best:?}?"),
        _ if names.len() <= LISTED_MAX => format!("there are: {}", names.join(", ")),
        _ => "docs/lab.md lists all of them".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_mended_and_a_strange_one_gets_the_list() {
        let names = || ["sessions", "rows", "rows_per_commit"].into_iter();
        assert_eq!(nearest("sesions", names()), "did you mean \"sessions\"?");
        assert_eq!(nearest("row_per_commit", names()), "did you mean \"rows_per_commit\"?");
        assert_eq!(nearest("zzz", names()), "there are: sessions, rows, rows_per_commit");
    }
}
