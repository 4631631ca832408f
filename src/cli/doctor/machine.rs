//! This machine and the configuration: what a bridge would find when it starts here.

use std::io::ErrorKind;

use super::check::Check;
use crate::admin::{AdminError, server};
use crate::config::Config;

pub(super) async fn checks(config: &Config) -> Vec<Check> {
    let mut checks = vec![admin(config).await];
    if config.rails.is_empty() {
        checks.push(Check::warn(
            "rails",
            "none is configured: this is no bridge's configuration",
            "[rails.NAME] with kind = \"kafka\" or \"http\"    in trestle.toml",
        ));
    } else if config.dlq.is_none() {
        checks.push(Check::warn(
            "dlq",
            "nothing carries dead letters, unless another bridge does",
            "[dlq] with rail = \"ledger\", or a Kafka rail and topic = \"…\"    in trestle.toml",
        ));
    }
    checks
}

async fn admin(config: &Config) -> Check {
    let (name, address) = ("admin.listen", config.admin.listen);
    match server::bind(address).await {
        Ok(_) => Check::ok(name, format!("{address} is free")),
        Err(AdminError::Listen { source, .. }) if source.kind() == ErrorKind::AddrInUse => {
            Check::warn(
                name,
                format!("{address} is in use: by a bridge that runs here, or by something else"),
                "admin.listen = \"127.0.0.1:9465\"    in trestle.toml, if it is something else",
            )
        }
        Err(error) => Check::fail(
            name,
            error.to_string(),
            "admin.listen = \"127.0.0.1:9464\"    in trestle.toml",
        ),
    }
}
