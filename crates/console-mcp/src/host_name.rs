//! [`HostName`]: a name or address with an optional port.

use std::net::{IpAddr, Ipv6Addr};

/// A host as in the header `Host`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostName {
    pub(crate) name: Name,
    pub(crate) port: Option<u16>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Address(IpAddr),
    /// In lower case.
    Text(String),
}

impl HostName {
    /// Parses a name or address with an optional port, and nothing else around them.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, rest) = match text.strip_prefix('[') {
            Some(six) => {
                let (address, rest) = six.split_once(']')?;
                let address: Ipv6Addr = address.parse().ok()?;
                (Name::Address(address.into()), rest)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                let (name, rest) = text.split_at(end);
                (parse_name(name)?, rest)
            }
        };
        let port = match rest.strip_prefix(':') {
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(port.parse().ok()?)
            }
            None if rest.is_empty() => None,
            _ => return None,
        };
        Some(Self { name, port })
    }
}

fn parse_name(name: &str) -> Option<Name> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return address.is_ipv4().then_some(Name::Address(address));
    }
    let is_label = |label: &str| {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && label.len() < 64 && label.bytes().all(known)
    };
    let is_name = name.len() < 254 && name.split('.').all(is_label);
    is_name.then(|| Name::Text(name.to_ascii_lowercase()))
}
