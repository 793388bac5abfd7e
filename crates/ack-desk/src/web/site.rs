//! Answers the page's requests.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use ack_api::shell::Shell;
use ack_api::text;
use ack_api::time::utc_day;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::message::{ListEntry, PageRequest, ShownNear, Window};
use super::page::ReviewPage;
use super::page_access::PageAccess;
use super::{Curator, FIRST_CARD_TIMEOUT, PageLimits};
use crate::Desk;
use crate::background::{MAX_COMPARED_FIRST, answered, find_approved, find_need, find_relations};
use crate::card::CardText;
use crate::choice::{Choice, REASONS};
use crate::curate::{Candidate, ReviewSession};
use crate::evidence::{NextSession, evidence};
use crate::nearest::neighbours;
use ack_http::gate::{Gate, Refusal};
use ack_http::peers::{Peer, read_body};
use ack_service::Service;

/// What the page asks because of a key.
const KEYS: [&str; 7] = ["/back", "/card", "/choose", "/heap", "/plan", "/preview", "/write"];
/// Lines of a text that are shown first, and about how wide they are on the page.
const FOLDED_LINES: usize = 12;
const LINE_WIDTH: usize = 72;

const HTML: &str = "text/html; charset=utf-8";

type Answer = Response<Full<Bytes>>;

