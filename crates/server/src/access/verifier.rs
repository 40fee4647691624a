//! What the server keeps of a password: enough to check a proof, too little to log in with.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pgwire::api::auth::sasl::scram::{ScramSecret, gen_salted_password};
use postgres_protocol::password::scram_sha_256;
use ring::{digest, hmac};

/// Of SHA-256.
const KEY_BYTES: usize = 32;
const SALT_BYTES: usize = 16;
/// As often as the library hashes, and PostgreSQL.
const ITERATIONS: usize = 4096;
const METHOD: &str = "SCRAM-SHA-256";
/// A client that made its verifier itself chose how often to hash. Beyond this a password is not tried:
/// whoever asks must not keep the thread that looks for long.
const ITERATIONS_TRIED_MAX: usize = 1_000_000;

/// `SCRAM-SHA-256$iterations:salt$stored key:server key`, as PostgreSQL writes it: its tools send a
/// new password in this form.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Verifier {
    iterations: usize,
    salt: Vec<u8>,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

impl Verifier {
    /// Of a password, or of a verifier that a client has made of one.
    pub(crate) fn of(password: &str) -> Verifier {
        let made = || scram_sha_256(password.as_bytes()).parse();
        password.parse().or_else(|NotAVerifier| made()).expect("the library writes this form")
    }

    /// For the exchange with the client.
    pub(crate) fn secret(&self) -> ScramSecret {
        let Verifier { iterations, salt, stored_key, server_key } = self.clone();
        ScramSecret::Verifier { salt, iterations, stored_key, server_key }
    }

    /// Whether it is one of this password: the same key comes out. Takes as long whether it is or not.
    pub(super) fn accepts(&self, password: &str) -> bool {
        if self.iterations > ITERATIONS_TRIED_MAX || password.is_empty() {
            return false;
        }
        let salted = gen_salted_password(password, &self.salt, self.iterations);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &salted);
        hmac::verify(&key, b"Server Key", &self.server_key).is_ok()
    }

    /// Refuses one of the empty password, whoever made it: everyone knows that. A password of characters that
    /// count for nothing is empty too.
    ///
    /// # Errors
    /// Why it cannot be a role's.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.iterations > ITERATIONS_TRIED_MAX {
            return Err("the verifier hashes the password more than a million times");
        }
        let salted = gen_salted_password("", &self.salt, self.iterations);
        let key = |name: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &salted), name);
        let stored = digest::digest(&digest::SHA256, key(b"Client Key").as_ref());
        // Either half lets in, or makes believe.
        let is_empty = stored.as_ref() == self.stored_key
            || key(b"Server Key").as_ref() == self.server_key.as_slice();
        if is_empty { Err("a password cannot be empty") } else { Ok(()) }
    }

    /// As it is stored.
    pub(crate) fn to_text(&self) -> String {
        let [salt, stored, server] =
            [&self.salt, &self.stored_key, &self.server_key].map(|bytes| STANDARD.encode(bytes));
        format!("{METHOD}${}:{salt}${stored}:{server}", self.iterations)
    }
}

/// Nothing of it is ever shown.
impl fmt::Debug for Verifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Verifier")
    }
}

/// The text has another form; perhaps it is a password.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotAVerifier;

impl FromStr for Verifier {
    type Err = NotAVerifier;

    fn from_str(text: &str) -> Result<Verifier, NotAVerifier> {
        let read = || {
            let (method, rest) = text.split_once('$')?;
            let (head, keys) = rest.split_once('$')?;
            let (iterations, salt) = head.split_once(':')?;
            let (stored_key, server_key) = keys.split_once(':')?;
            let verifier = Verifier {
                iterations: iterations.parse().ok()?,
                salt: STANDARD.decode(salt).ok()?,
                stored_key: STANDARD.decode(stored_key).ok()?,
                server_key: STANDARD.decode(server_key).ok()?,
            };
            let has_keys =
                [&verifier.stored_key, &verifier.server_key].iter().all(|k| k.len() == KEY_BYTES);
            (method == METHOD && has_keys && verifier.iterations > 0).then_some(verifier)
        };
        read().ok_or(NotAVerifier)
    }
}

