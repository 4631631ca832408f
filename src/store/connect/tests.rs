//! How a connection string is understood.

use tokio_postgres::config::{
    ChannelBinding, Host, LoadBalanceHosts, SslMode, SslNegotiation, TargetSessionAttrs,
};

use super::{CONNECT_TIMEOUT, Duration, Endpoint};

fn read(url: &str) -> Result<Endpoint, String> {
    Endpoint::read(url, |_| None)
}

fn refused(url: &str) -> String {
    read(url).err().unwrap()
}

#[test]
fn no_error_shows_the_password() {
    for url in [
        "postgres://u:hunter2@h:port/d",
        "postgres://u:12/hunter2@h/d",
        "postgres://u:%zzhunter2@h/d",
        "host=h password=hunter2 port=x",
        "host=h password='hunter2",
        "host=h password=x hunter2",
        "hunter2",
    ] {
        let error = refused(url);
        assert!(!error.contains("hunter2"), "{error}");
    }
    // What should have been written %40 belongs to the password, not to the host.
    let endpoint = read("postgres://u:a@hunter2@h/d?sslmode=disable").unwrap();
    assert_eq!(endpoint.target(), "h:5432/d");
}

#[test]
fn tls_is_asked_for_as_libpq_would() {
    for (mode, expected) in
        [("disable", SslMode::Disable), ("prefer", SslMode::Prefer), ("require", SslMode::Require)]
    {
        let endpoint = read(&format!("postgres://u@h/d?sslmode={mode}")).unwrap();
        assert_eq!(endpoint.config.get_ssl_mode(), expected);
    }
    assert_eq!(read("postgres://u@h/d").unwrap().config.get_ssl_mode(), SslMode::Prefer);
    let local = read("host=/tmp user=u sslmode=require").unwrap();
    assert_eq!(local.config.get_ssl_mode(), SslMode::Disable);
}

