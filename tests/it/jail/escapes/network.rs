//! Attempts over the network and over what processes of one host share.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::calls::{address, c, call, signed, text};
use super::files::read;
use super::intruder::{Attempt, Facts, Outcome, Own, by, leak, open, shut};

const STREAM: i32 = libc::SOCK_STREAM;
const DGRAM: i32 = libc::SOCK_DGRAM;
const RAW: i32 = libc::SOCK_RAW;
const IN: i32 = libc::AF_INET;

/// In the order in which they are tried.
pub(super) const ATTEMPTS: &[Attempt] = &[
    ("net.tcp_connect_daemon", |f, _| connect(IN, STREAM, 0, f.tcp)),
    ("net.mptcp_connect", |f, _| connect(IN, STREAM, 262, f.tcp)),
    ("net.sctp", |f, _| connect(IN, STREAM, 132, f.tcp)),
    ("net.dccp", |f, _| connect(IN, 6, 33, f.tcp)),
    ("net.tcp_fastopen", |f, _| {
        let sent = send(IN, STREAM, f.tcp, libc::MSG_FASTOPEN);
        match sent {
            // On its way: the connection is being made.
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => open("sent"),
            sent => by(sent, "sent"),
        }
    }),
    ("net.io_uring", |_, _| {
        let mut parameters = [0_u8; 120];
        by(call(libc::SYS_io_uring_setup, [4, address(&mut parameters)]), "a ring")
    }),
    ("net.tcp6_connect", |f, _| connect(libc::AF_INET6, STREAM, 0, f.tcp6)),
    ("net.tcp_bind", |f, _| on_the_hosts_network(f, bind())),
    ("net.tcp_listen_autobind", |f, _| {
        let listening = socket(IN, STREAM, 0).and_then(|socket| call(libc::SYS_listen, [socket, 1]));
        on_the_hosts_network(f, listening)
    }),
    ("net.udp_send", |f, _| on_the_hosts_network(f, send(IN, DGRAM, f.udp, 0))),
    ("net.route_out", route_out),
    ("net.raw_icmp", |_, _| made(IN, RAW, 1)),
    ("net.packet", |_, _| made(libc::AF_PACKET, RAW, 0)),
    ("net.vsock", |_, _| made(libc::AF_VSOCK, STREAM, 0)),
    ("net.alg", |_, _| made(libc::AF_ALG, libc::SOCK_SEQPACKET, 0)),
    ("net.bluetooth", |_, _| made(31, RAW, 1)),
    ("net.netlink_audit", |_, _| made(libc::AF_NETLINK, RAW, 9)),
    ("net.netlink_uevent", |_, _| made(libc::AF_NETLINK, RAW, 15)),
    ("net.netlink_sockdiag", |_, _| made(libc::AF_NETLINK, RAW, 4)),
    ("net.key", |_, _| made(15, RAW, 2)),
    ("net.rds", |_, _| made(21, libc::SOCK_SEQPACKET, 0)),
    ("net.can", |_, _| made(29, RAW, 1)),
    ("net.xdp", |_, _| made(44, RAW, 0)),
    ("ipc.daemon_socket", |f, _| knock(STREAM, path_name(&f.stream))),
    ("ipc.daemon_dgram", |f, _| knock(DGRAM, path_name(&f.datagram))),
    ("ipc.daemon_socket_via_link", |f, _| {
        let link = f.workspace.join("socket");
        let _there = symlink(&f.stream, &link);
        knock(STREAM, path_name(&link))
    }),
    ("ipc.workspace_socket", |f, _| knock(STREAM, path_name(&f.workspace.join("host.sock")))),
    ("ipc.workspace_datagram", |f, _| knock(DGRAM, path_name(&f.workspace.join("host.dgram")))),
    ("ipc.toolchain_socket", |f, _| knock(STREAM, path_name(&f.toolchain.join("host.sock")))),
    ("ipc.abstract_socket", |f, _| knock(STREAM, [b"\0", f.abstract_name.as_bytes()].concat())),
    ("ipc.dbus_system", |_, _| knock(STREAM, path_name(Path::new("/run/dbus/system_bus_socket")))),
    ("ipc.docker", |_, _| knock(STREAM, path_name(Path::new("/var/run/docker.sock")))),
    ("ipc.sysv_shm", |f, _| {
        let found = call(libc::SYS_shmget, [signed(f.memory_key), 0, 0]);
        by(found.and_then(attach), "attached")
    }),
    ("ipc.posix_mq", |f, _| {
        by(call(libc::SYS_mq_open, [text(&c(&f.queue)), libc::O_RDONLY as usize, 0, 0]), "opened")
    }),
    ("ipc.dev_shm", |f, _| read(&f.shared, "SHMSECRET")),
    ("ipc.keyring", |_, _| by(call(libc::SYS_keyctl, [0, signed(-3), 0]), "the session's")),
    ("info.proc_net_unix", |f, _| match fs::read_to_string("/proc/net/unix") {
        Ok(list) if list.contains(&f.abstract_name) => leak("the daemon's sockets are listed"),
        Ok(_) => shut("the daemon's sockets are not listed"),
        Err(error) => shut(error),
    }),
    // Not in the table of the first suite.
    ("net.udp6_send", |f, _| on_the_hosts_network(f, send(libc::AF_INET6, DGRAM, f.udp, 0))),
    ("net.smc", |_, _| made(43, STREAM, 0)),
    ("net.tipc", |_, _| made(30, STREAM, 0)),
    ("net.netlink_generic", |_, _| made(libc::AF_NETLINK, RAW, 16)),
    ("net.netlink_connector", |_, _| made(libc::AF_NETLINK, RAW, 11)),
    ("ipc.sysv_msg", |f, _| by(call(libc::SYS_msgget, [signed(f.memory_key), 0]), "found")),
    ("ipc.sysv_sem", |f, _| by(call(libc::SYS_semget, [signed(f.memory_key), 0, 0]), "found")),
    ("ipc.key_add", |_, _| {
        let (kind, name, value) = (c("user"), c("provost-intruder"), c("x"));
        // Into the ring of this process alone, so that nothing stays behind.
        let process_ring = signed(-2);
        by(call(libc::SYS_add_key, [text(&kind), text(&name), text(&value), 1, process_ring]), "added")
    }),
];

fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<usize> {
    call(libc::SYS_socket, [family as usize, kind as usize, protocol as usize])
}

fn made(family: i32, kind: i32, protocol: i32) -> Outcome {
    by(socket(family, kind, protocol), "made")
}

/// An address of this host, as the kernel wants it.
fn loopback(family: i32, port: u16) -> Vec<u8> {
    let mut address = (family as u16).to_ne_bytes().to_vec();
    address.extend(port.to_be_bytes());
    if family == libc::AF_INET6 {
        address.extend([0; 4]);
        address.extend(std::net::Ipv6Addr::LOCALHOST.octets());
        address.extend([0; 4]);
    } else {
        address.extend([127, 0, 0, 1]);
        address.extend([0; 8]);
    }
    address
}

fn connect(family: i32, kind: i32, protocol: i32, port: u16) -> Outcome {
    let mut to = loopback(family, port);
    let connected = socket(family, kind, protocol)
        .and_then(|socket| call(libc::SYS_connect, [socket, address(&mut to[..]), to.len()]));
    by(connected, "connected")
}

fn send(family: i32, kind: i32, port: u16, flags: i32) -> io::Result<usize> {
    let (mut to, mut word) = (loopback(family, port), *b"exfil");
    let len = word.len();
    let (to, to_len) = (address(&mut to[..]), to.len());
    socket(family, kind, 0).and_then(|socket| {
        call(libc::SYS_sendto, [socket, address(&mut word), len, flags as usize, to, to_len])
    })
}

fn bind() -> io::Result<usize> {
    let mut to = loopback(IN, 0);
    socket(IN, STREAM, 0).and_then(|socket| call(libc::SYS_bind, [socket, address(&mut to[..]), to.len()]))
}

/// Returns the outcome of an attempt on the network: a network that has only this worker is no way out.
fn on_the_hosts_network<T>(f: &Facts, result: io::Result<T>) -> Outcome {
    let ours = fs::read_link("/proc/self/ns/net").map(|link| link.to_string_lossy() == f.network);
    match (result, ours) {
        (Ok(_), Ok(false)) => shut("on an empty network"),
        (result, _) => by(result, "on the host's network"),
    }
}

fn route_out(f: &Facts, _: &Own) -> Outcome {
    let mut to = loopback(IN, 53);
    // Reserved for documentation: nobody is there, and nothing is sent.
    to[4..8].copy_from_slice(&[192, 0, 2, 1]);
    let found = socket(IN, DGRAM, 0)
        .and_then(|socket| call(libc::SYS_connect, [socket, address(&mut to[..]), to.len()]));
    on_the_hosts_network(f, found)
}

fn path_name(path: &Path) -> Vec<u8> {
    c(path).into_bytes_with_nul()
}

fn knock(kind: i32, name: Vec<u8>) -> Outcome {
    let mut to = [(libc::AF_UNIX as u16).to_ne_bytes().to_vec(), name].concat();
    let connected = socket(libc::AF_UNIX, kind, 0)
        .and_then(|socket| call(libc::SYS_connect, [socket, address(&mut to[..]), to.len()]));
    by(connected, "connected")
}

fn attach(memory: usize) -> io::Result<usize> {
    call(libc::SYS_shmat, [memory, 0, libc::SHM_RDONLY as usize])
}
