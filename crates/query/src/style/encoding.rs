//! `client_encoding`: the bytes that a client's text is, on the wire and nowhere else. Of encodings with one byte a
//! character there are those that `encoding_rs` has as PostgreSQL has them, and LATIN1, whose bytes are the numbers of
//! their characters.

use std::borrow::Cow;

use encoding_rs::Encoding;

use crate::error::{QueryError, Result};

/// An encoding of clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientEncoding {
    /// That of the database.
    #[default]
    Utf8,
    /// Bytes are taken and given as they are. What comes must be UTF-8 all the same.
    SqlAscii,
    /// Each byte is a character.
    OneByte(OneByte),
}

/// An encoding of one byte a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneByte {
    /// As PostgreSQL calls it.
    name: &'static str,
    /// None for LATIN1.
    table: Option<&'static Encoding>,
}

/// By what PostgreSQL calls them, and their other names, in lower case without signs.
static ONE_BYTE: &[(&str, &[&str], Option<&Encoding>)] = &[
    ("LATIN1", &["latin1", "iso88591"], None),
    ("LATIN2", &["latin2", "iso88592"], Some(encoding_rs::ISO_8859_2)),
    ("LATIN3", &["latin3", "iso88593"], Some(encoding_rs::ISO_8859_3)),
    ("LATIN4", &["latin4", "iso88594"], Some(encoding_rs::ISO_8859_4)),
    ("LATIN6", &["latin6", "iso885910"], Some(encoding_rs::ISO_8859_10)),
    ("LATIN7", &["latin7", "iso885913"], Some(encoding_rs::ISO_8859_13)),
    ("LATIN8", &["latin8", "iso885914"], Some(encoding_rs::ISO_8859_14)),
    ("LATIN9", &["latin9", "iso885915"], Some(encoding_rs::ISO_8859_15)),
    ("LATIN10", &["latin10", "iso885916"], Some(encoding_rs::ISO_8859_16)),
    ("ISO_8859_5", &["iso88595"], Some(encoding_rs::ISO_8859_5)),
    ("ISO_8859_6", &["iso88596"], Some(encoding_rs::ISO_8859_6)),
    ("ISO_8859_7", &["iso88597"], Some(encoding_rs::ISO_8859_7)),
    ("ISO_8859_8", &["iso88598"], Some(encoding_rs::ISO_8859_8)),
    ("KOI8R", &["koi8r", "koi8"], Some(encoding_rs::KOI8_R)),
    ("KOI8U", &["koi8u"], Some(encoding_rs::KOI8_U)),
    ("WIN866", &["win866", "windows866", "alt"], Some(encoding_rs::IBM866)),
    ("WIN874", &["win874", "windows874"], Some(encoding_rs::WINDOWS_874)),
    ("WIN1250", &["win1250", "windows1250"], Some(encoding_rs::WINDOWS_1250)),
    ("WIN1251", &["win1251", "windows1251", "win"], Some(encoding_rs::WINDOWS_1251)),
    ("WIN1252", &["win1252", "windows1252"], Some(encoding_rs::WINDOWS_1252)),
    ("WIN1253", &["win1253", "windows1253"], Some(encoding_rs::WINDOWS_1253)),
    ("WIN1254", &["win1254", "windows1254"], Some(encoding_rs::WINDOWS_1254)),
    ("WIN1255", &["win1255", "windows1255"], Some(encoding_rs::WINDOWS_1255)),
    ("WIN1256", &["win1256", "windows1256"], Some(encoding_rs::WINDOWS_1256)),
    ("WIN1257", &["win1257", "windows1257"], Some(encoding_rs::WINDOWS_1257)),
    ("WIN1258", &["win1258", "windows1258"], Some(encoding_rs::WINDOWS_1258)),
];

impl ClientEncoding {
    /// By its name, of which letters and digits count, as in PostgreSQL: some drivers send `'utf-8'`, with the quotes.
    #[must_use]
    pub fn named(name: &str) -> Option<ClientEncoding> {
        let lower = name.to_lowercase();
        let plain: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
        match plain.as_str() {
            "utf8" | "unicode" => Some(ClientEncoding::Utf8),
            "sqlascii" => Some(ClientEncoding::SqlAscii),
            other => ONE_BYTE
                .iter()
                .find(|(_, names, _)| names.contains(&other))
                .map(|(name, _, table)| ClientEncoding::OneByte(OneByte { name, table: *table })),
        }
    }

