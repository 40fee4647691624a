//! What a rule has to say about a place.

use std::fmt;

/// One broken rule, with the place and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    place: String,
    message: String,
}

impl Finding {
    /// A finding about a whole file.
    pub(crate) fn file(path: &str, message: impl Into<String>) -> Finding {
        Finding { place: path.to_owned(), message: message.into() }
    }

    /// A finding about one line; lines count from 1.
    pub(crate) fn line(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { place: format!("{path}:{line}"), message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}
