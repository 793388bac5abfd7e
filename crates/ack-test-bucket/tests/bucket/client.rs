//! The S3 client of `object_store`, which knows nothing of this server.

use std::sync::Arc;

use ack_test_bucket::{Access, Action, Bucket, FaultRule, Operation};
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    Error, GetOptions, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload, UpdateVersion,
    WriteMultipart,
};

fn client(bucket: &Bucket) -> AmazonS3 {
    // If the whole workspace is built at once, the client has TLS and needs a provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    AmazonS3Builder::new()
        .with_endpoint(bucket.endpoint())
        .with_bucket_name(bucket.name())
        .with_region("us-east-1")
        .with_access_key_id("anna")
        .with_secret_access_key("secret")
        .with_allow_http(true)
        .build()
        .unwrap()
}

async fn text(store: &AmazonS3, path: &Path) -> String {
    let bytes = store.get(path).await.unwrap().bytes().await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn it_writes_reads_lists_copies_and_deletes() {
    let bucket = Bucket::start().unwrap();
    bucket.set_access(Access::Key("anna".into()));
    let store = client(&bucket);
    for key in ["x/1", "x/2", "x/deep er/3 & 4", "y"] {
        store
            .put(&Path::from(key), PutPayload::from(key))
            .await
            .unwrap();
    }
    assert_eq!(
        text(&store, &Path::from("x/deep er/3 & 4")).await,
        "x/deep er/3 & 4"
    );
    let meta = store.head(&Path::from("x/1")).await.unwrap();
    assert_eq!((meta.size, meta.e_tag.is_some()), (3, true));

    let listed: Vec<_> = store
        .list(Some(&Path::from("x")))
        .try_collect()
        .await
        .unwrap();
    let keys: Vec<&str> = listed.iter().map(|meta| meta.location.as_ref()).collect();
    assert_eq!(keys, ["x/1", "x/2", "x/deep er/3 & 4"]);
    assert_eq!(listed[0].e_tag, meta.e_tag);
    let folder = store
        .list_with_delimiter(Some(&Path::from("x")))
        .await
        .unwrap();
    assert_eq!(folder.common_prefixes, [Path::from("x/deep er")]);
    assert_eq!(folder.objects.len(), 2);

    store
        .copy(&Path::from("y"), &Path::from("z"))
        .await
        .unwrap();
    assert_eq!(text(&store, &Path::from("z")).await, "y");
    store.delete(&Path::from("y")).await.unwrap();
    let rest = futures::stream::iter(listed.into_iter().map(|meta| Ok(meta.location)));
    let deleted: Vec<Path> = store
        .delete_stream(rest.boxed())
        .try_collect()
        .await
        .unwrap();
    assert_eq!(deleted.len(), 3);
    // This client deletes a single object with the request for many.
    assert_eq!(bucket.count(Operation::DeleteMany), 2);
    assert_eq!(bucket.keys(), ["z"]);
    let missing = store.get(&Path::from("y")).await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
}

#[tokio::test]
async fn it_lists_page_by_page() {
    let bucket = Bucket::start().unwrap();
    bucket.set_page_size(7);
    for number in 0..50 {
        bucket.put(&format!("k/{number:02}"), "");
    }
    let store = client(&bucket);
    let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    assert_eq!(listed.len(), 50);
    assert_eq!(bucket.count(Operation::List), 8);
    let after = store.list_with_offset(None, &Path::from("k/39"));
    assert_eq!(after.count().await, 10);
}

#[tokio::test]
async fn its_conditional_writes_are_honoured() {
    let bucket = Bucket::start().unwrap();
    let store = client(&bucket);
    let head = Path::from("HEAD.json");
    let write = async |mode: PutMode, text: &'static str| {
        store
            .put_opts(&head, PutPayload::from(text), mode.into())
            .await
    };
    let at = |e_tag: Option<String>| {
        PutMode::Update(UpdateVersion {
            e_tag,
            version: None,
        })
    };
    let first = write(PutMode::Create, "1").await.unwrap();
    let again = write(PutMode::Create, "lost").await.unwrap_err();
    assert!(matches!(again, Error::AlreadyExists { .. }), "{again}");
    let second = write(at(first.e_tag.clone()), "2").await.unwrap();
    let stale = write(at(first.e_tag), "lost").await.unwrap_err();
    assert!(matches!(stale, Error::Precondition { .. }), "{stale}");
    assert_eq!(text(&store, &head).await, "2");
    // The client tries again when Amazon's server says that another write was running.
    bucket.set_conflicts(FaultRule::Next(1));
    write(at(second.e_tag), "3").await.unwrap();
    assert_eq!(text(&store, &head).await, "3");
}

