//! Whether the other end of a client's socket is still there, asked while nobody reads from it: a statement that
//! takes long is not worth going on for a client that has gone.

use std::os::fd::{AsFd, OwnedFd};

/// A client's socket, beside the one that is read and written.
#[derive(Debug)]
pub(crate) struct Line(OwnedFd);

impl Line {
    /// None if the system has no more descriptors: then nobody looks.
    pub(crate) fn of(socket: &impl AsFd) -> Option<Line> {
        socket.as_fd().try_clone_to_owned().ok().map(Line)
    }

    /// Whether the client has hung up. What it has said before does not matter.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_cut(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let hung_up = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let mut asked = [PollFd::new(&self.0, hung_up)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut asked, Some(&at_once)).is_ok() && asked[0].revents().intersects(hung_up)
    }

    /// It is not known how to ask here.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn is_cut(&self) -> bool {
        false
    }
}
