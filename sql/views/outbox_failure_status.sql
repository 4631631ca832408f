CREATE OR REPLACE VIEW outbox.outbox_failure_status AS
SELECT f.outbox_id, f.tenant_id, a.instruction_id, f.participant_id, f.sequence_id, a.idempotency_key, f.rail_type, a.created_at, f.failed_at,
       f.error_code, a.error_message, a.rail_code, a.rail_reference, a.attempt_no AS attempts, a.replay_of,
       EXISTS (SELECT FROM outbox.payment_outbox_pending AS p WHERE p.dead_letter_of = f.outbox_id) AS dead_letter_waits,
       EXISTS (SELECT FROM outbox.payment_outbox_lanes AS l
               WHERE l.participant_id = f.participant_id AND l.rail_type = f.rail_type AND l.halted_by = f.outbox_id) AS halts_lane,
       f.resolution, f.replay_outbox_id, f.resolved_at, f.resolved_by, f.resolved_reason
FROM outbox.payment_outbox_failures AS f
LEFT JOIN outbox.payment_outbox_attempts AS a ON a.outbox_id = f.outbox_id AND a.state = 'FAILED';
COMMENT ON VIEW outbox.outbox_failure_status IS 'Each FAILED row: why it failed, whether its dead letter still waits and its lane stands still for it, and what an operator did about it. Without its payload.';
