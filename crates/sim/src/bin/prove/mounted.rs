//! The disk in memory that can lose power, mounted as a file system (FUSE): a real process works on
//! it by real system calls.
//!
//! What was neither synced nor written with `O_DSYNC` is what [`CrashDisk`] may lose; names need a
//! sync of their folder. The system caches nothing in front of it: every read and write of a file
//! comes here (`FOPEN_DIRECT_IO`, which `O_DIRECT` is the same as), and names and lengths are asked
//! for anew each time.
//!
//! Invariant: a path has one number as long as it means the same file, since a process may compare
//! two descriptors of it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use onrush_files::{Disk, DiskError, DiskErrorKind, DiskFile, OpenMode};
use onrush_sim::CrashDisk;
use rustix::fs::OFlags;

/// Nothing is believed without asking.
const FRESH: Duration = Duration::ZERO;
/// Files have no handles of their own: all is done by the file's number.
const HANDLE: FileHandle = FileHandle(0);

/// See the module.
pub(crate) struct Mounted {
    disk: CrashDisk,
    nodes: Mutex<Nodes>,
}

/// Files and folders by number.
struct Nodes {
    all: HashMap<u64, Node>,
    numbers: HashMap<PathBuf, u64>,
}

#[derive(Clone)]
struct Node {
    /// The path it had last.
    path: PathBuf,
    /// None: a folder. A file that has lost its name can still be read and written.
    file: Option<Arc<dyn DiskFile>>,
}

type Answer<T> = Result<T, Errno>;

