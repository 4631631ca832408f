//! What the database user may: too little, and too much.

use super::check::Check;
use crate::config::{Config, Delivery};
use crate::store::Rights;

/// What a bridge calls.
const CALLS: [&str; 15] = [
    "claim_outbox_batch",
    "complete_outbox_attempt",
    "complete_outbox_batch",
    "renew_outbox_leases",
    "release_outbox_leases",
    "repair_expired_leases",
    "run_outbox_upkeep",
    "sample_outbox_gauges",
    "waiting_rails",
    "note_worker",
    "forget_worker",
    "outbox_schema_version",
    "wake_up_key",
    "take_wake_up_key",
    "check_rail_policies",
];
/// What it calls besides where a rail delivers exactly once.
const SHARD_CALLS: [&str; 8] = [
    "lease_outbox_shards",
    "outbox_shard_stand",
    "outbox_shards_left",
    "note_shard_offsets",
    "renew_shard_offsets",
    "reconcile_outbox_shard",
    "release_outbox_shard",
    "halt_outbox_shard",
];
const CONTROL: &str = "symphony_control";
const EXECUTOR: &str = "symphony_executor";
/// Who delivers should neither make up work nor decide about it.
const NOT_WITH_EXECUTOR: [&str; 2] = ["symphony_ingest", "symphony_operator"];

pub(super) fn bridge_calls(config: &Config) -> Vec<&'static str> {
    let sharded = config.rails.values().any(|rail| rail.delivery() == Delivery::ExactlyOnce);
    CALLS.into_iter().chain(SHARD_CALLS.into_iter().filter(|_| sharded)).collect()
}

/// Whether it is enough. A configuration with rails is a bridge's; without, any group will do.
/// `forbidden` are the functions of a bridge that this user may not call.
pub(super) fn enough(user: &str, rights: &Rights, has_rails: bool, forbidden: &[String]) -> Check {
    let name = "rights enough";
    if !rights.has_outbox {
        return Check::skip(name, "there is no outbox yet");
    }
    let groups = rights.groups.join(", ");
    if has_rails && !forbidden.is_empty() {
        let found = format!(
            "{user} ({}) may not call {}, which a bridge does",
            if groups.is_empty() { "in no group" } else { &groups },
            forbidden.join(", ")
        );
        return Check::fail(name, found, format!("GRANT {EXECUTOR} TO {user};"));
    }
    if groups.is_empty() && !rights.superuser {
        let mend =
            format!("GRANT {EXECUTOR} TO {user};  (or symphony_operator, _readonly, _ingest)");
        return Check::fail(name, format!("{user} is in none of the groups"), mend);
    }
    let use_ = if has_rails { "for a bridge" } else { "for commands; no rail is configured" };
    Check::ok(name, format!("{user} ({groups}): {use_}"))
}

/// Whether it is too much: each thing with the line that takes it away.
pub(super) fn too_many(user: &str, rights: &Rights) -> Vec<Check> {
    let name = "rights not too many";
    if rights.superuser {
        let mend = format!(
            "CREATE ROLE trestle_bridge LOGIN IN ROLE {EXECUTOR};  and connect as that, not as {user}"
        );
        return vec![Check::fail(name, format!("{user} is a superuser, or can become one"), mend)];
    }
    let mut checks = Vec::new();
    let mut fail = |found: String, mend: String| checks.push(Check::fail(name, found, mend));
    if rights.groups.iter().any(|group| group == CONTROL) {
        let found = format!("{user} is a member of {CONTROL}, which owns the ledger");
        fail(found, format!("REVOKE {CONTROL} FROM {user};"));
    } else if !rights.writable_tables.is_empty() {
        let tables = rights.writable_tables.join(", ");
        let mend = format!("REVOKE TRUNCATE, DELETE, UPDATE, INSERT ON {tables} FROM {user};");
        fail(format!("{user} may write to {tables}"), mend);
    }
    if rights.create_role {
        let found = format!("{user} may create roles, and so give itself any group");
        fail(found, format!("ALTER ROLE {user} NOCREATEROLE;"));
    }
    if rights.all_seeing {
        let found = format!("{user} may replicate or pass row security");
        fail(found, format!("ALTER ROLE {user} NOREPLICATION NOBYPASSRLS;"));
    }
    if !rights.public_functions.is_empty() {
        let found = format!("everybody may call {}", rights.public_functions.join(", "));
        fail(found, "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA outbox FROM PUBLIC;".to_owned());
    }
    checks.extend(both(user, rights));
    if checks.is_empty() {
        checks.push(Check::ok(name, "no table to write, no attribute to abuse"));
    }
    checks
}

