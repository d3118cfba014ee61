//! The JSON document format of a store, and its reader and writer.
//!
//! ```json
//! {
//!   "format": "agentbox-state",
//!   "version": 1,
//!   "files": {
//!     "/notes.md": { "content": "# Notes\n", "modified_at": "2026-11-15T09:30:00Z" },
//!     "/logo.png": { "content": "iVBORw0KGgo=", "encoding": "base64" }
//!   },
//!   "directories": ["/empty"]
//! }
//! ```
//!
//! Only directories without entries are listed. The reader also accepts documents
//! of pydantic-ai-backend: a bare map of files or one under `files`, content as a
//! list of lines, base64 in one piece or in lines, and the format from before
//! base64 was marked, with bytes hidden in lone surrogates.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use backend_core::VPath;
use backend_core::limits::PATH_BYTES;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use chrono::{DateTime, Datelike as _, SecondsFormat, Utc};
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap as _, SerializeSeq as _, Serializer};

use crate::tree::{File, Leaves, Node, Tree};

/// The message for content that is too large, when its path is not known yet.
const LARGE: &str = "a file in it exceeds the file size limit; allow more, or give a smaller one";

const FORMAT: &str = "agentbox-state";
const VERSION: u64 = 1;

pub(crate) fn serialize<S: Serializer>(tree: &Tree, serializer: S) -> Result<S::Ok, S::Error> {
    let mut document = serializer.serialize_map(Some(4))?;
    document.serialize_entry("format", FORMAT)?;
    document.serialize_entry("version", &VERSION)?;
    document.serialize_entry("files", &Files(tree))?;
    document.serialize_entry("directories", &EmptyDirectories(tree))?;
    document.end()
}

struct Files<'t>(&'t Tree);

impl Serialize for Files<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut files = serializer.serialize_map(Some(self.0.files()))?;
        for (path, file) in Leaves::new(self.0) {
            if let Some(file) = file {
                files.serialize_entry(path.as_str(), &OneFile(&file))?;
            }
        }
        files.end()
    }
}

struct EmptyDirectories<'t>(&'t Tree);

impl Serialize for EmptyDirectories<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut directories = serializer.serialize_seq(None)?;
        for (path, file) in Leaves::new(self.0) {
            if file.is_none() && !path.is_root() {
                directories.serialize_element(path.as_str())?;
            }
        }
        directories.end()
    }
}

struct OneFile<'f>(&'f File);

impl Serialize for OneFile<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut file = serializer.serialize_map(None)?;
        // `jsonb` cannot hold a NUL, not even escaped.
        let text = str::from_utf8(&self.0.content)
            .ok()
            .filter(|text| !text.contains('\0'));
        match text {
            Some(text) => file.serialize_entry("content", text)?,
            None => {
                file.serialize_entry("content", &STANDARD.encode(&self.0.content))?;
                file.serialize_entry("encoding", "base64")?;
            }
        }
        for (name, time) in [
            ("created_at", self.0.created),
            ("modified_at", self.0.modified),
        ] {
            if let Some(time) = time {
                let time = utc(time).ok_or_else(|| S::Error::custom("a time is out of range"))?;
                let time = time.to_rfc3339_opts(SecondsFormat::AutoSi, true);
                file.serialize_entry(name, &time)?;
            }
        }
        file.end()
    }
}

/// Limits of what is loaded from a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadLimits {
    /// Bytes of one file.
    pub(crate) file: u64,
    /// Bytes of all files, as a store counts them.
    pub(crate) total: u64,
}

impl LoadLimits {
    /// No limit: a document that is already in memory is not limited further.
    pub(crate) const UNLIMITED: Self = Self {
        file: u64::MAX,
        total: u64::MAX,
    };

    /// Returns the bytes that the content of one file may take up in a document. No
    /// character takes more than six, as in `\u001f`.
    fn document_bytes(self) -> u64 {
        self.file.saturating_mul(6)
    }

