//! Structures that are deserialized only from tables.
//!
//! Derived serde code also reads a structure from a list, by the order of its fields. In
//! a policy, `read = ["allow"]` is more likely a mistake.

use std::fmt;

use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde::forward_to_deserialize_any;

/// Implements the serde traits for types whose serde code was derived with
/// `remote = "Self"`. A check says whether the fields are consistent.
#[doc(hidden)]
#[macro_export]
macro_rules! tables_only {
    ($($type:ident $(checked by $check:path)?),+) => {
        $(
            impl serde::Serialize for $type {
                fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                    Self::serialize(self, to)
                }
            }

            impl<'de> serde::Deserialize<'de> for $type {
                fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    let read = Self::deserialize($crate::rules::TablesOnly(from))?;
                    $($check(&read).map_err(serde::de::Error::custom)?;)?
                    Ok(read)
                }
            }
        )+
    };
}

/// Wraps a deserializer so that structures are read only from tables.
#[derive(Debug)]
pub struct TablesOnly<D>(pub D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for TablesOnly<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_struct(name, fields, TableVisitor(visitor))
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(TableVisitor(visitor))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes
        byte_buf option unit unit_struct newtype_struct seq tuple tuple_struct map
        enum identifier ignored_any
    }
}

/// Accepts a table and refuses everything else.
struct TableVisitor<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for TableVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(map)
    }
}
