//! Reads regular files only, up to a size. A path may name a named pipe, a socket or a device, and
//! opening one can block forever. So the path is checked, the file is opened in non-blocking mode,
//! and checked again.

use std::fs::{DirBuilder, File, FileType, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::libc;

/// Opens a regular file for reading. Symbolic links are followed.
pub fn open(path: &Path) -> Result<File> {
    check(path)?;
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    expect_file(file.metadata()?.file_type())?;
    Ok(file)
}

/// Checks that a path names a regular file, for a library that opens the file itself.
pub fn check(path: &Path) -> Result<()> {
    expect_file(std::fs::metadata(path)?.file_type())
}

/// Whether a path names neither a file nor a folder. `false` if it cannot be inspected.
pub fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Checks that a folder holds only regular files and folders, at any depth, for a library that
/// opens them itself. A missing folder holds nothing.
pub fn check_tree(folder: &Path) -> Result<()> {
    let mut folders = vec![folder.to_owned()];
    while let Some(inside) = folders.pop() {
        let entries = match std::fs::read_dir(&inside) {
            // Another process may have removed it.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            let mut kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            if kind.is_symlink() {
                // One to a folder is not followed.
                let Ok(metadata) = std::fs::metadata(&path) else { continue };
                kind = metadata.file_type();
            }
            if let Some(what) = special_kind(kind) {
                let name = path.strip_prefix(folder).unwrap_or(&path);
                let message = format!("`{}` is {what}, not a file", name.display());
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
        }
    }
    Ok(())
}

pub fn read(path: &Path, max_bytes: u64) -> Result<Vec<u8>> {
    read_opened(&open(path)?, max_bytes)
}

pub fn read_opened(file: &File, max_bytes: u64) -> Result<Vec<u8>> {
    // One byte more than the file size, so that one read takes everything and a second one finds
    // the end.
    let length = file.metadata()?.len().min(max_bytes).min(1 << 20);
    let mut content = Vec::with_capacity(usize::try_from(length + 1).unwrap_or_default());
    file.take(max_bytes.saturating_add(1)).read_to_end(&mut content)?;
    if content.len() as u64 > max_bytes {
        return Err(Error::new(
            ErrorKind::FileTooLarge,
            format!("it is larger than {max_bytes} bytes"),
        ));
    }
    Ok(content)
}

pub fn read_head(path: &Path, max_bytes: u64) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    open(path)?.take(max_bytes).read_to_end(&mut head)?;
    Ok(head)
}

pub fn read_text(path: &Path, max_bytes: u64) -> Result<String> {
    String::from_utf8(read(path, max_bytes)?)
        .map_err(|_| Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Whether a path is a regular file without other hard links, so that every change to it is a
/// change in its folder.
pub fn is_only_name(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = std::fs::symlink_metadata(path);
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.nlink() == 1)
}

/// Creates a folder for its owner alone: memories are private unless they decide otherwise.
pub fn make_private(folder: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

pub fn create_private(path: &Path) -> Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The lock ends with the process. `None` if another process holds it.
pub fn try_lock(path: &Path) -> Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The path with every symbolic link resolved, as far as it exists.
pub fn real_path(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(parent), Some(name)) => real_path(parent).join(name),
        _ => path.to_owned(),
    }
}

/// Replaces a leading `~` with the home folder.
pub fn expand_home(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

/// The other way round: a path as people write it.
pub fn with_tilde(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if !rest.as_os_str().is_empty() => format!("~/{}", rest.display()),
        _ => path.display().to_string(),
    }
}

fn expect_file(kind: FileType) -> Result<()> {
    let what = if kind.is_dir() { Some("a folder") } else { special_kind(kind) };
    what.map_or(Ok(()), |what| {
        Err(Error::new(ErrorKind::InvalidInput, format!("it is {what}, not a file")))
    })
}

fn special_kind(kind: FileType) -> Option<&'static str> {
    if kind.is_file() || kind.is_dir() {
        None
    } else if kind.is_fifo() {
        Some("a named pipe")
    } else if kind.is_socket() {
        Some("a socket")
    } else {
        Some("a device")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_are_read_and_only_so_much_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "five5").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        assert_eq!(read_text(&at("link"), 5).unwrap(), "five5");
        assert_eq!(read(&at("file"), 4).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(open(&at("none")).unwrap_err().kind(), ErrorKind::NotFound);
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for (name, what) in [("pipe", "a named pipe"), ("socket", "a socket"), (".", "a folder")] {
            let error = read(&at(name), 5).unwrap_err().to_string();
            assert!(error.contains(what), "{name}: {error}");
        }
        assert!(open(Path::new("/dev/zero")).unwrap_err().to_string().contains("a device"));
        assert!(is_special(&at("pipe")) && !is_special(&at("file")) && !is_special(folder.path()));
    }

    #[test]
    fn a_pipe_at_any_depth_of_a_folder_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        check_tree(&at("none")).unwrap();
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/file"), "").unwrap();
        std::os::unix::fs::symlink(at("a"), at("a/b/up")).unwrap();
        std::os::unix::fs::symlink(at("none"), at("a/b/nowhere")).unwrap();
        check_tree(folder.path()).unwrap();
        nix::unistd::mkfifo(&at("a/b/pipe"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let error = check_tree(folder.path()).unwrap_err().to_string();
        assert!(error.contains("`a/b/pipe` is a named pipe"), "{error}");
        std::fs::rename(at("a/b/pipe"), at("elsewhere")).unwrap();
        std::os::unix::fs::symlink(at("elsewhere"), at("a/link")).unwrap();
        assert!(check_tree(&at("a")).unwrap_err().to_string().contains("`link`"));
    }
}
