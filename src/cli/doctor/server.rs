//! The database server: its version, its settings, the connection to it, its clock.

use super::check::Check;
use crate::cli::output::age;
use crate::store::{OldTransaction, Protection, Server};

const OLDEST: i32 = 140_000;
/// The first that was not tested.
const UNTESTED: i32 = 190_000;

const MEND_TLS: &str =
    "add sslmode=verify-full and sslrootcert=/path/to/ca.pem (or system) to the connection string";
const MEND_CLOCK: &str = "timedatectl set-ntp true    (on this machine, and on the database's)";

/// How far two clocks may be apart in seconds. Signed requests are refused beyond some minutes.
const SKEW_TOLD: f64 = 1.0;
const SKEW_REFUSED: f64 = 30.0;

pub(super) fn tls(server: &Server, protection: &Protection) -> Check {
    let Protection { sslmode, verifies, local } = protection;
    let version = server.tls_version.as_deref().unwrap_or("TLS");
    let name = "database tls";
    match (server.encrypted, verifies) {
        (true, true) => {
            Check::ok(name, format!("{version}, certificate verified (sslmode={sslmode})"))
        }
        _ if *local => Check::ok(name, format!("this machine (sslmode={sslmode})")),
        (true, false) => Check::warn(
            name,
            format!("{version}, but nobody looks at the certificate (sslmode={sslmode})"),
            MEND_TLS,
        ),
        (false, _) => Check::warn(name, format!("not encrypted (sslmode={sslmode})"), MEND_TLS),
    }
}

pub(super) fn version(server: &Server) -> Check {
    let (name, found) = ("database version", format!("PostgreSQL {}", server.version));
    match server.version_number {
        ..OLDEST => Check::fail(name, found, "upgrade the server to PostgreSQL 14 or newer"),
        UNTESTED.. => Check::warn(
            name,
            format!("{found}: newer than 18, the newest that this trestle was tested with"),
            "look for a newer trestle",
        ),
        _ => Check::ok(name, found),
    }
}

pub(super) fn writable(server: &Server) -> Check {
    let name = "database writable";
    if server.in_recovery {
        let mend = "connect to the primary: name all hosts and add target_session_attrs=read-write";
        return Check::fail(name, "this server is a standby", mend);
    }
    if server.read_only {
        let mend = format!("ALTER ROLE {} SET default_transaction_read_only = off;", server.user);
        return Check::fail(name, "transactions are read-only by default", mend);
    }
    Check::ok(name, "yes")
}

/// A commit that is lost means a row that is sent twice.
pub(super) fn durable(server: &Server) -> Check {
    let name = "database durable";
    if !server.fsync {
        let mend = "ALTER SYSTEM SET fsync = on;  then restart the server";
        return Check::warn(name, "fsync is off: a crash of the machine loses rows", mend);
    }
    if server.synchronous_commit == "off" {
        let mend = format!("ALTER ROLE {} SET synchronous_commit = on;", server.user);
        let found = "synchronous_commit is off: a crash sends rows again";
        return Check::warn(name, found, mend);
    }
    Check::ok(name, format!("fsync on, synchronous_commit {}", server.synchronous_commit))
}

pub(super) fn connections(server: &Server) -> Check {
    let Server { connections, max_connections, .. } = server;
    let (name, found) = ("database connections", format!("{connections} of {max_connections}"));
    if connections * 10 >= max_connections * 9 {
        let mend = "ALTER SYSTEM SET max_connections = …;  then restart, or put a pooler in front";
        return Check::warn(name, format!("{found}: a bridge needs eight"), mend);
    }
    Check::ok(name, found)
}

pub(super) fn clock(ahead_seconds: f64) -> Check {
    let name = "database clock";
    let way = if ahead_seconds < 0.0 { "behind" } else { "ahead of" };
    let found = format!("{:.1} s {way} this machine's", ahead_seconds.abs());
    match ahead_seconds.abs() {
        skew if skew > SKEW_REFUSED => Check::fail(name, found, MEND_CLOCK),
        skew if skew > SKEW_TOLD => Check::warn(name, found, MEND_CLOCK),
        _ => Check::ok(name, "agrees with this machine's"),
    }
}

pub(super) fn transactions(server: &Server, old: &[OldTransaction]) -> Check {
    let name = "database transactions";
    let Some(oldest) = old.first() else {
        let none = "none that this user may see is old (pg_read_all_stats shows all)";
        return Check::ok(name, if server.sees_others { "none is old" } else { none });
    };
    let OldTransaction { what, age_seconds, remedy } = oldest;
    let found = format!(
        "{what} has been open for {}: dead rows and old partitions are kept for it",
        age(*age_seconds)
    );
    Check::warn(name, found, remedy)
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    fn server() -> Server {
        Server {
            version_number: 150_018,
            version: "15.18".to_owned(),
            user: "bridge".to_owned(),
            database: "pay".to_owned(),
            encrypted: true,
            tls_version: Some("TLSv1.3".to_owned()),
            in_recovery: false,
            read_only: false,
            fsync: true,
            synchronous_commit: "on".to_owned(),
            connections: 10,
            max_connections: 100,
            sees_others: true,
        }
    }

    #[test]
    fn a_healthy_server_has_nothing_to_mend() {
        let server = server();
        for check in [version(&server), writable(&server), durable(&server), connections(&server)] {
            assert_eq!((check.verdict, &check.mend), (Verdict::Ok, &None), "{check:?}");
        }
        assert_eq!(clock(-0.2).verdict, Verdict::Ok);
        assert_eq!(transactions(&server, &[]).verdict, Verdict::Ok);
    }

    #[test]
    fn encryption_counts_as_much_as_whom_it_is_with() {
        let judged = |encrypted, verifies, local| {
            let server = Server { encrypted, ..server() };
            tls(&server, &Protection { sslmode: "x", verifies, local }).verdict
        };
        assert_eq!(judged(true, true, false), Verdict::Ok);
        assert_eq!(judged(true, false, false), Verdict::Warn);
        assert_eq!(judged(false, false, false), Verdict::Warn);
        assert_eq!(judged(false, false, true), Verdict::Ok, "on this machine nobody listens");
    }

    #[test]
    fn versions_standbys_and_lost_commits_are_told() {
        assert_eq!(version(&Server { version_number: 130_099, ..server() }).verdict, Verdict::Fail);
        assert_eq!(version(&Server { version_number: 190_000, ..server() }).verdict, Verdict::Warn);
        assert_eq!(writable(&Server { in_recovery: true, ..server() }).verdict, Verdict::Fail);
        assert_eq!(writable(&Server { read_only: true, ..server() }).verdict, Verdict::Fail);
        let off = Server { synchronous_commit: "off".to_owned(), ..server() };
        assert_eq!(durable(&off).verdict, Verdict::Warn);
        assert_eq!(durable(&Server { fsync: false, ..server() }).verdict, Verdict::Warn);
        assert_eq!(connections(&Server { connections: 90, ..server() }).verdict, Verdict::Warn);
    }

    #[test]
    fn a_clock_that_is_off_is_told_and_one_that_is_far_off_fails() {
        assert_eq!(
            [clock(2.0), clock(-31.0)].map(|check| check.verdict),
            [Verdict::Warn, Verdict::Fail]
        );
        assert_eq!(clock(-31.0).found, "31.0 s behind this machine's");
    }
}
