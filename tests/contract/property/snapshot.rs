//! Asks the server for everything it holds about the participants of one case, in one query.

use std::collections::BTreeMap;

use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use super::state::{Entry, Failure, Key, Lane, LaneId, Lease, Name, Position, Row, State, Stop};

/// Made once for a database: a clock that moves by hand alone, and the ledger with its archive.
pub(super) const PREPARE: &str = "
    DO $$ BEGIN EXECUTE format(
      'CREATE OR REPLACE FUNCTION outbox.clock() RETURNS timestamptz LANGUAGE sql VOLATILE
         AS $f$ SELECT %1$L::timestamptz + (SELECT ahead FROM test.clock) $f$;
       CREATE FUNCTION test.ms(timestamptz) RETURNS text LANGUAGE sql IMMUTABLE
         AS $f$ SELECT round(EXTRACT(epoch FROM $1 - %1$L::timestamptz) * 1000)::bigint::text $f$',
      date_trunc('second', clock_timestamp())); END $$;
    CREATE VIEW test.ledger AS SELECT a.*, true AS hot FROM outbox.payment_outbox_attempts AS a;";

/// Before an upkeep: nothing is dropped that a view needs.
pub(super) const LOOK_AWAY: &str = "
    CREATE OR REPLACE VIEW test.ledger AS SELECT a.*, true AS hot FROM outbox.payment_outbox_attempts AS a";

/// After an upkeep: what was archived is still looked at.
pub(super) const LOOK_INTO_ARCHIVE: &str = "
    DO $$ BEGIN EXECUTE
      'CREATE OR REPLACE VIEW test.ledger AS SELECT a.*, true AS hot FROM outbox.payment_outbox_attempts AS a'
      || COALESCE((SELECT string_agg(format(' UNION ALL SELECT a.*, false FROM outbox_archive.%I AS a', partition_name), '')
           FROM outbox.payment_outbox_partitions
           WHERE archived_at IS NOT NULL AND parent_name = 'payment_outbox_attempts'), ''); END $$";

pub(super) const QUERY: &str = "
    SELECT 'row', ARRAY[p.outbox_id::text, p.dead_letter_of::text, p.participant_id, p.rail_type, p.sequence_id::text,
        p.instruction_id, p.idempotency_key, p.payload ->> 'n', p.attempt_count::text, test.ms(p.next_attempt_at),
        p.claimed_by, p.lease_token::text, test.ms(p.lease_expires_at), p.solo::text, p.replay_of::text, p.turn_id::text, p.lane_position::text]
    FROM outbox.payment_outbox_pending AS p WHERE p.participant_id = ANY ($1)
    UNION ALL
    SELECT 'try', ARRAY[a.outbox_id::text, a.dead_letter_of::text, a.participant_id, a.rail_type, a.sequence_id::text,
        a.attempt_no::text, a.state::text, a.counted::text, a.worker_id,
        CASE WHEN a.worker_id NOT LIKE 'operator:%' THEN a.lease_token::text END, a.error_code, a.replay_of::text, a.hot::text]
    FROM test.ledger AS a WHERE a.instruction_id = ANY ($2)
    UNION ALL
    SELECT 'failure', ARRAY[f.outbox_id::text, f.participant_id, f.rail_type, f.sequence_id::text, f.resolution, f.replay_outbox_id::text]
    FROM outbox.payment_outbox_failures AS f WHERE f.participant_id = ANY ($1)
    UNION ALL
    SELECT 'next', ARRAY[s.participant_id, s.next_sequence_id::text]
    FROM outbox.participant_outbox_sequences AS s WHERE s.participant_id = ANY ($1)
    UNION ALL
    SELECT 'key', ARRAY[k.instruction_id, k.idempotency_key, k.outbox_id::text]
    FROM outbox.payment_outbox_keys AS k WHERE k.instruction_id = ANY ($2)
    UNION ALL
    SELECT 'lane', ARRAY[l.lane_id::text, l.participant_id, l.rail_type, l.solo_sequence_id::text, (l.paused_at IS NOT NULL)::text, l.halted_by::text]
    FROM outbox.payment_outbox_lanes AS l WHERE l.participant_id = ANY ($1)
    UNION ALL
    SELECT 'turn', ARRAY[t.lane_id::text, t.turn_id::text, test.ms(t.due_at), t.head_position::text, t.last_position::text,
        t.worker_id, t.empty_looks::text]
    FROM outbox.payment_outbox_turns AS t";

#[derive(Debug)]
pub(super) struct SeenLane {
    pub(super) id: LaneId,
    pub(super) paused: bool,
    pub(super) halted: bool,
}

#[derive(Debug)]
pub(super) struct Turn {
    pub(super) lane: i64,
    pub(super) turn: i64,
    pub(super) due_at: i64,
    pub(super) head: i64,
    pub(super) last: Option<i64>,
    pub(super) worker: Option<String>,
    pub(super) empty_looks: i64,
}

