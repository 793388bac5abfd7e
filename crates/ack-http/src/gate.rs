//! Checks who may send requests. Only the head of a request is read here, before anything is done.
//!
//! A page in a browser can send requests to this machine, and with DNS rebinding it can do so under
//! its own host name. So `Host` must be a name of this server, and `Origin`, which browsers send,
//! must be the same host and port. The token is checked after that.

use std::net::Ipv6Addr;

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{Uri, header::HeaderValue};
use subtle::ConstantTimeEq;

pub const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
const MIN_TOKEN_BYTES: usize = 16;

/// A bearer token. It is compared in constant time and never printed.
#[derive(Clone)]
pub struct Token(Vec<u8>);

impl Token {
    /// A token from text: visible ASCII characters without spaces, at least 16. White space around
    /// it is ignored.
    ///
    /// # Errors
    /// What is wrong with it, as part of a sentence that does not repeat the token.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("it is empty".to_owned());
        }
        let length = text.len();
        if length < MIN_TOKEN_BYTES {
            return Err(format!(
                "it has {length} characters; at least {MIN_TOKEN_BYTES} are needed"
            ));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("it holds characters other than visible ASCII ones".to_owned());
        }
        Ok(Self(text.as_bytes().to_vec()))
    }

    fn equals(&self, token: &[u8]) -> bool {
        self.0.ct_eq(token).into()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Token(…)")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It names no host, or more than one.
    NoHost,
    WrongHost,
    /// It comes from a page of another origin.
    WrongOrigin,
    NoToken,
    WrongToken,
}

#[derive(Debug)]
pub struct Gate {
    /// The host names and addresses of this server, in lower case, without ports or brackets.
    hosts: Vec<String>,
    token: Option<Token>,
}

impl Gate {
    /// A gate for a server with these names and the loopback names.
    pub fn new(names: &[String], token: Option<Token>) -> Self {
        let mut hosts: Vec<String> = LOOPBACK.map(str::to_owned).into();
        hosts.extend(names.iter().map(|name| normalise_host(name)));
        Self { hosts, token }
    }

    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Checks the target and the origin of a request. Ignores the server's own port, because a
    /// tunnel may change it.
    pub fn check_target(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = single_header(headers, &HOST).ok_or(Refusal::NoHost)?;
        let host = host.to_str().ok().filter(|host| !host.is_empty()).ok_or(Refusal::NoHost)?;
        let own_host = self.own(host)?;
        // A request may also name its host in the target (RFC 9112, 3.2.2).
        if let Some(target) = uri.authority() {
            self.own(target.as_str())?;
        }
        if !headers.contains_key(ORIGIN) {
            return Ok(());
        }
        let origin = single_header(headers, &ORIGIN).and_then(|origin| origin.to_str().ok());
        let origin = origin.unwrap_or_default();
        let same = [("http://", 80), ("https://", 443)].into_iter().any(|(scheme, port)| {
            let from = origin.strip_prefix(scheme).and_then(HostAndPort::parse);
            let with_port = |place: &HostAndPort| (place.host.clone(), place.port.unwrap_or(port));
            from.is_some_and(|from| with_port(&from) == with_port(&own_host))
        });
        if same { Ok(()) } else { Err(Refusal::WrongOrigin) }
    }

    /// The place that a text names, which must be this server.
    fn own(&self, text: &str) -> Result<HostAndPort, Refusal> {
        let place = HostAndPort::parse(text).filter(|place| self.hosts.contains(&place.host));
        place.ok_or(Refusal::WrongHost)
    }

    pub fn token(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        if token.equals(bearer(headers)?) { Ok(()) } else { Err(Refusal::WrongToken) }
    }
}

pub fn bearer(headers: &HeaderMap) -> Result<&[u8], Refusal> {
    let header = single_header(headers, &AUTHORIZATION).ok_or(Refusal::NoToken)?.as_bytes();
    let (scheme, header) = header.split_at_checked(7).ok_or(Refusal::NoToken)?;
    if !scheme.eq_ignore_ascii_case(b"bearer ") {
        return Err(Refusal::NoToken);
    }
    Ok(header.trim_ascii())
}

/// The value of a header that occurs exactly once.
fn single_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// A host with an optional port, and nothing else.
#[derive(Debug, PartialEq, Eq)]
struct HostAndPort {
    /// In lower case. An IPv6 address is in its short form, without brackets.
    host: String,
    port: Option<u16>,
}

impl HostAndPort {
    /// Parses `host` or `host:port`. Rejects anything else an authority may contain (a user,
    /// percent-encoding), because programs disagree about the host it names.
    fn parse(text: &str) -> Option<Self> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(address) => {
                let (address, rest) = address.split_once(']')?;
                (address.parse::<Ipv6Addr>().ok()?.to_string(), rest)
            }
            None => {
                let (host, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
                let plain =
                    |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
                (!host.is_empty() && host.bytes().all(plain))
                    .then(|| (host.to_ascii_lowercase(), rest))?
            }
        };
        let port = match rest.strip_prefix(':') {
            // `+80` would also parse as a number.
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(port.parse().ok()?)
            }
            None if rest.is_empty() => None,
            _ => return None,
        };
        Some(Self { host, port })
    }
}

