//! Messages in the client's encoding: names and statements on their way in, everything but values on its way out.
//! (Values are read and written with it: `values`.)

use bytes::{BufMut, Bytes, BytesMut};
use onrush_query::style::ClientEncoding;

use crate::error::Result;

/// Bytes of a column's description behind its name.
const DESCRIPTION_BYTES: usize = 18;

/// A message of a client, with its texts in UTF-8.
///
/// # Errors
/// Bytes that are no text.
pub(super) fn decoded(kind: u8, body: Bytes, encoding: ClientEncoding) -> Result<Bytes> {
    if !encoding.is_other() || body.is_ascii() {
        return Ok(body);
    }
    // How many texts there are, behind how many bytes. Parameters behind them stay as they are.
    let (before, texts) = match kind {
        b'Q' | b'E' | b'f' => (0, 1),
        b'P' | b'B' => (0, 2),
        b'D' | b'C' => (1, 1),
        _ => return Ok(body),
    };
    let mut rest = &body[before.min(body.len())..];
    let mut decoded = BytesMut::from(&body[..body.len() - rest.len()]);
    for _ in 0..texts {
        let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        decoded.put_slice(encoding.decode(&rest[..end])?.as_bytes());
        let behind = (end + 1).min(rest.len());
        decoded.put_slice(&rest[end..behind]);
        rest = &rest[behind..];
    }
    decoded.put_slice(rest);
    Ok(decoded.freeze())
}

/// Writes the texts of a message that begins at `start` of the output in the client's encoding.
pub(super) fn encode(output: &mut BytesMut, start: usize, encoding: ClientEncoding) {
    if !encoding.is_other() || output[start..].is_ascii() {
        return;
    }
    let message = output.split_off(start);
    let (header, body) = message.split_at(5.min(message.len()));
    let Some(kind) = header.first() else { return };
    let mut encoded = BytesMut::with_capacity(body.len());
    let mut rest = body;
    match kind {
        b'T' => {
            take(&mut rest, 2, &mut encoded);
            while !rest.is_empty() {
                text(&mut rest, encoding, &mut encoded);
                take(&mut rest, DESCRIPTION_BYTES, &mut encoded);
            }
        }
        b'E' | b'N' => {
            while rest.len() > 1 {
                take(&mut rest, 1, &mut encoded);
                text(&mut rest, encoding, &mut encoded);
            }
        }
        b'S' | b'C' => {
            while !rest.is_empty() {
                text(&mut rest, encoding, &mut encoded);
            }
        }
        b'A' => {
            take(&mut rest, 4, &mut encoded);
            while !rest.is_empty() {
                text(&mut rest, encoding, &mut encoded);
            }
        }
        _ => {}
    }
    encoded.put_slice(rest);
    output.put_u8(*kind);
    output.put_i32(i32::try_from(encoded.len() + 4).unwrap_or(i32::MAX));
    output.put_slice(&encoded);
}

fn take(rest: &mut &[u8], count: usize, encoded: &mut BytesMut) {
    let (taken, behind) = rest.split_at(count.min(rest.len()));
    encoded.put_slice(taken);
    *rest = behind;
}

/// A text and the zero behind it.
fn text(rest: &mut &[u8], encoding: ClientEncoding, encoded: &mut BytesMut) {
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    encoded.put_slice(&encoding.encode_lossily(&rest[..end]));
    let (zero, behind) = rest[end..].split_at(usize::from(end < rest.len()));
    encoded.put_slice(zero);
    *rest = behind;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn latin() -> ClientEncoding {
        ClientEncoding::named("LATIN1").expect("known")
    }

    #[test]
    fn parameters_behind_a_statement_stay_as_they_are() {
        let message = Bytes::from_static(b"n\xe4\0SELECT '\xe4'\0\0\x01\xff\xff\xff\xff");
        let decoded = decoded(b'P', message, latin()).expect("all bytes are characters");
        assert_eq!(decoded.as_ref(), b"n\xc3\xa4\0SELECT '\xc3\xa4'\0\0\x01\xff\xff\xff\xff");
    }

    proptest! {
        #[test]
        fn no_message_is_more_than_an_error(bytes in any::<Vec<u8>>(), kind in any::<u8>()) {
            let _ = decoded(kind, Bytes::from(bytes.clone()), latin());
            let mut output = BytesMut::from(&bytes[..]);
            encode(&mut output, 0, latin());
        }
    }
}
