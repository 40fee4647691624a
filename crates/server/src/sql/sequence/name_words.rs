//! `IDENTITY (SEQUENCE NAME name ...)`, as dumps have it: sqlparser does not read it, and the sequence of an identity
//! is always called after its table and column.

use std::ops::Range;

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::sql::constraints::identifier;
use crate::sql::rewrite::word;

/// Takes the name of the sequence out of `ALTER TABLE table ALTER COLUMN column ADD GENERATED ... AS IDENTITY (...)`,
/// where it is the one that the sequence has anyway. Any other stays there, and is refused.
pub(in crate::sql) fn take_own_name(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let places: Vec<usize> = statement.filter(is_word).collect();
    let words: Vec<String> = places.iter().map(|at| word(&tokens[*at])).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some(open) =
        words.windows(4).position(|four| four == ["identity", "(", "sequence", "name"])
    else {
        return;
    };
    let named = |at: usize| places.get(at).and_then(|at| identifier(&tokens[*at].token));
    let name = |at: usize| match words.get(at + 1) {
        Some(&".") => (named(at), named(at + 2), at + 3),
        _ => (None, named(at), at + 1),
    };
    let ["alter", "table", rest @ ..] = words.as_slice() else { return };
    let mut at = 2;
    if rest.starts_with(&["if", "exists"]) {
        at += 2;
    }
    if words.get(at) == Some(&"only") {
        at += 1;
    }
    let (schema, table, behind) = name(at);
    // The one that the identity is for, of several.
    let altered = words.get(behind..open).and_then(|it| it.iter().rposition(|it| *it == "alter"));
    let Some(altered) = altered.map(|at| behind + at) else { return };
    let column = match words.get(altered + 1) {
        Some(&"column") => named(altered + 2),
        _ => named(altered + 1),
    };
    let (Some(table), Some(column)) = (table, column) else { return };
    let first = open + 2;
    let (own_schema, own, behind) = name(first + 2);
    let is_own = own.is_some_and(|own| own == format!("{table}_{column}_seq"));
    if is_own && (own_schema.is_none() || own_schema == schema) {
        for place in places[first..behind].iter().rev() {
            tokens.remove(*place);
        }
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    fn taken(text: &str) -> String {
        let mut tokens =
            Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().expect("tokens");
        let all = 0..tokens.len();
        super::take_own_name(&mut tokens, all);
        let words: Vec<String> = tokens.iter().map(|token| token.token.to_string()).collect();
        words.concat().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_name_that_it_has_anyway_is_taken_out() {
        assert_eq!(
            taken(
                "ALTER TABLE public.\"Sale\" ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( \
                 SEQUENCE NAME public.\"Sale_id_seq\" START WITH 1 )"
            ),
            "ALTER TABLE public.\"Sale\" ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( START WITH 1 )"
        );
        assert_eq!(
            taken(
                "alter table only t alter i add generated always as identity(sequence name t_i_seq)"
            ),
            "alter table only t alter i add generated always as identity( )"
        );
    }

    #[test]
    fn of_several_columns_it_is_that_of_the_identity() {
        let two = "ALTER TABLE t ALTER a SET NOT NULL, ALTER i ADD GENERATED ALWAYS AS IDENTITY";
        let [own, other] = ["i", "a"].map(|of| format!("{two} (SEQUENCE NAME t_{of}_seq)"));
        assert_eq!(taken(&own), format!("{two} ( )"));
        assert_eq!(taken(&other), other);
    }

    #[test]
    fn another_name_stays() {
        for other in [
            "ALTER TABLE a.t ALTER i ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME b.t_i_seq)",
            "ALTER TABLE t ALTER i ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME numbers)",
            "CREATE TABLE t (i int GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME t_i_seq))",
        ] {
            assert_eq!(taken(other), other);
        }
    }
}
