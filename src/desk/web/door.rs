//! The way in: an address that can be used once, and the token of whoever used it.

use std::net::SocketAddr;

use parking_lot::Mutex;
use subtle::ConstantTimeEq;

use crate::gate::Token;

/// Random bytes of a word or a token.
const BYTES: usize = 32;

/// Lets one page in.
pub struct Door {
    address: SocketAddr,
    /// The word that lets in, while it was not used.
    word: Mutex<Option<String>>,
    /// The token of the session.
    session: String,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Door({})", self.address)
    }
}

impl Door {
    /// The door of a server.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn new(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self {
            address,
            word: Mutex::new(None),
            session: random()?,
        })
    }

    /// An address to open. It lets in once; the one that was made before lets in no more.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn open(&self) -> std::io::Result<String> {
        let word = random()?;
        // Browsers do not send what stands behind the `#`.
        let address = format!("http://{}/#{word}", self.address);
        *self.word.lock() = Some(word);
        Ok(address)
    }

    /// The session's token, for the word of the address. It is used up then.
    pub fn enter(&self, given: &str) -> Option<&str> {
        let mut word = self.word.lock();
        let fits = word
            .as_ref()
            .is_some_and(|word| word.as_bytes().ct_eq(given.as_bytes()).into());
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

fn random() -> std::io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
