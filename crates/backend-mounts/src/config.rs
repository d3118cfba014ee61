//! [`MountConfig`]: the serialized form of mounts.

use std::fmt;
use std::path::PathBuf;

use backend_core::{Quoted, VPath};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::MountError;
use crate::mount::{Mode, Mount, asks_by_default};
use crate::table::Mounts;

/// Mounts as listed in a configuration. There are three forms:
///
/// - `mounts`: a list of [`Mount`]s.
/// - `root`: one host directory that becomes `/`, writable unless `readonly` is set.
///   `suffixes`, `max_file_bytes`, `write_approval` and `read_approval` can be set beside
///   it.
/// - `paths`: a table of names. `[paths.notes]` becomes the mount `/notes`. It has a
///   `root` and, where they differ from a mount's defaults, `mode`, `suffixes`,
///   `max_file_bytes`, `write_approval` and `read_approval`.
///
/// It is always serialized in the first form.
///
/// ```
/// use backend_mounts::MountConfig;
///
/// let config = MountConfig::from_json(r#"{"root": "/srv/site", "readonly": true}"#)?;
/// let mounts = config.build()?;
/// assert_eq!(mounts.iter().count(), 1);
///
/// let error = MountConfig::from_toml("root = '/srv/site'\nreadolny = true").unwrap_err();
/// assert!(error.to_string().contains("line 2"), "{error}");
/// # Ok::<(), backend_mounts::MountError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawConfig")]
#[non_exhaustive]
pub struct MountConfig {
    /// The mounts, in the order written.
    pub mounts: Vec<Mount>,
}

impl MountConfig {
    /// Creates a configuration of these mounts.
    pub fn new(mounts: Vec<Mount>) -> Self {
        Self { mounts }
    }

    /// Creates a configuration with one host directory as `/`, readable and writable.
    pub fn single_root(host_path: impl Into<PathBuf>) -> Self {
        Self::new(vec![Mount::at(host_path, VPath::root()).mode(Mode::Rw)])
    }

    /// Parses TOML.
    ///
    /// # Errors
    ///
    /// [`MountError`], with the line of a syntax error, or with the mounts that conflict.
    pub fn from_toml(text: &str) -> Result<Self, MountError> {
        let raw: RawConfig = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.get(..start).unwrap_or_default();
            let line = before.rsplit('\n').next().unwrap_or_default();
            MountError::Syntax {
                format: "TOML",
                line: before.matches('\n').count() + 1,
                column: line.chars().count() + 1,
                message: error.message().trim_end().to_owned(),
            }
        })?;
        raw.checked()
    }

    /// Parses JSON, with the errors of [`from_toml`](Self::from_toml).
    pub fn from_json(text: &str) -> Result<Self, MountError> {
        let raw: RawConfig = serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let message = error.to_string();
            let place = format!(" at line {line} column {column}");
            MountError::Syntax {
                format: "JSON",
                line,
                column,
                message: message.strip_suffix(&place).unwrap_or(&message).to_owned(),
            }
        })?;
        raw.checked()
    }

    /// Validates the mounts against each other, with the errors of [`Mounts::new`].
    pub fn build(self) -> Result<Mounts, MountError> {
        Mounts::new(self.mounts)
    }
}

/// The fields of all forms, before the form is known. This is not an untagged enum,
/// because the errors of one name neither the line nor the field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    mounts: Option<Vec<Mount>>,
    paths: Option<PathTable>,
    root: Option<PathBuf>,
    readonly: Option<bool>,
    suffixes: Option<Vec<String>>,
    max_file_bytes: Option<u64>,
    write_approval: Option<bool>,
    read_approval: Option<bool>,
}

impl RawConfig {
    fn checked(self) -> Result<MountConfig, MountError> {
        let config = MountConfig::try_from(self)?;
        config.clone().build()?;
        Ok(config)
    }

    /// Returns a field that is valid only beside `root`, if one is set.
    fn beside_root(&self) -> Option<&'static str> {
        [
            ("readonly", self.readonly.is_some()),
            ("suffixes", self.suffixes.is_some()),
            ("max_file_bytes", self.max_file_bytes.is_some()),
            ("write_approval", self.write_approval.is_some()),
            ("read_approval", self.read_approval.is_some()),
        ]
        .into_iter()
        .find_map(|(name, is_there)| is_there.then_some(name))
    }
}

impl TryFrom<RawConfig> for MountConfig {
    type Error = MountError;

    fn try_from(raw: RawConfig) -> Result<Self, MountError> {
        let form = |text: &str| Err(MountError::Form(text.to_owned()));
        if let (None, Some(field)) = (&raw.root, raw.beside_root()) {
            return form(&format!("'{field}' is only valid beside 'root'"));
        }
        let mounts = match (raw.mounts, raw.root, raw.paths) {
            (Some(mounts), None, None) => mounts,
            (None, Some(root), None) => {
                let writable = !raw.readonly.unwrap_or(false);
                vec![Mount {
                    mode: if writable { Mode::Rw } else { Mode::Ro },
                    suffixes: raw.suffixes,
                    max_file_bytes: raw.max_file_bytes,
                    write_approval: raw.write_approval.unwrap_or_else(asks_by_default),
                    read_approval: raw.read_approval.unwrap_or(false),
                    ..Mount::at(root, VPath::root())
                }]
            }
            (None, None, Some(PathTable(mounts))) => mounts,
            (None, None, None) => return form("there are no mounts"),
            _ => return form("mounts are written in two forms"),
        };
        if mounts.is_empty() {
            Err(MountError::Empty)
        } else {
            Ok(Self { mounts })
        }
    }
}

/// An entry of `paths`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathEntry {
    root: PathBuf,
    #[serde(default)]
    mode: Mode,
    suffixes: Option<Vec<String>>,
    max_file_bytes: Option<u64>,
    #[serde(default = "asks_by_default")]
    write_approval: bool,
    #[serde(default)]
    read_approval: bool,
}

/// The table `paths`, read entry by entry, so that a name used twice is noticed.
struct PathTable(Vec<Mount>);

impl<'de> Deserialize<'de> for PathTable {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct TableVisitor;

        impl<'de> Visitor<'de> for TableVisitor {
            type Value = PathTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of named paths")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<PathTable, M::Error> {
                let mut mounts = Vec::new();
                while let Some(PathName(mount_point)) = map.next_key()? {
                    let path: PathEntry = map.next_value()?;
                    mounts.push(Mount {
                        mode: path.mode,
                        suffixes: path.suffixes,
                        max_file_bytes: path.max_file_bytes,
                        write_approval: path.write_approval,
                        read_approval: path.read_approval,
                        ..Mount::at(path.root, mount_point)
                    });
                }
                Ok(PathTable(mounts))
            }
        }

        from.deserialize_map(TableVisitor)
    }
}

/// A key of `paths`, converted to its mount point.
struct PathName(VPath);

impl<'de> Deserialize<'de> for PathName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let is_plain = !name.contains('\\') && name.trim() == name;
        match VPath::root().child(&name) {
            Ok(point) if is_plain => Ok(Self(point)),
            _ => Err(serde::de::Error::custom(format!(
                "the path name {} is not a single name; use one without '/' and '\\'",
                Quoted::new(&name)
            ))),
        }
    }
}
