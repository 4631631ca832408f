//! What every test binary needs: a database and a topic of its own, a clock, certificates, the binary itself.

#![allow(dead_code, unused_imports, reason = "each test binary uses its own part of this")]

pub(crate) mod acls;
mod authority;
mod clock;
mod command;
mod database;
mod guard;
mod lent;
mod login;
mod own_servers;
mod pooler;
mod postman;
pub(crate) mod proxy;
mod secured_kafka;
mod secured_postgres;
mod server;
mod template;
mod topic;
mod user;

pub(crate) use authority::{Authority, Issued};
pub(crate) use command::trestle;
pub(crate) use database::Database;
pub(crate) use own_servers::{OwnKafka, OwnPostgres};
pub(crate) use pooler::Pooler;
pub(crate) use postman::{Postman, When};
pub(crate) use secured_kafka::{Access, PASSWORD, PAUPER, SecuredKafka, USER};
pub(crate) use secured_postgres::{CERTIFIED, LentPostgres};
pub(crate) use topic::{Record, Topic};
pub(crate) use user::User;
