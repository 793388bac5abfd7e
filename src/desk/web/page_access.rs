//! Access to the page: a one-time address, and the token of the page that used it.

use std::net::SocketAddr;

use parking_lot::Mutex;
use subtle::ConstantTimeEq;

use crate::gate::Token;

/// Random bytes in a word or a token.
const SECRET_BYTES: usize = 32;

/// Lets one page in.
pub struct PageAccess {
    address: SocketAddr,
    /// The one-time word, until it is used.
    word: Mutex<Option<String>>,
    /// The token of the session.
    session: String,
}

impl std::fmt::Debug for PageAccess {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "PageAccess({})", self.address)
    }
}

impl PageAccess {
    /// The page access of a server.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn new(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self {
            address,
            word: Mutex::new(None),
            session: random_text()?,
        })
    }

    /// Makes an address to open. It works once, and the previous address stops working.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn open(&self) -> std::io::Result<String> {
        let word = random_text()?;
        // Browsers do not send the part after the `#`.
        let address = format!("http://{}/#{word}", self.address);
        *self.word.lock() = Some(word);
        Ok(address)
    }

    /// Exchanges the word of the address for the session token. The word is then used up.
    pub fn enter(&self, typed: &str) -> Option<&str> {
        let mut word = self.word.lock();
        let fits = word
            .as_ref()
            .is_some_and(|word| word.as_bytes().ct_eq(typed.as_bytes()).into());
        fits.then(|| {
            *word = None;
            self.session.as_str()
        })
    }

    /// The port of the server.
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// The session's token, for the gate.
    pub fn token(&self) -> Option<Token> {
        Token::new(&self.session).ok()
    }
}

fn random_text() -> std::io::Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
