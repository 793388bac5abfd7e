//! The desk in a browser: a server on loopback for one page and one person.
//!
//! The address to open ends in a one-time word ([`page_access`]). The page exchanges it for the
//! session token, keeps the token in its tab and sends it with every request. So another page,
//! another user of this machine, or someone who sees the address later gets nothing, and their
//! connections make room for those of the page. The server stops when the page says so, after some
//! minutes without a request of the page, or when it is interrupted. The caller gets back the
//! choices that are not written yet.

mod message;
mod page;
mod page_access;
mod site;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

pub use self::message::decided;
pub use self::page_access::PageAccess;
use self::site::ReviewSite;
use super::Desk;
use ack_http::peers::{self, ConnectionLimits, Peer};
use ack_service::context::brief::Brief;

#[derive(Debug, Clone, Copy)]
pub struct PageLimits {
    /// Concurrent connections. All come from this machine.
    connections: ConnectionLimits,
    body_timeout: Duration,
    bytes: usize,
    /// The time without a request after which the server stops.
    idle: Duration,
}

const DEFAULT_LIMITS: PageLimits = PageLimits {
    connections: ConnectionLimits {
        max_total: 32,
        max_unknown: 16,
        unknown_timeout: Duration::from_secs(5),
        head_timeout: Duration::from_secs(15),
        unread_timeout: Duration::from_secs(10),
    },
    body_timeout: Duration::from_secs(15),
    bytes: 1 << 20,
    idle: Duration::from_secs(300),
};

/// How long the search for groups waits, to load the first card faster.
const FIRST_CARD_TIMEOUT: Duration = Duration::from_secs(3);

/// How long to wait while the last answer is sent.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The page said so.
    Finished,
    /// No request for some minutes.
    Idle,
    Interrupted,
}

#[derive(Debug, Clone)]
pub struct Curator {
    /// `human:NAME` or `process:NAME`.
    pub actor: String,
    pub clock: fn() -> jiff::Timestamp,
    /// What they should know first, in a sentence.
    pub notice: Option<String>,
    pub session_text: fn(&Brief) -> String,
}

/// A server that listens but does not answer yet.
pub struct Listener {
    listener: TcpListener,
    site: Arc<ReviewSite>,
}

/// Listens on loopback, on a port that the system chooses.
pub fn listen(desk: Desk, curator: Curator) -> std::io::Result<Listener> {
    listen_within(desk, curator, DEFAULT_LIMITS)
}

fn listen_within(desk: Desk, curator: Curator, limits: PageLimits) -> std::io::Result<Listener> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    listener.set_nonblocking(true)?;
    let access = PageAccess::new(listener.local_addr()?)?;
    Ok(Listener { listener, site: Arc::new(ReviewSite::new(desk, curator, access, limits)?) })
}

impl Listener {
    pub fn access(&self) -> Arc<PageAccess> {
        Arc::clone(&self.site.access)
    }

    /// The desk, with the choices that are not written.
    pub fn desk(&self) -> Arc<Mutex<Desk>> {
        Arc::clone(&self.site.desk)
    }

