//! Asks a running database.

use std::fmt;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::view::View;

/// A database under heavy load answers late, but it answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a database could not be asked.
#[derive(Debug)]
pub enum WatchError {
    /// Nobody serves statistics there.
    NotServed {
        /// The socket that was looked for.
        socket: PathBuf,
    },
    /// It was there, but something went wrong.
    Failed {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
}

impl fmt::Display for WatchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WatchError::NotServed { socket } => write!(
                formatter,
                "nobody serves statistics at {}: start the program that has the database open, for \
                 example `onrush lab run singleton --dir FOLDER --keep`",
                socket.display()
            ),
            WatchError::Failed { socket, cause } => {
                let socket = socket.display();
                write!(formatter, "cannot read statistics from {socket}: {cause}")?;
                if cause.kind() == io::ErrorKind::PermissionDenied {
                    write!(formatter, "; run this as the user who owns the database")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for WatchError {}

/// The database in `folder`, which another process has open, as it is now.
///
/// # Errors
/// Nobody serves it; no permission; an answer of another version.
pub fn look(folder: &Path) -> Result<View, WatchError> {
    let socket = folder.join(crate::SOCKET_NAME);
    let mut stream = match UnixStream::connect(&socket) {
        Ok(stream) => stream,
        Err(error) => {
            let gone = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
            return Err(match gone.contains(&error.kind()) {
                true => WatchError::NotServed { socket },
                false => WatchError::Failed { socket, cause: error },
            });
        }
    };
    let mut line = String::new();
    let read =
        stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.read_to_string(&mut line));
    let view = read.and_then(|_| serde_json::from_str(&line).map_err(io::Error::from));
    view.map_err(|cause| WatchError::Failed { socket, cause })
}
