//! Encryption: the certificate and key that clients are met with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls_pki_types::pem::{Error as PemError, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;

use crate::listener::ServerError;

/// Where the certificate and its key are, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, then those that lead from it to one that clients trust.
    pub certificate: PathBuf,
    /// The private key of the first certificate.
    pub key: PathBuf,
}

impl TlsFiles {
    /// Reads both, and sees whether they go together. TLS 1.2 and 1.3.
    ///
    /// # Errors
    /// [`Tls`](ServerError::Tls): a file that cannot be read, or is no certificate or key of this kind.
    pub fn acceptor(&self) -> Result<TlsAcceptor, ServerError> {
        let bad = |path: &Path, cause: String| ServerError::Tls { path: path.to_owned(), cause };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect)
            .map_err(|error| bad(&self.certificate, words(&error)))?;
        if chain.is_empty() {
            return Err(bad(&self.certificate, "there is no certificate in it".into()));
        }
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| bad(&self.key, words(&error)))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| bad(&self.certificate, error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| bad(&self.certificate, error.to_string()))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// What is wrong with a file; never its content.
fn words(error: &PemError) -> String {
    match error {
        PemError::Io(error) => error.to_string(),
        PemError::NoItemsFound => "it holds nothing of that kind".into(),
        _ => "it is not a PEM file".into(),
    }
}
