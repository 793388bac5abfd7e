//! Runs the bucket by hand: `cargo run -p ack-test-bucket --example serve -- 127.0.0.1:9000 NAME`.
//! Prints the endpoint and each request until it is stopped.

use std::io::Write as _;
use std::time::Duration;

use ack_test_bucket::Bucket;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let name = arguments.next().unwrap_or_else(|| "memories".to_owned());
    let bucket = Bucket::start_at(address.parse()?, &name)?;
    let mut out = std::io::stdout();
    writeln!(out, "{} {}", bucket.endpoint(), bucket.url(""))?;
    let mut printed = 0;
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let requests = bucket.requests();
        for request in requests.iter().skip(printed) {
            let status = request
                .status
                .map_or_else(|| "-".to_owned(), |status| status.to_string());
            writeln!(
                out,
                "{status} {} {}?{} {} in={} out={} {:?}",
                request.method,
                request.key,
                request.query,
                request.range.as_deref().unwrap_or("-"),
                request.bytes_in,
                request.bytes_out,
                request.duration,
            )?;
        }
        printed = requests.len();
    }
}
