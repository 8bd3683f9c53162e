//! TLS: a server's certificate is believed for a reason, and a message says what to change where it is not.

use std::net::TcpListener;
use std::time::Duration;

use flexiq::{Error, Queue};
use flexiq_tests::redis_server::Server;
use flexiq_tests::soon;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use tempfile::TempDir;

use crate::stage::{Runs, enqueue_brief, worker};

/// A CA, and what it has signed, as files in a folder.
struct Authority {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, format!("authority {}", flexiq::JobId::new()));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a CA");
        let folder = tempfile::tempdir().expect("a folder for the test");
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("written");
        Self { folder, issuer }
    }

    fn ca(&self) -> String {
        self.path("ca.pem")
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Signs a certificate for these names, and leaves it and its key as `name.pem` and `name.key`.
    fn sign(&self, name: &str, hosts: &[&str], last_year: Option<i32>) {
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(hosts).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        if let Some(year) = last_year {
            params.not_after = date_time_ymd(year, 1, 1);
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        std::fs::write(self.folder.path().join(format!("{name}.pem")), certificate.pem()).expect("written");
        std::fs::write(self.folder.path().join(format!("{name}.key")), key.serialize_pem()).expect("written");
    }

    /// A server with the certificate of this name.
    fn server(&self, name: &str, clients: &str) -> Encrypted {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let server = Server::with(&[
            "--requirepass",
            "secret",
            "--tls-port",
            &port.to_string(),
            "--tls-cert-file",
            &self.path(&format!("{name}.pem")),
            "--tls-key-file",
            &self.path(&format!("{name}.key")),
            "--tls-ca-cert-file",
            &self.ca(),
            "--tls-auth-clients",
            clients,
        ]);
        Encrypted { server, port }
    }
}

struct Encrypted {
    server: Server,
    port: u16,
}

impl Encrypted {
    fn url(&self, host: &str, settings: &str) -> String {
        format!("rediss://:secret@{host}:{}?{settings}", self.port)
    }
}

/// What opening this URL says.
async fn refusal(url: String) -> String {
    let error = Queue::open(url).await.expect_err("it is refused");
    assert!(matches!(error, Error::StoreRefused { .. }), "{error:?}");
    assert!(!format!("{error:?} {error}").contains("secret"), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn jobs_values_and_bells_go_over_tls_with_a_private_ca() {
    let authority = Authority::new();
    authority.sign("server", &["localhost", "127.0.0.1"], None);
    let server = authority.server("server", "no");
    let ca = format!("ca={}", authority.ca());
    let one = Queue::open(server.url("localhost", &ca)).await.expect("the store opens");
    let other = Queue::open(server.url("127.0.0.1", &ca)).await.expect("the store opens");
    let worker = worker(&one, &Runs::default()).await;
    for _ in 0..3 {
        let job = enqueue_brief(&other, 0).await.expect("stored");
        soon("the job ends", job.result()).await.expect("it succeeds");
    }
    worker.shutdown().await.expect("it stops");
}

#[tokio::test]
async fn a_certificate_that_is_not_believed_is_told_with_what_to_change() {
    let authority = Authority::new();
    authority.sign("server", &["localhost", "redis.example"], None);
    authority.sign("old", &["localhost"], Some(2020));
    let ca = format!("ca={}", authority.ca());
    let server = authority.server("server", "no");

    let error = refusal(server.url("localhost", "")).await;
    assert!(error.contains("name the CA by ?ca=/path/ca.pem"), "{error}");
    let error = refusal(server.url("127.0.0.1", &ca)).await;
    assert!(error.contains("for another host") && error.contains("redis.example"), "{error}");

    let expired = authority.server("old", "no");
    let error = refusal(expired.url("localhost", &ca)).await;
    assert!(error.contains("has expired"), "{error}");
}

#[tokio::test]
async fn a_port_that_is_not_for_tls_is_asked_about() {
    let authority = Authority::new();
    let server = Server::start();
    let url = format!("rediss://:secret@localhost:{}?ca={}", server.port(), authority.ca());
    let error = Queue::builder(url).timeout(Duration::from_secs(1)).open().await.expect_err("it is refused");
    assert!(error.to_string().contains("is this its port for TLS?"), "{error}");
}

#[tokio::test]
async fn a_server_that_wants_to_see_a_certificate_is_shown_the_newest() {
    let authority = Authority::new();
    for name in ["server", "client"] {
        authority.sign(name, &["localhost"], None);
    }
    let server = authority.server("server", "yes");
    let ca = format!("ca={}", authority.ca());
    let error = refusal(server.url("localhost", &ca)).await;
    assert!(error.contains("add cert=/path/cert.pem&key=/path/key.pem"), "{error}");

    let own = format!("{ca}&cert={}&key={}", authority.path("client.pem"), authority.path("client.key"));
    let queue = Queue::open(server.url("localhost", &own)).await.expect("the store opens");
    enqueue_brief(&queue, 0).await.expect("stored");

    // A certificate that expires and is renewed on the disk needs no new program.
    let kept = Authority::new();
    kept.sign("client", &["localhost"], None);
    std::fs::copy(kept.path("client.pem"), authority.path("client.pem")).expect("copied");
    std::fs::copy(kept.path("client.key"), authority.path("client.key")).expect("copied");
    server.server.tell("AUTH secret\r\nCLIENT KILL TYPE pubsub");
    let error = enqueue_brief(&queue, 0).await.expect_err("the server does not know this CA");
    assert!(error.to_string().contains("does not accept the certificate of cert="), "{error}");
    authority.sign("client", &["localhost"], None);
    enqueue_brief(&queue, 0).await.expect("stored over a new connection");
}
