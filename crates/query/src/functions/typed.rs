//! Functions that depend on the types of what they are given: JSON is written otherwise than the text
//! it is, and a number keeps its kind.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use onrush::Value;

use super::argument_columns;
use crate::columns::ColumnBuilder;
use crate::types::{ColumnType, arrow_type, column_type, field};
use crate::values::value_at;

/// What a call has in one row.
pub(super) struct Given<'g> {
    pub(super) values: &'g [Value<'g>],
    pub(super) types: &'g [ColumnType],
}

pub(super) type Call = fn(&Given<'_>) -> crate::Result<Value<'static>>;

/// A function of any arguments that makes one value of them.
#[derive(Clone, Debug)]
pub(super) struct TypedFunction {
    name: &'static str,
    returns: fn(&[ColumnType]) -> ColumnType,
    call: Call,
    /// NULL among the arguments makes NULL, and the function is not called.
    is_strict: bool,
    signature: Signature,
}

impl TypedFunction {
    pub(super) fn new(
        name: &'static str,
        returns: fn(&[ColumnType]) -> ColumnType,
        call: Call,
    ) -> TypedFunction {
        let any = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
        let signature = Signature::one_of(any, Volatility::Immutable);
        TypedFunction { name, returns, call, is_strict: false, signature }
    }

    /// The same, which makes NULL of NULL.
    pub(super) fn strict(self) -> TypedFunction {
        TypedFunction { is_strict: true, ..self }
    }

    pub(super) fn into_udf(self) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(self))
    }
}

impl PartialEq for TypedFunction {
    fn eq(&self, other: &TypedFunction) -> bool {
        self.name == other.name
    }
}

impl Eq for TypedFunction {}

impl Hash for TypedFunction {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.name.hash(hasher);
    }
}

fn types(fields: &[FieldRef]) -> Vec<ColumnType> {
    fields.iter().map(|field| column_type(field)).collect()
}

impl ScalarUDFImpl for TypedFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[ArrowType]) -> Result<ArrowType> {
        let plain = given.iter().map(|given| ColumnType::Stored(crate::types::plain_type(given)));
        Ok(arrow_type((self.returns)(&plain.collect::<Vec<_>>())))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let returned = (self.returns)(&types(args.arg_fields));
        Ok(Arc::new(field(self.name, returned, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = argument_columns(&args)?;
        let types = types(&args.arg_fields);
        let mut made = ColumnBuilder::new((self.returns)(&types), args.number_rows)?;
        let mut values = Vec::with_capacity(columns.len());
        for at in 0..args.number_rows {
            values.clear();
            for (array, column) in &columns {
                values.push(value_at(array, at, *column)?);
            }
            let value = match self.is_strict && values.iter().any(Value::is_null) {
                true => Value::Null,
                false => (self.call)(&Given { values: &values, types: &types })?,
            };
            made.append(&value)?;
        }
        Ok(ColumnarValue::Array(made.finish()))
    }
}