/// Headers of every answer, in addition to the page's policy.
const HEADERS: [(HeaderName, &str); 7] = [
    (CACHE_CONTROL, "no-store"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

pub struct ReviewSite {
    pub desk: Arc<Mutex<Desk>>,
    pub access: Arc<PageAccess>,
    pub limits: PageLimits,
    /// The page says that it is finished.
    pub finished: Notify,
    service: &'static Service,
    curator: Curator,
    gate: Gate,
    page: ReviewPage,
    began: Instant,
    /// The time of the last request of the page, in milliseconds since the start.
    last_request: AtomicU64,
    revision: AtomicU64,
    has_sent_neighbours: AtomicBool,
    relations_found: Once,
    /// Whether something is looked for while the page is already in use.
    is_searching: AtomicBool,
}

struct Failure {
    status: StatusCode,
    message: String,
}

impl Failure {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

impl<E: ack_api::Diagnostic> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(StatusCode::CONFLICT, text::line(&error.as_message().render(&Shell::PLAIN), 500))
    }
}

impl ReviewSite {
    pub fn new(
        desk: Desk,
        curator: Curator,
        access: PageAccess,
        limits: PageLimits,
    ) -> std::io::Result<Self> {
        Ok(Self {
            service: desk.service,
            desk: Arc::new(Mutex::new(desk)),
            curator,
            gate: Gate::new(&[], access.token()),
            page: ReviewPage::new()?,
            access: Arc::new(access),
            limits,
            began: Instant::now(),
            last_request: AtomicU64::default(),
            revision: AtomicU64::new(1),
            has_sent_neighbours: AtomicBool::default(),
            relations_found: Once::new(),
            is_searching: AtomicBool::new(true),
            finished: Notify::new(),
        })
    }

    /// Waits until the page has asked nothing for too long. What strangers ask does not count.
    pub async fn idle(&self) {
        loop {
            let last_request = Duration::from_millis(self.last_request.load(Ordering::Relaxed));
            match (last_request + self.limits.idle).checked_sub(self.began.elapsed()) {
                Some(left) if !left.is_zero() => sleep(left).await,
                _ => return,
            }
        }
    }

    pub async fn answer(self: &Arc<Self>, request: Request<Incoming>, peer: &Peer) -> Answer {
        let mut answer = self.route(request, peer).await.unwrap_or_else(|failure| {
            let mut answer = in_json(&json!({ "error": failure.message }));
            *answer.status_mut() = failure.status;
            // The unread part of the request must not count as the next request.
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            answer
        });
        let headers = answer.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(CONTENT_SECURITY_POLICY, self.page.policy.clone());
        answer
    }

    async fn route(
        self: &Arc<Self>,
        request: Request<Incoming>,
        peer: &Peer,
    ) -> Result<Answer, Failure> {
        self.check_place(&request)?;
        let path = request.uri().path().to_owned();
        if path == "/" {
            return match *request.method() {
                Method::GET | Method::HEAD => Ok(of_type(HTML, self.page.html.clone())),
                _ => Err(not_allowed("GET, HEAD")),
            };
        }
        if request.method() != Method::POST {
            return Err(not_allowed("POST"));
        }
        let enters = path == "/enter";
        if !enters {
            self.gate.token(request.headers()).map_err(|_| {
                let message = "this page does not belong to a session; press Enter in the terminal \
                               of `ack-memory review` for a new address";
                Failure::new(StatusCode::UNAUTHORIZED, message)
            })?;
            self.admit(peer);
        }
        let PageLimits { bytes, body_timeout, .. } = self.limits;
        let (body, _) = read_body(request.into_body(), bytes, body_timeout, None)
            .await
            .map_err(|error| Failure::new(error.status(), error.to_string()))?;
        let _answering = peer.answering();
        let site = Arc::clone(self);
        let work = tokio::task::spawn_blocking(move || site.act(&path, &body));
        let failed = |_| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer failed");
        let answer = work.await.map_err(failed)??;
        if enters {
            self.admit(peer);
        }
        Ok(in_json(&answer))
    }

    /// Notes a request of the page. Its connection outlasts those of others.
    fn admit(&self, peer: &Peer) {
        peer.mark_known();
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_request.store(now, Ordering::Relaxed);
    }

    /// Checks that the request is for this server and comes from its own page.
    fn check_place(&self, request: &Request<Incoming>) -> Result<(), Failure> {
        let wrong = |message| Err(Failure::new(StatusCode::FORBIDDEN, message));
        let header = |name: &str| request.headers().get(name).map(HeaderValue::as_bytes);
        let own_host = format!("127.0.0.1:{}", self.access.port());
        match self.gate.check_target(request.uri(), request.headers()) {
            Ok(()) if header("host") == Some(own_host.as_bytes()) => {}
            Ok(()) | Err(Refusal::NoHost | Refusal::WrongHost) => {
                return wrong("`Host` is not this page's address");
            }
            Err(_) => return wrong("`Origin` is not this page's"),
        }
        let own_origin = format!("http://{own_host}");
        if header("origin").is_some_and(|origin| origin != own_origin.as_bytes()) {
            return wrong("`Origin` is not this page's");
        }
        match header("sec-fetch-site") {
            None | Some(b"same-origin" | b"none") => Ok(()),
            // Someone follows a link to the page. The page alone reveals nothing.
            Some(_) if request.uri().path() == "/" => Ok(()),
            Some(_) => wrong("the request comes from another page"),
        }
    }

    /// Handles a request, on a thread that may wait for a store.
    fn act(&self, path: &str, body: &[u8]) -> Result<Value, Failure> {
        if KEYS.contains(&path) {
            self.desk.lock().note_key((self.curator.clock)());
        }
        let request: PageRequest = serde_json::from_slice(body).map_err(|error| {
            let message = format!("the request is not understood: {error}");
            Failure::new(StatusCode::BAD_REQUEST, text::line(&message, 300))
        })?;
        match path {
            "/enter" => self.enter(&request.word),
            "/alive" => Ok(json!({
                "revision": self.revision.load(Ordering::Relaxed),
                "searching": self.is_searching.load(Ordering::Relaxed),
            })),
            "/summary" => Ok(self.summary(&self.desk.lock())),
            "/queue" => Ok(to_json(&Window::of(&self.desk.lock(), &request))),
            "/plan" => {
                self.wait_for_relations();
                let mut desk = self.desk.lock();
                if let Some(heap) = request.split {
                    desk.split_heap(&heap);
                }
                let plan = desk.plan(request.turn);
                Ok(json!({ "plan": plan, "summary": self.summary(&desk) }))
            }
            "/matching" => Ok(json!({ "numbers": self.desk.lock().undecided(&request.view) })),
            "/selection" => Ok(to_json(&self.desk.lock().selection(&request.numbers))),
            "/closing" => Ok(to_json(&self.desk.lock().closing())),
            "/answered" => Ok(to_json(&answered(&self.desk))),
            "/heap" => self.heap(request),
            "/card" => self.card(&request),
            "/text" => {
                let (_, candidate) = named(&self.desk.lock(), &request)?;
                Ok(to_json(&CardText::of(&candidate.curated, usize::MAX, LINE_WIDTH)))
            }
            "/near" => self.near(&request),
            "/evidence" => {
                let (_, candidate) = named(&self.desk.lock(), &request)?;
                Ok(to_json(&evidence(self.service, &candidate)))
            }
            // What the next session of its project starts with, without and with a memory.
            "/session" => {
                let (candidate, held) = self.with_held(&request)?;
                let text = self.curator.session_text;
                Ok(to_json(&NextSession::of(self.service, &candidate, &held, text)))
            }
            "/preview" => {
                let request = self.validated(request)?;
                let choice = request.choice.unwrap_or(Choice::Approve);
                Ok(to_json(&self.desk.lock().preview(&request.numbers, &choice)?))
            }
            "/choose" => self.choose(self.validated(request)?),
            "/back" => {
                let mut desk = self.desk.lock();
                let numbers = desk.take_back(request.key);
                let heap = numbers.first().and_then(|first| desk.heap_of(*first));
                self.changed();
                Ok(json!({ "numbers": numbers, "heap": heap, "summary": self.summary(&desk) }))
            }
            "/write" => {
                let mut desk = self.desk.lock();
                let now = (self.curator.clock)();
                let session = ReviewSession::begin(self.curator.actor.clone(), None, now);
                let outcome = desk.write(&session);
                self.changed();
                let outcome = outcome?;
                Ok(json!({
                    "batch": outcome.batch, "written": outcome.written,
                    "conflicts": outcome.conflict_text(),
                    "side_effects": outcome.side_effects.lines(&desk.short_ids),
                    "summary": self.summary(&desk),
                }))
            }
            "/finish" => self.finish(request.discard),
            _ => Err(Failure::new(StatusCode::NOT_FOUND, "there is nothing here")),
        }
    }

    fn enter(&self, word: &str) -> Result<Value, Failure> {
        let session = self.access.enter(word).ok_or_else(|| {
            let message = "this link is invalid or was already used; press Enter in the terminal of \
                           `ack-memory review` for a new one";
            Failure::new(StatusCode::FORBIDDEN, message)
        })?;
        Ok(json!({ "session": session }))
    }

    fn changed(&self) {
        self.revision.fetch_add(1, Ordering::Relaxed);
    }

    /// The numbers and the last choices of the desk.
    fn summary(&self, desk: &Desk) -> Value {
        json!({
            "reasons": REASONS,
            "queue": desk.queue,
            "head": desk.head(),
            "progress": desk.progress(),
            // How many were read, and whether some are still being read.
            "approved": desk.approved(),
            "searching": self.is_searching.load(Ordering::Relaxed),
            "recent": desk.recent(),
            "notice": self.curator.notice,
            // The order says what matters.
            "begins_with_cards": desk.is_for_a_question(),
            // It increases with every change.
            "revision": self.revision.load(Ordering::Relaxed),
        })
    }

    fn card(&self, request: &PageRequest) -> Result<Value, Failure> {
        let desk = self.desk.lock();
        let (number, candidate) = named(&desk, request)?;
        let item = desk.items().get(number).ok_or_else(not_found)?;
        let place = desk.place(&request.view, number);
        Ok(json!({
            "number": number,
            "position": place.position,
            "total": place.total,
            "previous": place.previous,
            "next": place.next,
            "chosen": desk.done(number),
            "approved": item.is_approved,
            "flagged": item.is_held_back(),
            "missed": desk.missed(number),
            "card": desk.card(number),
            "text": CardText::of(&candidate.curated, FOLDED_LINES, LINE_WIDTH),
            "actions": desk.actions(number)?,
            "group": ListEntry::all(desk.group(number), &desk),
        }))
    }

    /// A memory, and those that are held beside it. What is looked for with them may take long, so
    /// the desk is unlocked again.
    fn with_held(
        &self,
        request: &PageRequest,
    ) -> Result<(Arc<Candidate>, Vec<Arc<Candidate>>), Failure> {
        let desk = self.desk.lock();
        let (_, candidate) = named(&desk, request)?;
        let held = desk.held(&candidate);
        Ok((candidate, held))
    }

    fn find_relations(&self) {
        self.relations_found.call_once(|| {
            find_relations(&self.desk);
            self.changed();
        });
    }

    /// Heaps and choices for many wait until the memories are compared, unless there are many.
    fn wait_for_relations(&self) {
        if self.desk.lock().items().len() <= MAX_COMPARED_FIRST {
            self.find_relations();
        }
    }

    /// Finds what the first screen does not wait for, while the page is already in use.
    pub fn search(&self) {
        // Until the nearest memories of a card have been sent.
        let end = Instant::now() + FIRST_CARD_TIMEOUT;
        while !self.has_sent_neighbours.load(Ordering::Relaxed) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        find_need(&self.desk, || self.changed());
        find_approved(&self.desk, || ());
        // With many memories this takes long.
        self.find_relations();
        self.is_searching.store(false, Ordering::Relaxed);
        self.changed();
    }

    /// The nearest approved memories, each with the possible actions for the pair.
    fn near(&self, request: &PageRequest) -> Result<Value, Failure> {
        let number = request.number.ok_or_else(no_memory)?;
        let (candidate, held) = self.with_held(request)?;
        let now = self.desk.lock().now;
        let near = neighbours(self.service, &candidate, &held, now);
        self.has_sent_neighbours.store(true, Ordering::Relaxed);
        let desk = self.desk.lock();
        let entries = near.into_iter().map(|near| {
            let (actions, refusal) = desk.actions_with(number, &near.id);
            ShownNear { actions, refusal: refusal.map(|error| error.to_string()), near }
        });
        Ok(to_json(&entries.collect::<Vec<_>>()))
    }

    /// A choice for memories that exist, each once.
    fn validated(&self, mut request: PageRequest) -> Result<PageRequest, Failure> {
        let mut numbers = BTreeSet::new();
        request.numbers.retain(|number| numbers.insert(*number));
        let known = self.desk.lock().items().len();
        match request.numbers.iter().max() {
            None => return Err(no_memory()),
            Some(last) if *last >= known => return Err(not_found()),
            Some(_) => self.check(request.choice.as_ref())?,
        }
        if request.together {
            self.desk.lock().check_selection(&request.numbers)?;
        }
        Ok(request)
    }

    fn check(&self, choice: Option<&Choice>) -> Result<(), Failure> {
        let today = utc_day((self.curator.clock)());
        match choice.and_then(|choice| choice.problem(today)) {
            Some(flaw) => Err(Failure::new(StatusCode::CONFLICT, flaw)),
            None => Ok(()),
        }
    }

    fn choose(&self, request: PageRequest) -> Result<Value, Failure> {
        let PageRequest { numbers, choice, reason, view, .. } = request;
        if numbers.len() > 1 {
            self.wait_for_relations();
        }
        let reason = reason.map(|reason| text::line(&reason, 500));
        let reason = reason.filter(|reason| !reason.is_empty());
        let mut desk = self.desk.lock();
        let decided = match (choice, numbers.as_slice()) {
            (Some(choice), _) => desk.decide(&numbers, choice, reason, &view)?,
            (None, [number, ..]) => desk.keep_one(*number, &view)?,
            (None, []) => return Err(not_found()),
        };
        self.changed();
        Ok(json!({
            "said": decided.said, "next": decided.next, "summary": self.summary(&desk),
        }))
    }

    fn heap(&self, request: PageRequest) -> Result<Value, Failure> {
        let choice = request.choice.as_ref();
        self.check(choice)?;
        if choice.is_some_and(|choice| choice.other().is_some()) {
            let message = "a heap cannot be joined with one memory";
            return Err(Failure::new(StatusCode::BAD_REQUEST, message));
        }
        self.wait_for_relations();
        let mut desk = self.desk.lock();
        let said = desk.decide_heap(&request.name, request.choice)?;
        self.changed();
        Ok(json!({ "said": said, "summary": self.summary(&desk) }))
    }

    fn finish(&self, discard: bool) -> Result<Value, Failure> {
        let mut desk = self.desk.lock();
        if discard {
            while !desk.take_back(None).is_empty() {}
        }
        if desk.unwritten() > 0 {
            return Err(Failure::new(StatusCode::CONFLICT, "some decisions are not saved yet"));
        }
        self.finished.notify_one();
        Ok(json!({}))
    }
}

/// The memory that a request is about, with its number.
fn named(desk: &Desk, request: &PageRequest) -> Result<(usize, Arc<Candidate>), Failure> {
    let number = request.number.ok_or_else(no_memory)?;
    let item = desk.items().get(number).ok_or_else(not_found)?;
    Ok((number, Arc::clone(&item.candidate)))
}

fn no_memory() -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, "no memory is named")
}

fn not_found() -> Failure {
    Failure::new(StatusCode::NOT_FOUND, "there is no such memory")
}

fn to_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

fn in_json(value: &Value) -> Answer {
    of_type("application/json", value.to_string().into())
}

fn of_type(kind: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

fn not_allowed(allowed: &'static str) -> Failure {
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, format!("allowed here: {allowed}"))
}
