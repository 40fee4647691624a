//! New UUIDs: a fresh one for each row.

use std::sync::Arc;

use datafusion::arrow::array::FixedSizeBinaryBuilder;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use onrush::Uuid;

/// Makes UUIDs of version 4.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RandomUuid {
    signature: Signature,
    aliases: Vec<String>,
}

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let signature = Signature::nullary(Volatility::Volatile);
    let aliases = vec!["uuidv4".to_owned(), "uuid".to_owned()];
    vec![Arc::new(ScalarUDF::new_from_impl(RandomUuid { signature, aliases }))]
}

impl ScalarUDFImpl for RandomUuid {
    fn name(&self) -> &str {
        "gen_random_uuid"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::FixedSizeBinary(16))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut made = FixedSizeBinaryBuilder::with_capacity(args.number_rows, 16);
        for _ in 0..args.number_rows {
            made.append_value(Uuid::new_v4().as_bytes())?;
        }
        Ok(ColumnarValue::Array(Arc::new(made.finish())))
    }
}
