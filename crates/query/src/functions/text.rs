//! Values as text and text as values, written and read as PostgreSQL does.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use onrush::{DataType, Value};

use crate::columns::ColumnBuilder;
use crate::text::{read_text, write_text_of};
use crate::types::{ColumnType, arrow_type, field};
use crate::values::{own_type, readable, value_at};

/// Writes any value as text.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WriteText {
    signature: Signature,
}

/// Reads text as a value of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ReadText {
    name: String,
    target: DataType,
    signature: Signature,
}

/// The function that writes.
pub(crate) fn text_function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(WriteText { signature }))
    });
    Arc::clone(&FUNCTION)
}

/// The function that reads values of `target`.
pub(crate) fn parse_function(target: DataType) -> Arc<ScalarUDF> {
    let name = format!("to_{target}");
    let signature = match target {
        // Of values, too, which are rounded.
        DataType::Rounded(..) => Signature::any(1, Volatility::Immutable),
        _ => Signature::string(1, Volatility::Immutable),
    };
    Arc::new(ScalarUDF::new_from_impl(ReadText { name, target, signature }))
}

impl ScalarUDFImpl for WriteText {
    fn name(&self) -> &str {
        "to_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given = readable(&given(&args)?)?;
        let column = own_type(given.data_type());
        let mut written = StringBuilder::with_capacity(given.len(), given.len() * 16);
        for row in 0..given.len() {
            match value_at(&given, row, column)? {
                Value::Null => written.append_null(),
                value => {
                    // Into the builder; the value ends there.
                    write_text_of(&value, column, &mut written)?;
                    written.append_value("");
                }
            }
        }
        Ok(ColumnarValue::Array(Arc::new(written.finish())))
    }
}

impl ScalarUDFImpl for ReadText {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(arrow_type(ColumnType::Stored(self.target)))
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(field(&self.name, ColumnType::Stored(self.target), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given = given(&args)?;
        let mut read = ColumnBuilder::new(ColumnType::Stored(self.target), given.len())?;
        let is_rounded = matches!(self.target, DataType::Rounded(..));
        if is_rounded && *given.data_type() == arrow_type(ColumnType::Stored(self.target)) {
            for row in 0..given.len() {
                let value = value_at(&given, row, ColumnType::Stored(self.target))?;
                read.append(&self.target.rounded(value))?;
            }
            return Ok(ColumnarValue::Array(read.finish()));
        }
        let given = cast(&given, &ArrowType::Utf8)?;
        let given = given.as_string::<i32>();
        for row in 0..given.len() {
            if given.is_null(row) {
                read.append(&Value::Null)?;
                continue;
            }
            read.append(&read_text(self.target, given.value(row))?)?;
        }
        Ok(ColumnarValue::Array(read.finish()))
    }
}

/// The only argument, a value for each row.
fn given(args: &ScalarFunctionArgs) -> Result<ArrayRef> {
    match args.args.as_slice() {
        [given] => given.to_array(args.number_rows),
        _ => internal_err!("a function of one argument has another number of them"),
    }
}
