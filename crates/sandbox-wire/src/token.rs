//! [`Token`]: the secret that both ends of a connection know.

use std::fmt;
use std::hint::black_box;
use std::io;

use backend_core::{Error, Result};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Bytes of randomness in a generated token.
const RANDOM_BYTES: usize = 32;

/// The byte that tells the other side that its token is the right one.
const WELCOME: u8 = b'+';

/// The secret that a client of a listening agent must know, or an agent that connects to its
/// host.
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

    /// Reads a token and the end of its line, and not one byte more.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it is not a token; `Unavailable` if the stream ends.
    pub async fn read_line(reader: &mut (impl AsyncRead + Unpin)) -> Result<Self> {
        let mut line = Vec::new();
        loop {
            let byte = reader.read_u8().await.map_err(|error| {
                Error::unavailable("the stream ended before the token").with_source(error)
            })?;
            if byte == b'\n' || line.len() > Self::MAX_LENGTH {
                // Other bytes are refused, and so are their replacements.
                return Self::new(String::from_utf8_lossy(&line));
            }
            line.push(byte);
        }
    }

    /// Shows the token to the other side of a new connection, and waits until that calls
    /// [`admit`](Self::admit) with the same one.
    ///
    /// # Errors
    ///
    /// Any of the connection; the other side ends it if it wants another token.
    pub async fn present(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    ) -> io::Result<()> {
        stream.write_all(self.0.as_bytes()).await?;
        stream.flush().await?;
        match stream.read_u8().await? {
            WELCOME => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Waits for the token from the other side of a new connection, as
    /// [`present`](Self::present) shows it. No more is read than the token has bytes.
    ///
    /// # Errors
    ///
    /// `PermissionDenied` if the other side shows another one; any of the connection.
    pub async fn admit(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let mut shown = vec![0; self.0.len()];
        stream.read_exact(&mut shown).await?;
        if !self.is(&shown) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        stream.write_all(&[WELCOME]).await?;
        stream.flush().await
    }

    /// Whether these bytes are the token. The time depends only on their length.
    pub(crate) fn is(&self, bytes: &[u8]) -> bool {
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

    #[tokio::test]
    async fn a_line_is_read_and_nothing_behind_it() {
        let token = Token::generate().unwrap();
        let text = format!("{}\nmore", token.as_str());
        let mut stream = text.as_bytes();
        let read = Token::read_line(&mut stream).await.unwrap();
        assert_eq!(read.as_str(), token.as_str());
        assert_eq!(stream, b"more");
        let endless = [b'x'; 1000];
        let mut stream = &endless[..];
        let error = Token::read_line(&mut stream).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(stream.len() >= 1000 - Token::MAX_LENGTH - 2);
        let mut half = token.as_str().as_bytes();
        let error = Token::read_line(&mut half).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }

    #[tokio::test]
    async fn only_who_shows_the_token_is_admitted() {
        let token = Token::generate().unwrap();
        let (mut here, mut there) = tokio::io::duplex(1024);
        let both = tokio::join!(token.admit(&mut here), token.present(&mut there));
        both.0.unwrap();
        both.1.unwrap();

        let other = Token::generate().unwrap();
        let (mut here, mut there) = tokio::io::duplex(1024);
        let refuse = async {
            let refused = token.admit(&mut here).await;
            drop(here);
            refused.unwrap_err()
        };
        let (refused, shown) = tokio::join!(refuse, other.present(&mut there));
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(shown.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
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
