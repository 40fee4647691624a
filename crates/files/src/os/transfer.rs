//! The one loop for reads and the one loop for writes.
//!
//! Invariants
//! 1. Ok means every byte. 0 bytes moved where some were asked for is an error, never a reason to go round again.
//! 2. EINTR is tried again; nothing else is.
//! 3. An error comes with the number of bytes already moved, so that a caller may go on from there by other means.

use rustix::fd::BorrowedFd;
use rustix::io::Errno;

/// What to do differently when writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteKind {
    /// Written, not durable.
    Plain,
    /// Durable when the call returns.
    Durable,
}

/// Fills the buffer from `offset`. The error `None` means that the file ended.
pub(super) fn read_all(
    descriptor: BorrowedFd<'_>,
    buffer: &mut [u8],
    offset: u64,
) -> Result<(), (Option<Errno>, usize)> {
    let mut done = 0;
    while done < buffer.len() {
        match rustix::io::pread(descriptor, &mut buffer[done..], offset + done as u64) {
            Ok(0) => return Err((None, done)),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err((Some(errno), done)),
        }
    }
    Ok(())
}

/// Writes the whole buffer at `offset`, not durable.
pub(crate) fn write_all(
    descriptor: BorrowedFd<'_>,
    buffer: &[u8],
    offset: u64,
) -> Result<(), (Errno, usize)> {
    write_all_with(descriptor, buffer, offset, WriteKind::Plain)
}

/// Writes the whole buffer at `offset`.
pub(super) fn write_all_with(
    descriptor: BorrowedFd<'_>,
    buffer: &[u8],
    offset: u64,
    kind: WriteKind,
) -> Result<(), (Errno, usize)> {
    let mut done = 0;
    while done < buffer.len() {
        match write_some(descriptor, &buffer[done..], offset + done as u64, kind) {
            Ok(0) => return Err((Errno::IO, done)),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err((errno, done)),
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
