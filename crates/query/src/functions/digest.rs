//! Digests of texts and bytes.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use md5::{Digest, Md5};
use onrush::{DataType, Value};
use sha2::{Sha224, Sha256, Sha384, Sha512};

use super::SystemFunction;

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    let hexadecimal = SystemFunction::new("md5", DataType::Text.into(), |given| {
        let Some(bytes) = bytes(given) else { return Value::Null };
        let mut written = String::with_capacity(32);
        for byte in Md5::digest(bytes) {
            // Memory takes what there is.
            let _ = write!(written, "{byte:02x}");
        }
        written.into()
    });
    vec![
        hexadecimal.immutable().into_udf(),
        of_bytes::<Sha224>("sha224"),
        of_bytes::<Sha256>("sha256"),
        of_bytes::<Sha384>("sha384"),
        of_bytes::<Sha512>("sha512"),
    ]
}

fn of_bytes<D: Digest>(name: &'static str) -> Arc<ScalarUDF> {
    let function = SystemFunction::new(name, DataType::Bytes.into(), |given| match bytes(given) {
        Some(bytes) => Value::from(D::digest(bytes).as_slice()).into_owned(),
        None => Value::Null,
    });
    function.immutable().into_udf()
}

/// A constant in quotes is text, and stands for bytes as well.
fn bytes<'v>(given: &'v [Value<'_>]) -> Option<&'v [u8]> {
    match given {
        [Value::Text(text)] => Some(text.as_bytes()),
        [Value::Bytes(bytes)] => Some(bytes),
        _ => None,
    }
}