    /// Serves until the end. Returns the desk, with the choices that are not written.
    pub fn serve(self, interrupt: &Notify) -> std::io::Result<(Arc<Mutex<Desk>>, StopReason)> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(8)
            .enable_all()
            .build()?;
        let desk = self.desk();
        let site = Arc::clone(&self.site);
        std::thread::spawn(move || site.search());
        let ended = runtime.block_on(self.accept(interrupt));
        runtime.shutdown_timeout(SHUTDOWN_GRACE);
        Ok((desk, ended?))
    }

    async fn accept(self, interrupt: &Notify) -> std::io::Result<StopReason> {
        let Self { listener, site } = self;
        let stop = async {
            tokio::select! {
                () = interrupt.notified() => StopReason::Interrupted,
                () = site.finished.notified() => StopReason::Finished,
                () = site.idle() => StopReason::Idle,
            }
        };
        let answering = Arc::clone(&site);
        let answer = move |request, peer: Arc<Peer>| {
            let site = Arc::clone(&answering);
            async move { site.answer(request, &peer).await }
        };
        let (reason, open) = peers::serve(listener, site.limits.connections, stop, answer).await?;
        // Give the last answer time to reach the page.
        let _ = tokio::time::timeout(SHUTDOWN_GRACE, open.shutdown()).await;
        Ok(reason)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::time::Instant;

    use super::*;
    use ack_service::Service;
    use ack_service::config::{Config, Inputs, Setting};

    fn listener(idle: Duration) -> Listener {
        let nowhere = std::env::temp_dir().join("ack-memory-nothing-here");
        let inputs = Inputs { root: Some(Setting::flag("--root", nowhere)), ..Inputs::default() };
        let service = Service::new(Config::load(inputs).unwrap()).leak();
        let desk = Desk::with(Vec::new(), &[], service, jiff::Timestamp::now());
        let limits = PageLimits {
            idle,
            body_timeout: Duration::from_millis(300),
            connections: ConnectionLimits {
                max_total: 2,
                max_unknown: 2,
                unknown_timeout: Duration::from_secs(60),
                head_timeout: Duration::from_millis(300),
                ..DEFAULT_LIMITS.connections
            },
            ..DEFAULT_LIMITS
        };
        let curator = Curator {
            actor: "human:ana".to_owned(),
            clock: jiff::Timestamp::now,
            notice: None,
            session_text: |_| String::new(),
        };
        listen_within(desk, curator, limits).unwrap()
    }

    #[test]
    fn an_open_page_keeps_the_desk_running_until_an_interrupt() {
        let listener = listener(Duration::from_millis(400));
        let access = listener.access();
        let address = access.open().unwrap();
        let (host, word) = address.split_once("/#").unwrap();
        let host = host.strip_prefix("http://").unwrap().to_owned();
        let session = access.enter(word).unwrap().to_owned();
        let interrupt = Arc::new(Notify::new());
        let notify = Arc::clone(&interrupt);
        let page = std::thread::spawn(move || {
            for _ in 0..8 {
                std::thread::sleep(Duration::from_millis(100));
                let answer = ask(&host, "/alive", &session, "{}");
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            }
            notify.notify_one();
        });
        let began = Instant::now();
        let (_, ended) = listener.serve(&interrupt).unwrap();
        page.join().unwrap();
        assert_eq!(ended, StopReason::Interrupted);
        assert!(began.elapsed() >= Duration::from_millis(800));
    }

    fn ask(host: &str, path: &str, token: &str, body: &str) -> String {
        let length = body.len();
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        let head = format!("{head}Authorization: Bearer {token}\r\n");
        let request = format!("{head}Content-Length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn wrong_words_do_not_keep_the_desk_running_and_silent_strangers_keep_nobody_out() {
        let listener = listener(Duration::from_millis(600));
        let host = listener.listener.local_addr().unwrap().to_string();
        let access = listener.access();
        let address = access.open().unwrap();
        let stranger = std::thread::spawn(move || {
            // More than there are places for: some send nothing, some read nothing.
            let strangers: Vec<_> = (0..12)
                .map(|number| {
                    let mut stream = std::net::TcpStream::connect(&host).unwrap();
                    let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
                    stream.write_all(head.repeat(number % 2).as_bytes()).unwrap();
                    stream
                })
                .collect();
            let word = format!("{{\"word\":\"{}\"}}", address.split_once("/#").unwrap().1);
            let entered = ask(&host, "/enter", "", &word);
            assert!(entered.starts_with("HTTP/1.1 200"), "{entered}");
            // Wrong words, until the desk ends.
            let is_open = |_: &i32| std::net::TcpStream::connect(&host).is_ok();
            let asked = (0..100).take_while(is_open).map(|_| {
                let _ = std::panic::catch_unwind(|| ask(&host, "/enter", "", "{\"word\":\"x\"}"));
                std::thread::sleep(Duration::from_millis(50));
            });
            assert!(asked.count() < 100, "the desk goes on");
            drop(strangers);
        });
        let (_, ended) = listener.serve(&Notify::new()).unwrap();
        assert_eq!(ended, StopReason::Idle);
        stranger.join().unwrap();
    }

    #[test]
    fn only_this_user_can_read_the_file_and_it_is_gone_once_it_is_used() {
        use std::os::unix::fs::PermissionsExt;
        let access = listener(Duration::from_secs(1)).access();
        let below = tempfile::tempdir().unwrap();
        let address = access.open().unwrap();
        let folders = [below.path().join("none"), below.path().to_owned()];
        let file = access.write_file(&address, &folders).unwrap();
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        let page = std::fs::read_to_string(&file).unwrap();
        assert!(page.contains(&format!("url={address}\"")), "{page}");
        let word = address.split_once("/#").unwrap().1;
        assert!(access.enter("another").is_none() && file.exists());
        assert!(access.enter(word).is_some() && !file.parent().unwrap().exists());
        assert!(access.enter(word).is_none(), "it works once");
        let file = access.write_file(&access.open().unwrap(), &folders).unwrap();
        access.close();
        assert!(!file.exists());
    }
}
