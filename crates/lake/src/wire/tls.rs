//! Encryption of the connections to a server that speaks PostgreSQL's protocol, by rustls.
//!
//! The server's certificate is always checked against its name, as libpq's `verify-full` does.
//! Channel binding is not offered.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Encrypted;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Encrypts connections, or none of them.
#[derive(Clone)]
pub(super) struct Tls(Option<TlsConnector>);

impl Tls {
    /// For connections that are asked for without encryption.
    pub(super) fn none() -> Tls {
        Tls(None)
    }

    /// Trusts the certificates of the PEM file, or those that the system trusts.
    pub(super) fn trusting(file: Option<&str>) -> Result<Tls, String> {
        let mut roots = RootCertStore::empty();
        if let Some(file) = file {
            let refuse = |cause: &dyn std::fmt::Display| format!("certificates of {file}: {cause}");
            let certificates = CertificateDer::pem_file_iter(file).map_err(|e| refuse(&e))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|cause| refuse(&cause))?;
                roots.add(certificate).map_err(|cause| refuse(&cause))?;
            }
        } else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        if roots.is_empty() {
            return Err("there are no certificates to trust: name a file as sslrootcert".to_owned());
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|cause| format!("TLS cannot be set up: {cause}"))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Tls(Some(TlsConnector::from(Arc::new(config)))))
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Stream;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, name: &str) -> io::Result<Handshake> {
        Ok(Handshake { tls: self.clone(), name: name.to_owned() })
    }
}

/// Encrypts one connection to the server of the name.
pub(super) struct Handshake {
    tls: Tls,
    name: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Tls(Some(connector)) = self.tls else {
                return Err(io::Error::other("this connection is not to be encrypted"));
            };
            let name = ServerName::try_from(self.name).map_err(io::Error::other)?;
            Ok(Stream(connector.connect(name, socket).await?))
        })
    }
}

/// An encrypted connection.
pub(super) struct Stream(Encrypted<Socket>);

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
