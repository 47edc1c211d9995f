-- Read models: what is built, how fresh it is, and when the data last changed.

create table crm.read_model (
    model             text primary key check (model in ('customer_attributes', 'customer_transactions')),
    -- What the platform wants: the table kept by the write path, or the materialized view.
    mode              text not null default 'live' check (mode in ('live', 'views')),

    -- The materialized view crm.<model>_mv.  view_version is null until it was built once.
    view_version      text,
    -- It holds all that was committed at this time,
    view_as_of        timestamptz,
    -- and all changes up to this value of the sequence below.
    view_mark         bigint not null default 0,
    refreshed_at      timestamptz,
    refresh_ms        int,
    refresh_rows      bigint,
    refreshes         bigint not null default 0,
    failures          bigint not null default 0,
    last_error        text,
    last_error_at     timestamptz,
    -- Built beside under the name crm.<model>_mv_next and not swapped yet.
    next_view_version text,
    next_view_as_of   timestamptz,
    next_view_mark    bigint,

    -- The table crm.<model>_live.  live_version is null until it is complete.
    live_version      text,
    live_at           timestamptz,
    -- Being filled beside under the name crm.<model>_live_next, up to this customer.
    next_live_version text,
    next_live_through bigint,

    -- Samples of the live table compared with a computation from the write model.
    checked_rows      bigint not null default 0,
    differing_rows    bigint not null default 0,
    checked_at        timestamptz,
    differed_at       timestamptz
) with (fillfactor = 50);
insert into crm.read_model (model) values ('customer_attributes'), ('customer_transactions');

-- When the data behind a model last changed, in microseconds since 1970 (crm.changed).  A sequence and not a column:
-- every ingest transaction writes it, and a row would make them wait for each other and leave dead versions.
create sequence crm.customer_attributes_changed minvalue 0 start 0;
create sequence crm.customer_transactions_changed minvalue 0 start 0;
