//! [`Token`]: the secret of an agent that listens.

use std::fmt;
use std::hint::black_box;

use backend_core::{Error, Result};

/// Bytes of randomness in a generated token.
const RANDOM_BYTES: usize = 32;

/// The secret that a client of a listening agent must know.
///
/// It has 32 to 256 visible ASCII characters. `Debug` does not show it.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The fewest characters of a token.
    pub const MIN_LENGTH: usize = 32;
    /// The most characters of a token.
    pub const MAX_LENGTH: usize = 256;

    /// Makes a token of 64 random hexadecimal digits.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the system has no randomness.
    pub fn generate() -> Result<Self> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| {
            Error::unavailable(format!("the system gives no random bytes: {error}"))
        })?;
        Ok(Self(
            bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        ))
    }

    /// Takes a token that was made elsewhere.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it is too short, too long, or has other characters. The message does
    /// not show it.
    pub fn new(token: impl Into<String>) -> Result<Self> {
        let token = token.into();
        let length = Self::MIN_LENGTH..=Self::MAX_LENGTH;
        if !length.contains(&token.len()) || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::invalid_input(format!(
                "a token has {} to {} visible ASCII characters, and this one has other ones or {} bytes",
                length.start(),
                length.end(),
                token.len()
            )));
        }
        Ok(Self(token))
    }

    /// Returns the secret.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether these bytes are the token. The time depends only on their length.
    pub(super) fn is(&self, bytes: &[u8]) -> bool {
        let token = self.0.as_bytes();
        let pairs = token.iter().zip(bytes);
        let difference = pairs.fold(0, |difference, (a, b)| black_box(difference | (a ^ b)));
        token.len() == bytes.len() && difference == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}

#[cfg(test)]
mod tests {
    use backend_core::ErrorKind;

    use super::*;

    #[test]
    fn a_generated_token_is_valid_and_new_each_time() {
        let (one, two) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_eq!(one.as_str().len(), 64);
        assert!(
            Token::new(one.as_str())
                .unwrap()
                .is(one.as_str().as_bytes())
        );
        assert!(!one.is(two.as_str().as_bytes()));
        assert!(!format!("{one:?}").contains(one.as_str()));
    }

    #[test]
    fn weak_and_unprintable_tokens_are_refused_and_not_shown() {
        let long = "x".repeat(257);
        for wrong in [
            "",
            &"x".repeat(31),
            &long,
            &"é".repeat(40),
            &"a b".repeat(20),
        ] {
            let error = Token::new(wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(wrong.is_empty() || !error.to_string().contains(wrong));
        }
    }

    #[test]
    fn only_the_whole_token_is_the_token() {
        let token = Token::new("0123456789abcdef".repeat(2)).unwrap();
        let text = token.as_str().as_bytes();
        assert!(token.is(text));
        assert!(!token.is(&text[1..]));
        assert!(!token.is(&text[..31]));
        assert!(!token.is(b""));
        assert!(!token.is(&[text, b"\n"].concat()));
        for at in 0..text.len() {
            let mut other = text.to_vec();
            other[at] ^= 1;
            assert!(!token.is(&other));
        }
    }
}
