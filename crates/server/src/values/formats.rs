//! In which form several values are on the wire.

/// Which of some values are in binary form; the others are text. Nearly all clients use one form for
/// all of them, which takes no space of its own.
#[derive(Clone, Debug)]
pub(crate) enum Formats {
    All { is_binary: bool },
    Each(Box<[bool]>),
}

impl Formats {
    pub(crate) const TEXT: Formats = Formats::All { is_binary: false };

    /// Of the value in this place, from 0.
    pub(crate) fn is_binary(&self, index: usize) -> bool {
        match self {
            Formats::All { is_binary } => *is_binary,
            Formats::Each(each) => each.get(index).copied().unwrap_or(false),
        }
    }
}

impl Default for Formats {
    fn default() -> Formats {
        Formats::TEXT
    }
}
