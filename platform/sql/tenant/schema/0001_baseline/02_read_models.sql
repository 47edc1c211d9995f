-- Read models: what was built, how fresh it is, and when the data last changed.

create table crm.read_model (
    model             text primary key check (model in ('customer_attributes', 'customer_transactions')),
    -- live: a table that the write path keeps up to date.  views: a materialized view.
    mode              text not null default 'live' check (mode in ('live', 'views')),

    -- The materialized view crm.<model>_mv.  view_version is null until it was built once.
    view_version      text,
    view_as_of        timestamptz,                 -- it contains everything that was committed at this time
    view_mark         bigint not null default -1,  -- and all changes up to this count (crm.model_mark)
    refreshed_at      timestamptz,
    refresh_ms        int,
    refresh_rows      bigint,
    refreshes         bigint not null default 0,
    failures          bigint not null default 0,
    last_error        text,
    last_error_at     timestamptz,
    -- The view crm.<model>_mv_next, built and not swapped yet.
    next_view_version text,
    next_view_as_of   timestamptz,
    next_view_mark    bigint,

    -- The table crm.<model>_live.  live_version is null until it is complete.
    live_version      text,
    live_at           timestamptz,
    -- The table crm.<model>_live_next, filled up to this customer.
    next_live_version text,
    next_live_through bigint,

    -- Samples of the live table, compared with a computation from the write model.
    checked_rows      bigint not null default 0,
    differing_rows    bigint not null default 0,
    checked_at        timestamptz,
    differed_at       timestamptz,

    -- The live table has a function that recomputes only the columns that depend on the changed table.
    live_in_parts     boolean not null default false
) with (fillfactor = 50);
insert into crm.read_model (model) values ('customer_attributes'), ('customer_transactions');

-- Per model: the time of the last change in microseconds since 1970, and the number of changes (crm.changed).  The number decides whether a
-- view is stale, because a clock can be set back.
--
-- These are sequences and not columns: every ingest transaction writes them, and a row would make transactions wait for each other and leave
-- dead rows.
create sequence crm.customer_attributes_changed minvalue 0 start 0;
create sequence crm.customer_transactions_changed minvalue 0 start 0;
create sequence crm.customer_attributes_changes minvalue 0 start 0;
create sequence crm.customer_transactions_changes minvalue 0 start 0;
-- The first nextval() then returns 1, so that last_value is the number of changes.
select setval('crm.customer_attributes_changes', 0), setval('crm.customer_transactions_changes', 0);
