//! Where a server's programs are, and whose rights it may have.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Refusal;
use super::process::Recipe;

/// The first folder that holds all of these programs.
pub(super) fn folder_with(
    folders: impl IntoIterator<Item = PathBuf>,
    all: &[&str],
) -> Option<PathBuf> {
    folders.into_iter().find(|folder| all.iter().all(|name| folder.join(name).is_file()))
}

/// The folders in which a shell looks for programs, and those where servers stand.
pub(super) fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders
        .extend(["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin"].map(PathBuf::from));
    folders
}

/// What a program prints, in one line; None if it cannot be run.
pub(super) fn output_of(program: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// A user of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) id: u32,
    pub(super) group: u32,
}

/// As whom a server is to run: as somebody without rights if this process has all of them, for
/// servers refuse to run as root, and should; None for the user of this process.
pub(super) fn servant(preferred: &str) -> Option<User> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    user_of(&users, preferred).or_else(|| user_of(&users, "nobody"))
}

fn user_of(users: &str, name: &str) -> Option<User> {
    users.lines().find_map(|line| {
        let mut words = line.split(':');
        let is_it = words.next() == Some(name);
        let (id, group) = (words.nth(1)?.parse().ok()?, words.next()?.parse().ok()?);
        is_it.then(|| User { name: name.to_owned(), id, group })
    })
}

/// How that user is shown in results.
pub(super) fn shown(user: Option<&User>) -> String {
    match user {
        Some(user) => format!("{} (the lab is root, and servers are not run as root)", user.name),
        None => "the user of the lab".to_owned(),
    }
}

/// Why a user cannot reach a folder: one above it lets nobody else in.
pub(super) fn out_of_reach(folder: &Path, user: &User) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let closed = folder.ancestors().skip(1).find(|above| {
        let Ok(found) = fs::metadata(above) else { return false };
        let needed = match (found.uid() == user.id, found.gid() == user.group) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        found.mode() & needed == 0
    })?;
    Some(format!(
        "it runs as user {}, who may not enter {}; give --dir a folder that others may enter, or \
         run the lab as another user than root",
        user.name,
        closed.display()
    ))
}

/// A folder for a server's socket: in the server's own folder, or for itself where temporary files
/// go if that path is longer than the system allows for sockets. Only the server's user may enter
/// it. It is removed with the server's folder, or when this is dropped.
pub(super) struct SocketFolder {
    folder: PathBuf,
    is_temporary: bool,
}

impl SocketFolder {
    pub(super) fn make(recipe: &Recipe, bytes_max: usize) -> Result<SocketFolder, Refusal> {
        use std::os::unix::fs::DirBuilderExt;
        let inside = recipe.folder.join("socket");
        let is_temporary = inside.as_os_str().len() > bytes_max;
        let folder = match is_temporary {
            false => inside,
            true => {
                let id = std::process::id();
                let free = |number: &u32| !temporary(id, *number).exists();
                temporary(id, (0..).find(free).unwrap_or(0))
            }
        };
        let told = |error| format!("cannot make folder {}: {error}", folder.display());
        fs::DirBuilder::new().mode(0o700).create(&folder).map_err(told)?;
        if let Some(user) = &recipe.user {
            std::os::unix::fs::chown(&folder, Some(user.id), Some(user.group)).map_err(told)?;
        }
        Ok(SocketFolder { folder, is_temporary })
    }

    pub(super) fn path(&self) -> &Path {
        &self.folder
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        if self.is_temporary {
            // It holds at most a socket; if it stays, the system's cleaning of that place takes it.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

fn temporary(id: u32, number: u32) -> PathBuf {
    std::env::temp_dir().join(format!("onrush-lab-{id}-{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/bash\n\
                         nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin\nbroken\n";

    #[test]
    fn a_user_is_found_by_name_only() {
        let nobody = User { name: "nobody".to_owned(), id: 65534, group: 65533 };
        assert_eq!(user_of(USERS, "nobody"), Some(nobody));
        assert_eq!(user_of(USERS, "bash"), None);
        assert_eq!(user_of(USERS, "broken"), None);
    }

    #[test]
    fn a_folder_below_a_closed_one_is_out_of_reach_for_others() {
        use std::os::unix::fs::PermissionsExt;
        let open = tempfile::tempdir().unwrap();
        fs::set_permissions(open.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let stranger = User { name: "stranger".to_owned(), id: 4_000_001, group: 4_000_001 };
        let inside = open.path().join("closed").join("data");
        fs::create_dir_all(&inside).unwrap();
        assert_eq!(out_of_reach(&inside, &stranger), None);
        let closed = fs::Permissions::from_mode(0o700);
        fs::set_permissions(open.path().join("closed"), closed).unwrap();
        let reason = out_of_reach(&inside, &stranger).unwrap();
        assert!(reason.contains("stranger") && reason.contains("closed"), "{reason}");
    }

    #[test]
    fn a_folder_must_hold_every_program() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("one"), "").unwrap();
        let here = || [PathBuf::from("/nonexistent"), folder.path().to_owned()];
        assert_eq!(folder_with(here(), &["one"]).as_deref(), Some(folder.path()));
        assert_eq!(folder_with(here(), &["one", "two"]), None);
    }
}
