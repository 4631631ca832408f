//! Signatures by the Standard Webhooks scheme.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::config::Secret;

const PREFIX: &str = "whsec_";
/// What the scheme asks of a key.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Signs with every secret, so that a receiver may know the old one or the new one.
pub(super) struct Signer(Vec<Hmac<Sha256>>);

impl Signer {
    /// The position of the secret that is not one, and what is wrong with it.
    pub(super) fn new(secrets: &[Secret]) -> Result<Self, (usize, &'static str)> {
        let key =
            |(index, secret): (usize, &Secret)| key(secret).map_err(|problem| (index, problem));
        secrets.iter().enumerate().map(key).collect::<Result<_, _>>().map(Self)
    }

    /// The value of `webhook-signature`; nothing without secrets.
    pub(super) fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> Option<String> {
        let head = format!("{id}.{timestamp}.");
        let signatures: Vec<String> = self
            .0
            .iter()
            .map(|key| {
                let mac = key.clone().chain_update(head.as_bytes()).chain_update(body);
                format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
            })
            .collect();
        (!signatures.is_empty()).then(|| signatures.join(" "))
    }
}

fn key(secret: &Secret) -> Result<Hmac<Sha256>, &'static str> {
    let encoded = secret.expose().strip_prefix(PREFIX).ok_or("must start with whsec_")?;
    let key = STANDARD.decode(encoded).map_err(|_| "must be base64 behind whsec_")?;
    if !KEY_BYTES.contains(&key.len()) {
        return Err("must hold a key of 24 to 64 bytes");
    }
    Hmac::new_from_slice(&key).map_err(|_| "must hold a key of 24 to 64 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(secrets: &[&str]) -> Result<Signer, (usize, &'static str)> {
        Signer::new(&secrets.iter().map(|secret| Secret::new(*secret)).collect::<Vec<_>>())
    }

    /// The example of the scheme's own documentation.
    #[test]
    fn a_known_message_has_its_known_signature() {
        let signer = signer(&["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]).ok().unwrap();
        let signature =
            signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn without_secrets_nothing_is_signed() {
        assert_eq!(signer(&[]).ok().unwrap().sign("id", 1, b"{}"), None);
    }

    #[test]
    fn what_is_not_a_secret_is_found_by_its_position() {
        let good = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        for bad in ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_MfKQ", "whsec_not base64!"]
        {
            assert_eq!(signer(&[good, bad]).err().unwrap().0, 1, "{bad}");
        }
    }
}
