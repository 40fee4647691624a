//! The beginning of a connection: who is there, and what it wants to be called by.

use std::collections::BTreeMap;

use pgwire::messages::cancel::CancelRequest;
use pgwire::messages::startup::{
    Authentication, BackendKeyData, GssEncRequest, NegotiateProtocolVersion, ParameterStatus,
    SecretKey, SslRequest, Startup,
};
use pgwire::messages::{DecodeContext, Message, ProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite};

use super::Stop;
use super::wire::Wire;
use crate::error::{Result, SqlError};
use crate::execute::Settings;

/// What the first messages were about.
pub(super) enum Beginning {
    /// A client, with its parameters.
    Client(BTreeMap<String, String>),
    /// The client waits for encryption to begin.
    Encrypt,
    /// Another connection's statement is to be given up.
    Cancel { number: i32, secret: i32 },
}

/// Reads until it is known what the client wants. Encryption that is not offered is refused, and the
/// client may go on without.
pub(super) async fn begin<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    offers_tls: bool,
) -> std::result::Result<Beginning, Stop> {
    let context = DecodeContext::new(ProtocolVersion::PROTOCOL3_0);
    loop {
        let (mut packet, is_alone) = wire.startup_packet().await?;
        if SslRequest::is_ssl_request_packet(&packet)
            || GssEncRequest::is_gss_enc_request_packet(&packet)
        {
            // Bytes that were sent before the answer could be somebody else's.
            if !is_alone {
                return Err(SqlError::protocol("bytes came before encryption was agreed on").into());
            }
            let accepts = offers_tls && SslRequest::is_ssl_request_packet(&packet);
            wire.output.extend_from_slice(if accepts { b"S" } else { b"N" });
            wire.send().await?;
            if accepts {
                return Ok(Beginning::Encrypt);
            }
            continue;
        }
        let not_readable = |_| SqlError::protocol("this is no beginning of the protocol");
        if CancelRequest::is_cancel_request_packet(&packet) {
            let request = CancelRequest::decode(&mut packet, &context).map_err(not_readable)?;
            return match request {
                Some(CancelRequest { pid, secret_key: SecretKey::I32(secret), .. }) => {
                    Ok(Beginning::Cancel { number: pid, secret })
                }
                _ => Err(Stop::Closed),
            };
        }
        let startup = Startup::decode(&mut packet, &context).map_err(not_readable)?;
        let Some(startup) = startup else { return Err(Stop::Closed) };
        let options: Vec<String> =
            startup.parameters.keys().filter(|name| name.starts_with("_pq_.")).cloned().collect();
        if startup.protocol_number_minor > 0 || !options.is_empty() {
            let version = i32::from(ProtocolVersion::PROTOCOL3_0);
            wire.put(&NegotiateProtocolVersion::new(version, options));
        }
        return Ok(Beginning::Client(startup.parameters));
    }
}

/// Takes what the client asked for at its beginning into its settings.
pub(super) fn apply(parameters: &BTreeMap<String, String>, settings: &mut Settings) -> Result<()> {
    for (name, value) in parameters {
        match name.as_str() {
            "user" | "database" => {}
            "replication" if value == "false" || value == "0" => {}
            "replication" => {
                return Err(SqlError::not_supported("replication", "Use onrush backup.").fatal());
            }
            "options" => {
                for (name, value) in options(value) {
                    settings.set(&name.to_lowercase(), Some(&value)).map_err(SqlError::fatal)?;
                }
            }
            name if name.starts_with("_pq_.") => {}
            name => settings.set(&name.to_lowercase(), Some(value)).map_err(SqlError::fatal)?,
        }
    }
    Ok(())
}

/// `-c name=value` and `--name=value`, as often as wanted.
fn options(text: &str) -> Vec<(String, String)> {
    let words = text.split_whitespace().map(|word| word.trim_start_matches("-c"));
    let pairs =
        words.map(|word| word.trim_start_matches("--")).filter_map(|word| word.split_once('='));
    pairs.map(|(name, value)| (name.replace('-', "_"), value.to_owned())).collect()
}

/// Tells the client that it is in.
pub(super) fn welcome<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    told: &[(&'static str, String)],
    number: i32,
    secret: i32,
) {
    wire.put(&Authentication::Ok);
    for (name, value) in told {
        wire.put(&ParameterStatus::new((*name).to_owned(), value.clone()));
    }
    wire.put(&BackendKeyData::new(number, SecretKey::I32(secret)));
}
