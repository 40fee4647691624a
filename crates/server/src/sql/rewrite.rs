//! Statements of PostgreSQL's that sqlparser does not read: written in words that it does read, or
//! refused.

use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::constraints::{self, ConstraintsPlan};
use super::drop_missing::{self, DropMissing};
use super::fetch::{self, FetchPlan};
use super::grant_words::{self, GrantStatement};
use super::member_words::{self, MemberStatement};
use super::owner::{self, OwnerStatement};
use super::plan::CreateForm;
use super::setting::SettingChange;
use super::storage::{self, StorageStatement};
use super::view::AlterView;
use super::view::materialized::{self, RefreshStatement};
use super::{
    conflict_words, cursor_words, domain, exclusion_words, frame_words, identity_words, like,
    limit_words, locking_words, merge_words, only_words, operator_words, order_words,
    overriding_words, record_words, recursive_view_words, schema_elements, select_words, sequence,
    similar_words, subscript_words, transaction_words, unique_words, user, variadic_words,
};
use crate::error::{Result, SqlError};

/// What the words that are left of a statement do not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// CREATE, without UNLOGGED and WITH NO DATA.
    Create(CreateForm),
    /// ALTER DATABASE, with its name; SET or RESET is left.
    Database(String),
    /// ALTER TABLE ... SET SCHEMA, with RENAME TO in place of these words.
    SetSchema,
    /// ALTER VIEW, with TABLE in place of that, and RENAME TO in place of SET SCHEMA.
    AlterView(AlterView),
    /// REFRESH MATERIALIZED VIEW. A word that is read is left.
    Refresh(RefreshStatement),
    /// COMMENT ON CONSTRAINT, with its name; COMMENT ON TABLE and the name of its table are left.
    ConstraintComment(String),
    /// A statement that has nothing to do here, by its first word. A word that is read is left.
    Nothing(&'static str),
    /// FETCH and MOVE. A word that is read is left.
    Fetch(FetchPlan),
    /// SET CONSTRAINTS. A word that is read is left.
    Constraints(ConstraintsPlan),
    /// CREATE SCHEMA, with the words of each of its elements, which are taken out.
    Elements(Vec<Vec<TokenWithSpan>>),
    /// SET ROLE and the like. A word that is read is left.
    Setting(SettingChange),
    /// OWNER TO and the like. A word that is read is left.
    Owner(OwnerStatement),
    /// Rights on types, and on what is going to be made. A word that is read is left.
    Grant(GrantStatement),
    /// Roles in roles. A word that is read is left.
    Members(MemberStatement),
    /// How things are stored. A word that is read is left.
    Storage(StorageStatement),
    /// DROP of what there is none of. A word that is read is left.
    DropMissing(DropMissing),
    /// CREATE and ALTER SEQUENCE. A word that is read is left.
    Sequence(sequence::Statement),
    /// CREATE and ALTER DOMAIN. A word that is read is left.
    Domain(domain::Statement),
}

/// How many words tell what a statement is.
const LEADING_WORDS: usize = 5;

