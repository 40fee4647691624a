//! One column as written on the command line: `id bigint default identity`,
//! `at timestamp not null default now`, `note varchar(40) null default 'none'`.
//!
//! In this order: a name, a type, then `null` or `not null` and `default ...` in any order. A
//! default is `now`, a key strategy, `null`, or a value; text with blanks stands in single quotes.

use onrush::{ColumnDefinition, DataType, DefaultValue, KeyStrategy, Value};

/// Reads one column.
///
/// # Errors
/// A sentence that names the column and what was expected.
pub fn parse(spec: &str) -> Result<ColumnDefinition, String> {
    let words = words(spec)?;
    let mut words = words.iter().map(String::as_str).peekable();
    let name = words.next().ok_or_else(|| "a column is empty; write \"name type\"".to_owned())?;
    let name = unquoted(name, '"').unwrap_or_else(|| name.to_owned());
    let mut type_words = Vec::new();
    while let Some(word) = words.next_if(|word| !is_keyword(word)) {
        type_words.push(word);
    }
    if type_words.is_empty() {
        return Err(format!("column {name:?} has no type; known types: {}", type_names()));
    }
    let data_type: DataType = type_words
        .join(" ")
        .parse()
        .map_err(|error: onrush::TypeError| format!("column {name:?}: {error}"))?;
    let mut column = ColumnDefinition::new(name, data_type);
    while let Some(word) = words.next() {
        match word.to_ascii_lowercase().as_str() {
            "null" => column.nullable = true,
            "not" if words.next().is_some_and(|next| next.eq_ignore_ascii_case("null")) => {
                column.nullable = false;
            }
            "default" => {
                let text = words
                    .next()
                    .ok_or_else(|| format!("column {:?}: the default is missing", column.name))?;
                column.default = default(&column, text)?;
            }
            _ => {
                return Err(format!(
                    "column {:?}: {word:?} is not understood; after the type come null, not null \
                     and default VALUE",
                    column.name
                ));
            }
        }
    }
    Ok(column)
}

fn type_names() -> &'static str {
    onrush_types::data_type::TYPE_NAMES
}

fn is_keyword(word: &str) -> bool {
    ["not", "null", "default"].iter().any(|keyword| word.eq_ignore_ascii_case(keyword))
}

fn default(column: &ColumnDefinition, text: &str) -> Result<DefaultValue, String> {
    let lower = text.to_ascii_lowercase();
    if matches!(lower.as_str(), "now" | "now()" | "current_timestamp") {
        return Ok(DefaultValue::Now);
    }
    if lower == "null" {
        return Ok(DefaultValue::Constant(Value::Null));
    }
    let quoted = unquoted(text, '\'');
    if quoted.is_none()
        && let Ok(strategy) = text.parse::<KeyStrategy>()
    {
        return Ok(DefaultValue::Key(strategy));
    }
    let value = quoted.as_deref().unwrap_or(text);
    onrush_types::text::parse(column.data_type, value)
        .map(|value| DefaultValue::Constant(value.into_owned()))
        .map_err(|error| {
            format!(
                "column {:?}: the default is neither now, nor a key strategy ({}), nor a value: \
                 {error}",
                column.name,
                onrush_types::generate::STRATEGY_NAMES
            )
        })
}

/// The text between two quotes, doubled quotes inside being one; None if there are none around it.
pub fn unquoted(text: &str, quote: char) -> Option<String> {
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let twice: String = [quote, quote].iter().collect();
    Some(inner.replace(&twice, &quote.to_string()))
}

/// Splits at blanks and before opening parentheses' contents end: what stands in quotes or
/// parentheses stays together.
fn words(spec: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut depth = 0_usize;
    let mut quote = None;
    for c in spec.chars() {
        match quote {
            Some(open) => {
                word.push(c);
                if c == open {
                    quote = None;
                }
                continue;
            }
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == '(' => depth += 1,
            None if c == ')' => depth = depth.saturating_sub(1),
            None if c.is_whitespace() => {
                if depth == 0 && !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                continue;
            }
            None => {}
        }
        word.push(c);
    }
    if quote.is_some() || depth > 0 {
        return Err(format!("{spec:?}: a quote or a parenthesis is not closed"));
    }
    if !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_help_is_read() {
        let id = parse("id int64 default identity").unwrap();
        assert_eq!((id.name.as_str(), id.data_type), ("id", DataType::Int64));
        assert!(matches!(id.default, DefaultValue::Key(KeyStrategy::Identity { start: 1, .. })));
        let at = parse("at timestamp not null default now").unwrap();
        assert!(!at.nullable && at.default == DefaultValue::Now);
        let note = parse("note varchar(40) null").unwrap();
        assert!(note.nullable && note.default == DefaultValue::None);
    }

    #[test]
    fn defaults_may_be_numbers_quoted_text_or_strategies_with_arguments() {
        let constant = |spec: &str| match parse(spec).unwrap().default {
            DefaultValue::Constant(value) => value,
            other => panic!("{other:?}"),
        };
        assert_eq!(constant("n int default 42"), Value::Int32(42));
        assert_eq!(constant("t text default 'it''s here'"), Value::from("it's here"));
        assert_eq!(constant("t text default plain"), Value::from("plain"));
        assert_eq!(constant("t text default 'identity'"), Value::from("identity"));
        assert_eq!(constant("d decimal(10, 2) default 1.50").to_string(), "1.50");
        let node = parse("k bigint default node-offset(7)").unwrap().default;
        assert_eq!(node, DefaultValue::Key(KeyStrategy::NodeOffset { node: 7 }));
    }

    #[test]
    fn types_of_several_words_and_quoted_names_are_read() {
        let column = parse("\"my column\" timestamp with time zone not null").unwrap();
        assert_eq!(column.name, "my column");
        assert_eq!(column.data_type, DataType::TimestampTz);
        assert!(!column.nullable);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (spec, words) in [
            ("", "empty"),
            ("id", "has no type"),
            ("id serial", "not a data type"),
            ("id int default", "default is missing"),
            ("id int unique", "\"int unique\""),
            ("id int null unique", "not understood"),
            ("id int default seven", "neither now"),
            ("id varchar(40", "not closed"),
        ] {
            let message = parse(spec).unwrap_err();
            assert!(message.contains(words), "{spec}: {message}");
        }
    }
}
