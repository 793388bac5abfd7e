//! A line of an import: read or refused in one sentence; what was read is read again as the same memory.

#![no_main]

use ack_api::import_line;
use ack_memory::internal::import;
use ack_memory_fuzz::now;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let read = import::read(&mut &*data, now()).unwrap();
    let (rows, refused) = (read.rows, read.refused);
    let lines = data.split(|byte| *byte == b'\n').count();
    assert!(rows.len() + refused.len() <= lines);
    let mut ids: Vec<&str> = rows.iter().map(|(_, row)| row.id.as_str()).collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|two| two[0] != two[1]), "an id twice: {ids:?}");
    for refusal in &refused {
        assert!((1..=lines).contains(&refusal.line));
        assert!(!refusal.reason.is_empty() && refusal.reason.len() < 2_000, "{}", refusal.reason);
        assert!(!refusal.reason.contains(char::is_control), "{:?}", refusal.reason);
    }
    for (number, row) in &rows {
        assert!((1..=lines).contains(number));
        assert!(!row.line.title.trim().is_empty());
        assert!(
            !row.id.trim().is_empty() && row.id.len() <= 200 && !row.id.contains(char::is_control),
            "{:?}",
            row.id
        );
        let written = serde_json::to_string(&row.line).unwrap();
        let again = import_line::parse(&written, now()).unwrap_or_else(|reason| panic!("{written}: {reason}"));
        assert_eq!((&again.line, &again.id, again.status), (&row.line, &row.id, row.status));
    }
});
