//! The words for levels of enforcement and for answers to hard links.

use backend_core::Enforcement;
use backend_core::ops::HardLinks;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Defines an enum with the names of another crate's, and the functions for
/// `#[serde(with)]` on an option of it.
macro_rules! words {
    ($module:ident, $type:ident as $mirror:ident { $($variant:ident),+ }) => {
        #[derive(Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum $mirror {
            $($variant),+
        }

        impl From<$mirror> for $type {
            fn from(word: $mirror) -> Self {
                match word {
                    $($mirror::$variant => Self::$variant),+
                }
            }
        }

        pub(crate) mod $module {
            use crate::rules::level::*;

            #[allow(clippy::ref_option, reason = "serde passes a reference to the field")]
            pub(crate) fn serialize<S: Serializer>(
                value: &Option<$type>,
                to: S,
            ) -> Result<S::Ok, S::Error> {
                let word = match value {
                    $(Some($type::$variant) => Some($mirror::$variant),)+
                    _ => None,
                };
                word.serialize(to)
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                from: D,
            ) -> Result<Option<$type>, D::Error> {
                Ok(Option::<$mirror>::deserialize(from)?.map(Into::into))
            }
        }
    };
}

words!(enforcement, Enforcement as EnforcementWord { Words, Landlock, View });
words!(hard_links, HardLinks as HardLinksWord { Refuse, Accept });
