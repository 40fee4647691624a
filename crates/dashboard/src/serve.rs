//! Connections: so many at a time, each encrypted where that is asked for, and each with a bound on
//! how long it may take to say what it wants.

use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::guard::Peer;

/// More wait until one of these ends.
const CONNECTIONS_MAX: usize = 64;
/// For the beginning of the encryption, and again for the head of each request.
const PATIENCE: Duration = Duration::from_secs(10);
/// After a failed accept: most likely the system has no space for another socket.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Answers requests until it is dropped.
pub(crate) async fn serve(listener: TcpListener, routes: Router, encryption: Option<TlsAcceptor>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed.
        let place = Arc::clone(&places).acquire_owned().await;
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a reader of the page could not be let in");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (routes, encryption) =
            (routes.clone().layer(Extension(Peer(peer))), encryption.clone());
        tokio::spawn(async move {
            match encryption {
                None => answer(stream, routes).await,
                Some(encryption) => {
                    match tokio::time::timeout(PATIENCE, encryption.accept(stream)).await {
                        Ok(Ok(stream)) => answer(stream, routes).await,
                        _ => {
                            tracing::debug!(%peer, "a reader of the page did not begin to encrypt")
                        }
                    }
                }
            }
            drop(place);
        });
    }
}

/// Answers the requests of one connection.
async fn answer<S: AsyncRead + AsyncWrite + Unpin + Send>(stream: S, routes: Router) {
    let service = TowerToHyperService::new(routes);
    let mut settings = http1::Builder::new();
    settings.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    if let Err(error) = settings.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a reader of the page went away");
    }
}
