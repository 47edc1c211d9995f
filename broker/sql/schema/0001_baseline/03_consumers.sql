-- Consumer groups: cursors, leases, and the change feed that wakes waiting pops.

-- One row per (lane, group).  It is locked and never updated; queen.consumer_states has its cursor and lease.
create table queen.consumers (
    num        bigint generated always as identity primary key,
    lane       bigint not null,
    grp        text not null,
    created_at timestamptz not null default now(),
    unique (lane, grp)
) with (
    autovacuum_vacuum_insert_threshold = 200000, autovacuum_analyze_threshold = 250, autovacuum_analyze_scale_factor = 1
);
-- With the lane, so that a plan made for an empty table still finds a consumer by one probe.
create index consumers_by_group_lane on queen.consumers (grp, lane);

-- The state of a consumer is its row with the highest ver.  Rows are only inserted and read by a backward index probe under the
-- lock of the consumer's row, so no call reads dead rows even if an old snapshot is open elsewhere.
--
-- New rows go to the slot that queen.rotation names.  queen.rotate switches slots, copies the newest rows and truncates the old slot.
create table queen.consumer_states (
    consumer       bigint not null,
    ver            bigint not null,
    cursor_seq     bigint not null,            -- last sequence consumed
    lease_first    bigint,                     -- first and last sequence delivered under the lease
    lease_last     bigint,
    total_messages bigint not null default 0,
    total_batches  bigint not null default 0,
    last_at        timestamptz,                -- last consumed
    lease_at       timestamptz,
    lease_until    timestamptz,                -- the lease is active while this is in the future
    retry_at       timestamptz,                -- not delivered before (retryDelay)
    batch_size     int not null default 0,     -- messages delivered under the lease
    acked          int not null default 0,     -- how many of them were acknowledged
    retries        int not null default 0,     -- consecutive failed deliveries
    slot           "char" not null,
    lease          uuid,                       -- queen.transaction_key of the lease id
    lease_text     text,                       -- the lease id, if it is not a UUID
    acked_mask     bytea,                      -- bit i: message lease_first + i was acknowledged
    settled        int8multirange,             -- messages behind cursor_seq that were settled one by one; null: none
    past_lease     uuid,                       -- the last lease that ended because all of it was settled

    -- Only on work queues; taken_seq is null elsewhere.  cursor_seq: all messages up to it are settled; batch_size: messages up to
    -- taken_seq that are not settled.
    taken_seq  bigint,                         -- last sequence that was delivered
    holds_from bigint,                         -- holds with a lower number have no effect
    walk_seq   bigint,                         -- every open hold begins here or later
    swept_at   timestamptz,                    -- holds that expired before (swept_at, swept_seq) were examined
    swept_seq  bigint,
    leased     int,                            -- with maxInFlight: messages under leases that end after leases_at; null: not counted
    leases_at  timestamptz,
    rate_at    timestamptz,                    -- with rateLimit: the rate of the group is used up until then (queen.limit_work)
    key_rate_at timestamptz,                   -- with keyRateLimit: likewise, of the key of the partition

    -- Deliveries that end without an acknowledgement (queen.suspicion); null: none
    expired        int,                        -- with a lease: earlier deliveries of lease_first that expired
    suspects_to    bigint,                     -- the messages up to this one expired together
    suspect_times  int                         -- so often
) partition by list (slot);
create table queen.consumer_states_a partition of queen.consumer_states
    (primary key (consumer, ver)) for values in ('a') with (autovacuum_enabled = off);
create table queen.consumer_states_b partition of queen.consumer_states
    (primary key (consumer, ver)) for values in ('b') with (autovacuum_enabled = off);
create index consumer_states_a_lease on queen.consumer_states_a (lease) where lease is not null;
create index consumer_states_b_lease on queen.consumer_states_b (lease) where lease is not null;

-- The holds of work queues: which messages are delivered and not settled.  A lease has one hold for each unbroken run of its messages.
--
-- A hold is its row with the highest ver.  Rows are only inserted, by sessions that have locked the consumer, and rotate together with
-- queen.consumer_states.  A message after the cursor and up to taken_seq is settled if no open hold contains it.
create table queen.holds (
    consumer   bigint not null,
    first_seq  bigint not null,
    hold       bigint not null,                -- version of the consumer's state that made it; together with first_seq its identity
    ver        int not null,
    count      int not null check (count between 1 and 256),
    deliveries int not null,                   -- of these messages, including this one
    retries    int not null,                   -- how many of these have failed
    slot       "char" not null,
    at         timestamptz,                    -- time of delivery
    until      timestamptz,                    -- not delivered to others before; null: the hold has ended
    lease      uuid,                           -- queen.transaction_key of the lease id; null: no consumer has these messages
    done       bytea                           -- bit i: message first_seq + i was settled or given back; null: none was
) partition by list (slot);
create table queen.holds_a partition of queen.holds
    (primary key (consumer, first_seq, hold, ver)) for values in ('a') with (autovacuum_enabled = off);
create table queen.holds_b partition of queen.holds
    (primary key (consumer, first_seq, hold, ver)) for values in ('b') with (autovacuum_enabled = off);