    fn check<E: de::Error>(self, tree: &Tree) -> Result<(), E> {
        if tree.bytes() > self.total {
            return Err(E::custom(format_args!(
                "it exceeds the total limit of {} bytes; allow more, or give a smaller one",
                self.total
            )));
        }
        Ok(())
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
    limits: LoadLimits,
) -> Result<Tree, D::Error> {
    deserializer.deserialize_map(DocumentVisitor(limits))
}

/// Reads a document without holding more of it than may be loaded.
pub(crate) fn read(document: impl io::Read, limits: LoadLimits) -> serde_json::Result<Tree> {
    let document = StringLimitReader {
        document: io::BufReader::new(document),
        longest: limits
            .document_bytes()
            .saturating_add(PATH_BYTES as u64 * 6),
        length: None,
        escaped: false,
    };
    let mut deserializer = serde_json::Deserializer::from_reader(io::BufReader::new(document));
    let tree = deserialize(&mut deserializer, limits)?;
    deserializer.end()?;
    Ok(tree)
}

/// A reader that limits the length of strings in a document. Without it, a string
/// that is too long would be read as a whole before its length is checked.
struct StringLimitReader<R> {
    document: R,
    longest: u64,
    /// Length of the current string so far; `None` outside of strings.
    length: Option<u64>,
    /// Whether the last byte was a backslash that escapes the next.
    escaped: bool,
}

impl<R: io::Read> io::Read for StringLimitReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.document.read(buffer)?;
        for byte in buffer.get(..count).unwrap_or_default() {
            self.length = match (self.length, byte) {
                (None, b'"') => Some(0),
                (None, _) => None,
                (Some(_), b'"') if !self.escaped => None,
                (Some(length), _) if length >= self.longest => {
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, LARGE));
                }
                (Some(length), _) => Some(length + 1),
            };
            self.escaped = self.length.is_some() && *byte == b'\\' && !self.escaped;
        }
        Ok(count)
    }
}

struct DocumentVisitor(LoadLimits);

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document of files, or a map of files")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut tree = Tree::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "format" => {
                    let format: String = map.next_value()?;
                    if format != FORMAT {
                        return Err(de::Error::custom(format_args!(
                            "the format is {format:?}, not {FORMAT:?}"
                        )));
                    }
                }
                "version" => {
                    let version: u64 = map.next_value()?;
                    if version != VERSION {
                        return Err(de::Error::custom(format_args!(
                            "the version is {version}, and this program reads only {VERSION}; \
                             use the program that wrote it, or a newer one"
                        )));
                    }
                }
                "files" => map.next_value_seed(FilesSeed(&mut tree, self.0))?,
                "directories" => map.next_value_seed(DirectoriesSeed(&mut tree, self.0))?,
                path if path.starts_with('/') => {
                    let file = map.next_value_seed(FileSeed(self.0))?;
                    add_file(&mut tree, path, file, self.0)?;
                }
                other => {
                    map.next_value::<IgnoredAny>()?;
                    return Err(de::Error::custom(format_args!(
                        "{other:?} is neither a path nor a part of a document"
                    )));
                }
            }
        }
        Ok(tree)
    }
}

struct DirectoriesSeed<'t>(&'t mut Tree, LoadLimits);

impl<'de> de::DeserializeSeed<'de> for DirectoriesSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for DirectoriesSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of directories")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut paths: A) -> Result<(), A::Error> {
        while let Some(path) = paths.next_element::<Cow<'de, str>>()? {
            let path = VPath::parse(&path).map_err(de::Error::custom)?;
            add_directory(self.0, &path)?;
            self.1.check(self.0)?;
        }
        Ok(())
    }
}

struct FilesSeed<'t>(&'t mut Tree, LoadLimits);

impl<'de> de::DeserializeSeed<'de> for FilesSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FilesSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of files")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(path) = map.next_key::<Cow<'de, str>>()? {
            let file = map.next_value_seed(FileSeed(self.1))?;
            add_file(self.0, &path, file, self.1)?;
        }
        Ok(())
    }
}

fn add_directory<E: de::Error>(tree: &mut Tree, path: &VPath) -> Result<(), E> {
    match tree.find(path).map_err(E::custom)? {
        Some(Node::File(_)) => Err(E::custom(format_args!(
            "{path:?} is given as a file and as a directory"
        ))),
        _ => tree.directory(path).map(drop).map_err(E::custom),
    }
}

fn add_file<E: de::Error>(
    tree: &mut Tree,
    path: &str,
    file: StoredFile,
    limits: LoadLimits,
) -> Result<(), E> {
    let at = |reason: &dyn fmt::Display| E::custom(format_args!("file {path:?}: {reason}"));
    let vpath = VPath::parse(path).map_err(|error| at(&error))?;
    let file = file.decode().map_err(|error| at(&error))?;
    if file.content.len() as u64 > limits.file {
        return Err(at(&format_args!(
            "it exceeds the file size limit of {} bytes; allow more, or give a smaller one",
            limits.file
        )));
    }
    tree.put_new(&vpath, file).map_err(|error| at(&error))?;
    limits.check(tree)
}

/// A file as stored in a document, ours or pydantic-ai-backend's.
struct StoredFile {
    content: Vec<u8>,
    encoding: Option<String>,
    created_at: Option<String>,
    modified_at: Option<String>,
}

struct FileSeed(LoadLimits);

