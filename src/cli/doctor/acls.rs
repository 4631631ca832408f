//! What the brokers let a rail do: too little, and too much.

use super::check::Check;
use crate::rails::kafka::{Operation, TopicFacts, Trouble};

/// What a bridge does with a topic: the last one only asks how large its records may be.
pub(super) const WANTED: [Operation; 3] =
    [Operation::Write, Operation::Describe, Operation::DescribeConfigs];
/// Without these no row is delivered.
const NEEDED: [Operation; 2] = [Operation::Write, Operation::Describe];
/// What can lose records, and no bridge does.
const DANGEROUS: [Operation; 3] = [Operation::Delete, Operation::Alter, Operation::AlterConfigs];

/// The ACLs of one rail's cluster.
pub(super) struct Acls<'a> {
    /// `rails.kafka`
    pub(super) prefix: &'a str,
    pub(super) brokers: &'a str,
}

impl Acls<'_> {
    /// Whether an idempotent producer is let in. It is where it may write to any topic at all; brokers
    /// before 2.8 ask for a right of its own.
    pub(super) fn admission(
        &self,
        admission: &Result<(), Trouble>,
        topics: &[(String, Result<TopicFacts, Trouble>)],
    ) -> Check {
        let name = format!("{} rights", self.prefix);
        let Err(Trouble { code, words }) = admission else {
            return Check::ok(name, "an idempotent producer is let in");
        };
        let topics: Vec<&str> = topics.iter().map(|(topic, _)| topic.as_str()).collect();
        let mend = format!(
            "{}    (brokers before 2.8 also need --operation IdempotentWrite --cluster)",
            self.add(&WANTED, if topics.is_empty() { &["…"] } else { &topics })
        );
        Check::fail(name, format!("no idempotent producer is let in: {code}: {words}"), mend)
    }

    /// Whether this topic may be written to, and no more. `allowed` is what the broker says.
    pub(super) fn on(&self, topic: &str, allowed: Option<&[Operation]>) -> Check {
        let name = format!("{} rights on {topic}", self.prefix);
        let Some(allowed) = allowed else {
            return Check::skip(name, "the broker does not say what may be done with it");
        };
        let of = |asked: &[Operation], held: bool| -> Vec<Operation> {
            asked.iter().copied().filter(|one| allowed.contains(one) == held).collect()
        };
        let missing = of(&NEEDED, false);
        if !missing.is_empty() {
            let found = format!("may not {}: nothing can be delivered to it", words(&missing));
            return Check::fail(name, found, self.add(&missing, &[topic]));
        }
        // So a broker without an authorizer answers too.
        if of(&Operation::ALL, false).is_empty() {
            let found = "anything: no ACL restrains it, or this is a superuser";
            return Check::ok(name, found);
        }
        let dangerous = of(&DANGEROUS, true);
        if !dangerous.is_empty() {
            let found = format!("may also {}, which no bridge does", words(&dangerous));
            let mend = format!(
                "{}    (an ACL on a prefix, or on *, is removed there)",
                self.line("--remove", &dangerous, &[topic])
            );
            return Check::warn(name, found, mend);
        }
        Check::ok(name, format!("may {}", words(&NEEDED)))
    }

    /// The command that allows these operations.
    pub(super) fn add(&self, operations: &[Operation], topics: &[&str]) -> String {
        self.line("--add", operations, topics)
    }

    /// Who we are to the broker is not told: a user name counts as a secret.
    fn line(&self, act: &str, operations: &[Operation], topics: &[&str]) -> String {
        let operations = operations.iter().map(|one| format!(" --operation {one:?}"));
        let topics = topics.iter().map(|topic| format!(" --topic {topic}"));
        let rest: String = operations.chain(topics).collect();
        format!(
            "kafka-acls.sh --bootstrap-server {} {act} --allow-principal User:…{rest}",
            self.brokers
        )
    }
}

fn words(operations: &[Operation]) -> String {
    let names: Vec<String> = operations.iter().map(|one| format!("{one:?}")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    const ACLS: Acls<'static> = Acls { prefix: "rails.r", brokers: "b:9092" };

    #[test]
    fn what_is_missing_comes_with_the_command_that_gives_it() {
        let check = ACLS.on("t", Some(&[Operation::Describe, Operation::Delete]));
        assert_eq!(check.verdict, Verdict::Fail);
        assert_eq!(
            check.mend.as_deref(),
            Some(
                "kafka-acls.sh --bootstrap-server b:9092 --add --allow-principal User:… --operation Write --topic t"
            )
        );
        let nothing = ACLS.on("t", Some(&[]));
        assert_eq!(nothing.found, "may not Write, Describe: nothing can be delivered to it");
    }

    #[test]
    fn what_can_lose_records_is_told_and_what_reads_them_is_not() {
        let verdict = |more: &[Operation]| ACLS.on("t", Some(&[&NEEDED, more].concat())).verdict;
        assert_eq!(verdict(&[]), Verdict::Ok);
        assert_eq!(verdict(&[Operation::Read, Operation::Create]), Verdict::Ok);
        for dangerous in DANGEROUS {
            assert_eq!(verdict(&[dangerous]), Verdict::Warn, "{dangerous:?}");
        }
    }

    #[test]
    fn a_broker_without_acls_is_no_alarm() {
        assert_eq!(ACLS.on("t", Some(&Operation::ALL)).verdict, Verdict::Ok);
        assert_eq!(ACLS.on("t", None).verdict, Verdict::Skip);
    }

    #[test]
    fn a_producer_that_is_not_let_in_is_given_its_topics_by_name() {
        let trouble = Trouble {
            code: "KAFKA_CLUSTER_AUTHORIZATION_FAILED".to_owned(),
            words: "no".to_owned(),
        };
        let topics = ["a", "b"].map(|topic| (topic.to_owned(), Err(trouble.clone())));
        let check = ACLS.admission(&Err(trouble), &topics);
        assert_eq!(check.verdict, Verdict::Fail);
        let mend = check.mend.unwrap();
        assert!(mend.contains(" --operation DescribeConfigs --topic a --topic b "), "{mend}");
        assert!(mend.contains("IdempotentWrite --cluster"), "{mend}");
        assert_eq!(ACLS.admission(&Ok(()), &[]).verdict, Verdict::Ok);
    }
}
