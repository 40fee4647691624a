//! Upper and lower case, a letter for a letter: PostgreSQL makes no two letters of one, as `SS` of `ß`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{Result, internal_err};
use datafusion::functions::{string, unicode};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// DataFusion's function of this name, for text of ASCII alone, and what is made of any other text.
#[derive(Debug)]
struct Letters {
    plain: Arc<ScalarUDF>,
    change: fn(&str) -> String,
}

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let functions = [
        (string::upper(), in_upper as fn(&str) -> String),
        (string::lower(), in_lower),
        (unicode::initcap(), with_capitals),
    ];
    functions
        .into_iter()
        .map(|(plain, change)| Arc::new(ScalarUDF::new_from_impl(Letters { plain, change })))
        .collect()
}

/// The only character that another one becomes; itself where that would be several.
fn single(character: char, mut changed: impl Iterator<Item = char>) -> char {
    match (changed.next(), changed.next()) {
        (Some(only), None) => only,
        // The only one with several in lower case: an i with two dots.
        (Some('i'), Some(_)) => 'i',
        _ => character,
    }
}

fn upper(character: char) -> char {
    single(character, character.to_uppercase())
}

fn lower(character: char) -> char {
    single(character, character.to_lowercase())
}

fn in_upper(text: &str) -> String {
    text.chars().map(upper).collect()
}

fn in_lower(text: &str) -> String {
    text.chars().map(lower).collect()
}

/// The first letter of each word in upper case, the others in lower.
fn with_capitals(text: &str) -> String {
    let mut is_inside = false;
    let change = |character: char| {
        let changed = if is_inside { lower(character) } else { upper(character) };
        is_inside = character.is_alphanumeric();
        changed
    };
    text.chars().map(change).collect()
}

impl PartialEq for Letters {
    fn eq(&self, other: &Letters) -> bool {
        self.plain == other.plain
    }
}

impl Eq for Letters {}

impl std::hash::Hash for Letters {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        self.plain.hash(hasher);
    }
}

impl ScalarUDFImpl for Letters {
    fn name(&self) -> &str {
        self.plain.name()
    }

    fn signature(&self) -> &Signature {
        self.plain.signature()
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [text] = args.args.as_slice() else {
            return internal_err!("{} has one argument", self.name());
        };
        let text = cast(&text.to_array(args.number_rows)?, &ArrowType::Utf8)?;
        let text = text.as_string::<i32>();
        if text.is_ascii() {
            let plain = ColumnarValue::Array(Arc::new(text.clone()));
            let plain =
                self.plain.invoke_with_args(ScalarFunctionArgs { args: vec![plain], ..args })?;
            let plain = plain.to_array(text.len())?;
            return Ok(ColumnarValue::Array(cast(&plain, &ArrowType::Utf8)?));
        }
        let changed: StringArray = text.iter().map(|text| text.map(self.change)).collect();
        let changed: ArrayRef = Arc::new(changed);
        Ok(ColumnarValue::Array(changed))
    }
}
