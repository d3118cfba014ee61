//! [`CaBundle`]: certificates that are trusted during a build and never stored in the
//! image.

use std::fmt;
use std::path::Path;

use backend_core::{Quoted, Result};
use bytes::Bytes;

use crate::check::{self, ensure};

/// Larger than any list of public authorities.
const LARGEST: usize = 8 << 20;

/// Certificates in PEM that are trusted in addition to those of the image, for hosts
/// behind a proxy that re-signs TLS.
///
/// ```
/// use backend_docker::image::CaBundle;
///
/// let pem = "-----BEGIN CERTIFICATE-----\nMAo=\n-----END CERTIFICATE-----\n";
/// assert!(CaBundle::from_pem(pem).is_ok());
/// assert!(CaBundle::from_pem("-----BEGIN PRIVATE KEY-----").is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CaBundle(Bytes);

impl CaBundle {
    /// Environment variables that point programs to a bundle. For most programs it
    /// replaces the default trust store, so it should include those certificates as
    /// well.
    pub const VARIABLES: [&str; 8] = [
        "CARGO_HTTP_CAINFO",
        "CURL_CA_BUNDLE",
        "GIT_SSL_CAINFO",
        "NODE_EXTRA_CA_CERTS",
        "PIP_CERT",
        "REQUESTS_CA_BUNDLE",
        "SSL_CERT_FILE",
        "npm_config_cafile",
    ];

    /// Parses a bundle from PEM text.
    ///
    /// # Errors
    ///
    /// `Config` if it holds no certificate, if it holds a private key, or if it is
    /// larger than 8 MiB.
    pub fn from_pem(pem: impl Into<Bytes>) -> Result<Self> {
        let pem = pem.into();
        ensure!(
            pem.len() <= LARGEST,
            "the CA bundle is larger than {LARGEST} bytes; give certificates only"
        );
        let text = String::from_utf8_lossy(&pem);
        ensure!(
            !text.contains("PRIVATE KEY-----"),
            "the CA bundle holds a private key; give certificates only"
        );
        ensure!(
            text.contains("-----BEGIN CERTIFICATE-----"),
            "the CA bundle holds no certificate; give certificates in PEM"
        );
        Ok(Self(pem))
    }

    /// Reads a bundle from a file on this host.
    ///
    /// # Errors
    ///
    /// Those of [`from_pem`](Self::from_pem), and `Config` if the file cannot be read.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let wrong = |what: &str| {
            let shown = path.to_string_lossy();
            check::wrong(format!("the CA bundle {} {what}", Quoted::new(&shown)))
        };
        match std::fs::metadata(path) {
            Ok(found) if !found.is_file() => {
                return Err(wrong("is not a file; name a file of certificates in PEM"));
            }
            Ok(found) if found.len() > LARGEST as u64 => {
                return Err(wrong("is too large; give certificates only"));
            }
            _ => {}
        }
        let pem = std::fs::read(path)
            .map_err(|source| wrong("cannot be read; check its path").with_source(source))?;
        Self::from_pem(pem)
    }

    /// Returns the PEM text.
    pub fn pem(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for CaBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CaBundle({} bytes)", self.0.len())
    }
}
