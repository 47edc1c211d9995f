-- Traces: events that clients attach to messages.  They are deleted with the message.
create table queen.message_traces (
    id             uuid primary key default gen_random_uuid(),
    message_id     uuid not null,
    partition_id   uuid not null,
    transaction_id varchar(255) not null,
    consumer_group varchar(255) not null default '__QUEUE_MODE__',
    event_type     varchar(100) not null default 'info',
    data           jsonb not null,
    created_at     timestamptz not null default clock_timestamp(),
    worker_id      text,
    lane           bigint not null,
    seq            bigint not null
);
create index message_traces_lane on queen.message_traces (lane, seq);

create table queen.message_trace_names (
    trace_id   uuid not null references queen.message_traces (id) on delete cascade,
    trace_name text not null,
    primary key (trace_id, trace_name)
);
create index message_trace_names_name on queen.message_trace_names (trace_name);
