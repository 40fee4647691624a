//! Whether a client is who it says: SCRAM-SHA-256, in which the password is never sent.

use pgwire::api::auth::sasl::scram::ScramServerAuth;
use pgwire::messages::startup::{Authentication, PasswordMessageFamily};
use tokio::io::{AsyncRead, AsyncWrite};

use super::Stop;
use super::wire::Wire;
use crate::access::Access;
use crate::error::{SqlError, state};

const METHOD: &str = "SCRAM-SHA-256";

/// Asks the client to prove that it knows the password of `name`. The deadline of the beginning
/// holds for this too.
pub(super) async fn prove<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
    access: &Access,
    name: &str,
) -> Result<(), Stop> {
    let failed = || {
        let message = format!("password authentication failed for user {name}");
        Stop::from(SqlError::new(state::INVALID_PASSWORD, message).fatal())
    };
    let malformed = || Stop::from(SqlError::protocol("this is no answer to the request to log in"));
    wire.put(&Authentication::SASL(vec![METHOD.to_owned()]));
    let first = answer(wire).await?.into_sasl_initial_response().map_err(|_| malformed())?;
    if first.auth_method != METHOD {
        return Err(malformed());
    }
    let data = first.data.ok_or_else(malformed)?;
    let secret = access.verifier_of(name).secret();
    let (challenge, exchange) = ScramServerAuth::new()
        .on_client_first_message_with_secret(&data, secret)
        .map_err(|_| malformed())?;
    wire.put(&Authentication::SASLContinue(challenge.into()));
    let last = answer(wire).await?.into_sasl_response().map_err(|_| malformed())?;
    let proof = exchange.on_client_final_message(&last.data).map_err(|_| failed())?;
    wire.put(&Authentication::SASLFinal(proof.into()));
    Ok(())
}

/// Sends what there is, and waits for a message of the login.
async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    wire: &mut Wire<S>,
) -> Result<PasswordMessageFamily, Stop> {
    wire.send().await?;
    loop {
        if let Some(frame) = wire.next_login_frame()? {
            if frame.kind != b'p' {
                return Err(
                    SqlError::protocol("a client that is not in yet sent something else").into()
                );
            }
            return Ok(PasswordMessageFamily::Raw(frame.body.as_ref().into()));
        }
        wire.fill().await?;
    }
}
