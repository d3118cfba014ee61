//! Structures that deserialize only from tables.
//!
//! Serde's derived code also accepts a list, by the order of the fields. In a
//! configuration that is more likely a mistake.

/// Implements the serde traits for types that derive them with `remote = "Self"`.
macro_rules! tables_only {
    ($($type:ident),+) => {
        $(
            impl serde::Serialize for $type {
                fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                    Self::serialize(self, to)
                }
            }

            impl<'de> serde::Deserialize<'de> for $type {
                fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    struct Table;

                    impl<'de> serde::de::Visitor<'de> for Table {
                        type Value = $type;

                        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                            f.write_str("a table")
                        }

                        fn visit_map<A: serde::de::MapAccess<'de>>(
                            self,
                            map: A,
                        ) -> Result<$type, A::Error> {
                            $type::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                        }
                    }
                    from.deserialize_map(Table)
                }
            }
        )+
    };
}

pub(crate) use tables_only;
