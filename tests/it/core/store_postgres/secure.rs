//! Connections over TLS: certificates, names and passwords. Against real servers.

use std::sync::{Arc, Mutex};

use provost::base::Secret;
use provost::store::{Database, Head, Password, Store};
use tempfile::TempDir;

use super::{batch, folder, opened, sentence, started};
use crate::support::World;
use crate::support::postgres::Server;
use crate::support::storm::Storm;
use crate::support::waits::until_some;

/// A server that takes connections over TLS from a role with the password `right`, and the file with the authority of its certificate.
fn secure_server(dir: &TempDir) -> (Server, std::path::PathBuf) {
    let authority = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = params.self_signed(&authority).expect("an authority");
    let issuer = rcgen::Issuer::new(params, authority);
    let key = rcgen::KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned()];
    let certificate = rcgen::CertificateParams::new(names)
        .expect("parameters")
        .signed_by(&key, &issuer)
        .expect("a certificate");
    let server = Server::start_secure(&certificate.pem(), &key.serialize_pem());
    server.sql("postgres", "create role laptop login superuser password 'right'");
    let path = dir.path().join("ca.pem");
    std::fs::write(&path, ca.pem()).expect("a file");
    (server, path)
}

#[test]
fn a_new_password_counts_for_the_next_connection() {
    let dir = folder();
    let (server, path) = secure_server(&dir);
    let database = server.secure(&server.database(), "localhost", "laptop", "right", &path);
    let kept = Arc::new(Mutex::new(Some("right")));
    let reads = kept.clone();
    let password = Password::by(move || {
        let read = reads.lock().unwrap().ok_or("the vault cannot be opened")?;
        Ok(Secret::new(read.into()))
    });
    let database = Database { password: Some(password), ..database };
    let (mut store, loaded) = started(&dir.path().join("state"), &database);
    let mut storm = Storm::new(15, loaded.state);
    store.commit(&batch(&mut storm)).expect("a commit");

    let ends = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'laptop'";
    server.sql("postgres", "alter role laptop password 'another'");
    server.sql("postgres", ends);
    let refused =
        |store: &mut dyn Store| store.begin(Head::default()).expect_err("no connection").to_string();
    until_some("it is told that the password is wrong", || {
        refused(store.as_mut()).contains("[store] password").then_some(())
    });
    *kept.lock().unwrap() = None;
    until_some("and why it cannot be read", || {
        refused(store.as_mut()).contains("the vault cannot be opened").then_some(())
    });
    *kept.lock().unwrap() = Some("another");
    until_some("it is connected", || store.begin(Head::default()).is_ok().then_some(()));
}

/// Stores the password of the database for the daemon; returns what the command says.
fn stores_password(world: &World, password: &str) -> String {
    let file = world.path("password");
    std::fs::write(&file, password).expect("a file");
    let mut command = world.command(&["secret", "add", "pg", "--daemon"]);
    let out =
        command.stdin(std::fs::File::open(&file).expect("the file")).output().expect("the command runs");
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    assert!(out.status.success(), "{said}");
    said
}

#[test]
fn a_new_password_is_stored_while_the_server_refuses_the_old_one() {
    let dir = folder();
    let (server, path) = secure_server(&dir);
    let database = server.secure(&server.database(), "localhost", "laptop", "right", &path);
    let world = World::new();
    world.configure(&format!(
        "store.url = {:?}\nstore.name = \"shop\"\nstore.ca = {path:?}\nstore.password = \"pg\"\n",
        database.url
    ));
    assert!(stores_password(&world, "right").contains("at its next connection to the database"));
    let daemon = world.start();
    let locks = |n: u32| {
        let mut command = world.by("ada", &["lock", "acquire", &format!("@thing:{n}")]);
        command.env("DEVIT_NO_AUTO_START", "1").output().expect("a command").status.success()
    };
    assert!(locks(1));
    server.sql("postgres", "alter role laptop password 'another'");
    server.sql("postgres", "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'laptop'");
    until_some("no write is taken", || (!locks(2)).then_some(()));
    let removed = world.command(&["secret", "remove", "pg"]).output().expect("the command runs");
    assert!(removed.status.success(), "{removed:?}");
    let said = stores_password(&world, "another");
    assert!(said.contains("at its next connection") && !said.contains("reload"), "{said}");
    until_some("writes go on", || locks(3).then_some(()));
    daemon.stop();
}

#[test]
fn a_server_with_another_certificate_or_name_gets_nothing() {
    let dir = folder();
    let (server, path) = secure_server(&dir);
    let database = server.database();
    let good = server.secure(&database, "localhost", "laptop", "right", &path);
    let (mut store, loaded) = started(&dir.path().join("state"), &good);
    store.commit(&batch(&mut Storm::new(14, loaded.state))).expect("a commit over TLS");
    let spoken = "select version || ' ' || count(*) from pg_stat_ssl join pg_stat_activity using (pid)
                  where ssl and application_name like 'provost/%' group by version";
    assert_eq!(server.sql("postgres", spoken), "TLSv1.3 1");
    drop(store);

    let says = sentence(opened(
        &dir.path().join("a"),
        &server.secure(&database, "localhost", "laptop", "wrong", &path),
    ));
    assert!(says.contains("28P01") && says.contains("[store] password"), "{says}");
    // By its number, which is not in its certificate.
    let says = sentence(opened(
        &dir.path().join("b"),
        &server.secure(&database, "127.0.0.1", "laptop", "right", &path),
    ));
    assert!(says.contains("certificate") && says.contains("[store] ca"), "{says}");
    // By another authority, and by the public ones.
    let authority = std::fs::read(&path).expect("the authority");
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("another one");
    std::fs::write(&path, other.cert.pem()).expect("a file");
    let says = sentence(opened(
        &dir.path().join("c"),
        &server.secure(&database, "localhost", "laptop", "right", &path),
    ));
    assert!(says.contains("certificate"), "{says}");
    let public = Database { ca: None, ..good };
    assert!(sentence(opened(&dir.path().join("d"), &public)).contains("certificate"));
    // A server that wants no password could be any: the binding is demanded.
    std::fs::write(server_rules(&server), "local all all trust\nhostssl all all all trust\n").expect("rules");
    server.sql("postgres", "select pg_reload_conf()");
    std::fs::write(&path, authority).expect("a file");
    let trusting = server.secure(&database, "localhost", "laptop", "right", &path);
    let says = until_some("the server trusts everybody", || {
        let says = opened(&dir.path().join("e"), &trusting).map(drop).err()?.to_string();
        says.contains("channel binding").then_some(says)
    });
    assert!(says.contains("scram-sha-256"), "{says}");
}

fn server_rules(server: &Server) -> std::path::PathBuf {
    server.dir().join("data/pg_hba.conf")
}
