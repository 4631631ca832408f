CREATE OR REPLACE TRIGGER payment_outbox_pending_notify
  AFTER INSERT ON outbox.payment_outbox_pending
  FOR EACH STATEMENT EXECUTE FUNCTION outbox.notify_outbox_pending();

CREATE OR REPLACE TRIGGER payment_outbox_pending_no_truncate
  BEFORE TRUNCATE ON outbox.payment_outbox_pending
  FOR EACH STATEMENT EXECUTE FUNCTION outbox.refuse_truncate();
ALTER TABLE outbox.payment_outbox_pending ENABLE ALWAYS TRIGGER payment_outbox_pending_no_truncate;