#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) state: State,
    pub(super) lanes: BTreeMap<i64, SeenLane>,
    /// Of the whole database, which runs one case at a time.
    pub(super) turns: Vec<Turn>,
    /// Under which turn a row is leased.
    pub(super) turn_of: BTreeMap<Name, i64>,
    /// A letter's own id, by the row that it buries; more than one is a fault.
    pub(super) letters: BTreeMap<Uuid, Vec<Uuid>>,
}

pub(super) async fn take(
    client: &Client,
    query: &Statement,
    participants: &[String],
    instructions: &[String],
) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for fact in client.query(query, &[&participants, &instructions]).await.expect("a snapshot") {
        let kind: &str = fact.get(0);
        let fields = Fields(fact.get(1));
        match kind {
            "row" => snapshot.add_row(&fields),
            "try" => snapshot.add_try(&fields),
            "failure" => snapshot.add_failure(&fields),
            "lane" => snapshot.add_lane(&fields),
            "turn" => snapshot.turns.push(turn(&fields)),
            "next" => {
                snapshot.state.next.insert(fields.text(0), fields.number(1));
            }
            _ => {
                snapshot.state.keys.insert(fields.pair(0), fields.id(2));
            }
        }
    }
    for tries in snapshot.state.ledger.values_mut().chain(snapshot.state.archive.values_mut()) {
        tries.sort_by_key(|entry| entry.number);
    }
    snapshot
}

struct Fields<'a>(Vec<Option<&'a str>>);

impl Fields<'_> {
    fn text(&self, at: usize) -> String {
        self.0[at].expect("not null").to_owned()
    }

    fn maybe_text(&self, at: usize) -> Option<String> {
        self.0[at].map(str::to_owned)
    }

    fn number(&self, at: usize) -> i64 {
        self.0[at].expect("not null").parse().expect("a number")
    }

    fn is(&self, at: usize) -> bool {
        self.0[at] == Some("true")
    }

    fn id(&self, at: usize) -> Uuid {
        self.maybe_id(at).expect("not null")
    }

    fn maybe_id(&self, at: usize) -> Option<Uuid> {
        self.0[at].map(|id| id.parse().expect("a UUID"))
    }

    fn pair(&self, at: usize) -> (String, String) {
        (self.text(at), self.text(at + 1))
    }
}

fn turn(fields: &Fields) -> Turn {
    Turn {
        lane: fields.number(0),
        turn: fields.number(1),
        due_at: fields.number(2),
        head: fields.number(3),
        last: fields.0[4].map(|_| fields.number(4)),
        worker: fields.maybe_text(5),
        empty_looks: fields.number(6),
    }
}

impl Snapshot {
    /// Fields 0 and 1 are a row's id and, of a dead letter, what it buries.
    fn name(&mut self, fields: &Fields) -> Name {
        let id = fields.id(0);
        let Some(buried) = fields.maybe_id(1) else { return Name::Own(id) };
        let letters = self.letters.entry(buried).or_default();
        if !letters.contains(&id) {
            letters.push(id);
        }
        Name::LetterOf(buried)
    }

    fn add_row(&mut self, fields: &Fields) {
        let name = self.name(fields);
        let lane: Lane = fields.pair(2);
        let key: Key = fields.pair(5);
        let lease = fields.maybe_text(10).map(|worker| Lease {
            worker,
            token: fields.id(11),
            expires_at: fields.number(12),
        });
        if fields.0[15].is_some() {
            self.turn_of.insert(name, fields.number(15));
        }
        let row = Row {
            lane,
            sequence: fields.number(4),
            position: Position(fields.number(16)),
            key,
            payload: fields.text(7),
            attempts: i32::try_from(fields.number(8)).expect("a count"),
            next_at: fields.number(9),
            lease,
            solo: fields.is(13),
            replay_of: fields.maybe_id(14),
        };
        self.state.rows.insert(name, row);
    }

    fn add_try(&mut self, fields: &Fields) {
        let name = self.name(fields);
        let entry = Entry {
            number: i32::try_from(fields.number(5)).expect("a count"),
            state: fields.text(6),
            counted: fields.is(7),
            worker: fields.text(8),
            token: fields.maybe_id(9),
            error: fields.maybe_text(10),
            lane: fields.pair(2),
            sequence: fields.number(4),
            replay_of: fields.maybe_id(11),
        };
        let ledger = if fields.is(12) { &mut self.state.ledger } else { &mut self.state.archive };
        ledger.entry(name).or_default().push(entry);
    }

    fn add_failure(&mut self, fields: &Fields) {
        let failure = Failure {
            lane: fields.pair(1),
            sequence: fields.number(3),
            resolution: fields.maybe_text(4),
            replay: fields.maybe_id(5),
        };
        self.state.failures.insert(fields.id(0), failure);
    }

    fn add_lane(&mut self, fields: &Fields) {
        let lane: Lane = fields.pair(1);
        let halted_by = fields.maybe_id(5);
        let seen = SeenLane {
            id: (lane.0, lane.1, fields.number(3)),
            paused: fields.is(4),
            halted: halted_by.is_some(),
        };
        self.state.set_stop(&seen.id, Stop { paused: seen.paused, halted_by });
        self.lanes.insert(fields.number(0), seen);
    }
}
