//! Clients that are not let in, and what they are told.

use bytes::BytesMut;
use pgwire::messages::Message;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Door;
use crate::error::{SqlError, state};
use crate::listener::Shared;

/// There is no space for the connection, and its client gets that error. Its first bytes are read before,
/// since the system throws away what is sent on a socket that is closed with something unread.
pub(super) async fn turn_away<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    shared: &Shared,
    door: &Door,
    error: &SqlError,
) {
    door.tell_sent_away(error, "");
    let mut output = BytesMut::new();
    if error.clone().fatal().to_response().encode(&mut output).is_ok() {
        let told = async {
            let _ = stream.read(&mut [0; 1024]).await?;
            stream.write_all(&output).await
        };
        let _ = tokio::time::timeout(shared.options.handshake_timeout, told).await;
    }
}

pub(super) fn too_late() -> SqlError {
    SqlError::protocol("the connection took too long to begin")
}

pub(super) fn no_seat(shared: &Shared) -> SqlError {
    let (most, reserved) = (shared.options.connections_max, shared.options.connections_reserved);
    let message = match reserved {
        0 => format!("there are {most} connections already, which is the most there may be"),
        _ => format!(
            "all connections are taken, of {most} that there may be with the {reserved} that are \
             reserved for superusers"
        ),
    };
    SqlError::new(state::TOO_MANY_CONNECTIONS, message)
        .with_hint("Use fewer, or start the server with a larger --max-connections.")
}
