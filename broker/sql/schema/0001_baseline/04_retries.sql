-- Messages that failed: attempts and dead letters.

-- Dead letters: a message is listed at most once per group.  The message itself stays in its lane.
create table queen.dead_letter_queue (
    id                  uuid primary key default gen_random_uuid(),
    message_id          uuid not null,
    partition_id        uuid not null,
    consumer_group      varchar(255) not null,
    error_message       text,
    retry_count         int not null default 0,
    original_created_at timestamptz,
    failed_at           timestamptz not null default now(),
    lane                bigint not null,
    seq                 bigint not null
);
create index dead_letter_queue_lane on queen.dead_letter_queue (lane, seq);
create index dead_letter_queue_failed_at on queen.dead_letter_queue (failed_at);
create index dead_letter_queue_created on queen.dead_letter_queue (original_created_at desc, lane, seq desc);
create unique index dead_letter_queue_message on queen.dead_letter_queue (message_id, consumer_group);

-- One row per failed delivery, and one for the final outcome.  A message that never fails has no rows.
create table queen.attempts (
    message_id     uuid not null,
    grp            text not null,
    nth            int not null,          -- counts the rows of a message and group
    attempt        int not null,          -- number of the delivery; starts at 1 again after a redrive
    outcome        "char" not null,       -- r: retry scheduled, i: delivered again in order, d: dead letter, c: completed,
                                          -- v: redriven, m: redriven to another queue, x: retry cancelled
    lane           bigint not null,       -- the lane that the message was pushed to
    key            uuid not null,         -- queen.transaction_key of the transaction id
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

-- Leases that expired before all of their messages were settled, one row per set of messages, for the timeline.
create table queen.expired_leases (
    lane         bigint not null,
    grp          text not null,
    first_seq    bigint not null,
    last_seq     bigint not null,
    times        int not null default 1,
    delivered_at timestamptz,           -- the last time
    expired_at   timestamptz not null,  -- the last time
    primary key (lane, grp, first_seq, last_seq)
) with (fillfactor = 80, vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
create index expired_leases_at on queen.expired_leases (expired_at);

-- Counts redriven dead letters, for the metrics of all brokers.
create sequence queen.redriven minvalue 0 start 0;
