use super::*;

fn file(text: &str) -> (tempfile::NamedTempFile, Result<TokenFile, TokensError>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let tokens = TokenFile::open(file.path());
    (file, tokens)
}

#[test]
fn errors_in_the_file_are_reported_without_hashes() {
    let good = hash("a-token-0123456789");
    let cases = r#"
        => names no client
        [mei] => missing field `hash`
        [mei]; hash = "secret" => 64 hexadecimal
        ["m e"]; hash = GOOD => not a valid client name
        [a]; hash = GOOD; [b]; hash = GOOD => same hash
        [a]; hash = GOOD; scope = [] => line 3: unknown field `scope`, expected one of `hash`
        [a]; hash = GOOD; ; quota = 1 => line 4: unknown field `quota`
        [a]; hash = GOOD; last_day = 2027-01-31 => line 3: `last_day`: invalid type
        [a]; hash = GOOD; scopes = GOOD => line 3: `scopes`: invalid type
        [a]; hash = BARE => line 2:
        [a]; hash = GOOD; last_day = "soon" => 2027-01-31
        [a]; hash = GOOD; at_once = 5 => line 3: the key `at_once` no longer exists: remove the line"#;
    for case in cases.trim().lines() {
        let (text, part) = case.trim().split_once("=> ").unwrap();
        let text =
            text.replace("GOOD", &format!("\"{good}\"")).replace("BARE", &good).replace("; ", "\n");
        let (_file, tokens) = file(&text);
        let error = tokens.unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
        assert!(!error.contains("secret") && !error.contains(&good), "{error}");
    }
}

fn wait(tokens: &TokenFile) {
    tokens.state.lock().checked -= CHECK_AFTER;
}

#[test]
fn nobody_is_let_in_while_the_file_is_empty_gone_or_broken() {
    let token = "token-of-mei-0123456789";
    let good = format!("[mei]\nhash = \"{}\"\n", hash(token));
    let (file, tokens) = file(&good);
    let tokens = tokens.unwrap();
    let found = || tokens.client(token.as_bytes());
    let path = file.path();
    let begin = || Arc::clone(&found().unwrap().places).try_acquire_owned().ok();
    let under_way: Vec<_> = (0..MAX_CONCURRENT).map(|_| begin().unwrap()).collect();
    let remove = || std::fs::remove_file(path).unwrap();
    let write = |text: &str| std::fs::write(path, text).unwrap();
    let cases: [(&dyn Fn(), &str); 4] = [
        (&|| write(""), "no client, so nobody is let in"),
        (&|| write("# nobody\n"), "no client, so nobody"),
        (&|| write("[mei"), "cannot be used"),
        (&remove, "cannot read the tokens"),
    ];
    for (change, part) in cases {
        change();
        wait(&tokens);
        let message = tokens.refresh().unwrap();
        assert!(message.contains(part) && message.contains("nobody is let in"), "{message}");
        assert!(found().is_none(), "{message}");
        assert!(tokens.closed_reason().is_some(), "{message}");
        wait(&tokens);
        assert_eq!(tokens.refresh(), None, "it is reported once: {message}");
        write(&good);
        wait(&tokens);
        assert!(tokens.refresh().unwrap().ends_with(": 1 client"));
        assert_eq!(tokens.closed_reason(), None);
        // Running requests still count.
        assert!(begin().is_none());
    }
    drop(under_way);
    assert!(begin().is_some());
}

#[test]
fn a_file_whose_time_was_put_back_is_read_again() {
    use std::os::unix::fs::MetadataExt;
    let [mei, ana] = ["token-of-mei-0123456789", "token-of-ana-0123456789"];
    let text = |token: &str| format!("[mei]\nhash = \"{}\"\n", hash(token));
    let (file, tokens) = file(&text(mei));
    let tokens = tokens.unwrap();
    let metadata = || file.as_file().metadata().unwrap();
    let before = metadata();
    std::fs::write(file.path(), text(ana)).unwrap();
    let put_back = || file.as_file().set_modified(before.modified().unwrap());
    put_back().unwrap();
    // The file system's clock is coarse.
    while metadata().ctime_nsec() == before.ctime_nsec() {
        put_back().unwrap();
    }
    assert_eq!(metadata().modified().unwrap(), before.modified().unwrap());
    wait(&tokens);
    assert!(tokens.refresh().is_some());
    assert!(tokens.client(ana.as_bytes()).is_some() && tokens.client(mei.as_bytes()).is_none());
}
