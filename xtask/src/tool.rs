//! Programs that a command needs and that a machine may not have: installed into the target folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::commands::{Step, run_all};

/// A program of a package, and what `cargo install` is told of it.
pub(crate) struct Tool<'t> {
    pub(crate) name: &'t str,
    pub(crate) version: &'t str,
    pub(crate) flags: &'t [&'t str],
}

impl Tool<'_> {
    /// The `PATH` on which the program is found, after installing it if this machine has none; None if that fails.
    pub(crate) fn path(&self, root: &Path) -> Result<Option<String>, String> {
        let tools = root.join("target/tools");
        let folder = tools.join("bin");
        if !answers(Path::new(self.name)) && !answers(&self.own(&folder)) {
            let tools = tools.display().to_string();
            let install = ["install", "--locked", self.name, "--version", self.version];
            let install = [&install[..], self.flags, &["--root", &tools]].concat();
            let name = format!("installing {}", self.name);
            if run_all(&[Step::cargo(root, &name, &install)]) > 0 {
                return Ok(None);
            }
        }
        with_folder(&folder).map(Some)
    }

    fn own(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}{}", self.name, std::env::consts::EXE_SUFFIX))
    }
}

fn answers(program: &Path) -> bool {
    let mut command = Command::new(program);
    let status = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// `PATH` with a folder behind the others.
fn with_folder(folder: &Path) -> Result<String, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([folder.to_owned()]);
    let joined = std::env::join_paths(folders).map_err(|error| error.to_string())?;
    joined.into_string().map_err(|_| "PATH is no text".to_owned())
}