impl<'de> de::DeserializeSeed<'de> for FileSeed {
    type Value = StoredFile;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<StoredFile, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FileSeed {
    type Value = StoredFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a file")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StoredFile, A::Error> {
        const NAMES: [&str; 4] = ["content", "encoding", "created_at", "modified_at"];
        let mut content = None;
        let mut texts: [Option<Option<String>>; 3] = [const { None }; 3];
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let number = NAMES.iter().position(|name| *name == key);
            let unknown = || de::Error::unknown_field(&key, &NAMES);
            let name = number
                .and_then(|number| NAMES.get(number))
                .ok_or_else(unknown)?;
            let is_new = match number.and_then(|number| texts.get_mut(number.checked_sub(1)?)) {
                Some(text) => text.replace(map.next_value()?).is_none(),
                None => {
                    let limit = self.0.document_bytes();
                    content
                        .replace(map.next_value_seed(ContentSeed(limit))?)
                        .is_none()
                }
            };
            if !is_new {
                return Err(de::Error::duplicate_field(name));
            }
        }
        let [encoding, created_at, modified_at] = texts.map(Option::flatten);
        Ok(StoredFile {
            content: content.ok_or_else(|| de::Error::missing_field("content"))?,
            encoding,
            created_at,
            modified_at,
        })
    }
}

impl StoredFile {
    fn decode(self) -> Result<File, String> {
        let content = match self.encoding.as_deref() {
            Some("base64") => decode_base64(self.content)?,
            None | Some("utf-8") => unescape_surrogates(self.content)?,
            Some(other) => return Err(format!("the encoding {other:?} is not known")),
        };
        let created = self.created_at.as_deref().map(parse_time).transpose()?;
        let modified = self.modified_at.as_deref().map(parse_time).transpose()?;
        Ok(File::new(Bytes::from(content), created, modified))
    }
}

/// Decodes base64, in any number of lines.
fn decode_base64(mut text: Vec<u8>) -> Result<Vec<u8>, String> {
    text.retain(|byte| !byte.is_ascii_whitespace());
    let decoded = STANDARD.decode(text);
    decoded.map_err(|error| format!("the content is not base64: {error}"))
}

/// Converts a time; `None` if its year is too large to be written.
fn utc(time: SystemTime) -> Option<DateTime<Utc>> {
    let nanos = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).ok()?,
        Err(error) => -i128::try_from(error.duration().as_nanos()).ok()?,
    };
    let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).ok()?;
    let nanos = u32::try_from(nanos.rem_euclid(1_000_000_000)).ok()?;
    let time = DateTime::from_timestamp(seconds, nanos)?;
    (0..=9999).contains(&time.year()).then_some(time)
}

fn parse_time(text: &str) -> Result<SystemTime, String> {
    let time: DateTime<Utc> = text
        .parse()
        .map_err(|error| format!("{text:?} is not a time: {error}"))?;
    Ok(time.into())
}

/// Decodes bytes that Python hides in lone surrogates, U+DC80 to U+DCFF, because
/// they are not UTF-8. They arrive here as generalised UTF-8, which can encode surrogates.
fn unescape_surrogates(content: Vec<u8>) -> Result<Vec<u8>, String> {
    let Err(first) = str::from_utf8(&content) else {
        return Ok(content);
    };
    let mut bytes = content[..first.valid_up_to()].to_vec();
    let mut rest = &content[first.valid_up_to()..];
    loop {
        match rest {
            [0xed, high @ (0xb2 | 0xb3), low, after @ ..] => {
                bytes.push((high << 6) | (low & 0x3f));
                rest = after;
            }
            _ => return Err("the content has a lone surrogate".to_owned()),
        }
        match str::from_utf8(rest) {
            Ok(text) => {
                bytes.extend_from_slice(text.as_bytes());
                return Ok(bytes);
            }
            Err(error) => {
                let (text, after) = rest.split_at(error.valid_up_to());
                bytes.extend_from_slice(text);
                rest = after;
            }
        }
    }
}

/// Reads a string, or a list of lines to be joined, of at most so many bytes.
struct ContentSeed(u64);

impl<'de> de::DeserializeSeed<'de> for ContentSeed {
    type Value = Vec<u8>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<u8>, D::Error> {
        // The JSON reader lets lone surrogates through only as bytes.
        deserializer.deserialize_bytes(self)
    }
}

impl<'de> Visitor<'de> for ContentSeed {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of lines")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<u8>, E> {
        self.visit_bytes(text.as_bytes())
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut lines: A) -> Result<Vec<u8>, A::Error> {
        let mut content = Vec::new();
        let mut first = true;
        while let Some(line) = lines.next_element::<serde_bytes::ByteBuf>()? {
            if !first {
                content.push(b'\n');
            }
            first = false;
            content.extend_from_slice(&line);
            if content.len() as u64 > self.0 {
                return Err(de::Error::custom(LARGE));
            }
        }
        Ok(content)
    }
}