create index holds_a_until on queen.holds_a (consumer, until, first_seq) where until is not null;
create index holds_b_until on queen.holds_b (consumer, until, first_seq) where until is not null;
-- Messages that were given back, for a claim that looks for the next one that is due.
create index holds_a_returned on queen.holds_a (consumer, until) where until is not null and lease is null;
create index holds_b_returned on queen.holds_b (consumer, until) where until is not null and lease is null;
create index holds_a_lease on queen.holds_a (lease) where until is not null and lease is not null;
create index holds_b_lease on queen.holds_b (lease) where until is not null and lease is not null;

-- The change feed: one row per push batch with the lanes that got messages, and one per change of a group (queue_name, grp).
-- A reader keeps its snapshot and asks for the rows that were not visible to it (queen.changes_since).
create table queen.changes (
    xid        xid8 not null default pg_current_xact_id(),
    origin     int not null,                   -- process that wrote it; 0: a SQL session
    slot       "char" not null,
    lanes      bigint[] not null,
    queue_name text,
    grp        text
) partition by list (slot);
create table queen.changes_a partition of queen.changes for values in ('a') with (autovacuum_enabled = off);
create table queen.changes_b partition of queen.changes for values in ('b') with (autovacuum_enabled = off);
create index changes_a_xid on queen.changes_a (xid);
create index changes_b_xid on queen.changes_b (xid);
create index changes_a_groups on queen.changes_a (xid) where grp is not null;
create index changes_b_groups on queen.changes_b (xid) where grp is not null;

-- One row: the slot of queen.consumer_states and queen.changes that is written now.
create table queen.rotation (
    one         boolean primary key default true check (one),
    active      "char" not null default 'a',
    switched_at timestamptz not null default now(),
    emptied     bigint not null default 0,     -- slots truncated so far; a reader of the feed that sees it grow may have missed rows
    copied_at   timestamptz                    -- the newest rows of the old slot were copied; it is truncated some time later
);
insert into queen.rotation default values;

-- Where a named group starts on lanes that it has no consumer for yet.
create table queen.consumer_groups_metadata (
    id                     uuid primary key default gen_random_uuid(),
    consumer_group         text not null,
    queue_name             text not null default '',
    partition_name         text not null default '',
    namespace              text not null default '',
    task                   text not null default '',
    subscription_mode      text not null,
    subscription_timestamp timestamptz not null,
    created_at             timestamptz not null default now(),
    unique (consumer_group, queue_name, partition_name, namespace, task)
);

-- When a wildcard pop of a group last found the whole queue empty.
create table queen.consumer_watermarks (
    queue_name         varchar(255) not null,
    consumer_group     varchar(255) not null default '__QUEUE_MODE__',
    last_empty_scan_at timestamptz not null default now(),
    updated_at         timestamptz not null default now(),
    primary key (queue_name, consumer_group)
);

-- Where the next SQL pop of a group on a queue with many partitions goes on looking (queen.scan_lanes).
create table queen.group_scans (
    queue_id  uuid not null,
    grp       text not null,
    after     text,                            -- name of the last partition looked at; null: begin with the first
    found     boolean not null default false,  -- messages were found since the scan was at the first partition
    unread    boolean not null default true,   -- partitions without a consumer of the group count as not consumed by it
    popped_at timestamptz not null default now(),
    filled    text,                            -- the chore has made the consumers up to this partition (queen.fill_scans)
    primary key (queue_id, grp)
) with (autovacuum_vacuum_scale_factor = 0.1, vacuum_truncate = off, fillfactor = 50);

-- Which processor owns a partition for a group: one row per (partition, group) that was ever claimed.
--
-- Written when a processor claims, renews (all of its partitions in one statement, three times per expiry) or saves a
-- checkpoint.  Pushes, pops and acknowledgements do not write it.
create table queen.owners (
    lane          bigint not null references queen.lanes (num) on delete cascade,
    grp           text not null,
    owner         text,                        -- null: released
    epoch         bigint not null default 0,   -- grows with each new owner; a call with an older epoch is rejected
    since         timestamptz not null default now(),
    expires_at    timestamptz not null default now(),
    checkpoint    bigint,                      -- last sequence that need not be processed again; null: the cursor of the group
    checkpoint_at timestamptz,
    wanted_by     text,                        -- processor that has asked the owner to release the partition
    wanted_at     timestamptz,
    primary key (lane, grp)
) with (fillfactor = 50);

-- Every change of an owner, for people.  Rows are only inserted and are deleted by age (queen.trim_metrics).  They outlive the queue and the
-- group.
create table queen.owner_changes (
    at        timestamptz not null,
    queue_id  uuid not null,
    grp       text not null,
    partition text not null,
    epoch     bigint not null,                 -- since the change
    previous  text,                            -- owner before it; null: none
    owner     text,                            -- null: released
    expired   boolean not null                 -- the claim of the previous owner had expired
);
create index owner_changes_at on queen.owner_changes (at);
create index owner_changes_of on queen.owner_changes (queue_id, grp, at);