fn both(user: &str, rights: &Rights) -> Option<Check> {
    let is_in = |group: &str| rights.groups.iter().any(|one| one == group);
    let other = NOT_WITH_EXECUTOR.into_iter().find(|group| is_in(group) && is_in(EXECUTOR))?;
    let found = format!("{user} is in {EXECUTOR} and in {other}: use a login for each");
    Some(Check::warn("rights not too many", found, format!("REVOKE {other} FROM {user};")))
}

/// Whoever is in the group that owns the ledger could drop the trigger that protects it.
pub(super) fn control(rights: &Rights) -> Check {
    let name = "rights of others";
    match rights.control_members.as_slice() {
        [] => Check::ok(name, format!("{CONTROL} has no members")),
        members => {
            let members = members.join(", ");
            let found = format!("{CONTROL}, which owns the ledger, has members: {members}");
            Check::warn(name, found, format!("REVOKE {CONTROL} FROM {members};"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::check::Verdict;
    use super::*;

    fn bridge() -> Rights {
        Rights { groups: vec![EXECUTOR.to_owned()], has_outbox: true, ..Rights::default() }
    }

    /// Every function that sql/grants.sql grants to the executor.
    fn granted() -> BTreeSet<&'static str> {
        const GRANTS: &str = include_str!("../../../sql/grants.sql");
        let mut blocks = GRANTS.split("GRANT EXECUTE ON FUNCTION");
        let block = blocks.find(|block| block.contains(")\nTO symphony_executor;")).unwrap();
        let (functions, _) = block.split_once("TO symphony_executor;").unwrap();
        let lines = functions.lines().filter_map(|line| line.trim().strip_prefix("outbox."));
        lines.filter_map(|line| Some(line.split_once('(')?.0)).collect()
    }

    #[test]
    fn what_a_bridge_calls_is_what_the_executor_is_granted() {
        let looked_for: BTreeSet<&str> = CALLS.into_iter().chain(SHARD_CALLS).collect();
        assert_eq!(looked_for, granted());
    }

    #[test]
    fn a_member_of_the_executor_has_enough_and_not_too_much() {
        assert_eq!(enough("b", &bridge(), true, &[]).verdict, Verdict::Ok);
        let checks = too_many("b", &bridge());
        assert_eq!(checks.len(), 1);
        assert_eq!(checks[0].verdict, Verdict::Ok);
        assert_eq!(control(&bridge()).verdict, Verdict::Ok);
    }

    #[test]
    fn what_is_missing_comes_with_the_grant() {
        let nobody = Rights { groups: Vec::new(), ..bridge() };
        let check = enough("b", &nobody, true, &["claim_outbox_batch".to_owned()]);
        assert_eq!(check.mend.as_deref(), Some("GRANT symphony_executor TO b;"));
        assert_eq!(enough("b", &nobody, false, &[]).verdict, Verdict::Fail);
        let reader = Rights { groups: vec!["symphony_readonly".to_owned()], ..bridge() };
        assert_eq!(enough("b", &reader, false, &[]).verdict, Verdict::Ok);
        let empty = Rights { has_outbox: false, ..nobody };
        assert_eq!(enough("b", &empty, true, &[]).verdict, Verdict::Skip);
    }

    #[test]
    fn each_right_too_many_comes_with_the_line_that_takes_it_away() {
        for (rights, mend) in [
            (Rights { superuser: true, ..bridge() }, "CREATE ROLE trestle_bridge"),
            (
                Rights { groups: vec![CONTROL.to_owned()], ..bridge() },
                "REVOKE symphony_control FROM b;",
            ),
            (Rights { create_role: true, ..bridge() }, "ALTER ROLE b NOCREATEROLE;"),
            (Rights { all_seeing: true, ..bridge() }, "ALTER ROLE b NOREPLICATION NOBYPASSRLS;"),
            (
                Rights { writable_tables: vec!["outbox.x".to_owned()], ..bridge() },
                "REVOKE TRUNCATE, DELETE, UPDATE, INSERT ON outbox.x FROM b;",
            ),
            (Rights { public_functions: vec!["f".to_owned()], ..bridge() }, "REVOKE EXECUTE"),
        ] {
            let checks = too_many("b", &rights);
            assert_eq!((checks.len(), checks[0].verdict), (1, Verdict::Fail), "{checks:?}");
            assert!(checks[0].mend.as_ref().unwrap().starts_with(mend), "{checks:?}");
        }
    }

    #[test]
    fn one_login_for_two_duties_is_a_warning_and_so_is_a_member_of_control() {
        let groups = vec![EXECUTOR.to_owned(), "symphony_operator".to_owned()];
        let checks = too_many("b", &Rights { groups, ..bridge() });
        assert_eq!(checks[0].verdict, Verdict::Warn);
        let rights = Rights { control_members: vec!["eve".to_owned()], ..bridge() };
        assert_eq!(control(&rights).mend.as_deref(), Some("REVOKE symphony_control FROM eve;"));
    }
}
