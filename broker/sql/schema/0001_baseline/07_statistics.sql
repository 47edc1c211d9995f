-- Statistics of lanes, groups and queues, shown by status pages.
--
-- A pass (queen.refresh_stats) counts the lanes that changed since the last pass.  queen.lane_stats and queen.consumer_stats keep what
-- it last saw of each lane and consumer, so that it can update sums by the difference.  No other code writes these tables.
-- queen.stats_chore rewrites a table that has become much larger than its contents, by TRUNCATE, because an open snapshot
-- elsewhere prevents vacuum from reclaiming rows.

create table queen.lane_stats (
    lane       bigint primary key,
    queue_id   uuid not null,
    first_seq  bigint not null,          -- of the oldest message; next_seq if there is none
    next_seq   bigint not null,          -- 1 if nothing was ever stored
    tail_seq   bigint not null,          -- start of the last segment: the next probe begins there
    waiting    bigint not null,          -- messages that some group has not consumed
    processing bigint not null,          -- those of them that are under a lease
    dead       bigint not null,          -- dead letters, one per message and group
    newest_at  timestamptz,              -- of the newest message
    oldest_at  timestamptz,              -- of the first waiting message
    deleted    bigint not null default 0,-- deleted messages among those stored
    done       bigint not null default 0,-- consumed up to this sequence: by queue mode, else by the slowest group
    leased_to  bigint not null default 0,-- last message under a lease of queue mode
    done_at    timestamptz               -- creation time of the message `done`: lists of completed messages need not read segments
) with (fillfactor = 70);
create index lane_stats_oldest on queen.lane_stats (queue_id, oldest_at) where oldest_at is not null;

create table queen.consumer_stats (
    consumer    bigint primary key,
    lane        bigint not null,
    queue_id    uuid not null,
    grp         text not null,
    ver         bigint not null,
    cursor_seq  bigint not null,
    lag         bigint not null,         -- stored messages after the cursor
    consumed    bigint not null,
    leased_to   bigint,                  -- last message under the lease
    lease_until timestamptz,             -- null: no lease, or it has expired. Of a work queue: when the next lease or delay may end
    oldest_at   timestamptz,             -- of the first message after the cursor
    batches     bigint not null default 0,
    last_at     timestamptz,             -- last consumed
    leased      bigint                   -- of a work queue: messages that are leased now; null: not a work queue
) with (fillfactor = 70);
create index consumer_stats_lane on queen.consumer_stats (lane);
create index consumer_stats_queue on queen.consumer_stats (queue_id);
create index consumer_stats_oldest on queen.consumer_stats (queue_id, grp, oldest_at) where oldest_at is not null;
create index consumer_stats_lease on queen.consumer_stats (lease_until) where lease_until is not null;

-- One row: how far the pass has come.
create table queen.stats_pass (
    one           boolean primary key default true check (one),
    seen          pg_snapshot,               -- of the last read of the change feed; null: count everything from scratch
    emptied       bigint not null default 0, -- queen.rotation.emptied at that read
    blocks_a      bigint not null default 0, -- sizes of the slots of queen.consumer_states at that read
    blocks_b      bigint not null default 0,
    blocks_feed   bigint not null default 0, -- size of both slots of queen.changes
    passed_at     timestamptz,
    reconciled_at timestamptz,
    reconciled_to bigint not null default 0, -- lane up to which the current round of full recounts has come
    rewritten_at  timestamptz
);
insert into queen.stats_pass (seen) values (pg_current_snapshot());

-- Lanes that a pass has left for the next one, because a pass counts a limited number.
create table queen.stats_pending (
    lane bigint primary key,
    old  boolean not null  -- found while counting from scratch: its messages are not new, so rates ignore them
) with (autovacuum_vacuum_scale_factor = 0.1, vacuum_truncate = off);

-- Sums.  stat_type 'queue': stat_key is the id of the queue.  'group': the id of the queue, a slash, and the group.  'system': 'system'.
create table queen.stats (
    stat_type               varchar(20) not null,
    stat_key                text not null,
    queue_id                uuid,
    partition_id            uuid,
    consumer_group          text,
    child_count             bigint not null default 0, -- queue: partitions ever written to; group: partitions with a consumer
    total_messages          bigint not null default 0, -- stored
    pending_messages        bigint not null default 0, -- queue: not consumed by some group and not under a lease; group: lag
    processing_messages     bigint not null default 0,
    completed_messages      bigint not null default 0, -- queue: stored and consumed; group and system: consumed ever
    dead_letter_messages    bigint not null default 0,
    oldest_pending_at       timestamptz,
    newest_message_at       timestamptz,
    avg_lag_seconds         double precision,
    max_lag_seconds         double precision,
    median_lag_seconds      double precision,
    avg_offset_lag          double precision,
    max_offset_lag          bigint,
    ingested_per_second     double precision,
    processed_per_second    double precision,
    prev_total_messages     bigint,
    prev_completed_messages bigint,
    prev_snapshot_at        timestamptz,
    last_scanned_at         timestamptz,
    last_scanned_message_id uuid,
    last_computed_at        timestamptz,
    ever_pushed             bigint not null default 0,
    ever_consumed           bigint not null default 0,
    ever_dead               bigint not null default 0,
    lagging                 bigint not null default 0, -- group: partitions with messages after the cursor
    primary key (stat_type, stat_key)
) with (fillfactor = 70);
create index stats_queue on queen.stats (queue_id);
insert into queen.stats (stat_type, stat_key) values ('system', 'system');

-- Messages that wait outside the backlog of a group, counted by queen.count_waiting while metrics are read.
create table queen.waiting_counts (
    queue_id uuid not null,
    grp      text not null,            -- '': of no group
    delayed  bigint not null,          -- scheduled by their producers
    retrying bigint not null,          -- failed or given back, and not delivered again yet
    dead     bigint not null,          -- dead letters
    primary key (queue_id, grp)
) with (fillfactor = 70);
create table queen.waiting_pass (
    one        boolean primary key default true check (one),
    counted_at timestamptz not null,
    took       interval not null
) with (fillfactor = 70);

-- Messages stored and consumed per minute, for the system and for queues with activity in that minute.
create table queen.stats_history (
    stat_type            varchar(20) not null,
    stat_key             text not null,
    bucket_time          timestamptz not null,
    total_messages       bigint not null default 0,
    pending_messages     bigint not null default 0,
    processing_messages  bigint not null default 0,
    completed_messages   bigint not null default 0,
    dead_letter_messages bigint not null default 0,
    messages_ingested    bigint not null default 0,
    messages_processed   bigint not null default 0,
    max_lag_seconds      double precision,
    primary key (stat_type, stat_key, bucket_time)
) with (fillfactor = 80);
create index stats_history_time on queen.stats_history (bucket_time);
