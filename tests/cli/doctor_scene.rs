//! Runs `trestle doctor` on a configuration and reads what it says.

use serde_json::Value;

use crate::scene::{Run, assert_fits, run, run_at_all};
use crate::support::{Database, Topic};

/// A configuration: where the database is, and the file.
pub(crate) struct Patient {
    pub(crate) url: String,
    pub(crate) toml: String,
}

/// What the doctor found.
pub(crate) struct Findings(Vec<Value>);

impl Patient {
    pub(crate) fn new(url: &str) -> Self {
        let toml = "[admin]\nlisten = \"127.0.0.1:0\"\n".to_owned();
        Self { url: url.to_owned(), toml }
    }

    /// A bridge in good health.
    pub(crate) async fn bridge(database: &Database, topic: &Topic, dead: &Topic) -> Self {
        Self::new(&database.url_as("symphony_executor").await).and(&format!(
            "[dlq]\nrail = \"kafka\"\ntopic = \"{}\"\n[rails.kafka]\nkind = \"kafka\"\ntopic = \"{}\"\nschema = \"any\"\n",
            dead.name(),
            topic.name()
        ))
    }

    pub(crate) fn and(mut self, toml: &str) -> Self {
        self.toml.push_str(toml);
        self
    }

    pub(crate) fn at(mut self, url: &str) -> Self {
        self.url = url.to_owned();
        self
    }

    /// It must end with `code`.
    pub(crate) fn examined(&self, code: i32) -> Findings {
        let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        std::fs::write(file.path(), &self.toml).unwrap();
        let file = file.path().to_str().unwrap();
        Findings::read(&run(&self.url, &["--config", file, "doctor", "--json"], code), code)
    }

    /// It ends with 0 or 1, as it finds.
    pub(crate) fn examined_at_all(&self) -> Findings {
        let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        std::fs::write(file.path(), &self.toml).unwrap();
        let file = file.path().to_str().unwrap();
        let (shown, code) = run_at_all(&self.url, &["--config", file, "doctor", "--json"]);
        Findings::read(&shown, code)
    }

    /// What a person sees.
    pub(crate) fn shown(&self, code: i32) -> String {
        let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        std::fs::write(file.path(), &self.toml).unwrap();
        let file = file.path().to_str().unwrap();
        let shown = run(&self.url, &["--config", file, "doctor"], code).stdout;
        assert_fits(&shown);
        shown
    }
}

impl Findings {
    fn read(shown: &Run, code: i32) -> Self {
        let document: Value = serde_json::from_str(&shown.stdout).expect("one JSON document");
        assert_eq!(document["version"], 1);
        assert_eq!(document["healthy"], code == 0, "{document}");
        for secret in ["hunter2", "only-for-tests"] {
            assert!(!shown.stdout.contains(secret), "{}", shown.stdout);
        }
        Self(document["checks"].as_array().unwrap().clone())
    }

    pub(crate) fn has(&self, check: &str) -> bool {
        self.0.iter().any(|one| one["check"] == check)
    }

    /// All that were found by a check, the worst first.
    fn of(&self, check: &str) -> Vec<&Value> {
        let mut found: Vec<&Value> = self.0.iter().filter(|one| one["check"] == check).collect();
        assert!(!found.is_empty(), "no {check} in {:#?}", self.0);
        let rank = |one: &&Value| {
            ["fail", "warn", "skip", "ok"].iter().position(|v| one["verdict"] == **v)
        };
        found.sort_by_key(rank);
        found
    }

    pub(crate) fn verdict(&self, check: &str) -> &str {
        self.of(check)[0]["verdict"].as_str().unwrap()
    }

    pub(crate) fn found(&self, check: &str) -> &str {
        self.of(check)[0]["found"].as_str().unwrap()
    }

    pub(crate) fn mend(&self, check: &str) -> &str {
        self.of(check)[0]["mend"].as_str().unwrap()
    }

    /// Everything that a check said, one a line.
    pub(crate) fn all(&self, check: &str) -> String {
        let lines =
            self.of(check).into_iter().map(|one| format!("{} {}\n", one["verdict"], one["found"]));
        lines.collect()
    }

    pub(crate) fn failed(&self) -> Vec<&str> {
        let failed = self.0.iter().filter(|one| one["verdict"] == "fail");
        failed.map(|one| one["check"].as_str().unwrap()).collect()
    }

    /// Whatever is wrong says what mends it, and what is right has nothing to mend.
    pub(crate) fn each_wrong_has_its_remedy(&self) {
        for one in &self.0 {
            let wrong = one["verdict"] == "fail" || one["verdict"] == "warn";
            assert_eq!(wrong, one["mend"].is_string(), "{one}");
        }
    }
}
