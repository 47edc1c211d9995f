-- Messages that a group gave up on.  The message itself stays in its lane.
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
