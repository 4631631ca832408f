//! Channel binding: what ties a login to the certificate that the server showed.

use sha2::{Digest, Sha256, Sha384, Sha512};

/// The start of the names of RSA's signatures (1.2.840.113549.1.1) and ECDSA's (1.2.840.10045.4).
const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const ECDSA: [u8; 6] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
/// The start of the names of the SHA-2 hashes (2.16.840.1.101.3.4.2).
const SHA_2: [u8; 8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];

enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

/// The certificate's hash as RFC 5929 wants it (`tls-server-end-point`): by the hash of its own
/// signature, but SHA-256 where that is weak. None for signatures that have no hash of their own.
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    Some(match hash_of(certificate)? {
        Hash::Sha256 => Sha256::digest(certificate).to_vec(),
        Hash::Sha384 => Sha384::digest(certificate).to_vec(),
        Hash::Sha512 => Sha512::digest(certificate).to_vec(),
    })
}

/// A certificate is what is signed, the algorithm (a name and its parameters), and the signature.
fn hash_of(certificate: &[u8]) -> Option<Hash> {
    let (parts, _) = element(certificate)?;
    let (_signed, after) = element(parts)?;
    let (algorithm, _) = element(after)?;
    let (name, parameters) = element(algorithm)?;
    if let Some(rest) = name.strip_prefix(&RSA) {
        return match rest {
            [0x04 | 0x05 | 0x0b] => Some(Hash::Sha256),
            [0x0c] => Some(Hash::Sha384),
            [0x0d] => Some(Hash::Sha512),
            [0x0a] => Some(hash_named_in(parameters)),
            _ => None,
        };
    }
    match name.strip_prefix(&ECDSA)? {
        [0x01] | [0x03, 0x02] => Some(Hash::Sha256),
        [0x03, 0x03] => Some(Hash::Sha384),
        [0x03, 0x04] => Some(Hash::Sha512),
        _ => None,
    }
}

/// PSS names its hash first among its parameters, and means SHA-1 where it names none.
fn hash_named_in(parameters: &[u8]) -> Hash {
    let named = parameters.windows(SHA_2.len() + 1).find_map(|part| part.strip_prefix(&SHA_2));
    match named {
        Some([0x02]) => Hash::Sha384,
        Some([0x03]) => Hash::Sha512,
        _ => Hash::Sha256,
    }
}

/// The contents of the first element in DER, and what comes after it.
fn element(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = if *first < 0x80 {
        (usize::from(*first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(*first & 0x7f))?;
        // More digits than these no certificate needs.
        let digits = (digits.len() <= 4).then_some(digits)?;
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use rcgen::{
        CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
    };

    use super::end_point;

    #[test]
    fn the_hash_is_that_of_the_certificates_own_signature() {
        for (algorithm, length) in [
            (&PKCS_ECDSA_P256_SHA256, Some(32)),
            (&PKCS_ECDSA_P384_SHA384, Some(48)),
            (&PKCS_ED25519, None),
        ] {
            let key = KeyPair::generate_for(algorithm).unwrap();
            let certificate = CertificateParams::new([]).unwrap().self_signed(&key).unwrap();
            assert_eq!(end_point(certificate.der()).map(|hash| hash.len()), length);
        }
    }

    #[test]
    fn what_is_no_certificate_has_none() {
        for bytes in [&b""[..], b"0", b"0\x80", b"0\xff\xff\xff", b"0\x03\x30\x05\x00"] {
            assert_eq!(end_point(bytes), None);
        }
    }
}