/// Returns the marks of statements by their numbers, from 0.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) -> Result<Vec<(usize, Mark)>> {
    let mut marks = Vec::new();
    let (mut start, mut number) = (0, 0);
    while start < tokens.len() {
        let length = tokens[start..].iter().position(|token| token.token == Token::SemiColon);
        let end = length.map_or(tokens.len(), |length| start + length);
        let behind = tokens.len() - end;
        if let Some(elements) = schema_elements::take(tokens, start..end) {
            marks.push((number, Mark::Elements(elements)));
            start = tokens.len() - behind + 1;
            number += 1;
            continue;
        }
        recursive_view_words::spell(tokens, start..end);
        let end = tokens.len() - behind;
        transaction_words::spell(tokens, start..end);
        select_words::spell(tokens, start..tokens.len() - behind);
        limit_words::spell(tokens, start..tokens.len() - behind);
        frame_words::spell(tokens, start..tokens.len() - behind);
        exclusion_words::spell(tokens, start..tokens.len() - behind);
        order_words::spell(tokens, start..tokens.len() - behind);
        variadic_words::spell(tokens, start..tokens.len() - behind);
        subscript_words::spell(tokens, start..tokens.len() - behind);
        cursor_words::spell(tokens, start..tokens.len() - behind);
        let end = tokens.len() - behind;
        record_words::spell(tokens, start..end);
        similar_words::spell(tokens, start..end);
        locking_words::spell(tokens, start..tokens.len() - behind);
        conflict_words::spell(tokens, start..tokens.len() - behind);
        overriding_words::spell(tokens, start..tokens.len() - behind);
        merge_words::spell(tokens, start..tokens.len() - behind);
        only_words::spell(tokens, start..tokens.len() - behind);
        operator_words::spell(tokens, start..tokens.len() - behind);
        let end = tokens.len() - behind;
        let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
        let leading: Vec<usize> = (start..end).filter(is_word).take(LEADING_WORDS).collect();
        // Semicolons in a row have no statement between them.
        if leading.is_empty() {
            start = end + 1;
            continue;
        }
        check_refused(&tokens[start..end])?;
        if word(&tokens[leading[0]]) == "create" {
            like::rewrite(tokens, start..end);
        }
        if matches!(word(&tokens[leading[0]]).as_str(), "create" | "alter") {
            unique_words::spell(tokens, start..tokens.len() - behind);
        }
        if word(&tokens[leading[0]]) == "alter" {
            identity_words::spell(tokens, start..tokens.len() - behind);
            sequence::take_own_name(tokens, start..tokens.len() - behind);
        }
        let end = tokens.len() - behind;
        sequence::put_in_order(tokens, start..end);
        spell_booleans(&mut tokens[start..end]);
        free_names(&mut tokens[start..end]);
        let read = match read_by_words(&words_of(tokens, &(start..end))) {
            Some(mark) => Some(mark),
            None => match domain::read(&tokens[start..end]) {
                Some(domain) => Some(Mark::Domain(domain?)),
                None => sequence::read(&tokens[start..end]).transpose()?.map(Mark::Sequence),
            },
        };
        let mark = match read {
            Some(mark) => {
                tokens[leading[0]].token = Token::make_keyword("ROLLBACK");
                tokens.drain(leading[0] + 1..end);
                Some(mark)
            }
            None => rewrite_one(tokens, start..end, &leading),
        };
        marks.extend(mark.map(|mark| (number, mark)));
        start = tokens.len() - behind + 1;
        number += 1;
    }
    Ok(marks)
}

/// Statements that are read here as a whole.
fn read_by_words(words: &[&Token]) -> Option<Mark> {
    owner::read(words)
        .map(Mark::Owner)
        .or_else(|| grant_words::read(words).map(Mark::Grant))
        .or_else(|| member_words::read(words).map(Mark::Members))
        .or_else(|| drop_missing::read(words).map(Mark::DropMissing))
        .or_else(|| storage::read(words).map(Mark::Storage))
        .or_else(|| user::read(words).map(Mark::Setting))
        .or_else(|| fetch::read(words).map(Mark::Fetch))
        .or_else(|| constraints::read(words).map(Mark::Constraints))
        .or_else(|| materialized::read(words).map(Mark::Refresh))
}

fn rewrite_one(
    tokens: &mut Vec<TokenWithSpan>,
    statement: Range<usize>,
    leading: &[usize],
) -> Option<Mark> {
    let words: Vec<String> = leading.iter().map(|at| word(&tokens[*at])).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let first = leading[0];
    match words.as_slice() {
        // Rows lie in the order of their key, and leave no space behind that is not used again.
        [verb @ ("vacuum" | "analyze" | "analyse"), ..] => {
            let verb = if *verb == "vacuum" { "VACUUM" } else { "ANALYZE" };
            tokens[first].token = Token::make_keyword("ROLLBACK");
            tokens.drain(first + 1..statement.end);
            Some(Mark::Nothing(verb))
        }
        ["select" | "insert" | "update" | "delete" | "with" | "values", ..] => {
            user::call_current_role(tokens, first);
            None
        }
        // Readers and writers of the table are not kept off for long either way.
        ["drop", "index", "concurrently", ..] => {
            tokens.remove(leading[2]);
            None
        }
        ["abort", ..] => {
            tokens[first].token = Token::make_keyword("ROLLBACK");
            None
        }
        ["table", _, ..] => {
            let span = tokens[first].span;
            let all = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")];
            tokens.splice(first..=first, all.map(|token| TokenWithSpan { token, span }));
            None
        }
        ["create", ..] => {
            let form = create_form(tokens, &statement, leading, &words);
            (form != CreateForm::PLAIN).then_some(Mark::Create(form))
        }
        ["alter", "table", ..] => renames_schema(tokens, &statement).then_some(Mark::SetSchema),
        ["alter", "view", ..] => {
            tokens[leading[1]].token = Token::make_keyword("TABLE");
            let sets_schema = renames_schema(tokens, &statement);
            Some(Mark::AlterView(AlterView { is_materialized: false, sets_schema }))
        }
        ["alter", "materialized", "view", ..] => {
            let sets_schema = renames_schema(tokens, &statement);
            tokens[leading[2]].token = Token::make_keyword("TABLE");
            tokens.remove(leading[1]);
            Some(Mark::AlterView(AlterView { is_materialized: true, sets_schema }))
        }
        ["comment", "on", "constraint", _, "on"] => {
            let domain = tokens[leading[4] + 1..statement.end]
                .iter()
                .find(|token| !matches!(token.token, Token::Whitespace(_)));
            let is_of_domain = domain.is_some_and(|token| word(token) == "domain");
            let name = constraints::identifier(&tokens[leading[3]].token)?;
            if is_of_domain {
                tokens.drain(leading[2]..=leading[4]);
                return Some(Mark::ConstraintComment(name));
            }
            tokens[leading[2]].token = Token::make_keyword("TABLE");
            tokens.drain(leading[3]..=leading[4]);
            Some(Mark::ConstraintComment(name))
        }
        ["alter", "database", _, "set" | "reset", ..] => {
            let name = match &tokens[leading[2]].token {
                Token::Word(name) if name.quote_style.is_some() => name.value.clone(),
                name => name.to_string().to_lowercase(),
            };
            tokens.drain(first..leading[3]);
            Some(Mark::Database(name))
        }
        _ => None,
    }
}

