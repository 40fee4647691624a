//! Nothing at all: rows are made and thrown away. What remains is the cost of the load generator,
//! so that nobody mistakes it for that of a target.

use std::path::Path;

use crate::error::LabError;

use super::embedded::{Embedded, Refusal, Store, StoreSession, impossible};
use super::rows::Row;
use super::{Instance, Target};
use crate::study::{Settings, TargetShown};

/// Throws rows away.
pub(super) struct Null;

impl Target for Null {
    fn name(&self) -> &'static str {
        Nothing::NAME
    }

    fn impossible(&self, settings: &Settings) -> Option<String> {
        let waits = settings.is_durable().then(|| "it has no disk to wait for".to_owned());
        impossible::<Nothing>(settings).or(waits)
    }

    fn shown(&self, _settings: &Settings) -> Result<TargetShown, LabError> {
        let settings = [("rows", "made, hashed and thrown away".to_owned())];
        Ok(TargetShown::of(env!("CARGO_PKG_VERSION"), settings))
    }

    fn prepare(&self, settings: &Settings, folder: &Path) -> Result<Box<dyn Instance>, LabError> {
        Ok(Box::new(Embedded::<Nothing>::prepare(settings, folder)?))
    }
}

struct Nothing;

impl Store for Nothing {
    const NAME: &'static str = "null";
    const KEEPS_ROWS: bool = false;
    type Session<'s> = Thrown;

    fn open(_folder: &Path, _settings: &Settings) -> Result<Self, Refusal> {
        Ok(Nothing)
    }

    fn session(&self, _is_durable: bool) -> Result<Thrown, Refusal> {
        Ok(Thrown)
    }

    fn scan(&self, _visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Refusal> {
        Ok(())
    }
}

struct Thrown;

impl StoreSession for Thrown {
    fn commit(&mut self, rows: &[Row]) -> Result<(), Refusal> {
        std::hint::black_box(rows);
        Ok(())
    }
}
