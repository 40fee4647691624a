//! Names of the code at an address: function, file and line, from the line tables of the program.

use std::path::Path;

use anyhow::{Result, anyhow};

/// Functions that are told of code that was inlined.
const FRAMES_TOLD: usize = 2;

/// The line tables of this program, and where it lies in memory.
pub(crate) struct Code {
    loader: addr2line::Loader,
    /// What is to be taken from an address in memory to get one of the file.
    offset: u64,
}

impl Code {
    /// `known_address` is where the function `known_name` lies in memory.
    pub(crate) fn load(program: &Path, known_name: &str, known_address: u64) -> Result<Self> {
        let loader = addr2line::Loader::new(program).map_err(|error| {
            anyhow!("{}: its line tables cannot be read: {error}", program.display())
        })?;
        let pages = (0..1 << 16).map(|page| page << 12);
        let in_file = known_address & 0xfff;
        let offset = pages
            .map(|page| page | in_file)
            .find(|address| {
                loader.find_symbol(*address).is_some_and(|name| name.contains(known_name))
            })
            .map(|address| known_address - address)
            .ok_or_else(|| anyhow!("{}: has no symbol {known_name}", program.display()))?;
        Ok(Self { loader, offset })
    }

    /// The innermost functions of Onrush's own that the code belongs to, with file and line; else the outermost of
    /// others that is known.
    pub(crate) fn name(&self, address: u64) -> String {
        let Some(address) = address.checked_sub(self.offset) else { return "?".to_owned() };
        let (mut ours, mut outermost) = (Vec::new(), None);
        if let Ok(mut frames) = self.loader.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                let place = frame
                    .location
                    .as_ref()
                    .and_then(|location| Some((location.file?, location.line?)));
                let Some((file, line)) = place else { continue };
                let function =
                    frame.function.and_then(|name| name.demangle().ok().map(|name| short(&name)));
                let function = function.unwrap_or_default();
                if let Some(file) = of_onrush(file) {
                    ours.push(format!("{function} ({file}:{line})"));
                } else {
                    outermost = Some(format!("{function} ({file}:{line})"));
                }
            }
        }
        if ours.is_empty() {
            let symbol = || self.loader.find_symbol(address).map(short);
            return outermost
                .or_else(symbol)
                .unwrap_or_else(|| format!("unknown code at {address:x}"));
        }
        ours.truncate(FRAMES_TOLD);
        ours.join(" in ")
    }
}

/// A function's last two names, without its types and its hash.
fn short(name: &str) -> String {
    let mut plain = String::new();
    let mut depth = 0_usize;
    for character in name.chars() {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(character),
            _ => {}
        }
    }
    let names: Vec<&str> = plain.split("::").filter(|name| !name.is_empty()).collect();
    let is_hash = |name: &&str| name.len() == 17 && name.starts_with('h');
    let end = if names.last().is_some_and(is_hash) { names.len() - 1 } else { names.len() };
    names[end.saturating_sub(2)..end].join("::")
}

/// The path of a file of Onrush's own, from its crate on.
fn of_onrush(file: &str) -> Option<&str> {
    file.rfind("crates/").map(|at| &file[at..]).filter(|_| !file.contains("/registry/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_to_their_last_two_parts() {
        assert_eq!(short("onrush_log::log::Log::reserve::h0123456789abcdef"), "Log::reserve");
        assert_eq!(short("<alloc::vec::Vec<T> as core::ops::Drop>::drop"), "drop");
        assert_eq!(short("main"), "main");
        assert_eq!(of_onrush("/a/b/crates/log/src/log.rs"), Some("crates/log/src/log.rs"));
        assert_eq!(of_onrush("/registry/src/x/src/lib.rs"), None);
    }
}
