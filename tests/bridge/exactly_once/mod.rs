//! `delivery = "exactly_once"` on a real broker: whatever dies, a reader of committed records sees every
//! row once and in order, and the ledger agrees with the topic record by record.

mod crashes;
mod faults;
mod late;
mod scene;
