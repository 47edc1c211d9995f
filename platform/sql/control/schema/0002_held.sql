-- Lanes in which events wait for a tenant whose database is away: src/ingest/lanes.h.
--
-- The events are in the broker; this says which lanes may hold any, and when they are tried next.  A row is written before the
-- first event goes into a lane and deleted after it was seen to be empty.
create table platform.held_lane (
    queue           text not null,
    partition       text not null,
    tenant          text not null,
    since           timestamptz not null,
    attempts        int not null,
    next_attempt_at timestamptz not null,
    last_error      text not null,
    primary key (queue, partition, tenant)
);
