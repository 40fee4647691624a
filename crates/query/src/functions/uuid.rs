//! New UUIDs: a fresh one for each row.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::arrow::array::FixedSizeBinaryBuilder;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use onrush::Uuid;

/// Makes UUIDs of one version.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NewUuid {
    name: &'static str,
    /// Version 7; otherwise 4.
    is_by_the_clock: bool,
    signature: Signature,
    aliases: Vec<String>,
}

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let function = |name, is_by_the_clock, aliases: &[&str]| {
        let signature = Signature::nullary(Volatility::Volatile);
        let aliases = aliases.iter().map(ToString::to_string).collect();
        Arc::new(ScalarUDF::new_from_impl(NewUuid { name, is_by_the_clock, signature, aliases }))
    };
    vec![function("gen_random_uuid", false, &["uuidv4", "uuid"]), function("uuidv7", true, &[])]
}

/// The moment of the last one by the clock, in 4096ths of a millisecond since 1970.
static LAST: AtomicU64 = AtomicU64::new(0);

/// A UUID of version 7, greater than all that were made here before: milliseconds, their 4096ths,
/// random bits.
fn by_the_clock() -> Uuid {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Until the year 10889 it fits.
    let now = u64::try_from(since.as_nanos() * 4096 / 1_000_000).unwrap_or(u64::MAX >> 4);
    let next = |last: u64| Some(now.max(last + 1));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or(now);
    let timestamp = u128::from(now.max(last + 1));
    let random = Uuid::new_v4().as_u128() & (u128::MAX >> 66);
    Uuid::from_u128(
        (timestamp >> 12) << 80 | 7 << 76 | (timestamp & 0xFFF) << 64 | 0b10 << 62 | random,
    )
}

impl ScalarUDFImpl for NewUuid {
    fn name(&self) -> &str {
        self.name
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
            let uuid = if self.is_by_the_clock { by_the_clock() } else { Uuid::new_v4() };
            made.append_value(uuid.as_bytes())?;
        }
        Ok(ColumnarValue::Array(Arc::new(made.finish())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_by_the_clock_ascend() {
        let made: Vec<Uuid> = (0..10_000).map(|_| by_the_clock()).collect();
        assert!(made.is_sorted_by(|one, other| one < other));
        let right = |uuid: &Uuid| uuid.get_version_num() == 7 && uuid.as_u128() >> 62 & 3 == 2;
        assert!(made.iter().all(right));
    }
}
