-- Retry policies, and all that happened to messages that failed.
alter table queen.queues add column retry_policy jsonb; -- as it was given; null: none (see queen.fill_retry_policy)

-- A retry lane holds the messages of one lane that are to be delivered once more to one group, and to no other.  It is no partition:
-- its queue_id is the id of the lane it belongs to and its name is the group's, so that whoever looks for the partitions of
-- a queue does not meet it.  Claims of it always go the careful way.
alter table queen.lanes
    add column origin       bigint,  -- the lane whose messages these are; null: a partition, as nearly all are
    add column origin_queue uuid;    -- the queue of that
create index lanes_retries on queen.lanes (origin_queue, name) where origin is not null;
create index lanes_by_origin on queen.lanes (origin) where origin is not null;

-- One row for each delivery that failed, and one for what became of the message in the end.  Messages that never fail have none.
create table queen.attempts (
    message_id     uuid not null,
    grp            text not null,
    nth            int not null,          -- counts the rows of a message and group
    attempt        int not null,          -- of the delivery: 1 for the first, and again for the first after a redrive
    outcome        "char" not null,       -- r: retry scheduled, i: delivered again in order, d: dead letter, c: completed,
                                          -- v: redriven, m: redriven to another queue, x: its retry was cancelled
    lane           bigint not null,       -- where the message was pushed to
    key            uuid not null,         -- of its transaction id
    correlation    uuid not null,         -- queen.transaction_key of the correlation id
    correlation_id text not null,
    transaction_id text not null,
    delivered_at   timestamptz,
    at             timestamptz not null,
    due_at         timestamptz,           -- r, v: when the next attempt is due
    max_attempts   int,
    error          text,
    error_code     text,
    worker         text,
    target         text,                  -- m: the queue
    primary key (message_id, grp, nth)
) with (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
create index attempts_correlation on queen.attempts (correlation) where nth = 1;
create index attempts_lane on queen.attempts (lane, key);
create index attempts_at on queen.attempts (at);

-- Messages by correlation id: one row for each that was pushed with one.
create table queen.correlations (
    correlation uuid not null,            -- queen.transaction_key of the correlation id
    lane        bigint not null,
    seq         bigint not null,
    primary key (lane, seq)               -- it goes with the message
) with (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
create index correlations_correlation on queen.correlations (correlation);

create index dead_letter_queue_message on queen.dead_letter_queue (message_id);

-- A message as it lies in a segment, opened.
create type queen.stored_message as (
    message_id uuid, key uuid, transaction_id text, trace_id uuid, producer_sub text, is_encrypted boolean, meta text,
    payload text, created_at timestamptz);

-- Dead letters sent on their way again: a counter for all brokers.
create sequence queen.redriven minvalue 0 start 0;