/// Takes the words out of a CREATE that tell its form, and gives the columns of a table a type that have none.
fn create_form(
    tokens: &mut Vec<TokenWithSpan>,
    statement: &Range<usize>,
    leading: &[usize],
    words: &[&str],
) -> CreateForm {
    let mut end = statement.end;
    let is_plain_view = is_view(words) && !words.contains(&"materialized");
    let has_data = is_plain_view || {
        let (has_data, without) = without_data(&tokens[statement.start..end]);
        tokens.drain(statement.start + without..end);
        end = statement.start + without;
        has_data
    };
    let is_unlogged = words.get(1) == Some(&"unlogged");
    if is_unlogged {
        tokens.remove(leading[1]);
        end -= 1;
    }
    if !is_view(words) {
        type_named_columns(tokens, statement.start..end);
    }
    CreateForm { is_unlogged, has_data }
}

/// Whether a CREATE ... AS asks its query, and how many of its tokens stand before WITH DATA or WITH NO DATA.
fn without_data(statement: &[TokenWithSpan]) -> (bool, usize) {
    let is_word = |at: &usize| !matches!(statement[*at].token, Token::Whitespace(_));
    let places: Vec<usize> = (0..statement.len()).filter(is_word).collect();
    let words: Vec<String> = places.iter().map(|at| word(&statement[*at])).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (has_data, count) = match words.as_slice() {
        [.., "with", "no", "data"] => (false, 3),
        [.., "with", "data"] => (true, 2),
        _ => return (true, statement.len()),
    };
    let before = &words[..words.len() - count];
    match before.contains(&"as") {
        true => (has_data, places[before.len()]),
        false => (true, statement.len()),
    }
}

/// The words of a statement.
fn words_of<'t>(tokens: &'t [TokenWithSpan], statement: &Range<usize>) -> Vec<&'t Token> {
    let all = tokens[statement.clone()].iter().map(|token| &token.token);
    all.filter(|token| !matches!(token, Token::Whitespace(_))).collect()
}

/// The type that the columns get which CREATE TABLE ... AS names: sqlparser wants one.
pub(super) const UNTYPED: &str = "onrush.untyped";

/// CREATE TABLE name (column, ...) AS: each column gets a type.
fn type_named_columns(tokens: &mut Vec<TokenWithSpan>, statement: Range<usize>) {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let words: Vec<usize> = statement.filter(is_word).collect();
    let find = |wanted: &Token| words.iter().position(|at| tokens[*at].token == *wanted);
    let (Some(open), Some(close)) = (find(&Token::LParen), find(&Token::RParen)) else { return };
    // ON COMMIT and WITH may stand between.
    let is_before = |at: usize| words[at..].iter().any(|at| word(&tokens[*at]) == "as");
    let has_as = words[..open].iter().any(|at| word(&tokens[*at]) == "as");
    let named = words.get(open + 1..close).unwrap_or_default();
    let are_names = named.iter().enumerate().all(|(at, place)| match &tokens[*place].token {
        Token::Word(_) => at % 2 == 0,
        Token::Comma => at % 2 == 1,
        _ => false,
    });
    if has_as || named.is_empty() || !are_names || !is_before(close + 1) {
        return;
    }
    for place in named.iter().rev().step_by(2).copied().collect::<Vec<_>>() {
        let span = tokens[place].span;
        let added = [Token::Whitespace(Whitespace::Space), Token::make_word(UNTYPED, Some('"'))];
        let added = added.map(|token| TokenWithSpan { token, span });
        tokens.splice(place + 1..place + 1, added);
    }
}

