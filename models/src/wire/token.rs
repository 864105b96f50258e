//! One-time tokens: what a board shows once to be let in, and by which it knows the host.
use crate::id::Hash;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

const PREFIX: &str = "spectra1.";
/// Longest text that is looked at.
const MAX_TEXT: usize = 128;

/// A token. As text it is `spectra1.` and the base64url of its postcard form; its secret is kept nowhere on the host but hashed.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
pub struct Token {
    /// Random bytes that only the host and the holder know.
    pub secret: [u8; 16],
    /// SHA-256 of the `SubjectPublicKeyInfo` (DER) of the host's authority: the board's first contact is authenticated.
    pub authority: Hash,
    /// End of its life, in seconds since 1970.
    pub not_after: u64,
}

impl Token {
    /// What the host keeps of it.
    pub fn digest(&self) -> Hash {
        Hash::of(&self.secret)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token(until {}, secret withheld)", self.not_after)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = postcard::to_stdvec(self).map_err(|_| fmt::Error)?;
        write!(f, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// The text is not a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "this is not a Spectra token, which begins with `{PREFIX}`; make one on the host with `aggregator token DIR`"
)]
pub struct NotAToken;

impl FromStr for Token {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let body = text.trim().strip_prefix(PREFIX).filter(|b| b.len() <= MAX_TEXT).ok_or(NotAToken)?;
        let bytes = URL_SAFE_NO_PAD.decode(body).map_err(|_| NotAToken)?;
        match postcard::take_from_bytes(&bytes) {
            Ok((token, [])) => Ok(token),
            _ => Err(NotAToken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Token {
        Token { secret: *b"sixteen bytes...", authority: Hash::of(b"authority"), not_after: 1_800_000_000 }
    }

    #[test]
    fn a_token_survives_its_text_and_hides_its_secret() {
        let text = token().to_string();
        assert_eq!(format!(" {text}\n").parse(), Ok(token()));
        assert!(text.len() < MAX_TEXT && !format!("{:?}", token()).contains("115"));
    }

    #[test]
    fn text_cut_or_changed_anywhere_is_no_token() {
        let text = token().to_string();
        assert!((0..text.len()).all(|cut| text[..cut].parse::<Token>().is_err()));
        assert!(format!("{text}A").parse::<Token>().is_err());
        assert!("".parse::<Token>().is_err() && "spectra1.!!!!".parse::<Token>().is_err());
    }
}
