//! The one JSON document that a store is kept as, written and read.
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
//! Only directories without entries are listed. Reading also takes what
//! pydantic-ai-backend wrote: a bare map of files or one under `files`, content
//! as a list of lines, base64 in one piece or in lines, and from before base64 was
//! marked, bytes hidden in lone surrogates.

use std::borrow::Cow;
use std::fmt;
use std::time::SystemTime;

use backend_core::VPath;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap as _, SerializeSeq as _, Serializer};

use crate::snapshot::put_new;
use crate::tree::{File, Leaves, Node, Tree};

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
                let time = Timestamp::try_from(time).map_err(S::Error::custom)?;
                file.serialize_entry(name, &time.to_string())?;
            }
        }
        file.end()
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tree, D::Error> {
    deserializer.deserialize_map(DocumentVisitor)
}

struct DocumentVisitor;

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
                            "the version is {version}, and this program knows {VERSION} only; \
                             use the program that wrote it, or a newer one"
                        )));
                    }
                }
                "files" => map.next_value_seed(FilesSeed(&mut tree))?,
                "directories" => {
                    for path in map.next_value::<Vec<Cow<'de, str>>>()? {
                        let path = VPath::parse(&path).map_err(de::Error::custom)?;
                        add_directory(&mut tree, &path)?;
                    }
                }
                path if path.starts_with('/') => {
                    let file = map.next_value()?;
                    add_file(&mut tree, path, file)?;
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

struct FilesSeed<'t>(&'t mut Tree);

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
            let file = map.next_value()?;
            add_file(self.0, &path, file)?;
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

fn add_file<E: de::Error>(tree: &mut Tree, path: &str, file: StoredFile) -> Result<(), E> {
    let at = |reason: &dyn fmt::Display| E::custom(format_args!("file {path:?}: {reason}"));
    let vpath = VPath::parse(path).map_err(|error| at(&error))?;
    let file = file.decode().map_err(|error| at(&error))?;
    put_new(tree, &vpath, file).map_err(|error| at(&error))
}

/// A file as it stands in a document, ours or pydantic-ai-backend's.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredFile {
    content: StoredContent,
    #[serde(default)]
    encoding: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    modified_at: Option<String>,
}

impl StoredFile {
    fn decode(self) -> Result<File, String> {
        let content = match self.encoding.as_deref() {
            Some("base64") => decode_base64(self.content.0)?,
            None | Some("utf-8") => unescape_surrogates(self.content.0)?,
            Some(other) => return Err(format!("the encoding {other:?} is not known")),
        };
        let created = self.created_at.as_deref().map(parse_time).transpose()?;
        let modified = self.modified_at.as_deref().map(parse_time).transpose()?;
        Ok(File::new(Bytes::from(content), created, modified))
    }
}

/// What base64 stands for, in however many lines it was written.
fn decode_base64(mut text: Vec<u8>) -> Result<Vec<u8>, String> {
    text.retain(|byte| !byte.is_ascii_whitespace());
    let decoded = STANDARD.decode(text);
    decoded.map_err(|error| format!("the content is not base64: {error}"))
}

fn parse_time(text: &str) -> Result<SystemTime, String> {
    let time: Timestamp = text
        .parse()
        .map_err(|error| format!("{text:?} is not a time: {error}"))?;
    Ok(time.into())
}

/// Python hides a byte that is not UTF-8 in a lone surrogate, U+DC80 to U+DCFF.
/// They arrive here in the generalised UTF-8 that has a spelling for them.
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
            _ => return Err("the content holds half a character".to_owned()),
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

/// A string, or a list of lines to be joined.
struct StoredContent(Vec<u8>);

impl<'de> Deserialize<'de> for StoredContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Only as bytes does JSON's reader let lone surrogates through.
        deserializer.deserialize_bytes(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = StoredContent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of lines")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<StoredContent, E> {
        self.visit_bytes(text.as_bytes())
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<StoredContent, E> {
        Ok(StoredContent(bytes.to_vec()))
    }

    fn visit_byte_buf<E: de::Error>(self, bytes: Vec<u8>) -> Result<StoredContent, E> {
        Ok(StoredContent(bytes))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut lines: A) -> Result<StoredContent, A::Error> {
        let mut content = Vec::new();
        let mut first = true;
        while let Some(line) = lines.next_element::<serde_bytes::ByteBuf>()? {
            if !first {
                content.push(b'\n');
            }
            first = false;
            content.extend_from_slice(&line);
        }
        Ok(StoredContent(content))
    }
}
