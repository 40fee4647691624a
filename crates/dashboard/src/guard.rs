//! Who may read the page where other machines reach it: HTTP Basic authentication, over TLS alone.
//!
//! Invariant: of a password nothing is kept, and nothing of it or of the name is ever told.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio_rustls::TlsAcceptor;

/// What browsers and scrapers are asked for.
const CHALLENGE: &str = "Basic realm=\"Onrush\", charset=\"UTF-8\"";

/// Whether the bearer of a name and a password may read. To take as long for a name that nobody has as
/// for a wrong password.
pub type MayRead = dyn Fn(&str, &str) -> bool + Send + Sync;

/// What it takes to show the page to other machines.
#[derive(Clone)]
pub struct Guard {
    /// Encrypts everything.
    pub encryption: TlsAcceptor,
    /// Who may read.
    pub may_read: Arc<MayRead>,
}

/// Where a request comes from.
#[derive(Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Answers those alone who may read.
pub(crate) async fn only_who_may_read(
    State(guard): State<Guard>,
    Extension(Peer(peer)): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let given = credentials(request.headers());
    if let Some((name, password)) = &given {
        if (guard.may_read)(name, password) {
            return next.run(request).await;
        }
        tracing::warn!(%peer, "the page was asked for with a wrong name or password");
    }
    let told = "The name and password of a role that can log in are needed.\n";
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, CHALLENGE)], told).into_response()
}

/// Name and password, if there are any.
fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let (scheme, encoded) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (name, password) = text.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(written: &str) -> Option<(String, String)> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, written.parse().expect("a header"));
        credentials(&headers)
    }

    #[test]
    fn a_password_may_have_colons_and_other_letters() {
        let written = format!("basic {}", STANDARD.encode("ada:a:b c\u{e4}"));
        assert_eq!(read(&written), Some(("ada".to_owned(), "a:b c\u{e4}".to_owned())));
    }

    #[test]
    fn what_is_not_a_name_and_a_password_is_none() {
        let no_colon = format!("Basic {}", STANDARD.encode("ada"));
        let no_text = format!("Basic {}", STANDARD.encode([0xff, b':', 0xfe]));
        for written in ["Basic", "Basic ?", "Bearer YTpi", &no_colon, &no_text] {
            assert_eq!(read(written), None, "{written}");
        }
        assert_eq!(credentials(&HeaderMap::new()), None);
    }
}