/// Words that sqlparser takes for part of a statement and PostgreSQL for any name: SELECT TOP is of others.
fn free_names(statement: &mut [TokenWithSpan]) {
    for token in statement {
        if let Token::Word(word) = &mut token.token
            && word.keyword == Keyword::TOP
        {
            word.keyword = Keyword::NoKeyword;
        }
    }
}

/// Options of COPY that are on or off: sqlparser reads TRUE and FALSE.
fn spell_booleans(statement: &mut [TokenWithSpan]) {
    let words = |token: &&mut TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let mut words = statement.iter_mut().filter(words);
    if words.next().is_none_or(|first| word(first) != "copy") {
        return;
    }
    let mut is_option = false;
    for token in words {
        let spelled = match word(token).as_str() {
            "on" => Some("TRUE"),
            "off" => Some("FALSE"),
            _ => None,
        };
        if let (true, Some(spelled)) = (is_option, spelled) {
            token.token = Token::make_keyword(spelled);
        }
        is_option = matches!(word(token).as_str(), "freeze" | "header");
    }
}

/// Refuses what there is in PostgreSQL and not here, and sqlparser takes for an error of syntax.
fn check_refused(statement: &[TokenWithSpan]) -> Result<()> {
    let words = statement.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let leading: Vec<String> = words.take(LEADING_WORDS).map(word).collect();
    let leading: Vec<&str> = leading.iter().map(String::as_str).collect();
    let (what, instead) = match leading.as_slice() {
        ["alter", "system", ..] => (
            "ALTER SYSTEM",
            "Settings of the server are flags of onrush serve; ALTER DATABASE onrush SET is for \
             those of sessions.",
        ),
        ["alter", "database", _, "set" | "reset", ..] => return Ok(()),
        ["alter", "database", ..] => {
            ("this form of ALTER DATABASE", "There are ALTER DATABASE onrush SET and RESET.")
        }
        ["prepare", "transaction", text, ..] if text.starts_with('\'') => TWO_PHASES,
        ["commit" | "rollback", "prepared", ..] => TWO_PHASES,
        ["create", ..] if is_view(&leading) && ends_in(statement, ["check", "option"]) => {
            ("WITH CHECK OPTION", "Leave it out: rows are written to the table of the view.")
        }
        _ => return Ok(()),
    };
    Err(SqlError::not_supported(what, instead))
}

/// Whether these words begin a CREATE VIEW.
fn is_view(leading: &[&str]) -> bool {
    let kinds = ["or", "replace", "temp", "temporary", "unlogged", "recursive", "materialized"];
    let mut words = leading.iter().skip(1).skip_while(|word| kinds.contains(word));
    words.next() == Some(&"view")
}

fn ends_in(statement: &[TokenWithSpan], wanted: [&str; 2]) -> bool {
    let words = statement.iter().rev();
    let mut words = words.filter(|token| !matches!(token.token, Token::Whitespace(_))).map(word);
    let [before, last] = wanted;
    words.next().as_deref() == Some(last) && words.next().as_deref() == Some(before)
}

const TWO_PHASES: (&str, &str) =
    ("a commit in two phases", "COMMIT makes the transaction durable at once.");

/// Puts RENAME TO in the place of SET SCHEMA, if that is there.
fn renames_schema(tokens: &mut [TokenWithSpan], statement: &Range<usize>) -> bool {
    let Some([set, schema]) = set_schema(tokens, statement) else { return false };
    tokens[set].token = Token::make_keyword("RENAME");
    tokens[schema].token = Token::make_keyword("TO");
    true
}

/// Where the words SET SCHEMA are, if they are the last but the name.
fn set_schema(tokens: &[TokenWithSpan], statement: &Range<usize>) -> Option<[usize; 2]> {
    let is_word = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let mut last = statement.clone().rev().filter(is_word);
    let [_, schema, set] = [last.next()?, last.next()?, last.next()?];
    let is_it = word(&tokens[set]) == "set" && word(&tokens[schema]) == "schema";
    is_it.then_some([set, schema])
}

/// In lower case; a name in quotes is none of the words that are looked for.
pub(super) fn word(token: &TokenWithSpan) -> String {
    token.token.to_string().to_lowercase()
}