fn normalise_host(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    host.parse::<Ipv6Addr>().map_or(host, |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef";

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_request_must_be_for_this_host_and_from_its_own_pages() {
        let gate = Gate::new(&["Memory.Example".to_owned(), "10.0.0.7".to_owned()], None);
        let check = |lines: &[(&str, &str)]| {
            gate.check_target(&Uri::from_static("/mcp"), &headers(lines)).err()
        };
        for host in "
            localhost 127.0.0.1:7767 [::1]:80 LOCALHOST:1 [0:0:0:0:0:0:0:1] memory.example
            10.0.0.7:443"
            .split_whitespace()
        {
            assert_eq!(check(&[("host", host)]), None, "{host}");
        }
        for host in
            "evil.example | localhost.evil.example | 127.0.0.1.evil.example:7767 | 10.0.0.8 | \
            localhost. | x@localhost | x:y@127.0.0.1:7767 | localhost@evil.example | \
            evil.example:80@localhost | localhost: | localhost:+80 | localhost:80:80 | \
            localhost:99999 | localhost:80@evil.example | localhost/ | localhost# | \
            localhost%2eevil.example | %6cocalhost | localhost evil.example | \
            localhost,evil.example | [localhost] | [127.0.0.1] | [::1 | ::1 | \
            [::1]evil.example | [::1%25lo] | [::2]:80 | 127.1 | 2130706433 | 0x7f.0.0.1 | \
            127.0.0.1."
                .split(" | ")
        {
            assert_eq!(check(&[("host", host)]), Some(Refusal::WrongHost), "{host}");
        }
        assert_eq!(check(&[]), Some(Refusal::NoHost));
        assert_eq!(check(&[("host", "")]), Some(Refusal::NoHost));
        let twice = check(&[("host", "localhost"), ("host", "evil.example")]);
        assert_eq!(twice, Some(Refusal::NoHost));
        let from = |origin: &str| check(&[("host", "localhost:7767"), ("origin", origin)]);
        assert_eq!(from("http://localhost:7767"), None);
        assert_eq!(from("https://localhost:7767"), None);
        for origin in
            "http://localhost:3000 | http://localhost | http://evil.example:7767 | null | \
             file://localhost:7767 | http://x@localhost:7767 | http://localhost:7767/ | \
             http://localhost:7767@evil.example | http://localhost:7767.evil.example | \
             http://127.0.0.1:7767 | localhost:7767"
                .split(" | ")
                .chain(["", "http://localhost:7767 "])
        {
            assert_eq!(from(origin), Some(Refusal::WrongOrigin), "{origin}");
        }
        // Without a port, the default of the page's scheme applies.
        let plainly = |host: &str, origin: &str| check(&[("host", host), ("origin", origin)]);
        assert_eq!(plainly("localhost", "http://LOCALHOST:80"), None);
        assert_eq!(plainly("[::1]:443", "https://[0:0::1]"), None);
        assert_eq!(plainly("localhost", "https://localhost:80"), Some(Refusal::WrongOrigin));
        let twice = check(&[
            ("host", "localhost"),
            ("origin", "http://localhost"),
            ("origin", "http://evil.example"),
        ]);
        assert_eq!(twice, Some(Refusal::WrongOrigin));
        for (target, refusal) in [
            ("http://evil.example/mcp", Err(Refusal::WrongHost)),
            ("http://x@localhost/mcp", Err(Refusal::WrongHost)),
            ("http://localhost@evil.example/mcp", Err(Refusal::WrongHost)),
            ("http://localhost:80/mcp", Ok(())),
        ] {
            let headers = headers(&[("host", "localhost")]);
            assert_eq!(gate.check_target(&Uri::from_static(target), &headers), refusal, "{target}");
        }
    }

    #[test]
    fn the_token_must_be_present_once_and_complete() {
        let gate = Gate::new(&[], Some(Token::new(SECRET).unwrap()));
        let token = |lines: &[(&str, &str)]| gate.token(&headers(lines)).err();
        let bearer = format!("Bearer {SECRET}");
        assert_eq!(token(&[("authorization", &bearer)]), None);
        assert_eq!(token(&[("authorization", &bearer.to_lowercase())]), None);
        assert_eq!(token(&[]), Some(Refusal::NoToken));
        assert_eq!(token(&[("authorization", "Basic 0123456789abcdef")]), Some(Refusal::NoToken));
        assert_eq!(token(&[("authorization", "Bear")]), Some(Refusal::NoToken));
        let twice = token(&[("authorization", &bearer), ("authorization", &bearer)]);
        assert_eq!(twice, Some(Refusal::NoToken));
        for wrong in ["", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF"] {
            let wrong = format!("Bearer {wrong}");
            assert_eq!(token(&[("authorization", &wrong)]), Some(Refusal::WrongToken), "{wrong}");
        }
        assert_eq!(Gate::new(&[], None).token(&headers(&[])), Ok(()));
    }

    #[test]
    fn a_token_is_long_enough_printable_and_never_shown() {
        assert!(Token::new("  0123456789abcdef\n").is_ok());
        for wrong in ["", " \n", "short", "0123456789 abcdef", "0123456789abcdé0"] {
            assert!(Token::new(wrong).is_err(), "{wrong}");
        }
        assert!(!format!("{:?}", Token::new(SECRET)).contains(SECRET));
    }
}
