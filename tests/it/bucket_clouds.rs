//! Buckets of Google and Microsoft with the credentials of a machine: the metadata services are
//! servers on this machine that answer as the vendors document, the client is ours.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use ack_test_bucket::Bucket;
use serde_json::json;

use crate::bucket::{command, only_for, published, scene, sql, titles};
use crate::bucket_reading::{both, first, notes};
use crate::cli::run;
use crate::support::Root;

const TITLE: &str = "The connection pool has 20 connections";
/// The token that the metadata services give. No message may contain it.
const TOKEN: &str = "t0ken-of-the-machine";
/// What a managed identity of Azure's App Service has to send.
const IDENTITY_HEADER: &str = "853b9a84-5bfa-4b22-a3f3-0b9a43d9ad8a";

/// A request that arrived: its method and path, and its headers with names in lower case.
pub struct Request {
    pub path: String,
    headers: Vec<(String, String)>,
}

impl Request {
    fn read(stream: &TcpStream) -> Self {
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let path = lines.next().unwrap_or_default();
        let path = path.trim_end_matches(" HTTP/1.1").to_owned();
        let headers = lines.take_while(|line| !line.is_empty()).filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_lowercase(), value.to_owned()))
        });
        let headers = headers.collect();
        Self { path, headers }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// An answer: the status, further headers and the body.
pub type Answer = (u16, String, Vec<u8>);

pub fn refused(status: u16, text: &str) -> Answer {
    (status, String::new(), text.as_bytes().to_vec())
}

/// A server on this machine.
pub struct Server {
    pub address: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&seen), Arc::new(answer));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let request = Request::read(&stream);
                    let (status, headers, body) = answer(&request);
                    log.lock().unwrap().push(request.path);
                    let head = format!(
                        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}connection: close\r\n\r\n",
                        body.len()
                    );
                    let _ =
                        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
                });
            }
        });
        Self { address, seen }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests that arrived: their methods and paths.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// Google's metadata server:
/// <https://cloud.google.com/compute/docs/access/authenticate-workloads#applications>.
fn google_machine() -> Server {
    Server::start(|request| {
        let path = "GET /computeMetadata/v1/instance/service-accounts/default/token";
        if request.header("metadata-flavor") != Some("Google") {
            return refused(403, "Missing Metadata-Flavor:Google header.");
        }
        if request.path.split('?').next() != Some(path) {
            return refused(404, "");
        }
        let token = json!({ "access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer" });
        let headers = "metadata-flavor: Google\r\n".to_owned();
        (200, headers, token.to_string().into_bytes())
    })
}