    /// As PostgreSQL calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ClientEncoding::Utf8 => "UTF8",
            ClientEncoding::SqlAscii => "SQL_ASCII",
            ClientEncoding::OneByte(own) => own.name,
        }
    }

    /// Whether text of a client is other bytes than that of the database.
    #[must_use]
    pub fn is_other(self) -> bool {
        matches!(self, ClientEncoding::OneByte(_))
    }

    /// The text that bytes of a client are.
    ///
    /// # Errors
    /// Bytes that are none (`22021`).
    pub fn decode(self, bytes: &[u8]) -> Result<Cow<'_, str>> {
        let decoded = match self {
            ClientEncoding::Utf8 | ClientEncoding::SqlAscii => {
                return match std::str::from_utf8(bytes) {
                    Ok(text) => Ok(Cow::Borrowed(text)),
                    Err(error) => Err(not_in_repertoire("UTF8", &bytes[error.valid_up_to()..])),
                };
            }
            ClientEncoding::OneByte(_) if bytes.is_ascii() => {
                std::str::from_utf8(bytes).ok().map(Cow::Borrowed)
            }
            ClientEncoding::OneByte(OneByte { table: None, .. }) => {
                Some(Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()))
            }
            ClientEncoding::OneByte(OneByte { table: Some(table), .. }) => {
                table.decode_without_bom_handling_and_without_replacement(bytes)
            }
        };
        decoded.ok_or_else(|| not_in_repertoire(self.name(), bytes))
    }

    /// A text as the bytes of a client.
    ///
    /// # Errors
    /// A character that the encoding has not (`22P05`).
    pub fn encode(self, text: &str) -> Result<Cow<'_, [u8]>> {
        let ClientEncoding::OneByte(own) = self else { return Ok(Cow::Borrowed(text.as_bytes())) };
        if text.is_ascii() {
            return Ok(Cow::Borrowed(text.as_bytes()));
        }
        let bytes = text.chars().map(|character| own.byte(character).ok_or(character));
        match bytes.collect::<std::result::Result<Vec<u8>, char>>() {
            Ok(bytes) => Ok(Cow::Owned(bytes)),
            Err(character) => {
                let bytes = hexadecimal(character.encode_utf8(&mut [0; 4]).as_bytes());
                let message = format!(
                    "character with byte sequence {bytes} in encoding \"UTF8\" has no equivalent in encoding \"{}\"",
                    own.name
                );
                Err(QueryError::refused("22P05", message))
            }
        }
    }

    /// As [`encode`](Self::encode), with a question mark for each character that the encoding has not: for messages,
    /// which have to arrive.
    #[must_use]
    pub fn encode_lossily(self, text: &[u8]) -> Vec<u8> {
        match (self, std::str::from_utf8(text)) {
            (ClientEncoding::OneByte(own), Ok(text)) => {
                text.chars().map(|character| own.byte(character).unwrap_or(b'?')).collect()
            }
            _ => text.to_vec(),
        }
    }
}

impl OneByte {
    fn byte(self, character: char) -> Option<u8> {
        if character.is_ascii() {
            return u8::try_from(character).ok();
        }
        let Some(table) = self.table else { return u8::try_from(character).ok() };
        let mut text = [0; 4];
        let (bytes, _, is_lossy) = table.encode(character.encode_utf8(&mut text));
        match bytes.as_ref() {
            [byte] if !is_lossy => Some(*byte),
            _ => None,
        }
    }
}

fn not_in_repertoire(name: &str, bytes: &[u8]) -> QueryError {
    let shown = hexadecimal(&bytes[..bytes.len().min(4)]);
    let message = format!("invalid byte sequence for encoding \"{name}\": {shown}");
    QueryError::refused("22021", message)
}

/// `0xc3 0xa4`.
fn hexadecimal(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    bytes.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_that_is_a_character_is_that_byte_again() {
        for (name, ..) in ONE_BYTE {
            let encoding = ClientEncoding::named(name).expect("it is listed");
            assert_eq!(encoding.name(), *name);
            for byte in 0..=u8::MAX {
                if let Ok(text) = encoding.decode(&[byte]) {
                    assert_eq!(
                        encoding.encode(&text).expect("it was a byte").as_ref(),
                        [byte],
                        "{name} {byte}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_character_that_the_encoding_has_not_is_refused() {
        let latin = ClientEncoding::named("latin-1").expect("known");
        assert_eq!(latin.encode("ä").expect("one byte").as_ref(), [0xe4]);
        assert!(latin.encode("€").is_err());
        assert_eq!(latin.encode_lossily("ä€".as_bytes()), [0xe4, b'?']);
    }

    #[test]
    fn names_are_compared_by_letters_and_digits() {
        assert_eq!(ClientEncoding::named("'utf-8'"), Some(ClientEncoding::Utf8));
        assert_eq!(
            ClientEncoding::named("Windows-1252").map(ClientEncoding::name),
            Some("WIN1252")
        );
        assert_eq!(ClientEncoding::named("EUC_JP"), None);
    }
}
