//! `regexp_matches`: the groups of the first match, or of all, a row of each.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, ListBuilder, StringBuilder};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::patterns::{ALL_BY_PATTERN, groups};
use crate::pattern::Pattern;

/// The groups of the matches, an array of each.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct AllMatches {
    signature: Signature,
}

impl AllMatches {
    pub(super) fn new() -> AllMatches {
        let texts = |count| TypeSignature::Exact(vec![ArrowType::Utf8; count]);
        let signature = Signature::one_of(vec![texts(2), texts(3)], Volatility::Immutable);
        AllMatches { signature }
    }
}

impl ScalarUDFImpl for AllMatches {
    fn name(&self) -> &str {
        ALL_BY_PATTERN
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        let list = |of| ArrowType::List(Arc::new(Field::new_list_field(of, true)));
        Ok(list(list(ArrowType::Utf8)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let columns: Vec<_> = columns.iter().map(|column| column.as_string::<i32>()).collect();
        let mut rows = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
        for row in 0..columns.first().map_or(0, |column| column.len()) {
            let is_told = columns.iter().all(|column| column.is_valid(row));
            let given: Vec<&str> = columns.iter().map(|column| column.value(row)).collect();
            if let ([text, pattern, rest @ ..], true) = (given.as_slice(), is_told) {
                let pattern = Pattern::new(pattern, rest.first().unwrap_or(&""))?;
                let found = match pattern.flags.is_global {
                    true => pattern.all(text, 0)?,
                    false => pattern.first(text, 0)?.into_iter().collect(),
                };
                for found in found {
                    rows.values().append_value(groups(text, &found));
                }
            }
            rows.append(is_told);
        }
        Ok(ColumnarValue::Array(Arc::new(rows.finish())))
    }
}
