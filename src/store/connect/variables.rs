//! libpq's variables: those that are read, and those that must not be ignored.

/// Where libpq looks for what the connection string does not say.
pub(super) const READ: [(&str, &str); 17] = [
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("dbname", "PGDATABASE"),
    ("options", "PGOPTIONS"),
    ("application_name", "PGAPPNAME"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS"),
    ("sslmode", "PGSSLMODE"),
    ("sslnegotiation", "PGSSLNEGOTIATION"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("channel_binding", "PGCHANNELBINDING"),
];

const NO_REVOCATION: &str = "lists of revoked certificates are not looked at";

/// Variables that lead elsewhere, or promise a safety that there would not be, if they were passed over: the values that
/// ask for nothing, and what to say of any other.
const REFUSED: [(&str, &[&str], &str); 9] = [
    ("PGSERVICE", &[], "service files are not read: write the connection string in full"),
    ("PGREQUIRESSL", &["0"], "write PGSSLMODE=require instead"),
    ("PGSSLCRL", &[], NO_REVOCATION),
    ("PGSSLCRLDIR", &[], NO_REVOCATION),
    ("PGSSLCERTMODE", &["allow"], "a client certificate is shown where one is named and asked for"),
    (
        "PGSSLMINPROTOCOLVERSION",
        &["TLSv1", "TLSv1.1", "TLSv1.2"],
        "TLS 1.2 and 1.3 are spoken, as the server chooses",
    ),
    (
        "PGREQUIREAUTH",
        &[],
        "how the server asks for a password cannot be chosen: see channel_binding",
    ),
    ("PGREQUIREPEER", &[], "whose a socket is is not looked at"),
    ("PGGSSENCMODE", &["disable", "prefer"], "there is no GSSAPI: use TLS"),
];

/// Refuses what an ignored variable would make untrue.
pub(super) fn check(variable: impl Fn(&str) -> Option<String>) -> Result<(), String> {
    for (name, harmless, instead) in REFUSED {
        if variable(name).is_some_and(|value| !harmless.contains(&value.as_str())) {
            return Err(format!("{name} is set and cannot be obeyed: {instead}"));
        }
    }
    Ok(())
}
