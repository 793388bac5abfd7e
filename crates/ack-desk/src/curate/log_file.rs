//! The file of a decision log, as a writer sees it.
//!
//! New lines are written into a copy of the log, which takes its place in one step, so a batch is
//! in the log whole or not at all, whenever the process is killed and however full the disk is.
//! Writers lock the folder and the log, so their lines never mix. Other programs lock nothing: an
//! editor or git may put another file in the log's place at any time. So the path must name the
//! locked file before the copy takes its place, and the new lines must be there afterwards.

use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ack_store::decisions::MAX_LOG_BYTES;
use ack_store::decisions::seal::{LineOrigin, Seal, seal_path};
use ack_sys::files;
use nix::unistd::{AccessFlags, access};
use tempfile::NamedTempFile;

use super::CurateError;

const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_POLL: Duration = Duration::from_millis(20);
/// The beginning of the names of copies that are not in place yet.
const COPY_PREFIX: &str = ".decisions-";

pub fn check(path: &Path) -> Result<(), CurateError> {
    let writable = |path: &Path| access(path, AccessFlags::W_OK).map_err(io::Error::from);
    let checked = real_path(path).and_then(|real| {
        if real.exists() {
            files::check(&real)?;
            writable(&real)?;
        }
        writable(real.parent().unwrap_or(&real))
    });
    checked.map_err(|source| write_error(path, source))
}

/// A log that no other process of this program writes.
pub struct LockedLog {
    /// The path as configured.
    path: PathBuf,
    /// Where its links lead.
    real: PathBuf,
    /// The locked file; `None` if there is none yet.
    file: Option<File>,
    /// Locked too, because the file is replaced and may be missing.
    _folder: File,
}

impl LockedLog {
    /// Locks a log, which may be missing.
    pub fn open(path: &Path) -> Result<Self, CurateError> {
        let fail = |source| write_error(path, source);
        let real = real_path(path).map_err(fail)?;
        let folder = File::open(real.parent().unwrap_or(&real)).map_err(fail)?;
        // Not every file system can lock a folder.
        if let Err(TryLockError::WouldBlock) = lock(&folder) {
            return Err(locked(path));
        }
        let mut log = Self { path: path.to_owned(), real, file: None, _folder: folder };
        loop {
            // A network file system locks only what is open for writing.
            let options = fs::OpenOptions::new().read(true).append(true).clone();
            let file = match files::check(&log.real).and_then(|()| options.open(&log.real)) {
                Ok(file) => Some(file),
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(fail(error)),
            };
            match file.as_ref().map(lock).transpose() {
                Err(TryLockError::WouldBlock) => return Err(locked(path)),
                Err(TryLockError::Error(error)) => return Err(fail(error)),
                Ok(_) => log.file = file,
            }
            // Another file may have taken its place while we waited.
            if log.is_in_place().map_err(fail)? {
                return Ok(log);
            }
        }
    }

    /// Appends lines, all or none.
    ///
    /// # Errors
    /// The log cannot be written, or another program replaced it. Then none of the lines is in it.
    /// With [`CurateError::LateLines`] they are.
    pub fn append(mut self, lines: &str) -> Result<(), CurateError> {
        let path = self.path.clone();
        let fail = |source| write_error(&path, source);
        for place in [&self.real, &self.path] {
            remove_left_copies(place);
        }
        let before = self.content().map_err(fail)?;
        let mut text = before.clone();
        if text.last().is_some_and(|last| *last != b'\n') {
            text.push(b'\n');
        }
        text.extend_from_slice(lines.as_bytes());
        if text.len() as u64 > MAX_LOG_BYTES {
            return Err(fail(ErrorKind::FileTooLarge.into()));
        }
        let copy = self.copy(&self.real, &text).map_err(fail)?;
        if !self.is_in_place().map_err(fail)? {
            return Err(replaced(&path));
        }
        self.seal(&before, lines, LineOrigin::Pending).map_err(fail)?;
        let placed = match &self.file {
            Some(_) => copy.persist(&self.real),
            None => copy.persist_noclobber(&self.real),
        };
        placed.map_err(|error| match error.error.kind() {
            ErrorKind::AlreadyExists => replaced(&path),
            _ => fail(error.error),
        })?;
        // Makes the new name last. What is in the file is on the disk already.
        let folder = self.real.parent().and_then(|folder| File::open(folder).ok());
        let _ = folder.map(|folder| folder.sync_all());
        if !files::read(&self.real, MAX_LOG_BYTES).unwrap_or_default().starts_with(&text) {
            return Err(replaced(&path));
        }
        // If this fails, only a later loss of the new lines is not noticed.
        let _ = self.seal(&before, lines, LineOrigin::Own);
        let kept = self.keep_late_lines(before.len() as u64);
        kept.map_err(|source| CurateError::LateLines { path, source })
    }

