//! [`Size`]: a number of bytes in a config file.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// A size in bytes: a number, with an optional suffix `k`, `m` or `g` as in Docker, or
/// `Ki`, `Mi` or `Gi`, which mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size(pub(super) u64);

impl Size {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let factor: u64 = match text.strip_prefix(digits)?.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" | "ki" => 1 << 10,
            "m" | "mb" | "mi" => 1 << 20,
            "g" | "gb" | "gi" => 1 << 30,
            _ => return None,
        };
        let number: u64 = digits.trim_end().parse().ok()?;
        number.checked_mul(factor).map(Self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl Visitor<'_> for Bytes {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes as a number, or such as \"512m\"")
            }

            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Size, E> {
                let bytes = u64::try_from(bytes).map(Size);
                bytes.map_err(|_| E::custom("bytes are not negative"))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                Size::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_any(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn sizes_are_numbers_with_a_unit() {
        assert_eq!(Size::parse("1"), Some(Size(1)));
        assert_eq!(Size::parse("64 KB"), Some(Size(64 << 10)));
        assert_eq!(Size::parse("2G"), Some(Size(2 << 30)));
        assert_eq!(Size::parse("512Mi"), Some(Size(512 << 20)));
        for bad in ["", "m", "-1", "1.5g", "1t", "20000000000g", "1 2m"] {
            assert_eq!(Size::parse(bad), None, "{bad}");
        }
        let read = |text: &str| toml::from_str::<BTreeMap<String, Size>>(text);
        assert_eq!(read("memory = 7").unwrap()["memory"], Size(7));
        for bad in ["memory = -1", "memory = true", "memory = 'lots'"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
