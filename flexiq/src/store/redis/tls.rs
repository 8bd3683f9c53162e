//! TLS: whose certificate is believed, which is shown, and what it means when the two sides do not agree.

use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Once};

use redis::{ClientTlsConfig, RedisError, TlsCertificates};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError, InvalidMessage};

use super::options::Certificates;

/// Reads the files that the URL names. The system's certificates hold where it names no CA.
pub(super) fn read(files: &Certificates) -> Result<TlsCertificates, String> {
    let root_cert = files.ca.as_deref().map(|path| read_certificates("ca", path)).transpose()?;
    let client_tls = match &files.own {
        Some((cert, key)) => Some(ClientTlsConfig {
            client_cert: read_certificates("cert", cert)?,
            client_key: read_key(key)?,
        }),
        None => None,
    };
    Ok(TlsCertificates { client_tls, root_cert })
}

fn read_certificates(setting: &str, path: &Path) -> Result<Vec<u8>, String> {
    let pem = read_file(setting, path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(pem),
        _ => Err(format!("{setting}={} holds no certificate in PEM form", path.display())),
    }
}

fn read_key(path: &Path) -> Result<Vec<u8>, String> {
    let pem = read_file("key", path)?;
    match PrivateKeyDer::from_pem_slice(&pem) {
        Ok(_) => Ok(pem),
        Err(_) => Err(format!("key={} holds no private key in PEM form", path.display())),
    }
}

fn read_file(setting: &str, path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{setting}={} cannot be read: {error}", path.display()))
}

/// Settles what encrypts in this process, unless the program has: rustls refuses to guess where another crate brings a
/// second implementation.
pub(super) fn choose_crypto() {
    static CHOSEN: Once = Once::new();
    CHOSEN.call_once(|| {
        if CryptoProvider::get_default().is_none() {
            // Another thread may have been faster, which is as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
    });
}

/// What to change if the two sides did not agree; nothing if the error is of another kind.
pub(super) fn explain(error: &RedisError) -> Option<String> {
    // The driver shares what it wraps.
    let shared = error.source()?.downcast_ref::<Arc<dyn Error + Send + Sync>>()?;
    let reason = match shared.downcast_ref::<std::io::Error>()?.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(error) => return Some(of_certificate(error)),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "it does not speak TLS on this port: write redis://, or name its port for TLS".into()
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "it wants a certificate of its clients: add cert=/path/cert.pem&key=/path/key.pem to the URL"
                .into()
        }
        rustls::Error::AlertReceived(
            alert @ (AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired),
        ) => format!("it does not accept the certificate of cert=: {alert:?}"),
        rustls::Error::AlertReceived(alert) => format!("it ends the TLS handshake: {alert:?}"),
        other => format!("TLS fails: {other}"),
    };
    Some(reason)
}

fn of_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => {
            "its certificate is of a CA that is not known here: name the CA by ?ca=/path/ca.pem".into()
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            format!("its certificate is for another host: write one of {}", presented.join(", "))
        }
        CertificateError::NotValidForName => "its certificate is for another host".into(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired: renew it, or set the clock of this host".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate does not hold yet: wait, or set the clock of this host".into()
        }
        other => format!("its certificate is not accepted: {other}"),
    }
}
