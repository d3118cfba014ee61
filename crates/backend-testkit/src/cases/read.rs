//! Reading bytes.

use backend_core::ops::ReadOptions;
use backend_core::{BackendExt as _, ErrorKind};
use bytes::Bytes;

use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

/// Returns eight mebibytes in which no two blocks are equal.
pub(crate) fn large_content() -> Vec<u8> {
    let mut content = Vec::with_capacity(8 * 1024 * 1024);
    for at in 0..1024 * 1024_u64 {
        content.extend_from_slice(&at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    }
    content
}

async fn part(t: &Env, options: ReadOptions) -> Result<(Bytes, u64), Failure> {
    let read = t.backend().read(&t.path("digits")?, options).await?;
    Ok((read.data, read.size))
}

/// Every byte value is returned as it was written.
pub async fn bytes_are_exact(t: &Env) -> CaseResult {
    let content: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    t.put("all.bin", content.as_slice()).await?;
    check_eq!(t.get("all.bin").await?, content)
}

/// A large file is returned completely.
pub async fn large_file_round_trips(t: &Env) -> CaseResult {
    let content = large_content();
    t.put("large.bin", content.as_slice()).await?;
    check!(t.get("large.bin").await? == content, "the bytes differ")
}

/// Reading an empty file succeeds.
pub async fn empty_file(t: &Env) -> CaseResult {
    t.put("empty", "").await?;
    check_eq!(t.get("empty").await?, b"")
}

/// A missing file is an error, not empty bytes.
pub async fn missing_is_not_found(t: &Env) -> CaseResult {
    let read = t.backend().read_bytes("missing").await;
    t.fails(ErrorKind::NotFound, read)
}

/// Reading a directory is an error.
pub async fn directory_is_an_error(t: &Env) -> CaseResult {
    t.put("directory/first.txt", "first").await?;
    let read = t.backend().read_bytes("directory").await;
    t.fails(ErrorKind::IsADirectory, read)
}

/// Reading a path below a file is an error.
pub async fn beneath_a_file_is_not_a_directory(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    let read = t.backend().read_bytes("file/beneath").await;
    t.fails(ErrorKind::NotADirectory, read)
}

/// A range returns its bytes and the size of the file.
pub async fn range_gives_its_bytes(t: &Env) -> CaseResult {
    t.put("digits", "0123456789").await?;
    let read = part(t, ReadOptions::default().range(2..5)).await?;
    check_eq!(read, (Bytes::from("234"), 10))?;
    let read = part(t, ReadOptions::default().range(7..)).await?;
    check_eq!(read, (Bytes::from("789"), 10))
}

/// A range may end after the end of the file, and start at it.
pub async fn range_is_cut_at_the_end(t: &Env) -> CaseResult {
    t.put("digits", "0123456789").await?;
    let read = part(t, ReadOptions::default().range(8..99)).await?;
    check_eq!(read, (Bytes::from("89"), 10))?;
    let read = part(t, ReadOptions::default().range(10..)).await?;
    check_eq!(read, (Bytes::new(), 10))
}

/// A range that starts after the end is rejected, and the message contains the size.
pub async fn range_past_the_end_is_invalid(t: &Env) -> CaseResult {
    t.put("digits", "0123456789").await?;
    for start in [11, u64::MAX] {
        let options = ReadOptions::default().range(start..);
        let Err(error) = t.backend().read(&t.path("digits")?, options).await else {
            return Err(Failure::new("a range past the end was read"));
        };
        check_eq!(error.kind(), ErrorKind::InvalidInput)?;
        check!(error.message().contains("10 bytes"), "{error}")?;
    }
    Ok(())
}

/// A range that ends before its start is rejected.
pub async fn turned_range_is_invalid(t: &Env) -> CaseResult {
    t.put("digits", "0123456789").await?;
    #[expect(clippy::reversed_empty_ranges, reason = "that is the case")]
    let options = ReadOptions::default().range(5..2);
    let read = t.backend().read(&t.path("digits")?, options).await;
    t.fails(ErrorKind::InvalidInput, read)
}

/// A file larger than the caller's limit is an error, never a truncated result.
pub async fn too_much_is_an_error(t: &Env) -> CaseResult {
    t.put("digits", "0123456789").await?;
    let path = t.path("digits")?;
    let read = t.backend().read(&path, ReadOptions::default().max_bytes(9));
    t.fails(ErrorKind::TooLarge, read.await)
}

/// A file of exactly the caller's limit is read.
pub async fn exactly_the_maximum_is_read(t: &Env) -> CaseResult {
    t.put("digits", "0123456789").await?;
    let read = part(t, ReadOptions::default().max_bytes(10)).await?;
    check_eq!(read.0.len(), 10)?;
    let read = part(t, ReadOptions::default().range(0..4).max_bytes(4)).await?;
    check_eq!(read.0, "0123")
}
