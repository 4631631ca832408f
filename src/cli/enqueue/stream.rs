//! Newline-delimited JSON, batch by batch, in bounded memory.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::batch::{self, Row};
use super::{line, lines};
use crate::cli::{CliError, output};
use crate::store::{Store, StoreError};

/// A batch is sent when it has this many bytes, however few its rows.
const MAX_BATCH_BYTES: usize = 16 * 1024 * 1024;

/// The lines and what to call them in an error.
pub(super) struct Input {
    reader: Box<dyn BufRead>,
    name: String,
    total_bytes: Option<u64>,
}

impl Input {
    /// Opens `path`, where `-` is the standard input.
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        if path == Path::new("-") {
            let reader = Box::new(BufReader::new(std::io::stdin()));
            return Ok(Self { reader, name: "the standard input".to_owned(), total_bytes: None });
        }
        let name = path.display().to_string();
        let failed = |source| CliError::ReadInput { what: name.clone(), source };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let total_bytes = metadata.is_file().then_some(metadata.len());
        Ok(Self { reader: Box::new(BufReader::new(file)), name, total_bytes })
    }
}

#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Summary {
    new: u64,
    existing: u64,
    bad: u64,
}

struct Session<'a> {
    store: &'a Store,
    rows: Vec<Row>,
    bytes: usize,
    summary: Summary,
    /// Every line up to this one has its verdict.
    last_line: u64,
    progress: ProgressBar,
}

pub(super) async fn enqueue(
    store: &Store,
    mut input: Input,
    batch_rows: usize,
    json: bool,
) -> Result<(), CliError> {
    let mut session = Session {
        store,
        rows: Vec::new(),
        bytes: 0,
        summary: Summary::default(),
        last_line: 0,
        progress: progress(input.total_bytes),
    };
    let mut line_no = 0;
    while let Some(line) = lines::next(&mut input.reader)
        .map_err(|source| CliError::ReadInput { what: input.name.clone(), source })?
    {
        line_no += 1;
        session.take(line_no, &line);
        if session.rows.len() >= batch_rows || session.bytes >= MAX_BATCH_BYTES {
            session.flush(line_no).await?;
        }
    }
    session.flush(line_no).await?;
    session.finish(json)
}

impl Session<'_> {
    fn take(&mut self, line_no: u64, line: &lines::Line) {
        self.progress.inc(line.read_bytes);
        if line.too_long {
            let limit_mib = lines::MAX_LINE_BYTES / (1024 * 1024);
            self.bad(line_no, &format!("longer than {limit_mib} MiB"));
        } else if !line.bytes.trim_ascii().is_empty() {
            match line::parse(&line.bytes) {
                Ok(json) => {
                    self.bytes += json.len();
                    self.rows.push(Row { line_no, json });
                }
                Err(reason) => self.bad(line_no, &reason),
            }
        }
    }

    fn bad(&mut self, line_no: u64, reason: &str) {
        self.summary.bad += 1;
        self.progress.suspend(|| output::notice(&format!("line {line_no}: {reason}")));
    }

    /// Each batch is a transaction of its own: what is done stays done.
    async fn flush(&mut self, line_no: u64) -> Result<(), CliError> {
        let verdicts = match batch::enqueue(self.store, &self.rows).await {
            Ok(verdicts) => verdicts,
            Err(cause) => return Err(self.interrupted(cause)),
        };
        for verdict in verdicts {
            match verdict.result {
                Ok(row) if row.is_new => self.summary.new += 1,
                Ok(_) => self.summary.existing += 1,
                Err(reason) => self.bad(verdict.line_no, &reason),
            }
        }
        self.rows.clear();
        self.bytes = 0;
        self.last_line = line_no;
        Ok(())
    }

    fn interrupted(&self, cause: StoreError) -> CliError {
        self.progress.finish_and_clear();
        let Summary { new, existing, bad } = self.summary;
        CliError::Interrupted { cause, last_line: self.last_line, new, existing, bad }
    }

    fn finish(self, json: bool) -> Result<(), CliError> {
        self.progress.finish_and_clear();
        let Summary { new, existing, bad } = self.summary;
        if json {
            output::document(&self.summary)?;
        } else {
            output::line(&format!("{new} new, {existing} existing, {bad} bad"))?;
        }
        if bad == 0 { Ok(()) } else { Err(CliError::BadLines { bad }) }
    }
}

/// On stderr, and only when it is a terminal.
fn progress(total_bytes: Option<u64>) -> ProgressBar {
    let template = match total_bytes {
        Some(_) => "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} eta {eta}",
        None => "{spinner} {bytes} {bytes_per_sec}",
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(total_bytes, ProgressDrawTarget::stderr()).with_style(style)
}
