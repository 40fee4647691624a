//! Names that are made up for constraints, indexes and sequences, as PostgreSQL makes them up: of the names of a table
//! and its columns and a word for the kind, none longer than a name can be, with a number where one is taken.

/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 63;

/// The first such name that is free. The parts are cut where the whole is too long, the longer one first.
pub(crate) fn free_name(
    table: &str,
    columns: Option<&str>,
    kind: &str,
    is_free: impl Fn(&str) -> bool,
) -> String {
    let numbered = (1..).map(|number| name(table, columns, &format!("{kind}{number}")));
    let first = name(table, columns, kind);
    let mut names = std::iter::once(first.clone()).chain(numbered);
    names.find(|name| is_free(name)).unwrap_or(first)
}

/// One without a number.
pub(crate) fn name(table: &str, columns: Option<&str>, kind: &str) -> String {
    let of_columns = columns.map_or(0, |columns| columns.len() + 1);
    let left = NAME_BYTES_MAX.saturating_sub(kind.len() + 1 + usize::from(of_columns > 0));
    let (mut first, mut second) = (table.len(), of_columns.saturating_sub(1));
    while first + second > left {
        if first > second { first -= 1 } else { second -= 1 }
    }
    let table = &table[..table.floor_char_boundary(first)];
    match columns {
        Some(columns) => {
            let columns = &columns[..columns.floor_char_boundary(second)];
            format!("{table}_{columns}_{kind}")
        }
        None => format!("{table}_{kind}"),
    }
}

/// The columns of one as a part of a name.
pub(crate) fn joined<'a>(columns: impl IntoIterator<Item = &'a str>) -> String {
    let mut joined = String::new();
    for column in columns {
        if !joined.is_empty() {
            joined.push('_');
        }
        joined.push_str(column);
        // More of them would be cut off anyway.
        if joined.len() > NAME_BYTES_MAX {
            break;
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_part_is_cut() {
        assert_eq!(name("t", Some("a_b"), "key"), "t_a_b_key");
        assert_eq!(name("t", None, "pkey"), "t_pkey");
        let long = "x".repeat(63);
        assert_eq!(name(&long, None, "pkey"), format!("{}_pkey", "x".repeat(58)));
        assert_eq!(name(&long, Some("a"), "key"), format!("{}_a_key", "x".repeat(57)));
        let both = name(&long, Some(&long), "fkey1");
        assert_eq!(both, format!("{}_{}_fkey1", "x".repeat(28), "x".repeat(28)));
        assert_eq!(both.len(), 63);
    }

    #[test]
    fn a_character_is_not_cut_in_two() {
        let long = "é".repeat(31);
        assert_eq!(name(&long, None, "pkey"), format!("{}_pkey", "é".repeat(29)));
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let is_free = |name: &str| !matches!(name, "t_a_idx" | "t_a_idx1");
        assert_eq!(free_name("t", Some("a"), "idx", is_free), "t_a_idx2");
    }
}