/// One that no password has. It looks like all others, and nothing is hashed for it: a server starts with one.
pub(super) fn unknown() -> Verifier {
    let key =
        || [onrush::Uuid::new_v4(), onrush::Uuid::new_v4()].map(onrush::Uuid::into_bytes).concat();
    let salt = onrush::Uuid::new_v4().into_bytes().to_vec();
    Verifier { iterations: ITERATIONS, salt, stored_key: key(), server_key: key() }
}

/// Verifiers for names that cannot come in: the same name has the same salt each time, as a name that
/// can come in has.
pub(super) struct Pretence {
    secret: u64,
    keys: Verifier,
}

impl Pretence {
    pub(super) fn new() -> Pretence {
        let (secret, _) = onrush::Uuid::new_v4().as_u64_pair();
        Pretence { secret, keys: unknown() }
    }

    pub(super) fn verifier_of(&self, name: &str) -> Verifier {
        let salt = xxhash_rust::xxh3::xxh3_128_with_seed(name.as_bytes(), self.secret);
        Verifier { salt: salt.to_be_bytes()[..SALT_BYTES].to_vec(), ..self.keys.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_is_read_back_as_it_was_written() {
        let verifier = Verifier::of("a password");
        assert_eq!(verifier.to_text().parse(), Ok(verifier));
    }

    #[test]
    fn a_verifier_made_by_a_client_is_taken_as_it_is() {
        let text = scram_sha_256(b"a password");
        assert_eq!(Verifier::of(&text).to_text(), text);
    }

    #[test]
    fn a_verifier_accepts_its_password_alone() {
        let verifier = Verifier::of("pass wörd");
        assert!(verifier.accepts("pass wörd"));
        for wrong in ["pass word", "", "pass wörd ", "PASS WÖRD"] {
            assert!(!verifier.accepts(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_verifier_of_the_empty_password_is_none_for_a_role() {
        // A soft hyphen counts for nothing.
        for empty in ["", "\u{ad}"] {
            let verifier = Verifier::of(&scram_sha_256(empty.as_bytes()));
            assert_eq!(verifier.check(), Err("a password cannot be empty"), "{empty:?}");
            assert!(!verifier.accepts(""));
        }
        assert_eq!(Verifier::of("secret").check(), Ok(()));
        // Made of two halves.
        let (empty, other) = (Verifier::of(&scram_sha_256(b"")), Verifier::of("secret"));
        let lets_in = Verifier { server_key: vec![1; KEY_BYTES], ..empty.clone() };
        assert!(lets_in.check().is_err());
        let believed = Verifier { stored_key: other.stored_key, ..empty };
        assert!(believed.check().is_err());
    }

    #[test]
    fn a_verifier_that_takes_too_long_accepts_nothing() {
        let slow = Verifier { iterations: ITERATIONS_TRIED_MAX + 1, ..Verifier::of("secret") };
        assert!(!slow.accepts("secret"));
        assert!(slow.check().is_err(), "nobody can tell of which password it is");
    }

    #[test]
    fn what_only_looks_like_a_verifier_is_a_password() {
        for text in ["SCRAM-SHA-256$4096:AAAA$AAAA:AAAA", "MD5$1:a$b:c", "SCRAM-SHA-256$0:$:", ""] {
            assert_eq!(text.parse::<Verifier>(), Err(NotAVerifier), "{text}");
        }
    }

    #[test]
    fn nothing_of_a_verifier_is_shown() {
        assert_eq!(format!("{:?}", Verifier::of("secret")), "Verifier");
    }

    #[test]
    fn one_that_no_password_has_looks_like_all_others() {
        let length = |verifier: Verifier| verifier.to_text().len();
        assert_eq!(length(unknown()), length(Verifier::of("a password")));
        assert_eq!(unknown().iterations, Verifier::of("a password").iterations);
    }

    #[test]
    fn an_unknown_name_has_the_same_salt_each_time() {
        let pretence = Pretence::new();
        assert_eq!(pretence.verifier_of("nobody"), pretence.verifier_of("nobody"));
        assert_ne!(pretence.verifier_of("nobody"), pretence.verifier_of("none"));
    }
}