#[tokio::test]
async fn its_ranges_are_honoured() {
    let bucket = Bucket::start().unwrap();
    bucket.put("digits", "0123456789");
    let store = client(&bucket);
    let digits = Path::from("digits");
    assert_eq!(&store.get_range(&digits, 3..6).await.unwrap()[..], b"345");
    let several = store.get_ranges(&digits, &[0..1, 8..10]).await.unwrap();
    assert_eq!(several.concat(), b"089");
    let suffix = GetOptions {
        range: Some(object_store::GetRange::Suffix(2)),
        ..GetOptions::default()
    };
    let last = store.get_opts(&digits, suffix).await.unwrap();
    assert_eq!(&last.bytes().await.unwrap()[..], b"89");
    store.get_range(&digits, 20..30).await.unwrap_err();
    let unchanged = GetOptions {
        if_none_match: store.head(&digits).await.unwrap().e_tag,
        ..GetOptions::default()
    };
    let unchanged = store.get_opts(&digits, unchanged).await.unwrap_err();
    assert!(
        matches!(unchanged, Error::NotModified { .. }),
        "{unchanged}"
    );
}

#[tokio::test]
async fn its_uploads_in_parts_arrive_whole() {
    let bucket = Bucket::start().unwrap();
    let store = Arc::new(client(&bucket));
    let big = Path::from("big");
    let bytes: Vec<u8> = (0..12_000_000_u32)
        .map(|number| (number % 251) as u8)
        .collect();
    let upload = store.put_multipart(&big).await.unwrap();
    let mut upload = WriteMultipart::new_with_chunk_size(upload, 5 << 20);
    upload.write(&bytes);
    upload.finish().await.unwrap();
    assert_eq!(bucket.get("big").unwrap(), bytes);
    assert_eq!(bucket.count(Operation::PutPart), 3);

    let mut given_up = store.put_multipart(&Path::from("none")).await.unwrap();
    given_up.put_part(PutPayload::from("text")).await.unwrap();
    given_up.abort().await.unwrap();
    assert_eq!(bucket.keys(), ["big"]);
    assert!(bucket.unfinished().is_empty());
}

#[tokio::test]
async fn it_tries_again_after_a_failure_and_a_cut_body() {
    let bucket = Bucket::start().unwrap();
    bucket.put("a", vec![b'x'; 100_000]);
    let store = client(&bucket);
    bucket.set_failures(FaultRule::Next(2));
    let whole = store
        .get(&Path::from("a"))
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    assert_eq!(whole.len(), 100_000);
    let statuses: Vec<_> = bucket.requests().iter().map(|one| one.status).collect();
    assert_eq!(statuses, [Some(503), Some(503), Some(200)]);

    bucket.reset_log();
    bucket.intercept(|request| match request.range {
        None => Action::Cut(50_000),
        Some(_) => Action::Answer,
    });
    let whole = store
        .get(&Path::from("a"))
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    assert_eq!(whole.len(), 100_000);
    let sent: Vec<u64> = bucket.requests().iter().map(|one| one.bytes_out).collect();
    assert_eq!(sent, [50_000, 50_000]);
}

#[tokio::test]
async fn a_wrong_key_is_refused() {
    let bucket = Bucket::start().unwrap();
    bucket.set_access(Access::Key("bert".into()));
    bucket.put("a", "text");
    let refused = client(&bucket).get(&Path::from("a")).await.unwrap_err();
    assert!(
        matches!(refused, Error::PermissionDenied { .. }),
        "{refused}"
    );
}