    /// Seals the log as it is, so that it counts. Lines that were not in it when it was `shown` stay
    /// another program's.
    pub fn accept(self, shown: &[u8]) -> Result<(), CurateError> {
        let seal = seal_path(&self.path);
        let written = self.content().and_then(|content| match &self.file {
            Some(_) => {
                let seen = Seal::of(shown, None, b"", LineOrigin::Own);
                self.put_in_place(&seal, &Seal::of(&content, Some(&seen), b"", LineOrigin::Own))
            }
            None => fs::remove_file(&seal).or_else(|error| match error.kind() {
                ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            }),
        });
        written.map_err(|source| write_error(&seal, source))
    }

    /// Seals the log with the new lines.
    fn seal(&self, before: &[u8], lines: &str, origin: LineOrigin) -> io::Result<()> {
        let path = seal_path(&self.path);
        let known = Seal::load(&path)?;
        self.put_in_place(&path, &Seal::of(before, known.as_ref(), lines.as_bytes(), origin))
    }

    fn put_in_place(&self, path: &Path, seal: &Seal) -> io::Result<()> {
        let real = real_path(path)?;
        self.copy(&real, seal.to_text().as_bytes())?.persist(&real).map_err(|error| error.error)?;
        Ok(())
    }

    /// A file that can take the place of `path`, which is complete on the disk. Whoever may read
    /// the log may read it.
    fn copy(&self, path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
        let folder = path.parent().unwrap_or(path);
        let mut copy = tempfile::Builder::new().prefix(COPY_PREFIX).tempfile_in(folder)?;
        copy.write_all(content)?;
        if let Some(log) = self.metadata()? {
            copy.as_file().set_permissions(log.permissions())?;
        }
        copy.as_file().sync_all()?;
        Ok(copy)
    }

    fn content(&self) -> io::Result<Vec<u8>> {
        let Some(mut file) = self.file.as_ref() else {
            return Ok(Vec::new());
        };
        file.seek(SeekFrom::Start(0))?;
        files::read_opened(file, MAX_LOG_BYTES)
    }

    /// Appends what another program appended to the old file, which it may have opened before the
    /// new one took its place.
    fn keep_late_lines(&mut self, length: u64) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let mut late = Vec::new();
        file.seek(SeekFrom::Start(length))?;
        file.read_to_end(&mut late)?;
        if late.is_empty() {
            return Ok(());
        }
        fs::OpenOptions::new().append(true).open(&self.real)?.write_all(&late)
    }

    fn metadata(&self) -> io::Result<Option<Metadata>> {
        self.file.as_ref().map(File::metadata).transpose()
    }

    /// Whether the path still names the locked file, or still nothing.
    fn is_in_place(&self) -> io::Result<bool> {
        let there = match fs::metadata(&self.real) {
            Ok(there) => Some((there.dev(), there.ino())),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(there == self.metadata()?.map(|file| (file.dev(), file.ino())))
    }
}

/// Where the links of a path lead.
fn real_path(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound && !path.is_symlink() => {
            Ok(path.to_owned())
        }
        real => real,
    }
}

fn lock(file: &File) -> Result<(), TryLockError> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if began.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(LOCK_POLL);
            }
            result => return result,
        }
    }
}

/// Removes what a killed process left. Its lines are in no log.
fn remove_left_copies(log: &Path) {
    let entries = fs::read_dir(log.parent().unwrap_or(log)).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with(COPY_PREFIX) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn write_error(path: &Path, source: io::Error) -> CurateError {
    CurateError::Write { path: path.to_owned(), source }
}

fn locked(path: &Path) -> CurateError {
    CurateError::Locked { path: path.to_owned() }
}

fn replaced(path: &Path) -> CurateError {
    CurateError::Replaced { path: path.to_owned() }
}
