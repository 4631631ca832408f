//! A batch of rows on its way to the database.

use crate::store::{BatchRow, Enqueued, Store, StoreError};

/// Deadlocks and serialization failures are retried this often.
const MAX_ATTEMPTS: u32 = 5;

/// A row and the line that it was read from.
pub(super) struct Row {
    pub(super) line_no: u64,
    pub(super) json: String,
}

/// What became of a line.
pub(super) struct Verdict {
    pub(super) line_no: u64,
    pub(super) result: Result<Enqueued, String>,
}

/// Enqueues `rows`. JSON that PostgreSQL cannot read fails the whole call, whichever row it is in:
/// then each half is tried by itself, down to the one row that is at fault.
pub(super) async fn enqueue(store: &Store, rows: &[Row]) -> Result<Vec<Verdict>, StoreError> {
    let mut verdicts = Vec::with_capacity(rows.len());
    // Halves that wait, the first on top: never deeper than the number of halvings.
    let mut waiting = vec![rows];
    while let Some(part) = waiting.pop() {
        match send(store, part).await {
            Ok(answers) => verdicts.extend(judge(part, answers)?),
            Err(error) if error.is_about_data() => match part {
                [only] => verdicts.push(refused(only, &error)),
                _ => {
                    let (first, second) = part.split_at(part.len() / 2);
                    waiting.extend([second, first]);
                }
            },
            Err(error) => return Err(error),
        }
    }
    Ok(verdicts)
}

async fn send(store: &Store, rows: &[Row]) -> Result<Vec<BatchRow>, StoreError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let array = json_array(rows);
    let mut attempt = 1;
    loop {
        match store.enqueue_batch(&array).await {
            Err(error) if error.is_transient() && attempt < MAX_ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

fn json_array(rows: &[Row]) -> String {
    let bytes: usize = rows.iter().map(|row| row.json.len() + 1).sum();
    let mut array = String::with_capacity(bytes + 1);
    for row in rows {
        array.push(if array.is_empty() { '[' } else { ',' });
        array.push_str(&row.json);
    }
    array.push(']');
    array
}

/// Every row gets exactly one verdict, or the answer cannot be trusted.
fn judge(rows: &[Row], answers: Vec<BatchRow>) -> Result<Vec<Verdict>, StoreError> {
    let mut results: Vec<Option<Result<Enqueued, String>>> = rows.iter().map(|_| None).collect();
    for answer in answers {
        let place = results.get_mut(answer.index).ok_or_else(|| unexpected(answer.index))?;
        *place = Some(answer.result.map_err(|error| error.to_string()));
    }
    let mut verdicts = Vec::with_capacity(rows.len());
    for (index, (row, result)) in rows.iter().zip(results).enumerate() {
        let result = result.ok_or_else(|| unexpected(index))?;
        verdicts.push(Verdict { line_no: row.line_no, result });
    }
    Ok(verdicts)
}

fn unexpected(index: usize) -> StoreError {
    StoreError::Protocol(format!("no answer, or an answer too many, for row {index} of a batch"))
}

fn refused(row: &Row, error: &StoreError) -> Verdict {
    Verdict { line_no: row.line_no, result: Err(error.to_string()) }
}