/// A managed identity, of a virtual machine:
/// <https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token>,
/// or of App Service, which requires its own header:
/// <https://learn.microsoft.com/azure/app-service/overview-managed-identity>.
fn microsoft_machine() -> Server {
    Server::start(|request| {
        let (path, query) = request.path.split_once('?').unwrap_or_default();
        let is_known = match path {
            "GET /metadata/identity/oauth2/token" => request.header("metadata") == Some("true"),
            "GET /msi/token" => request.header("x-identity-header") == Some(IDENTITY_HEADER),
            _ => false,
        };
        let is_whole = query.contains("api-version=")
            && query.contains("resource=https%3A%2F%2Fstorage.azure.com");
        if !is_known || !is_whole {
            return refused(400, r#"{"error":"invalid_request"}"#);
        }
        let until = jiff::Timestamp::now().as_second() + 86_399;
        let token = json!({
            "access_token": TOKEN,
            "client_id": "00001111-aaaa-2222-bbbb-3333cccc4444",
            "expires_in": "86399",
            "expires_on": until.to_string(),
            "resource": "https://storage.azure.com",
            "token_type": "Bearer",
        });
        (200, String::new(), token.to_string().into_bytes())
    })
}

/// A published scope in a bucket that only the token of the machine opens.
fn guarded() -> Bucket {
    let (root, bucket) = scene();
    published(&root, &bucket, &[]);
    only_for(&bucket, TOKEN);
    bucket
}

/// A root that follows the storage at an address.
fn follower(scheme: &str, endpoint: &str, credentials: &str) -> Root {
    let root = Root::new();
    root.manifest(
        "team",
        &format!(
            "table = \"{scheme}://memories/platform\"\n[remote]\nendpoint = \"{endpoint}\"\n\
             credentials = \"{credentials}\"\nmax_age = \"1s\"\n"
        ),
    );
    root
}

/// A query without any credentials in the environment.
fn query(root: &Root) -> Command {
    let mut command = command(root.path());
    for name in ["GOOGLE_APPLICATION_CREDENTIALS", "AZURE_STORAGE_ACCOUNT_KEY"] {
        command.env_remove(name);
    }
    command.env("HOME", root.path()).args(["query", "pool connections", "--json"]);
    command
}

#[track_caller]
fn answers(command: &mut Command) {
    let outcome = run(command);
    assert_eq!(outcome.code, Some(0), "{}", both(&outcome));
    let answer = outcome.json();
    assert_eq!(first(&answer), TITLE);
    assert!(notes(&answer).is_empty(), "{answer}");
}

#[test]
fn a_machine_of_google_gives_the_credentials() {
    let (bucket, machine) = (guarded(), google_machine());
    let with = |credentials: &str, address: &str| {
        let reader = follower("gs", &bucket.endpoint(), credentials);
        let mut command = query(&reader);
        command.env("GCE_METADATA_HOST", address).env("GCE_METADATA_IP", address);
        (command, reader)
    };
    // The metadata service is asked only if a scope says so.
    let refused = both(&run(&mut with("env", &machine.address).0));
    assert_contains!(refused, "GOOGLE_APPLICATION_CREDENTIALS is not set");
    assert_contains!(refused, "instance");
    assert!(machine.seen().is_empty());
    answers(&mut with("instance", &machine.address).0);
    assert_eq!(machine.seen().len(), 1, "{:?}", machine.seen());
}

#[test]
fn a_managed_identity_of_azure_gives_the_credentials() {
    let (bucket, machine) = (guarded(), microsoft_machine());
    let with = |credentials: &str| {
        let reader = follower("az", &bucket.endpoint(), credentials);
        let mut command = query(&reader);
        command.env("AZURE_STORAGE_ACCOUNT_NAME", "acme");
        (command, reader)
    };
    let metadata = format!("{}/metadata/identity/oauth2/token", machine.url());
    let refused = both(&run(with("env").0.env("AZURE_MSI_ENDPOINT", &metadata)));
    assert_contains!(refused, "AZURE_STORAGE_ACCOUNT_KEY is not set");
    assert!(machine.seen().is_empty());
    answers(with("instance").0.env("AZURE_MSI_ENDPOINT", &metadata));
    assert_eq!(machine.seen().len(), 1, "{:?}", machine.seen());
    // App Service and Functions name the address and a header.
    answers(
        with("instance")
            .0
            .env("IDENTITY_ENDPOINT", format!("{}/msi/token", machine.url()))
            .env("IDENTITY_HEADER", IDENTITY_HEADER),
    );
    assert_eq!(machine.seen().len(), 2, "{:?}", machine.seen());
}

#[test]
fn problems_with_a_machine_are_reported_without_its_token() {
    let bucket = guarded();
    let denied = Server::start(|_| refused(404, "no service account"));
    let strange = Server::start(|_| refused(200, TOKEN));
    for (machine, cause) in [(&denied, "404"), (&strange, "")] {
        for scheme in ["gs", "az"] {
            let reader = follower(scheme, &bucket.endpoint(), "instance");
            let mut command = query(&reader);
            command
                .env("GCE_METADATA_HOST", &machine.address)
                .env("GCE_METADATA_IP", &machine.address)
                .env("AZURE_STORAGE_ACCOUNT_NAME", "acme")
                .env("AZURE_MSI_ENDPOINT", machine.url());
            let outcome = run(&mut command);
            let output = both(&outcome);
            assert_ne!(outcome.code, Some(0), "{output}");
            assert_contains!(output, cause, "no credentials for");
            assert_contains!(output, "no token could be obtained");
            assert_lacks!(output, TOKEN);
        }
    }
}

#[test]
fn a_refusal_names_the_permissions_of_its_cloud() {
    let storage =
        Server::start(|_| refused(403, "<Error><Code>AuthorizationFailure</Code></Error>"));
    for (scheme, role) in [("az", "Storage Blob Data Reader"), ("gs", "Storage Object Viewer")] {
        let reader = follower(scheme, &storage.url(), "anonymous");
        let outcome = run(query(&reader).env("AZURE_STORAGE_ACCOUNT_NAME", "acme"));
        let output = both(&outcome);
        assert_contains!(output, role);
        assert_lacks!(output, "GetObject");
    }
}

#[test]
fn a_scope_is_published_to_google_followed_rolled_back_and_pruned() {
    let (root, bucket) = scene();
    let machine = google_machine();
    only_for(&bucket, TOKEN);
    let remote =
        format!("[remote]\nendpoint = \"{}\"\ncredentials = \"instance\"\n", bucket.endpoint());
    root.manifest("mine", &remote);
    let at_google = |root: &Root| {
        let mut command = command(root.path());
        command
            .env_remove("AWS_ACCESS_KEY_ID")
            .env("HOME", root.path())
            .env("GCE_METADATA_HOST", &machine.address)
            .env("GCE_METADATA_IP", &machine.address);
        command
    };
    let publish = |more: &[&str]| {
        let mut command = at_google(&root);
        command
            .args(["publish", "mine", "--to", "gs://memories/platform"])
            .args(["--yes", "--json"])
            .args(more);
        run(&mut command).json()
    };
    let read = || {
        let reader = follower("gs", &bucket.endpoint(), "instance");
        let query = ["query", "--all", "--json", "--limit", "50"];
        titles(&run(at_google(&reader).args(query)).ok())
    };
    assert_eq!(publish(&[])["published"]["version"], 1);
    let first = read();
    assert_eq!(first.len(), 3);
    let update = "UPDATE memories SET title = 'A mistake' WHERE id = 'm-1'";
    sql(&root, update);
    publish(&[]);
    assert_eq!(read()[0], "A mistake");
    publish(&["--rollback", "v-1"]);
    assert_eq!(read(), first);
    let before = bucket.keys().len();
    assert_eq!(publish(&["--prune", "0s"])["versions"], json!([2, 1]));
    assert!(bucket.keys().len() < before);
    assert_eq!(read(), first);
}
