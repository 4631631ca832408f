//! Puts rows into the outbox.

use serde_json::value::RawValue;
use uuid::Uuid;

use super::{Store, StoreError};

// JSON travels as text: a number that went through a float would not come back as it was.
const ENQUEUE: &str = "SELECT outbox_id, sequence_id, is_new \
    FROM outbox.enqueue_payment_outbox(\
        $1::text, $2::text, $3::text, $4::text, $5::text::jsonb, $6::text::jsonb, \
        $7::uuid, $8::text::timestamptz)";

const ENQUEUE_BATCH: &str = "SELECT row_no, outbox_id, sequence_id, is_new, error_code, error_message \
    FROM outbox.enqueue_payment_outbox_batch($1::text::jsonb, true)";

/// A row to enqueue.
#[derive(Debug)]
pub struct NewRow<'a> {
    pub instruction_id: &'a str,
    pub participant_id: &'a str,
    pub idempotency_key: &'a str,
    pub rail_type: &'a str,
    pub payload: &'a RawValue,
    pub headers: Option<&'a RawValue>,
    pub tenant_id: Option<Uuid>,
    /// RFC 3339
    pub not_before: Option<&'a str>,
}

/// The row that the outbox holds for an idempotency key, whether it was there before or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enqueued {
    pub outbox_id: Uuid,
    pub sequence_id: i64,
    pub is_new: bool,
}

/// The outcome for one element of a batch.
#[derive(Debug)]
pub struct BatchRow {
    /// Place in the batch, counted from 0.
    pub index: usize,
    pub result: Result<Enqueued, super::ServerError>,
}

impl Store {
    /// Enqueues one row; the same key again returns the row that is already there.
    pub async fn enqueue(&self, row: &NewRow<'_>) -> Result<Enqueued, StoreError> {
        let answer = self
            .client
            .query_one(
                ENQUEUE,
                &[
                    &row.instruction_id,
                    &row.participant_id,
                    &row.idempotency_key,
                    &row.rail_type,
                    &row.payload.get(),
                    &row.headers.map(RawValue::get),
                    &row.tenant_id,
                    &row.not_before,
                ],
            )
            .await?;
        enqueued(&answer, 0)
    }

    /// Enqueues a JSON array of rows in one transaction. A row that the outbox refuses is reported
    /// and does not stop its neighbours; JSON that PostgreSQL cannot read fails the whole call.
    pub async fn enqueue_batch(&self, rows: &str) -> Result<Vec<BatchRow>, StoreError> {
        let answers = self.client.query(ENQUEUE_BATCH, &[&rows]).await?;
        answers.iter().map(batch_row).collect()
    }
}

fn enqueued(row: &tokio_postgres::Row, first_column: usize) -> Result<Enqueued, StoreError> {
    Ok(Enqueued {
        outbox_id: row.try_get(first_column)?,
        sequence_id: row.try_get(first_column + 1)?,
        is_new: row.try_get(first_column + 2)?,
    })
}

fn batch_row(row: &tokio_postgres::Row) -> Result<BatchRow, StoreError> {
    let row_no: i32 = row.try_get(0)?;
    let index = usize::try_from(row_no - 1)
        .map_err(|_| StoreError::Protocol(format!("row number {row_no} in a batch")))?;
    let code: Option<String> = row.try_get(4)?;
    let result = match code {
        None => Ok(enqueued(row, 1)?),
        Some(code) => {
            let message: Option<String> = row.try_get(5)?;
            Err(super::ServerError { code, message: message.unwrap_or_default() })
        }
    };
    Ok(BatchRow { index, result })
}
