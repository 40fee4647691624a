//! What values that hold a `numeric` are compared by: 1.1 and 1.10 are one value, shown differently.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, ListArray, StructArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use onrush_types::numeric::comparable;

use crate::numeric::number_at;

/// The name of the function in plans.
pub(crate) const NUMERIC_KEY: &str = "numeric_key";

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(NumericKey { signature }))
});

/// Whether values of the type may be equal and not the same.
pub(crate) fn has_numeric(arrow: &ArrowType) -> bool {
    match arrow {
        ArrowType::LargeBinary => true,
        ArrowType::List(inner) => has_numeric(inner.data_type()),
        ArrowType::Struct(fields) => fields.iter().any(|field| has_numeric(field.data_type())),
        _ => false,
    }
}

/// The key of a number of any type, or of what holds one.
pub(crate) fn key_of(value: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&FUNCTION), vec![value]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NumericKey {
    signature: Signature,
}

impl ScalarUDFImpl for NumericKey {
    fn name(&self) -> &str {
        NUMERIC_KEY
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[ArrowType]) -> Result<ArrowType> {
        match arguments {
            [own] => Ok(key_type(own)),
            _ => internal_err!("a key is of one value"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [given] = args.args.as_slice() else {
            return internal_err!("a key is of one value");
        };
        Ok(ColumnarValue::Array(keys(&given.to_array(args.number_rows)?)?))
    }
}

fn is_number(arrow: &ArrowType) -> bool {
    arrow.is_integer() || matches!(arrow, ArrowType::LargeBinary | ArrowType::Decimal128(..))
}

fn key_type(own: &ArrowType) -> ArrowType {
    match own {
        ArrowType::List(inner) => ArrowType::new_list(key_type(inner.data_type()), true),
        ArrowType::Struct(fields) => {
            let key = |field: &Arc<Field>| {
                Field::new(field.name(), inner_key_type(field.data_type()), field.is_nullable())
            };
            ArrowType::Struct(fields.iter().map(key).collect())
        }
        own if is_number(own) => ArrowType::Binary,
        other => other.clone(),
    }
}

/// Fields that are no numbers of any size stay as they are.
fn inner_key_type(own: &ArrowType) -> ArrowType {
    if has_numeric(own) { key_type(own) } else { own.clone() }
}

fn keys(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        ArrowType::LargeBinary => {
            let own = values.as_binary::<i64>();
            let mut keys = BinaryBuilder::with_capacity(own.len(), own.values().len());
            for bytes in own {
                keys.append_option(bytes.map(comparable));
            }
            Arc::new(keys.finish())
        }
        ArrowType::List(inner) => {
            let lists = values.as_list::<i32>();
            let field = Arc::new(Field::new_list_field(key_type(inner.data_type()), true));
            let items = keys(lists.values())?;
            Arc::new(ListArray::new(field, lists.offsets().clone(), items, lists.nulls().cloned()))
        }
        ArrowType::Struct(_) => {
            let own = values.as_struct();
            let ArrowType::Struct(fields) = key_type(values.data_type()) else {
                return internal_err!("the key of a row is no row");
            };
            let columns =
                own.columns().iter().map(|column| match has_numeric(column.data_type()) {
                    true => keys(column),
                    false => Ok(Arc::clone(column)),
                });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::new(fields, columns, own.nulls().cloned()))
        }
        own if is_number(own) => {
            let mut made = BinaryBuilder::with_capacity(values.len(), values.len() * 8);
            let mut buffer = Vec::new();
            for row in 0..values.len() {
                buffer.clear();
                match number_at(values, row)? {
                    None => made.append_null(),
                    Some(number) => {
                        number.write_key(&mut buffer);
                        made.append_value(&buffer);
                    }
                }
            }
            Arc::new(made.finish())
        }
        _ => Arc::clone(values),
    })
}
