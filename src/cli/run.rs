//! `trestle run` and `trestle drain`

use std::future::Future;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use uuid::Uuid;

use super::CliError;
use crate::admin::health::Health;
use crate::admin::spans::Exporting;
use crate::admin::{logging, metrics, server, service, spans};
use crate::config::Config;
use crate::delivery::DEAD_LETTERS;
use crate::relay::{Relay, Scope};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Deliver only this tenant's rows
    #[arg(long, value_name = "UUID")]
    tenant: Option<Uuid>,
    /// Deliver only this rail's rows; may be given several times
    #[arg(long = "rail", value_name = "NAME")]
    rails: Vec<String>,
}

/// The service: delivers until a signal stops it.
pub(super) async fn run(args: Args, config: &Config) -> Result<(), CliError> {
    logging::init()?;
    let signals = Signals::install()?;
    let health = Arc::new(Health::new(config.relay.stalled()));
    let recorder = metrics::install()?;
    let listener = server::bind(config.admin.listen).await?;
    let (spans, exporting) = spans::start(config)?.unzip();
    let scope = scope(args, config)?;
    let mut relay = Relay::start(config, scope, Arc::clone(&health), spans).await?;
    if config.relay.listen {
        let url = config.database.listen_url.as_ref();
        relay.listen(url.map_or_else(|| config.database.required_url(), Ok)?);
    }
    let telling = tokio::spawn(service::keep_told(Arc::clone(&health)));
    let (stopped, stopping) = watch::channel(false);
    let admin = tokio::spawn(server::serve(listener, recorder, health, async move {
        let mut stopping = stopping;
        // An error means that the sender is gone, which is as good.
        let _ = stopping.wait_for(|stopped| *stopped).await;
    }));
    let stop = signals.at_least(1);
    let stop = async move {
        stop.await;
        service::stopping();
    };
    let result = relay.run(stop, signals.at_least(2)).await;
    telling.abort();
    stopped.send_replace(true);
    finish(exporting).await;
    let _ = tokio::time::timeout(Duration::from_secs(1), admin).await;
    Ok(result?)
}

/// Delivers what is due, and exits.
pub(super) async fn drain(args: Args, config: &Config) -> Result<(), CliError> {
    logging::init()?;
    let signals = Signals::install()?;
    let health = Arc::new(Health::new(config.relay.stalled()));
    let (spans, exporting) = spans::start(config)?.unzip();
    let relay = Relay::start(config, scope(args, config)?, health, spans).await?;
    let bar = progress();
    let told = bar.clone();
    let result = relay
        .drain(signals.at_least(1), signals.at_least(2), move |rows| {
            told.inc(u64::try_from(rows).unwrap_or(0));
        })
        .await;
    bar.finish_and_clear();
    finish(exporting).await;
    Ok(result?)
}

/// The last outcomes are written: their spans go too.
async fn finish(exporting: Option<Exporting>) {
    if let Some(exporting) = exporting {
        exporting.finish().await;
    }
}

fn scope(args: Args, config: &Config) -> Result<Scope, CliError> {
    let known = |rail: &String| {
        config.rails.contains_key(rail)
            || (rail == DEAD_LETTERS && config.dlq.as_ref().is_some_and(|dlq| !dlq.is_ledger()))
    };
    if let Some(unknown) = args.rails.iter().find(|rail| !known(rail)) {
        let known: Vec<&str> = config.rails.keys().map(String::as_str).collect();
        return Err(CliError::Usage(format!(
            "--rail {unknown} is not configured: there is {}",
            known.join(", ")
        )));
    }
    Ok(Scope { tenant_id: args.tenant, rails: args.rails })
}

fn progress() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {human_pos} rows, {per_sec}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(style)
}

/// How many times we were asked to stop: the first time in order, the second at once.
struct Signals {
    asked: watch::Receiver<u32>,
}

impl Signals {
    fn install() -> Result<Self, CliError> {
        let mut terminate = signal(SignalKind::terminate()).map_err(CliError::Runtime)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(CliError::Runtime)?;
        let (sender, asked) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                either(&mut terminate, &mut interrupt).await;
                sender.send_modify(|times| *times += 1);
                tracing::info!("asked to stop");
            }
        });
        Ok(Self { asked })
    }

    fn at_least(&self, times: u32) -> impl Future<Output = ()> + use<> {
        let mut asked = self.asked.clone();
        async move {
            // The sender lives as long as the process.
            let _ = asked.wait_for(|asked| *asked >= times).await;
        }
    }
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
