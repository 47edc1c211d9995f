-- What all brokers of this database agree on: switches that a person sets.
create table queen.system_state (
    key        text primary key,
    value      jsonb not null,
    updated_at timestamptz not null default clock_timestamp()
);
