//! New inputs from known ones, blindly: for runs without a compiler that follows coverage.

use onrush_sim::Random;

/// The longest input.
const BYTES_MAX: usize = 32 << 10;
/// Numbers at which lengths and counters go wrong.
const INTERESTING: [u64; 10] =
    [0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, i64::MAX as u64, u64::MAX];

/// An input made from one of `known` by a few changes.
///
/// # Panics
/// Without a known one.
#[must_use]
pub fn mutated(known: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = known[below(random, known.len())].clone();
    for _ in 0..=random.below(4) {
        let at = below(random, input.len() + 1);
        match random.below(8) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.next_number() as u8,
            2 => {
                let bytes = INTERESTING[below(random, INTERESTING.len())].to_le_bytes();
                let width = 1 << random.below(4);
                for (place, byte) in input[at..].iter_mut().zip(&bytes[..width]) {
                    *place = *byte;
                }
            }
            3 => {
                let bytes = INTERESTING[below(random, INTERESTING.len())].to_be_bytes();
                for (place, byte) in input[at..].iter_mut().zip(&bytes[4..]) {
                    *place = *byte;
                }
            }
            4 => input.truncate(at),
            5 => {
                let to = at + below(random, input.len() - at + 1);
                input.drain(at..to);
            }
            6 => {
                let other = &known[below(random, known.len())];
                let from = below(random, other.len() + 1);
                let piece = &other[from..from + below(random, other.len() - from + 1)];
                input.splice(at..at, piece.iter().copied());
            }
            _ => {
                let byte = random.next_number() as u8;
                input.splice(at..at, std::iter::repeat_n(byte, 1 + below(random, 40)));
            }
        }
        input.truncate(BYTES_MAX);
    }
    input
}

fn below(random: &mut Random, limit: usize) -> usize {
    random.below(limit as u64) as usize
}
