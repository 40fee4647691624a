//! The one loop that moves bytes from and to a file.
//!
//! Invariants
//! 1. Ok means every byte. 0 bytes moved where some were asked for is an error, never a reason to
//!    go round again.
//! 2. EINTR is tried again; nothing else is.
//! 3. An error comes with the number of bytes already moved, so that a caller may go on from there
//!    by other means.

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

/// What to do differently when writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// Written, not durable.
    Plain,
    /// Durable when the call returns.
    Durable,
}

/// Why a transfer ended before its last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    /// What the system reported; none when it moved 0 bytes without an error.
    pub(crate) errno: Option<Errno>,
    /// The bytes moved before.
    pub(crate) done: usize,
}

impl Stop {
    /// The error of a write, where 0 bytes moved without a reason is an error of the device.
    pub(crate) fn write_errno(self) -> Errno {
        self.errno.unwrap_or(Errno::IO)
    }
}

/// Fills the buffer from `offset`. Without an error number the file ended.
pub(crate) fn read_all(
    descriptor: BorrowedFd<'_>,
    buffer: &mut [u8],
    offset: u64,
) -> Result<(), Stop> {
    move_all(buffer.len(), |done| {
        rustix::io::pread(descriptor, &mut buffer[done..], offset + done as u64)
    })
}

/// Writes the whole buffer at `offset`.
pub(crate) fn write_all(
    descriptor: BorrowedFd<'_>,
    buffer: &[u8],
    offset: u64,
    kind: WriteKind,
) -> Result<(), Stop> {
    move_all(buffer.len(), |done| {
        write_some(descriptor, &buffer[done..], offset + done as u64, kind)
    })
}

/// Calls `step` with the number of bytes already moved, until `len` bytes are.
fn move_all(len: usize, mut step: impl FnMut(usize) -> Result<usize, Errno>) -> Result<(), Stop> {
    let mut done = 0;
    while done < len {
        match step(done) {
            Ok(0) => return Err(Stop { errno: None, done }),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Stop { errno: Some(errno), done }),
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn write_some(
    descriptor: BorrowedFd<'_>,
    bytes: &[u8],
    offset: u64,
    kind: WriteKind,
) -> Result<usize, Errno> {
    use rustix::io::ReadWriteFlags;
    match kind {
        WriteKind::Plain => rustix::io::pwrite(descriptor, bytes, offset),
        WriteKind::Durable => {
            let slices = [std::io::IoSlice::new(bytes)];
            rustix::io::pwritev2(descriptor, &slices, offset, ReadWriteFlags::DSYNC)
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn write_some(
    descriptor: BorrowedFd<'_>,
    bytes: &[u8],
    offset: u64,
    kind: WriteKind,
) -> Result<usize, Errno> {
    match kind {
        WriteKind::Plain => rustix::io::pwrite(descriptor, bytes, offset),
        WriteKind::Durable => Err(Errno::OPNOTSUPP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moves 10 bytes with the given answers, and returns where each call began.
    fn moved(answers: &[Result<usize, Errno>]) -> (Result<(), Stop>, Vec<usize>) {
        let mut starts = Vec::new();
        let result = move_all(10, |done| {
            starts.push(done);
            answers[starts.len() - 1]
        });
        (result, starts)
    }

    #[test]
    fn short_and_interrupted_calls_go_on_where_they_stopped() {
        let (result, starts) = moved(&[Ok(3), Err(Errno::INTR), Ok(1), Ok(6)]);
        assert_eq!(result, Ok(()));
        assert_eq!(starts, [0, 3, 3, 4]);
    }

    #[test]
    fn a_call_that_moves_nothing_ends_the_loop() {
        let (result, _) = moved(&[Ok(4), Ok(0)]);
        assert_eq!(result, Err(Stop { errno: None, done: 4 }));
        assert_eq!(result.unwrap_err().write_errno(), Errno::IO);
    }

    #[test]
    fn an_error_is_not_tried_again() {
        let (result, starts) = moved(&[Ok(9), Err(Errno::IO)]);
        assert_eq!(result, Err(Stop { errno: Some(Errno::IO), done: 9 }));
        assert_eq!(starts.len(), 2);
    }
}
