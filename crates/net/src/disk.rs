//! Where a store's bytes lie.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// One file that grows at its end, or is replaced as a whole. What was written before a [`Disk::sync`] that succeeded is there after
/// a power loss; of what came later, any part may be.
pub trait Disk {
    /// All bytes; none where there is no file yet.
    fn read(&mut self) -> io::Result<Vec<u8>>;

    /// Adds bytes at the end.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns when everything appended is safe.
    fn sync(&mut self) -> io::Result<()>;

    /// Puts these bytes in place of all others, safely: after a power loss there are either the old ones or the new ones.
    fn replace(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// A file in a folder that one process at a time may use.
#[derive(Debug)]
pub struct FileDisk {
    folder: PathBuf,
    name: &'static str,
    file: File,
    /// Held while this value lives; the system lets go of it when the process ends, however it ends.
    lock: Option<(File, PathBuf)>,
}

const LOG: &str = "store.log";
const LOCK: &str = "store.lock";

/// The largest file that is read.
pub const STORE_BYTES_MAX: u64 = 1 << 30;

impl FileDisk {
    /// Opens or makes the folder, for the owner alone.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when another process has it.
    pub fn open(folder: &Path) -> io::Result<Self> {
        FileDisk::open_named(folder, LOG, Some(LOCK))
    }

    /// The same for a file of another name; without a lock where another file's lock is for both.
    pub(crate) fn open_named(folder: &Path, name: &'static str, lock: Option<&str>) -> io::Result<Self> {
        make_private_folder(folder)?;
        let lock = lock.map(|lock| locked(folder.join(lock))).transpose()?;
        let file = open_log(folder, name)?;
        sync_folder(folder)?;
        Ok(FileDisk { folder: folder.to_owned(), name, file, lock })
    }

    /// Refuses to write when the lock's file was deleted: another process may hold the one that has taken its place.
    fn check_lock(&self) -> io::Result<()> {
        match &self.lock {
            Some((lock, file)) if !is_at(lock, file)? => {
                let what = format!("{} was deleted while it was held", file.display());
                Err(io::Error::other(what))
            }
            _ => Ok(()),
        }
    }
}

/// A file that one process at a time can have.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when another process has it.
pub(crate) fn locked(file: PathBuf) -> io::Result<(File, PathBuf)> {
    loop {
        let lock = private().read(true).append(true).create(true).open(&file)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::new(io::ErrorKind::WouldBlock, "another process uses this store"),
            TryLockError::Error(error) => error,
        })?;
        // The file may have been deleted between the two: the next process would lock another one.
        if is_at(&lock, &file)? {
            return Ok((lock, file));
        }
    }
}

/// Whether an open file is the one that a path names.
fn is_at(open: &File, path: &Path) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let named = match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            named => named?,
        };
        let open = open.metadata()?;
        Ok((open.dev(), open.ino()) == (named.dev(), named.ino()))
    }
    // Elsewhere a file that is open cannot be deleted.
    #[cfg(not(unix))]
    {
        let _ = open;
        path.try_exists()
    }
}

/// A store's file, to be looked at and not changed, also while a peer uses it.
#[derive(Debug)]
pub struct Glance(PathBuf, &'static str);

impl Glance {
    /// The store in a folder.
    pub fn at(folder: &Path) -> Self {
        Glance::named(folder, LOG)
    }

    /// A file of another name.
    pub(crate) fn named(folder: &Path, name: &'static str) -> Self {
        Glance(folder.to_owned(), name)
    }
}

impl Disk for Glance {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        read_log(&self.0, self.1)
    }

    fn append(&mut self, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn replace(&mut self, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

/// A store in memory, that nobody comes back to: for audits and tests of nodes without a folder.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk(pub Vec<u8>);

impl Disk for MemoryDisk {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.0.clone())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0 = bytes.to_vec();
        Ok(())
    }
}

fn read_log(folder: &Path, name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = match File::open(folder.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(bytes),
        opened => opened?,
    };
    if file.metadata()?.len() > STORE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "a store has at most 1 GiB"));
    }
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Disk for FileDisk {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        read_log(&self.folder, self.name)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.check_lock()?;
        self.file.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.check_lock()?;
        let (new, log) = (self.folder.join(format!("{}.new", self.name)), self.folder.join(self.name));
        let mut file = private().write(true).create(true).truncate(true).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&new, &log)?;
        sync_folder(&self.folder)?;
        self.file = open_log(&self.folder, self.name)?;
        Ok(())
    }
}

fn open_log(folder: &Path, name: &str) -> io::Result<File> {
    private().read(true).append(true).create(true).open(folder.join(name))
}

/// Options for files that nobody else may read.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes a folder, and those above it, for the owner alone.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// A new name is safe only when its folder is.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
