//! Structures that are read from tables and from nothing else.
//!
//! What serde derives also reads a structure from a list, by the order of its
//! fields. In a configuration that is more likely a mistake.

/// Gives types whose serde code was derived with `remote = "Self"` their traits.
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
