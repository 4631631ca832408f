//! Tells the service manager how the bridge is doing: systemd with `Type=notify` and `WatchdogSec=`, or
//! whoever else has put `NOTIFY_SOCKET` into the environment.

use std::sync::Arc;

use sd_notify::NotifyState;

use super::health::Health;

/// So many times within the patience of the watchdog: a ping may get lost, or a beat be late.
const PINGS: u32 = 4;

/// Says that the bridge is ready as soon as it is, and feeds the watchdog from then on. Each ping needs a
/// beat of the relay's loop that is newer than the ping before: a loop that hangs starves the watchdog.
pub async fn keep_told(health: Arc<Health>) {
    let mut beats = health.beats();
    let watchdog = sd_notify::watchdog_enabled();
    let mut ready = false;
    while beats.changed().await.is_ok() {
        if !ready && health.ready().is_ok() {
            tell(NotifyState::Ready);
            ready = true;
        }
        match watchdog {
            Some(patience) => {
                tell(NotifyState::Watchdog);
                if ready {
                    tokio::time::sleep(patience / PINGS).await;
                }
            }
            None if ready => return,
            None => {}
        }
    }
}

/// Says that the bridge was asked to stop, and is finishing what is under way.
pub fn stopping() {
    tell(NotifyState::Stopping);
}

/// Without a service manager this does nothing.
fn tell(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "cannot tell the service manager how the bridge is doing");
    }
}
