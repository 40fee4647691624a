//! Whose stack an address is in: that says which thread runs, which a trace does not.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The stacks of a process, and what threads have of their own (`thread_local!`), which lies above them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Stacks {
    /// First address, address behind the last, and whether it is a session's; ascending.
    ranges: Vec<(u64, u64, bool)>,
}

impl Stacks {
    /// All stacks of this process; those in which one of these addresses is are sessions'.
    pub(crate) fn of(sessions: &[u64]) -> Result<Self> {
        let maps = std::fs::read_to_string("/proc/self/maps").context("/proc/self/maps")?;
        Ok(Self::read(&maps, sessions))
    }

    /// A stack is readable memory without a name right above a page that nobody may touch.
    fn read(maps: &str, sessions: &[u64]) -> Self {
        let mut ranges: Vec<(u64, u64, bool)> = Vec::new();
        let mut guard_end = None;
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            let (range, rights) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let Some((Ok(start), Ok(end))) = range
                .split_once('-')
                .map(|(start, end)| (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16)))
            else {
                continue;
            };
            let has_name = words.nth(3).is_some();
            if rights == "rw-p" && !has_name && guard_end == Some(start) {
                let is_sessions = sessions.iter().any(|address| (start..end).contains(address));
                ranges.push((start, end, is_sessions));
            }
            let is_guard = rights == "---p" && end - start <= GUARD_BYTES_MAX;
            guard_end = is_guard.then_some(end);
        }
        Self { ranges }
    }

    /// An address in the stack of the calling thread.
    #[inline(never)]
    pub(crate) fn address_of_mine() -> u64 {
        let local = 0_u8;
        std::hint::black_box(&raw const local).addr() as u64
    }

    /// Whether the address is in a stack, and then whether that is a session's.
    pub(crate) fn is_sessions(&self, address: u64) -> Option<bool> {
        let next = self.ranges.partition_point(|(_, end, _)| *end <= address);
        self.ranges.get(next).filter(|(start, ..)| *start <= address).map(|range| range.2)
    }

    /// How many sessions' stacks there are.
    pub(crate) fn sessions(&self) -> usize {
        self.ranges.iter().filter(|range| range.2).count()
    }
}

/// The memory below a stack that nobody may touch has so many bytes at most.
const GUARD_BYTES_MAX: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_above_a_guard_page_is_a_stack() {
        let maps = "1000-2000 ---p 00000000 00:00 0\n2000-9000 rw-p 00000000 00:00 0\n\
                    9000-a000 ---p 00000000 00:00 0\na000-f000 rw-p 00000000 00:00 0 \n\
                    f000-ff000 rw-p 00000000 00:00 0\n100000-101000 r-xp 00000000 08:01 7 /bin/x";
        let stacks = Stacks::read(maps, &[0xa010]);
        let asked = [0x1fff, 0x2000, 0x8fff, 0xa000, 0xefff, 0xf000];
        let expected = [None, Some(false), Some(false), Some(true), Some(true), None];
        assert_eq!(asked.map(|address| stacks.is_sessions(address)), expected);
        assert_eq!(stacks.sessions(), 1);
    }
}
