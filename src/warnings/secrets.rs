//! Finds passwords, keys and tokens in a text.
//!
//! It looks for what is certain by its form (a vendor's token, a private key), and for values that
//! nobody would guess in places where secrets are written: after a name such as `api_token`, in a
//! URL, in a command, in a sentence. A placeholder, a variable's name, a hash or an id is no secret.

mod names;
mod places;
mod values;
mod vendors;

/// Whether a text holds what looks like a password, a key or a token.
pub fn holds_secret(text: &str) -> bool {
    let is_private_key = text.contains("-----BEGIN ") && text.contains("PRIVATE KEY");
    is_private_key || vendors::has_token(text) || text.lines().any(places::holds_secret)
}

#[cfg(test)]
mod tests;
