//! What was promised, outside of the engine: three numbers of each session in a file of its own.
//!
//! A number is written before an operation begins, and after it was acknowledged, each in one system
//! call, so that a kill leaves it as it was or as it is to be.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use onrush_oracle::{Bounds, Known};

/// The account of one session, for the session itself. Anybody may look at the first two numbers.
#[derive(Debug)]
pub(crate) struct Account {
    file: File,
    intended: AtomicU64,
    acknowledged: AtomicU64,
}

impl Account {
    /// A new account: all before `next` is settled.
    pub(crate) fn create(path: &Path, next: u64) -> Result<Account> {
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(path);
        let file = file.with_context(|| format!("create {}", path.display()))?;
        let settled = next - 1;
        let numbers = [settled, settled, settled].map(u64::to_le_bytes).concat();
        file.write_all_at(&numbers, 0)?;
        Ok(Account {
            file,
            intended: AtomicU64::new(settled),
            acknowledged: AtomicU64::new(settled),
        })
    }

    pub(crate) fn intends(&self, number: u64) -> Result<()> {
        self.intended.store(number, Ordering::Relaxed);
        Ok(self.file.write_all_at(&number.to_le_bytes(), 0)?)
    }

    pub(crate) fn acknowledges(&self, number: u64, durable: bool) -> Result<()> {
        self.acknowledged.store(number, Ordering::Relaxed);
        self.file.write_all_at(&number.to_le_bytes(), 8)?;
        if durable {
            self.file.write_all_at(&number.to_le_bytes(), 16)?;
        }
        Ok(())
    }

    pub(crate) fn intended(&self) -> u64 {
        self.intended.load(Ordering::Relaxed)
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }
}

/// Reads an account; none if the process was killed before it had one.
pub(crate) fn read(path: &Path) -> Result<Option<Known>> {
    let bytes = match std::fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes.with_context(|| format!("read {}", path.display()))?,
    };
    let Some(bytes) = bytes.get(..24) else { return Ok(None) };
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
    Ok(Some(Known { begun: number(0), acknowledged: number(8), required: number(16) }))
}

/// The file of a session's account.
pub(crate) fn path(folder: &Path, session: u64) -> PathBuf {
    folder.join(format!("account-{session}"))
}

/// Writes the bounds of each session beside a backup, once it is complete.
pub(crate) fn write_bounds(path: &Path, bounds: &[Bounds]) -> Result<()> {
    let mut text = String::new();
    for (from, to) in bounds {
        text += &format!("{from} {to}\n");
    }
    text += "end\n";
    std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

/// Reads them; none if the process was killed before they were written.
pub(crate) fn read_bounds(path: &Path) -> Result<Option<Vec<Bounds>>> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let Some(text) = text.strip_suffix("end\n") else { return Ok(None) };
    let line = |line: &str| {
        let (from, to) = line.split_once(' ').context("a line of two numbers")?;
        Ok((from.parse()?, to.parse()?))
    };
    text.lines().map(line).collect::<Result<Vec<Bounds>>>().map(Some)
}
