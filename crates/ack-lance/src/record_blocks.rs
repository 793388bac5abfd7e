//! How a table that replaces its store keeps whole records.
//!
//! The records of a batch are in the `record` of its lexicon, in blocks: together they compress to
//! half as much as one by one, and are read several times as fast. A block is the length of its
//! contents (4 bytes), the length of the zstd frame that follows (4 bytes), and the frame. The
//! contents are the records, one after the other: the source (1 byte) and the number of the row (8
//! bytes), the length of the record (4 bytes), and the record as JSON, see [`ack_api::memory::Memory`].
//! Numbers are little endian. A record that was replaced or removed stays until no row needs the
//! batch; the keys say which ones are still wanted.

use std::ops::Range;

use ack_api::source::RowKey;
use zstd::bulk::Decompressor;

use super::TableError;

/// A block is closed once its contents have this many bytes.
const BLOCK_BYTES: usize = 256 << 10;
/// The largest contents of a block that are read or written. A record has at most a few MiB.
const MAX_BLOCK_BYTES: usize = 64 << 20;
/// Higher levels take much longer and save little.
const COMPRESSION_LEVEL: i32 = 3;

#[derive(Default)]
pub struct BlockWriter {
    contents: Vec<u8>,
    blocks: Vec<u8>,
}

impl BlockWriter {
    pub fn push(&mut self, key: RowKey, json: &str) -> std::io::Result<()> {
        let length = u32::try_from(json.len()).map_err(std::io::Error::other)?;
        self.contents.push(key.source);
        self.contents.extend_from_slice(&key.rowid.to_le_bytes());
        self.contents.extend_from_slice(&length.to_le_bytes());
        self.contents.extend_from_slice(json.as_bytes());
        if self.contents.len() >= BLOCK_BYTES {
            self.close_block()?;
        }
        Ok(())
    }

    pub fn finish(mut self) -> std::io::Result<Vec<u8>> {
        self.close_block()?;
        Ok(self.blocks)
    }

    fn close_block(&mut self) -> std::io::Result<()> {
        if self.contents.is_empty() {
            return Ok(());
        }
        if self.contents.len() > MAX_BLOCK_BYTES {
            return Err(std::io::Error::other("a record is too large"));
        }
        let frame = zstd::bulk::compress(&self.contents, COMPRESSION_LEVEL)?;
        for length in [self.contents.len(), frame.len()] {
            let length = u32::try_from(length).map_err(std::io::Error::other)?;
            self.blocks.extend_from_slice(&length.to_le_bytes());
        }
        self.blocks.extend_from_slice(&frame);
        self.contents.clear();
        Ok(())
    }
}

pub struct RecordBlock {
    bytes: Vec<u8>,
    records: Vec<(RowKey, Range<usize>)>,
}

impl RecordBlock {
    pub fn iter(&self) -> impl Iterator<Item = (RowKey, &[u8])> {
        let records = self.records.iter();
        records.map(|(key, range)| (*key, self.bytes.get(range.clone()).unwrap_or_default()))
    }
}

/// Reads the blocks of a batch, and passes on the records for which `is_wanted` holds.
pub fn read_blocks(
    decompressor: &mut Decompressor<'_>,
    mut blocks: &[u8],
    mut is_wanted: impl FnMut(RowKey) -> bool,
    mut visit: impl FnMut(RecordBlock),
) -> Result<(), TableError> {
    while !blocks.is_empty() {
        let (contents_length, rest) = split_length(blocks)?;
        let (frame_length, rest) = split_length(rest)?;
        let (frame, rest) = rest.split_at_checked(frame_length).ok_or(TableError::Damaged)?;
        blocks = rest;
        if contents_length > MAX_BLOCK_BYTES {
            return Err(TableError::Damaged);
        }
        let bytes = decompressor.decompress(frame, contents_length);
        let bytes = bytes.map_err(|_| TableError::Damaged)?;
        if bytes.len() != contents_length {
            return Err(TableError::Damaged);
        }
        let records = find_records(&bytes, &mut is_wanted)?;
        if !records.is_empty() {
            visit(RecordBlock { bytes, records });
        }
    }
    Ok(())
}

/// The places of the wanted records in the contents of a block.
fn find_records(
    contents: &[u8],
    mut is_wanted: impl FnMut(RowKey) -> bool,
) -> Result<Vec<(RowKey, Range<usize>)>, TableError> {
    let mut records = Vec::new();
    let mut rest = contents;
    while let Some((source, after)) = rest.split_first() {
        let (rowid, after) = after.split_first_chunk::<8>().ok_or(TableError::Damaged)?;
        let (length, after) = split_length(after)?;
        let start = contents.len() - after.len();
        let key = RowKey { source: *source, rowid: i64::from_le_bytes(*rowid) };
        rest = after.get(length..).ok_or(TableError::Damaged)?;
        if is_wanted(key) {
            records.push((key, start..start + length));
        }
    }
    Ok(records)
}

fn split_length(bytes: &[u8]) -> Result<(usize, &[u8]), TableError> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or(TableError::Damaged)?;
    let length = usize::try_from(u32::from_le_bytes(*length));
    Ok((length.map_err(|_| TableError::Damaged)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(count: i64) -> Vec<u8> {
        let mut writer = BlockWriter::default();
        for rowid in 0..count {
            writer.push(RowKey { source: 0, rowid }, &json(rowid)).unwrap();
        }
        writer.finish().unwrap()
    }

    fn json(rowid: i64) -> String {
        format!("{{\"title\":\"number {rowid} {}\"}}", "x".repeat(200))
    }

    fn read(blocks: &[u8], wanted: impl FnMut(RowKey) -> bool) -> Result<Vec<i64>, TableError> {
        let mut found = Vec::new();
        read_blocks(&mut Decompressor::new().unwrap(), blocks, wanted, |block| {
            for (key, bytes) in block.iter() {
                assert_eq!(bytes, json(key.rowid).as_bytes());
                found.push(key.rowid);
            }
        })?;
        Ok(found)
    }

    #[test]
    fn wanted_records_are_found_in_several_blocks() {
        let blocks = written(5_000);
        let all: Vec<i64> = (0..5_000).collect();
        assert_eq!(read(&blocks, |_| true).unwrap(), all);
        let few = read(&blocks, |key| key.rowid % 1_000 == 7).unwrap();
        assert_eq!(few, [7, 1_007, 2_007, 3_007, 4_007]);
        assert!(read(&[], |_| true).unwrap().is_empty());
    }

    #[test]
    fn damaged_blocks_are_errors() {
        let blocks = written(2_000);
        for length in (1..blocks.len()).step_by(997) {
            // Cut between two blocks, the rest is missing, which the reader of the rows notices.
            let cut = read(blocks.get(..length).unwrap(), |_| true);
            assert!(cut.is_err() || cut.unwrap().len() < 2_000, "{length}");
        }
        let mut long = blocks.clone();
        long.splice(0..4, u32::MAX.to_le_bytes());
        assert!(read(&long, |_| true).is_err());
        let mut short = blocks;
        short.splice(0..4, 10_u32.to_le_bytes());
        assert!(read(&short, |_| true).is_err());
    }
}
