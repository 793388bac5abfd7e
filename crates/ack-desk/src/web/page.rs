//! The page: one HTML document with its style and script, and the policy for the browser.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use sha2::{Digest, Sha256};

use crate::choice::KEYS;

const HTML: &str = include_str!("../page/page.html");
const STYLE: &str = include_str!("../page/page.css");
/// The parts of the script, in order.
const SCRIPT: [&str; 7] = [
    include_str!("../page/server.js"),
    include_str!("../page/card.js"),
    include_str!("../page/dialogs.js"),
    include_str!("../page/plan.js"),
    include_str!("../page/closing.js"),
    include_str!("../page/keys.js"),
    include_str!("../page/start.js"),
];

#[derive(Debug)]
pub struct ReviewPage {
    pub html: Bytes,
    /// Its `Content-Security-Policy`: only its own style, script and server.
    pub policy: HeaderValue,
}

impl ReviewPage {
    /// Builds the page.
    pub fn new() -> std::io::Result<Self> {
        let keys = serde_json::Value::from(KEYS);
        let script = SCRIPT.concat();
        let script = format!("\"use strict\";\n(() => {{\nconst KEYS = {keys};\n{script}}})();\n");
        let html = HTML.replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", &script);
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; connect-src 'self'; \
             frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'",
            hash(&script),
            hash(STYLE)
        );
        Ok(Self {
            html: Bytes::from(html),
            policy: HeaderValue::from_str(&policy).map_err(std::io::Error::other)?,
        })
    }
}

/// A hash source of a policy (Content Security Policy Level 3, 2.3.1).
fn hash(source: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(source.as_bytes())))
}