impl Mounted {
    pub(crate) fn new(disk: CrashDisk) -> Mounted {
        let root = Node { path: PathBuf::from("/"), file: None };
        let numbers = HashMap::from([(root.path.clone(), INodeNo::ROOT.0)]);
        let all = HashMap::from([(INodeNo::ROOT.0, root)]);
        Mounted { disk, nodes: Mutex::new(Nodes { all, numbers }) }
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn node(&self, number: INodeNo) -> Answer<Node> {
        self.nodes().all.get(&number.0).cloned().ok_or(Errno::ENOENT)
    }

    fn file(&self, number: INodeNo) -> Answer<Arc<dyn DiskFile>> {
        self.node(number)?.file.ok_or(Errno::EISDIR)
    }

    fn path_in(&self, parent: INodeNo, name: &OsStr) -> Answer<PathBuf> {
        Ok(self.node(parent)?.path.join(name))
    }

    /// What the path means now, under its number.
    fn look_up(&self, path: &Path) -> Answer<FileAttr> {
        let known = self.nodes().numbers.get(path).copied();
        let number = match known {
            Some(number) => number,
            None => {
                let file = match self.disk.open(path, OpenMode::ReadWrite) {
                    Ok(file) => Some(file),
                    Err(_) if self.disk.list(path).is_ok() => None,
                    Err(error) => return Err(number_of(&error)),
                };
                let mut nodes = self.nodes();
                let number = nodes.all.len() as u64 + INodeNo::ROOT.0;
                nodes.all.insert(number, Node { path: path.to_owned(), file });
                nodes.numbers.insert(path.to_owned(), number);
                number
            }
        };
        self.attributes(INodeNo(number))
    }

    fn attributes(&self, number: INodeNo) -> Answer<FileAttr> {
        let (kind, size) = match self.node(number)?.file {
            Some(file) => (FileType::RegularFile, file.len().map_err(|error| number_of(&error))?),
            None => (FileType::Directory, 0),
        };
        let then = SystemTime::UNIX_EPOCH;
        Ok(FileAttr {
            ino: number,
            size,
            blocks: size.div_ceil(512),
            atime: then,
            mtime: then,
            ctime: then,
            crtime: then,
            kind,
            perm: 0o700,
            nlink: 1,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn make_file(&self, parent: INodeNo, name: &OsStr) -> Answer<FileAttr> {
        let path = self.path_in(parent, name)?;
        self.disk.open(&path, OpenMode::CreateNew).map_err(|error| number_of(&error))?;
        self.look_up(&path)
    }

    fn make_folder(&self, parent: INodeNo, name: &OsStr) -> Answer<FileAttr> {
        let path = self.path_in(parent, name)?;
        self.disk.make_folder(&path).map_err(|error| number_of(&error))?;
        self.look_up(&path)
    }

    fn remove(&self, parent: INodeNo, name: &OsStr) -> Answer<()> {
        let path = self.path_in(parent, name)?;
        self.disk.remove(&path).map_err(|error| number_of(&error))?;
        self.nodes().numbers.remove(&path);
        Ok(())
    }

    fn rename_file(&self, from: &Path, to: &Path) -> Answer<()> {
        let number = self.look_up(from)?.ino.0;
        self.disk.rename(from, to).map_err(|error| number_of(&error))?;
        let mut nodes = self.nodes();
        nodes.numbers.remove(from);
        nodes.numbers.insert(to.to_owned(), number);
        if let Some(node) = nodes.all.get_mut(&number) {
            node.path = to.to_owned();
        }
        Ok(())
    }

    /// As many bytes as there are from `offset` on, up to `size`.
    fn bytes(&self, number: INodeNo, offset: u64, size: u32) -> Answer<Vec<u8>> {
        let file = self.file(number)?;
        let end = file.len().map_err(|error| number_of(&error))?;
        let size = u64::from(size).min(end.saturating_sub(offset));
        let mut bytes = vec![0; usize::try_from(size).map_err(|_| Errno::EINVAL)?];
        if !bytes.is_empty() {
            file.read_at(&mut bytes, offset).map_err(|error| number_of(&error))?;
        }
        Ok(bytes)
    }

    fn put(&self, number: INodeNo, offset: u64, data: &[u8], flags: OpenFlags) -> Answer<u32> {
        let file = self.file(number)?;
        // Of the descriptor or of this one call (RWF_DSYNC). O_SYNC has the bit of O_DSYNC, too.
        let is_durable = flags.0 as u32 & OFlags::DSYNC.bits() != 0;
        let written = match is_durable {
            true => file.write_at_durable(data, offset),
            false => file.write_at(data, offset),
        };
        written.map_err(|error| number_of(&error))?;
        u32::try_from(data.len()).map_err(|_| Errno::EINVAL)
    }

    fn reserve(&self, number: INodeNo, end: u64, mode: i32) -> Answer<()> {
        if mode != 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        self.file(number)?.allocate(end).map_err(|error| number_of(&error))
    }

    /// Name, number and kind of what is in a folder.
    fn inside(&self, folder: INodeNo) -> Answer<Vec<(INodeNo, FileType, String)>> {
        let path = self.node(folder)?.path;
        let names = self.disk.list(&path).map_err(|error| number_of(&error))?;
        let entry = |name: String| {
            let found = self.look_up(&path.join(&name))?;
            Ok((found.ino, found.kind, name))
        };
        names.into_iter().map(entry).collect()
    }
}

/// The system's number of an error of the disk.
fn number_of(error: &DiskError) -> Errno {
    match error.kind() {
        DiskErrorKind::NotFound => Errno::ENOENT,
        DiskErrorKind::AlreadyExists => Errno::EEXIST,
        DiskErrorKind::Full => Errno::ENOSPC,
        _ => Errno::EIO,
    }
}

/// Sends an answer, or the error instead.
macro_rules! answer {
    ($reply:ident, $outcome:expr, $send:expr) => {
        match $outcome {
            Ok(found) => $send($reply, found),
            Err(error) => $reply.error(error),
        }
    };
}

fn send_entry(reply: ReplyEntry, found: FileAttr) {
    reply.entry(&FRESH, &found, Generation(0));
}

fn send_nothing(reply: ReplyEmpty, (): ()) {
    reply.ok();
}

impl Filesystem for Mounted {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.path_in(parent, name).and_then(|path| self.look_up(&path));
        answer!(reply, found, send_entry);
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        answer!(reply, self.attributes(number), |reply: ReplyAttr, found| reply
            .attr(&FRESH, &found));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = size.map_or(Ok(()), |size| {
            self.file(number)?.set_len(size).map_err(|error| number_of(&error))
        });
        answer!(reply, set.and_then(|()| self.attributes(number)), |reply: ReplyAttr, found| reply
            .attr(&FRESH, &found));
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        answer!(reply, self.make_folder(parent, name), send_entry);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        answer!(reply, self.make_file(parent, name), |reply: ReplyCreate, found| {
            let flags = FopenFlags::FOPEN_DIRECT_IO;
            reply.created(&FRESH, &found, Generation(0), HANDLE, flags);
        });
    }

    fn open(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        answer!(reply, self.file(number), |reply: ReplyOpen, _| {
            reply.opened(HANDLE, FopenFlags::FOPEN_DIRECT_IO);
        });
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.remove(parent, name), send_nothing);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let renamed = self.path_in(parent, name).and_then(|from| {
            let to = self.path_in(new_parent, new_name)?;
            self.rename_file(&from, &to)
        });
        answer!(reply, renamed, send_nothing);
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        answer!(reply, self.bytes(number, offset, size), |reply: ReplyData, bytes: Vec<u8>| {
            reply.data(&bytes);
        });
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        answer!(reply, self.put(number, offset, data, flags), |reply: ReplyWrite, bytes| {
            reply.written(bytes);
        });
    }

    fn fsync(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let synced =
            self.file(number).and_then(|file| file.sync().map_err(|error| number_of(&error)));
        answer!(reply, synced, send_nothing);
    }

    fn fsyncdir(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let synced = self
            .node(number)
            .and_then(|node| self.disk.sync_folder(&node.path).map_err(|error| number_of(&error)));
        answer!(reply, synced, send_nothing);
    }

    fn fallocate(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        answer!(reply, self.reserve(number, offset.saturating_add(length), mode), send_nothing);
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        match self.inside(number) {
            Ok(entries) => {
                for (at, (number, kind, name)) in entries.into_iter().enumerate().skip(skipped) {
                    if reply.add(number, at as u64 + 1, kind, &name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(error) => reply.error(error),
        }
    }
}
