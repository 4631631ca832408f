use crate::support::{Database, trestle};

#[tokio::test]
async fn a_pass_of_upkeep_succeeds_and_can_be_repeated() {
    let database = Database::new().await;
    for _ in 0..2 {
        trestle(&database.url(), &["retention"]).assert().success();
    }
    let output = trestle(&database.url(), &["retention", "--json"]).assert().success();
    let document: serde_json::Value =
        serde_json::from_slice(&output.get_output().stdout).expect("JSON");
    assert_eq!(document["version"], 1);
    let rows = document["done"].as_array().expect("a list");
    assert!(rows.iter().all(|row| row["action"] != "again"));
}