/// The keyword that a token is.
pub(super) fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// A text with its words spelled otherwise, for the tests of those who do that.
#[cfg(test)]
pub(super) fn spelled(
    text: &str,
    spell: impl FnOnce(&mut Vec<TokenWithSpan>, Range<usize>),
) -> String {
    let dialect = sqlparser::dialect::PostgreSqlDialect {};
    let tokens = sqlparser::tokenizer::Tokenizer::new(&dialect, text).tokenize_with_location();
    let mut tokens = tokens.expect("tokens");
    let all = 0..tokens.len();
    spell(&mut tokens, all);
    tokens.iter().map(|token| token.token.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(text: &str) -> (String, Vec<(usize, Mark)>) {
        let mut tokens = super::super::tokens(text).expect("words");
        let marks = rewrite(&mut tokens).expect("nothing is refused");
        let words = tokens.iter().map(|token| token.token.to_string());
        let words = words.filter(|word| !word.trim().is_empty()).collect::<Vec<_>>();
        (words.join(" "), marks)
    }

    #[test]
    fn words_that_are_not_known_are_replaced() {
        let (text, marks) = rewritten(";; ABORT; table t; CREATE UNLOGGED TABLE u; TABLE v");
        let expected = "; ; ROLLBACK ; SELECT * FROM t ; CREATE TABLE u ; SELECT * FROM v";
        let unlogged = CreateForm { is_unlogged: true, has_data: true };
        assert_eq!((text.as_str(), marks), (expected, vec![(2, Mark::Create(unlogged))]));
        let (text, marks) = rewritten("SELECT 1; ALTER DATABASE Shop SET a = b; abort");
        assert_eq!(text, "SELECT 1 ; SET a = b ; ROLLBACK");
        assert_eq!(marks, [(1, Mark::Database("shop".into()))]);
        let (text, marks) = rewritten("ALTER TABLE IF EXISTS s.t SET SCHEMA \"Other\"");
        assert_eq!(text, "ALTER TABLE IF EXISTS s . t RENAME TO \"Other\"");
        assert_eq!(marks, [(0, Mark::SetSchema)]);
    }

    #[test]
    fn what_is_made_without_data_is_marked() {
        let without = CreateForm { is_unlogged: false, has_data: false };
        for created in ["TABLE t", "MATERIALIZED VIEW v"] {
            let text = format!("CREATE {created} AS SELECT 1");
            let marks = rewritten(&format!("{text} WITH NO DATA"));
            assert_eq!(marks, (text.clone(), vec![(0, Mark::Create(without))]));
            assert_eq!(rewritten(&format!("{text} WITH DATA")), (text, Vec::new()));
        }
        for text in ["CREATE VIEW v AS SELECT 1 WITH DATA", "CREATE TABLE t ( a int ) WITH DATA"] {
            assert_eq!(rewritten(text), (text.to_owned(), Vec::new()));
        }
    }

    #[test]
    fn columns_that_are_only_named_get_a_type() {
        let (text, _) = rewritten("CREATE TEMP TABLE t (a, \"B\") AS SELECT 1, 2");
        let typed = format!("( a \"{UNTYPED}\" , \"B\" \"{UNTYPED}\" )");
        assert_eq!(text, format!("CREATE TEMP TABLE t {typed} AS SELECT 1 , 2"));
        for text in ["CREATE TABLE t ( a int )", "CREATE TABLE t AS SELECT a FROM ( u )"] {
            assert_eq!(rewritten(text).0, text);
        }
    }

    #[test]
    fn what_has_nothing_to_do_leaves_a_word_and_its_name() {
        let (text, marks) = rewritten("SELECT 1; VACUUM (FULL) t; SELECT 2; analyse");
        assert_eq!(text, "SELECT 1 ; ROLLBACK ; SELECT 2 ; ROLLBACK");
        assert_eq!(marks, [(1, Mark::Nothing("VACUUM")), (3, Mark::Nothing("ANALYZE"))]);
    }

    #[test]
    fn options_of_a_copy_may_be_on_or_off() {
        let (text, _) = rewritten("COPY t FROM stdin WITH (FREEZE on, HEADER off)");
        assert_eq!(text, "COPY t FROM stdin WITH ( FREEZE TRUE , HEADER FALSE )");
        let (text, _) = rewritten("SELECT * FROM freeze JOIN header ON on");
        assert_eq!(text, "SELECT * FROM freeze JOIN header ON on");
    }

    #[test]
    fn names_are_no_such_words() {
        for text in ["SELECT abort FROM t", "\"abort\"", "PREPARE transaction AS SELECT 1"] {
            assert_eq!(rewritten(text), (text.to_owned(), Vec::new()));
        }
    }
}
