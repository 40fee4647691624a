//! The nearest of the names there are, for messages about a name that there is not.

/// Below this likeness a name is no help.
const LIKENESS_MIN: f64 = 0.7;
/// So many names are listed; of more, none.
const LISTED_MAX: usize = 12;

/// The name that is most like the given one; none where none is enough like it to be meant.
pub fn most_alike<'n>(given: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let rated = names.into_iter().map(|name| (strsim::jaro_winkler(given, name), name));
    let (likeness, name) = rated.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (likeness >= LIKENESS_MIN).then_some(name)
}

/// "did you mean ...", or the names there are.
pub fn nearest<'n>(given: &str, names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    match most_alike(given, names.iter().copied()) {
        Some(name) => format!("did you mean {name:?}?"),
        None if names.len() <= LISTED_MAX => format!("there are: {}", names.join(", ")),
        None => "docs/lab.md lists all of them".to_owned(),
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
