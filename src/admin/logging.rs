//! Logs: for people on a terminal, JSON otherwise, always to stderr.

use std::io::IsTerminal as _;

use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, LevelFilter, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::ConfigError;

/// What is logged: a level (`debug`) or directives (`info,trestle::relay=trace`). Default `info`.
const VARIABLE: &str = "TRESTLE_LOG";

/// Whom a log line is for.
#[derive(Debug, Clone, Copy)]
enum Style {
    Human { colours: bool },
    Json,
}

/// Starts logging for the whole process. A second call changes nothing.
pub fn init() -> Result<(), ConfigError> {
    let wanted = match std::env::var(VARIABLE) {
        Ok(wanted) => wanted,
        Err(std::env::VarError::NotPresent) => String::new(),
        Err(std::env::VarError::NotUnicode(_)) => {
            return Err(ConfigError::NotUtf8(VARIABLE.to_owned()));
        }
    };
    let style = if std::io::stderr().is_terminal() {
        Style::Human { colours: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    } else {
        Style::Json
    };
    // It fails when a subscriber is there already, which is then the one to use.
    let _ = subscriber(filter(&wanted)?, style, std::io::stderr).try_init();
    Ok(())
}

fn filter(wanted: &str) -> Result<EnvFilter, ConfigError> {
    let builder = EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    // A mistyped level would be taken for the name of a module, and everything else be silent.
    let mistyped = wanted.split(',').map(str::trim).any(|directive| {
        !directive.is_empty()
            && !directive.contains('=')
            && directive.parse::<LevelFilter>().is_err()
    });
    match builder.parse(wanted) {
        Ok(filter) if !mistyped => Ok(filter),
        _ => Err(ConfigError::Wrong {
            key: VARIABLE.to_owned(),
            problem: "must be a level (error, warn, info, debug, trace, off), or levels by module \
                      like info,trestle::relay=debug"
                .to_owned(),
        }),
    }
}

fn subscriber<W>(filter: EnvFilter, style: Style, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let registry = tracing_subscriber::registry().with(filter).with(filter_fn(is_harmless));
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    match style {
        Style::Human { colours } => Box::new(registry.with(lines.with_ansi(colours))),
        Style::Json => Box::new(registry.with(lines.json().flatten_event(true))),
    }
}

/// Below info, the database driver logs the parameters of a statement and the HTTP client its
/// bytes. Payloads and secrets are among them, so no directive can ask for those lines.
fn is_harmless(line: &Metadata<'_>) -> bool {
    let target = line.target();
    *line.level() <= Level::INFO || target == "trestle" || target.starts_with("trestle::")
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(wanted: &str, style: Style) -> String {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = subscriber(filter(wanted).unwrap(), style, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "trestle::relay", rail = "ach", "ours at info");
            tracing::trace!(target: "trestle::relay", "ours at trace");
            tracing::warn!(target: "tokio_postgres", "theirs at warn");
            tracing::debug!(target: "tokio_postgres", "parameters: hunter2");
            tracing::debug!(target: "trestle_impostor", "bytes: hunter2");
        });
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn info_is_the_default() {
        let text = logged("", Style::Human { colours: false });
        assert!(text.contains("ours at info") && text.contains("theirs at warn"), "{text}");
        assert!(!text.contains("trace") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn no_directive_brings_out_what_a_driver_says_below_info() {
        for wanted in ["trace", "trestle=trace,tokio_postgres=trace,trestle_impostor=trace"] {
            let text = logged(wanted, Style::Human { colours: false });
            assert!(text.contains("ours at trace"), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn a_program_reads_one_json_object_a_line() {
        let text = logged("", Style::Json);
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["message"], "ours at info");
        assert_eq!(lines[0]["rail"], "ach");
        assert_eq!(lines[0]["level"], "INFO");
    }

    #[test]
    fn a_level_that_is_none_is_refused_with_the_variable() {
        for wanted in ["loud", "trestle=loud", "info,debgu"] {
            let message = filter(wanted).unwrap_err().to_string();
            assert!(message.starts_with("`TRESTLE_LOG` must be a level"), "{message}");
        }
        for wanted in ["", "debug", "DEBUG", "off", "info,trestle::relay=debug"] {
            filter(wanted).unwrap();
        }
    }
}
