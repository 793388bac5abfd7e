//! Access to the page: a one-time address, and the token of the page that used it.
//!
//! Other users of the machine can read the command line of every process, also a browser's. So the
//! browser is given a file that leads to the address, and only this user can read the file.

use std::fs::Permissions;
use std::io::{Error, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ack_sys::files::create_private;
use parking_lot::Mutex;
use subtle::ConstantTimeEq;
use tempfile::TempDir;

use ack_http::gate::Token;

const SECRET_BYTES: usize = 32;

pub struct PageAccess {
    address: SocketAddr,
    entrance: Mutex<Entrance>,
    session: String,
}

/// The way in. Nothing of it is left once it is used.
#[derive(Default)]
struct Entrance {
    word: Option<String>,
    /// The folder of the file that leads to the address with the word.
    folder: Option<TempDir>,
}

impl PageAccess {
    pub fn new(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self { address, entrance: Mutex::default(), session: random_text()? })
    }

    /// Makes an address to open. It works once, and the previous address stops working.
    pub fn open(&self) -> std::io::Result<String> {
        let word = random_text()?;
        // Browsers do not send the part after the `#`.
        let address = format!("http://{}/#{word}", self.address);
        *self.entrance.lock() = Entrance { word: Some(word), folder: None };
        Ok(address)
    }

    /// Writes a file that leads to an address, in a new folder below the first of these that can
    /// hold it. Only this user can read the file. It is removed when the address is used.
    pub fn write_file(&self, address: &str, below: &[PathBuf]) -> std::io::Result<PathBuf> {
        let none = Err(Error::other("there is no folder for it"));
        let written =
            below.iter().fold(none, |known, below| known.or_else(|_| write_file(address, below)));
        let (folder, file) = written?;
        self.entrance.lock().folder = Some(folder);
        Ok(file)
    }

    /// Lets nobody else in.
    pub fn close(&self) {
        *self.entrance.lock() = Entrance::default();
    }

    /// Exchanges the word of the address for the session token. The word is then used up.
    pub fn enter(&self, typed: &str) -> Option<&str> {
        let mut entrance = self.entrance.lock();
        let word = entrance.word.as_ref()?;
        if !bool::from(word.as_bytes().ct_eq(typed.as_bytes())) {
            return None;
        }
        *entrance = Entrance::default();
        Some(&self.session)
    }

    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn token(&self) -> Option<Token> {
        Token::new(&self.session).ok()
    }
}

fn write_file(address: &str, below: &Path) -> std::io::Result<(TempDir, PathBuf)> {
    // Only this user can enter the folder.
    let folder = tempfile::Builder::new()
        .prefix("ack-memory-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(below)?;
    let path = folder.path().join("review.html");
    let page = format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" \
         content=\"no-referrer\">\n<meta http-equiv=\"refresh\" content=\"0; url={address}\">\n\
         <title>ack-memory</title>\n<p><a href=\"{address}\">Open the review page</a></p>\n"
    );
    create_private(&path)?.write_all(page.as_bytes())?;
    Ok((folder, path))
}

fn random_text() -> std::io::Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