#[test]
fn a_wrong_tls_setting_is_refused_with_its_key_and_what_would_be_right() {
    for (settings, words) in [
        ("sslmode=verify", "`sslmode` must be disable, prefer, require, verify-ca or verify-full"),
        ("sslmode=verify-full", "`sslrootcert` is missing"),
        ("sslmode=verify-ca", "`sslrootcert` is missing"),
        ("sslrootcert=system&sslmode=require", "`sslmode` must be verify-full"),
        ("sslmode=verify-full&sslrootcert=/nowhere/ca.pem", "`sslrootcert` names /nowhere/ca.pem"),
        ("sslcert=/nowhere/c.pem", "`sslkey` is missing"),
        ("sslkey=/nowhere/c.key", "`sslcert` is missing"),
        ("sslcert=/nowhere/c.pem&sslkey=/nowhere/c.key", "`sslcert` names /nowhere/c.pem"),
        ("sslnegotiation=direct", "`sslnegotiation`"),
        ("sslcrl=/nowhere/crl.pem", "unknown key `sslcrl`"),
    ] {
        let error = refused(&format!("postgres://u:hunter2@h/d?{settings}"));
        assert!(error.contains(words), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    // Where nothing is encrypted, nothing of it is looked at.
    assert!(read("postgres://u@h/d?sslmode=disable&sslcert=/nowhere/c.pem").is_ok());
}

#[test]
fn the_environment_says_what_the_connection_string_does_not() {
    let variable = |name: &str| match name {
        "PGHOST" => Some("from-a,from-b".to_owned()),
        "PGPORT" => Some("6000,6001".to_owned()),
        "PGUSER" | "PGPASSWORD" | "PGDATABASE" | "PGAPPNAME" => Some("env".to_owned()),
        "PGTARGETSESSIONATTRS" => Some("read-write".to_owned()),
        "PGSSLMODE" => Some("require".to_owned()),
        _ => None,
    };
    let endpoint = Endpoint::read("postgres://", variable).unwrap();
    assert_eq!(endpoint.target(), "from-a:6000,from-b:6001/env");
    let config = &endpoint.config;
    assert_eq!(config.get_password(), Some(b"env".as_slice()));
    assert_eq!(config.get_application_name(), Some("env"));
    assert_eq!(config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    assert_eq!(config.get_ssl_mode(), SslMode::Require);
    let said = "host=h port=1 user=u password=p dbname=d application_name=a sslmode=disable";
    let endpoint = Endpoint::read(said, variable).unwrap();
    assert_eq!(endpoint.target(), "h:1/d");
    assert_eq!(endpoint.config.get_user(), Some("u"));
    assert_eq!(endpoint.config.get_application_name(), Some("a"));
    assert_eq!(endpoint.config.get_ssl_mode(), SslMode::Disable);
}

#[test]
fn an_error_in_a_variable_names_the_variable() {
    let variable = |name: &str| (name == "PGSSLMODE").then(|| "always".to_owned());
    let error = Endpoint::read("postgres://u@h/d", variable).err().unwrap();
    assert!(error.contains("PGSSLMODE"), "{error}");
    let variable = |name: &str| (name == "PGPORT").then(|| "x".to_owned());
    let error = Endpoint::read("postgres://u@h/d", variable).err().unwrap();
    assert!(error.contains("PGPORT") && error.contains("number"), "{error}");
}

#[test]
fn what_libpq_would_obey_is_obeyed() {
    let variable = |name: &str| match name {
        "PGHOSTADDR" => Some("192.0.2.7".to_owned()),
        "PGOPTIONS" => Some("-c search_path=x".to_owned()),
        "PGCHANNELBINDING" => Some("require".to_owned()),
        "PGLOADBALANCEHOSTS" => Some("random".to_owned()),
        "PGSSLNEGOTIATION" => Some("direct".to_owned()),
        _ => None,
    };
    let config = Endpoint::read("postgres://u@h/d?sslmode=require", variable).unwrap().config;
    assert_eq!(config.get_hostaddrs()[0].to_string(), "192.0.2.7");
    assert!(matches!(&config.get_hosts()[0], Host::Tcp(name) if name == "h"));
    assert_eq!(config.get_options(), Some("-c search_path=x"));
    assert_eq!(config.get_channel_binding(), ChannelBinding::Require);
    assert_eq!(config.get_load_balance_hosts(), LoadBalanceHosts::Random);
    assert_eq!(config.get_ssl_negotiation(), SslNegotiation::Direct);
}

#[test]
fn what_would_lead_elsewhere_or_promise_too_much_if_it_were_ignored_is_refused() {
    let read = |set: &str, value: &str| {
        let variable = |name: &str| (name == set).then(|| value.to_owned());
        Endpoint::read("postgres://u:hunter2@h/d", variable).map(|_| ())
    };
    for (name, value) in [
        ("PGSERVICE", "ledger"),
        ("PGREQUIRESSL", "1"),
        ("PGSSLCRL", "/crl.pem"),
        ("PGSSLCRLDIR", "/crl"),
        ("PGSSLCERTMODE", "require"),
        ("PGSSLMINPROTOCOLVERSION", "TLSv1.3"),
        ("PGREQUIREAUTH", "scram-sha-256"),
        ("PGREQUIREPEER", "postgres"),
        ("PGGSSENCMODE", "require"),
    ] {
        let error = read(name, value).unwrap_err();
        assert!(error.starts_with(&format!("{name} is set and cannot be obeyed: ")), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    for (name, value) in
        [("PGREQUIRESSL", "0"), ("PGSSLMINPROTOCOLVERSION", "TLSv1.2"), ("PGGSSENCMODE", "prefer")]
    {
        assert_eq!(read(name, value), Ok(()), "{name}");
    }
}

#[test]
fn what_only_libpq_can_look_for_is_refused_with_what_comes_near() {
    for wanted in ["primary", "standby", "prefer-standby"] {
        let error = refused(&format!("postgres://h/d?target_session_attrs={wanted}"));
        assert!(error.contains("read-write for primary, and read-only for standby"), "{error}");
    }
}

#[test]
fn several_hosts_share_the_time_that_there_is() {
    let limit = Duration::from_secs(6);
    let share = |url: &str| *read(url).unwrap().within(limit).config.get_connect_timeout().unwrap();
    assert_eq!(share("postgres://a,b/d"), Duration::from_secs(2));
    assert_eq!(share("postgres://a,b/d?connect_timeout=1"), Duration::from_secs(1));
    assert_eq!(share("postgres://a/d"), CONNECT_TIMEOUT);
}

#[test]
fn a_url_is_read_as_libpq_reads_it() {
    let url = "postgresql://u%40x:p%2Fw@h1:6000,[::1]/my%20db?application_name=a%26b&host=h9";
    let endpoint = read(url).unwrap();
    assert_eq!(endpoint.target(), "h9:6000/my db");
    assert_eq!(endpoint.config.get_user(), Some("u@x"));
    assert_eq!(endpoint.config.get_password(), Some(b"p/w".as_slice()));
    assert_eq!(endpoint.config.get_application_name(), Some("a&b"));
    let several = read("postgres://h1:6000,[::1],h3:6003/d").unwrap();
    assert_eq!(several.target(), "h1:6000,::1:5432,h3:6003/d");
    let socket = read("postgres://%2Frun%2Fpg/d").unwrap();
    assert!(matches!(&socket.config.get_hosts()[0], Host::Unix(path) if path == "/run/pg"));
    let quoted = read(r"host = 'h' password='it\'s \\ it' user=u").unwrap();
    assert_eq!(quoted.config.get_password(), Some(br"it's \ it".as_slice()));
}
