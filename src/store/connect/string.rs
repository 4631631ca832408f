//! A connection string, in either of libpq's two forms, as keys and values.

use std::iter::Peekable;
use std::str::Chars;

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
const NOT_ENCODED: &str =
    "a character of it must be percent-encoded (`/` in a password is %2F, `@` is %40)";

/// In the order in which they are written: the last one of a key counts. No error quotes any part
/// of the string, because it may be the password.
pub(super) fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    match SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme)) {
        Some(rest) => of_url(rest),
        None => of_words(text),
    }
}

fn of_url(rest: &str) -> Result<Vec<(String, String)>, String> {
    let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = before.split_once('/').unwrap_or((before, ""));
    if path.contains('@') {
        return Err(NOT_ENCODED.to_owned());
    }
    // The last one: libpq would take the rest of the password for a host, and show it.
    let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let (names, ports) = addresses(hosts)?;
    let mut pairs = Vec::new();
    let parts = [
        ("user", user),
        ("password", password),
        ("host", &names),
        ("port", &ports),
        ("dbname", path),
    ];
    for (key, value) in parts {
        if !value.is_empty() {
            pairs.push((key.to_owned(), decoded(value)?));
        }
    }
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let Some((key, value)) = parameter.split_once('=') else {
            return Err("a parameter after `?` lacks its `=`".to_owned());
        };
        pairs.push((decoded(key)?, decoded(value)?));
    }
    Ok(pairs)
}

/// The names and the ports of the hosts, each with commas between. No ports where none is written,
/// so that there is a place for PGPORT.
fn addresses(hosts: &str) -> Result<(String, String), String> {
    let (mut names, mut ports) = (Vec::new(), Vec::new());
    for host in hosts.split(',') {
        let (name, port) = match host.strip_prefix('[') {
            Some(rest) => {
                let Some((name, after)) = rest.split_once(']') else {
                    return Err("an address lacks its `]`".to_owned());
                };
                (name, after.strip_prefix(':').unwrap_or(after))
            }
            None => host.split_once(':').unwrap_or((host, "")),
        };
        names.push(name);
        ports.push(port);
    }
    if ports.iter().all(|port| port.is_empty()) {
        ports.clear();
    }
    Ok((names.join(","), ports.join(",")))
}

fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(byte) = byte.filter(|byte| *byte != 0) else {
            return Err("after a `%` must come two hexadecimal digits: write `%` as %25".to_owned());
        };
        bytes.push(byte);
        rest = rest.get(2..).unwrap_or_default();
    }
    String::from_utf8(bytes).map_err(|_| "a percent-encoded part of it is not UTF-8".to_owned())
}

/// `key=value`, with spaces between; a value in single quotes may have spaces, and a backslash
/// takes what follows it as it is.
fn of_words(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    let mut rest = text.chars().peekable();
    loop {
        skip_spaces(&mut rest);
        if rest.peek().is_none() {
            return Ok(pairs);
        }
        let mut key = String::new();
        while let Some(letter) = rest.next_if(|letter| *letter != '=' && !letter.is_whitespace()) {
            key.push(letter);
        }
        skip_spaces(&mut rest);
        if rest.next() != Some('=') {
            let forms = "postgres://user:password@host:5432/database or key=value";
            return Err(format!("a word of it lacks its `=`: write {forms}"));
        }
        skip_spaces(&mut rest);
        pairs.push((key, value(&mut rest)?));
    }
}

fn skip_spaces(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|letter| letter.is_whitespace()).is_some() {}
}

fn value(rest: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let quoted = rest.next_if_eq(&'\'').is_some();
    let mut value = String::new();
    loop {
        match rest.next() {
            Some('\'') if quoted => return Ok(value),
            Some(letter) if !quoted && letter.is_whitespace() => return Ok(value),
            Some('\\') => value.extend(rest.next()),
            Some(letter) => value.push(letter),
            None if quoted => return Err("a value lacks its closing quote".to_owned()),
            None => return Ok(value),
        }
    }
}
