//! An output folder that appears whole or not at all.

use crate::error::Mistake;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Folders under construction in this process. Whoever holds the lock may rename or remove one.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes every folder under construction, for a process that is about to end. It waits for one that is just appearing, and no
/// other can be begun or appear after it: the lock is never given back.
pub fn abandon_all() {
    let unfinished = unfinished();
    for partial in unfinished.iter() {
        // Nobody is left to hear about a failure here.
        let _ = fs::remove_dir_all(partial);
    }
    std::mem::forget(unfinished);
}

/// A folder under construction beside the place where it will appear. Dropped unfinished, it leaves nothing.
#[derive(Debug)]
pub struct Folder {
    target: PathBuf,
    partial: PathBuf,
    ours: Vec<String>,
    replace: bool,
    finished: bool,
}

impl Folder {
    /// Begins a folder that will appear at `target`.
    ///
    /// An existing `target` is refused without `force`. With it, the folder is replaced, but only when everything
    /// in it has a name of `ours`, what this command writes: nobody loses a home directory to a typing error.
    pub fn begin(target: &Path, force: bool, ours: &[&str]) -> Result<Folder, Mistake> {
        let cannot = |error: std::io::Error| Mistake::io(target, "created", &error);
        let target = std::path::absolute(target).map_err(cannot)?;
        let Some(name) = target.file_name() else {
            return Err(Mistake::file(&target, "accepted: the name of a new folder"));
        };
        let replace = target.symlink_metadata().is_ok();
        let ours: Vec<String> = ours.iter().map(|&name| name.to_owned()).collect();
        if replace {
            if !force {
                return Err(Mistake::file(&target, "exists already; accepted: a new folder, or --force to replace it"));
            }
            only_ours(&target, &ours)?;
        }
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".partial-{}", std::process::id()));
        let partial = target.with_file_name(hidden);
        unfinished().push(partial.clone());
        // What a killed process of the same number left behind.
        if partial.symlink_metadata().is_ok() {
            fs::remove_dir_all(&partial).map_err(|error| Mistake::io(&partial, "removed", &error))?;
        }
        fs::create_dir_all(&partial).map_err(|error| Mistake::io(&target, "created", &error))?;
        Ok(Folder { target, partial, ours, replace, finished: false })
    }

    /// Where to write the files.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// Where the folder will appear.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Writes one file of the folder.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), Mistake> {
        let file = self.partial.join(name);
        fs::write(&file, bytes).map_err(|error| Mistake::io(&self.target.join(name), "written", &error))
    }

    /// Makes a folder inside it.
    pub fn folder(&self, name: &str) -> Result<(), Mistake> {
        fs::create_dir(self.partial.join(name)).map_err(|error| Mistake::io(&self.target.join(name), "created", &error))
    }

    /// Makes the folder appear.
    pub fn finish(mut self) -> Result<(), Mistake> {
        let _appearing = unfinished();
        let cannot = |error: std::io::Error| Mistake::io(&self.target, "created", &error);
        if self.replace {
            only_ours(&self.target, &self.ours)?;
            let old = self.partial.with_extension(format!("old-{}", std::process::id()));
            fs::rename(&self.target, &old).map_err(cannot)?;
            if let Err(error) = fs::rename(&self.partial, &self.target) {
                // The old folder goes back; that this fails too is not more than the first error.
                let _ = fs::rename(&old, &self.target);
                return Err(cannot(error));
            }
            self.finished = true;
            return fs::remove_dir_all(&old).map_err(|error| Mistake::io(&old, "removed", &error));
        }
        if self.target.symlink_metadata().is_ok() {
            return Err(Mistake::file(&self.target, "appeared during the run; accepted: a new folder"));
        }
        fs::rename(&self.partial, &self.target).map_err(cannot)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.finished {
            // Nobody is left to hear about a failure here.
            let _ = fs::remove_dir_all(&self.partial);
        }
        unfinished().retain(|partial| *partial != self.partial);
    }
}

fn only_ours(folder: &Path, ours: &[String]) -> Result<(), Mistake> {
    let unreadable = |error: std::io::Error| Mistake::io(folder, "replaced", &error);
    if !folder.symlink_metadata().map_err(unreadable)?.is_dir() {
        return Err(Mistake::file(folder, "is not a folder; accepted: a new folder, or one to replace"));
    }
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        if !ours.iter().any(|known| name == known.as_str()) {
            let found = crate::error::quote(name.to_string_lossy().as_bytes());
            let what = format!("holds {found}, which is not replaced even with --force; accepted: another folder");
            return Err(Mistake::file(folder, what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("folder")
            .map(|e| e.expect("entry").file_name().into_string().expect("text"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_appears_whole_or_not_at_all() {
        let place = tempfile::tempdir().expect("a folder");
        let out = place.path().join("out");
        let folder = Folder::begin(&out, false, &["a"]).expect("begun");
        folder.write("a", "1").expect("written");
        assert!(!out.exists());
        drop(folder);
        assert!(entries(place.path()).is_empty(), "{:?}", entries(place.path()));
        let folder = Folder::begin(&out, false, &["a"]).expect("begun");
        folder.write("a", "1").expect("written");
        folder.finish().expect("finished");
        assert_eq!((entries(place.path()), entries(&out)), (vec!["out".to_owned()], vec!["a".to_owned()]));
    }

    #[test]
    fn what_exists_is_replaced_by_force_alone_and_never_what_is_not_ours() {
        let place = tempfile::tempdir().expect("a folder");
        let out = place.path().join("out");
        fs::create_dir(&out).expect("folder");
        fs::write(out.join("b"), "old").expect("file");
        let refused = Folder::begin(&out, false, &["a", "b"]).expect_err("exists").to_string();
        assert!(refused.contains("exists already") && refused.contains("--force"), "{refused}");
        let refused = Folder::begin(&out, true, &["a"]).expect_err("not ours").to_string();
        assert!(refused.contains("\"b\""), "{refused}");
        let folder = Folder::begin(&out, true, &["a", "b"]).expect("begun");
        folder.write("a", "new").expect("written");
        assert_eq!(entries(&out), ["b"]);
        folder.finish().expect("finished");
        assert_eq!((entries(&out), entries(place.path()).len()), (vec!["a".to_owned()], 1));
    }
}
