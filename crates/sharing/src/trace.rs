//! Reads the trace of memory accesses that Valgrind's tool `lackey` writes: one line for each.
//!
//! `I  ADDRESS,SIZE` is an instruction, ` L` a load, ` S` a store, ` M` both in one instruction: a
//! read-modify-write. Addresses are hexadecimal, sizes decimal. Other lines are messages.

/// One line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The instruction at this address, to which the accesses that follow belong.
    Instruction(u64),
    /// An access to memory.
    Access(Access),
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) kind: AccessKind,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Load,
    Store,
    /// A load and a store of the same bytes by one instruction.
    Modify,
}

/// What a line says; none if it is a message.
pub(crate) fn parse(line: &[u8]) -> Option<Event> {
    let (kind, rest) = line.split_at_checked(3)?;
    let comma = rest.iter().position(|byte| *byte == b',')?;
    let address = number(&rest[..comma], 16)?;
    let kind = match kind {
        b"I  " => return Some(Event::Instruction(address)),
        b" L " => AccessKind::Load,
        b" S " => AccessKind::Store,
        b" M " => AccessKind::Modify,
        _ => return None,
    };
    Some(Event::Access(Access { kind, address, bytes: number(&rest[comma + 1..], 10)? }))
}

fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let mut number = 0_u64;
    for digit in digits {
        let digit = char::from(*digit).to_digit(radix)?;
        number = number.checked_mul(u64::from(radix))?.checked_add(u64::from(digit))?;
    }
    (!digits.is_empty()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_and_accesses_are_told_from_messages() {
        assert_eq!(parse(b"I  0023C790,2"), Some(Event::Instruction(0x0023_C790)));
        let access = |kind, address, bytes| Some(Event::Access(Access { kind, address, bytes }));
        assert_eq!(parse(b" L 1ffeffe7e0,8"), access(AccessKind::Load, 0x1f_feff_e7e0, 8));
        assert_eq!(parse(b" S 10,16"), access(AccessKind::Store, 16, 16));
        assert_eq!(parse(b" M 0421c7cc,4"), access(AccessKind::Modify, 0x0421_c7cc, 4));
        for message in
            ["", "==12== Command: x", " L zz,8", " L 10", " L ,8", "thread panicked, too"]
        {
            assert_eq!(parse(message.as_bytes()), None, "{message}");
        }
    }
}
