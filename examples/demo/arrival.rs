//! What arrives, line by line, and whether it arrives in order.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

/// A payment at the far end.
pub(crate) struct Arrival {
    pub(crate) rail: &'static str,
    /// Whose it is: the key of the record, the subject of the request.
    pub(crate) participant: String,
    pub(crate) sequence: i64,
    pub(crate) instruction: String,
    /// The topic, partition and offset, or the path.
    pub(crate) place: String,
    /// A few headers, as they came.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The Idempotency-Key, where the rail has one: for the script in full, for people its beginning.
    pub(crate) key: Option<String>,
    pub(crate) value: String,
}

/// Prints arrivals, and remembers them.
pub(crate) struct Journal {
    instructions: String,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    instructions: HashSet<(&'static str, String)>,
    newest: HashMap<(&'static str, String), i64>,
}

impl Journal {
    /// Only payments whose instruction begins like this are printed.
    pub(crate) fn new(instructions: String) -> Self {
        Self { instructions, seen: Mutex::default() }
    }

    pub(crate) fn ready(&self) {
        print("ready", "");
    }

    /// A payment that was taken.
    pub(crate) fn taken(&self, arrival: &Arrival) {
        if self.is_ours(arrival) {
            let word = self.seen.lock().unwrap_or_else(PoisonError::into_inner).judge(arrival);
            print(word, &line(arrival));
        }
    }

    /// A payment that was not.
    pub(crate) fn refused(&self, arrival: &Arrival) {
        if self.is_ours(arrival) {
            print("refused", &line(arrival));
        }
    }

    pub(crate) fn letter(&self, arrival: &Arrival) {
        if self.is_ours(arrival) {
            print("letter", &line(arrival));
        }
    }

    fn is_ours(&self, arrival: &Arrival) -> bool {
        arrival.instruction.starts_with(&self.instructions)
    }
}

impl Seen {
    fn judge(&mut self, arrival: &Arrival) -> &'static str {
        if !self.instructions.insert((arrival.rail, arrival.instruction.clone())) {
            return "again";
        }
        let lane = (arrival.rail, arrival.participant.clone());
        let newest = self.newest.entry(lane).or_insert(0);
        if arrival.sequence < *newest {
            return "late";
        }
        *newest = arrival.sequence;
        "new"
    }
}

fn line(arrival: &Arrival) -> String {
    let mut headers: Vec<String> =
        arrival.headers.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if let Some(key) = &arrival.key {
        let beginning: String = key.chars().take(8).collect();
        headers.push(format!("Idempotency-Key={beginning}.."));
    }
    format!(
        "{:<6} #{:<4} {:<19} {}  {}\t{}",
        arrival.participant,
        arrival.sequence,
        arrival.place,
        headers.join(" "),
        arrival.value,
        arrival.key.as_deref().unwrap_or_default()
    )
}

/// Nobody reads any more once the script is gone, and then there is nothing left to do.
fn print(word: &str, text: &str) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{word}\t{text}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}
