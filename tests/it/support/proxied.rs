//! The page as a proxy brings it to browsers elsewhere: raw requests at the proxy's socket, and a real proxy with TLS in front of it.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PublicKeyData as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::authenticator::{Authenticator, Kind};
use super::loopback_client::Answer;
use super::passkeys::{assertion, enrol, rules_by};
use super::{Daemon, World, eventually};

/// The name under which browsers elsewhere have the page.
pub(crate) const HOST: &str = "phone.example.test";

/// A page that browsers elsewhere have.
pub(crate) struct Elsewhere {
    pub(crate) world: World,
    pub(crate) daemon: Option<Daemon>,
    pub(crate) socket: PathBuf,
    /// The host, with its port where that is not 443.
    pub(crate) authority: String,
}

/// The number of this user.
pub(crate) fn uid() -> u32 {
    std::fs::metadata("/proc/self").unwrap().uid()
}

/// The settings of a page at this authority.
pub(crate) fn settings(authority: &str, socket: &Path, uids: &str) -> String {
    format!(
        "[web]\nenabled = true\npublic = [\"https://{authority}\"]\nsocket = {:?}\nproxy_uids = [{uids}]\n",
        socket.to_str().unwrap()
    )
}

impl Elsewhere {
    /// At the usual port, where only a passkey answers.
    pub(crate) fn new() -> Self {
        Self::at(HOST)
    }

    /// At this authority.
    pub(crate) fn at(authority: &str) -> Self {
        let world = World::new();
        let folder = world.path("proxy");
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o750)).unwrap();
        let socket = folder.join("web.sock");
        world.configure(&settings(authority, &socket, &uid().to_string()));
        world.rule(&rules_by("\"passkey\""));
        let daemon = Some(world.start());
        eventually("the socket", || socket.exists());
        Self { world, daemon, socket, authority: authority.to_owned() }
    }

    pub(crate) fn origin(&self) -> String {
        format!("https://{}", self.authority)
    }

    /// Ends the daemon in order, and starts another one.
    pub(crate) fn restart(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.stop();
        }
        self.daemon = Some(self.world.start());
        eventually("the socket", || self.socket.exists());
    }

    /// A request with these headers and no others but the length of its body.
    pub(crate) fn bare(&self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut connection = self.connect();
        connection.write_all(&bytes(line, headers, body)).unwrap();
        Answer::read(&mut connection, line.starts_with("HEAD")).unwrap()
    }

    pub(crate) fn connect(&self) -> UnixStream {
        let connection = UnixStream::connect(&self.socket).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        connection
    }

    /// A look with a cookie, as a browser at the page sends it.
    pub(crate) fn get(&self, path: &str, cookie: &str) -> Answer {
        let cookie = format!("__Host-provost={cookie}");
        self.bare(&format!("GET {path}"), &[("Host", &self.authority), ("Cookie", &cookie)], b"")
    }

    /// Sends a request as the page does, with a cookie.
    pub(crate) fn post(&self, path: &str, cookie: &str, body: &Value) -> Answer {
        let (origin, cookie) = (self.origin(), format!("__Host-provost={cookie}"));
        let headers = [
            ("Host", self.authority.as_str()),
            ("Origin", &origin),
            ("Content-Type", "application/json"),
            ("Cookie", &cookie),
        ];
        self.bare(&format!("POST {path}"), &headers, body.to_string().as_bytes())
    }

    /// A key whose browser is at the page, not enrolled.
    pub(crate) fn key(&self) -> Authenticator {
        let mut key = Authenticator::new(Kind::Es256);
        (key.origin, key.rp_id) = (self.origin(), HOST.to_owned());
        key
    }

    /// The same, enrolled as the first one.
    pub(crate) fn enrolled(&self) -> Authenticator {
        let mut key = self.key();
        let (status, said) = enrol(&self.world, &mut key, "phone", None);
        assert_eq!(status, 200, "{said}");
        key
    }

    /// Signs in; what the daemon has answered.
    pub(crate) fn try_to_sign_in(&self, key: &mut Authenticator) -> Answer {
        let begun = self.post("/begin-session", "", &json!({}));
        assert_eq!(begun.status, 200, "{begun:?}");
        let challenge = &begun.json()["challenge"];
        let signed = json!({ "nonce": challenge["nonce"], "assertion": assertion(key, challenge) });
        self.post("/open-session", "", &signed)
    }

    /// Signs in; the value of the cookie.
    pub(crate) fn sign_in(&self, key: &mut Authenticator) -> String {
        let opened = self.try_to_sign_in(key);
        assert_eq!(opened.status, 200, "{opened:?}");
        cookie_of(&opened)
    }
}

/// The value of the cookie that an answer sets.
pub(crate) fn cookie_of(answer: &Answer) -> String {
    let set = answer.header("set-cookie").unwrap_or_else(|| panic!("{answer:?}"));
    set.strip_prefix("__Host-provost=").unwrap().split(';').next().unwrap().to_owned()
}

fn bytes(line: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{line} HTTP/1.1\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() || !line.starts_with("GET") {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

/// A proxy with a certificate of an authority of its own, which hands all bytes on.
pub(crate) struct TlsProxy {
    listener: std::net::TcpListener,
    pub(crate) port: u16,
}

impl TlsProxy {
    /// Takes a port, so that a daemon can be told of it before the proxy runs.
    pub(crate) fn bind() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        Self { listener, port }
    }

    /// Brings browsers to the socket. The digest of the certificate's key, by which a browser believes it.
    pub(crate) fn serve(self, socket: PathBuf) -> String {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf =
            CertificateParams::new(vec![HOST.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
        let spki = Sha256::digest(key.subject_public_key_info());
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(self.listener).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let (acceptor, socket) = (acceptor.clone(), socket.clone());
                    tokio::spawn(async move {
                        let Ok(mut browser) = acceptor.accept(stream).await else { return };
                        let Ok(mut daemon) = tokio::net::UnixStream::connect(&socket).await else { return };
                        let _ended = tokio::io::copy_bidirectional(&mut browser, &mut daemon).await;
                    });
                }
            });
        });
        base64::engine::general_purpose::STANDARD.encode(spki)
    }
}
