//! Plain HTTP requests to a bucket.

use std::time::Duration;

use ack_test_bucket::Bucket;
use ureq::Body;
use ureq::http::{HeaderMap, Request, Response};

/// An answer, read to its end.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The text of the first element of this name.
    pub fn element(&self, name: &str) -> &str {
        let (_, rest) = self
            .text()
            .split_once(&format!("<{name}>"))
            .unwrap_or_default();
        rest.split_once(&format!("</{name}>")).unwrap_or_default().0
    }

    /// The texts of all elements of this name.
    pub fn elements(&self, name: &str) -> Vec<&str> {
        let tag = format!("<{name}>");
        let rests = self.text().split(&tag).skip(1);
        rests.map(|rest| rest.split('<').next().unwrap()).collect()
    }
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .allow_non_standard_methods(true)
        .timeout_global(Some(Duration::from_secs(10)))
        .build()
        .new_agent()
}

/// Sends a request to `/NAME/KEY`, which may have a query.
pub fn request(
    bucket: &Bucket,
    method: &str,
    key: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<Response<Body>, ureq::Error> {
    let url = format!("{}/{}/{key}", bucket.endpoint(), bucket.name());
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let agent = agent();
    if ["PUT", "POST"].contains(&method) {
        agent.run(request.body(body).unwrap())
    } else {
        agent.run(request.body(()).unwrap())
    }
}

/// The answer to a request.
pub fn ask(
    bucket: &Bucket,
    method: &str,
    key: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let answer = request(bucket, method, key, headers, body).unwrap();
    let (head, body) = answer.into_parts();
    Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body: read(body).unwrap(),
    }
}

pub fn read(body: Body) -> Result<Vec<u8>, ureq::Error> {
    body.into_with_config().limit(1 << 30).read_to_vec()
}

pub fn get(bucket: &Bucket, key: &str) -> Answer {
    ask(bucket, "GET", key, &[], b"")
}

pub fn put(bucket: &Bucket, key: &str, body: &[u8]) -> Answer {
    ask(bucket, "PUT", key, &[], body)
}
