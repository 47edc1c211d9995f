-- The write model of a tenant: the contents of its events, normalised, with few indexes.  Read models are derived from it.
--
-- Events identify customers by uuid.  customer.id is for joins inside the database.
-- updated_at is the time of the newest event about the row; an older event does not change it.
-- previous_customer_id is the customer that the last write took the row from; null: the customer did not change.
-- There are no foreign keys, because a transaction may arrive before the record of its customer.

do $$
begin
    if to_regclass('platform.tenant') is not null then
        raise exception 'the database is the control database of a platform' using errcode = 'QN409';
    end if;
end $$;

-- Whose database this is: the name of the tenant in a directory (platform.directory).  Two tenants of one directory must not share a database.
create table crm.belongs_to (
    directory uuid primary key,
    tenant    text not null
);

create table crm.customer (
    id            bigint generated always as identity primary key,
    customer_uuid uuid not null unique,
    first_name    text,
    last_name     text,
    email         text,
    phone         text,
    gender        text,
    city          text,
    postal_code   text,
    country       text,
    language      text,
    source        text,
    home_location text,
    note          text,
    birth_date    date,
    tags          text[] not null default '{}',
    email_opt_in  boolean not null default false,
    sms_opt_in    boolean not null default false,
    is_blocked    boolean not null default false,
    created_at    timestamptz not null,
    updated_at    timestamptz not null
) with (fillfactor = 80);

create table crm.subscription_account (
    id             uuid primary key,
    customer_id    uuid not null,
    previous_customer_id uuid,
    package_id     int,
    location_code  text,
    status         smallint,  -- 1 active, 2 paused, 3 past due, 4 cancelled
    price          numeric(12,2),
    currency       text,
    billing_period text,
    started_at     timestamptz,
    next_bill_date date,
    cancelled_at   timestamptz,
    updated_at     timestamptz not null
) with (fillfactor = 80);
create index subscription_account_of_customer on crm.subscription_account (customer_id);

create table crm.wallet_account (
    id            uuid primary key,
    customer_id   uuid not null,
    previous_customer_id uuid,
    kind          text,
    balance       numeric(14,2) not null default 0,
    currency      text,
    last_topup_at timestamptz,
    expires_at    timestamptz,
    status        smallint,   -- 1 active, 2 frozen; null: only adjustments have arrived
    updated_at    timestamptz not null
) with (fillfactor = 80);
create index wallet_account_of_customer on crm.wallet_account (customer_id);

create table crm.package_account (
    id              uuid primary key,
    customer_id     uuid not null,
    previous_customer_id uuid,
    package_id      int,
    location_code   text,
    status          smallint, -- 1 active, 2 used up, 3 expired
    total_units     int,
    remaining_units int,
    price           numeric(12,2),
    purchased_at    timestamptz,
    expires_at      timestamptz,
    updated_at      timestamptz not null
) with (fillfactor = 80);
create index package_account_of_customer on crm.package_account (customer_id);

-- The logs are append-only.  They need no primary key: crm.applied_event prevents that an event is applied twice.

create table crm.transaction_log (
    id             uuid not null,
    customer_id    uuid not null,
    location_code  text,
    kind           text not null,  -- sale or refund
    payment_method text,
    amount         numeric(12,2) not null,
    discount       numeric(12,2),
    tip            numeric(12,2),
    created_at     timestamptz not null
);
create index transaction_log_of_customer on crm.transaction_log (customer_id);

create table crm.visit_log (
    id               uuid not null,
    customer_id      uuid not null,
    location_code    text,
    service          text,
    duration_minutes int,
    rating           smallint,
    visited_at       timestamptz not null
);
create index visit_log_of_customer on crm.visit_log (customer_id);

create table crm.purchase_log (
    id            uuid not null,
    customer_id   uuid not null,
    product_id    int,
    category      text,
    location_code text,
    quantity      int,
    amount        numeric(12,2) not null,
    purchased_at  timestamptz not null
);
create index purchase_log_of_customer on crm.purchase_log (customer_id);

-- Ids of applied events.  Four slots take turns, one per day: crm.turn_applied_day truncates a slot before a new day uses it.  No row
-- is ever deleted by itself, and an event that arrives again within three days is recognised.
create table crm.applied_event (
    slot smallint not null,
    id    uuid not null,
    primary key (slot, id)
) partition by list (slot);
create table crm.applied_event_0 partition of crm.applied_event for values in (0);
create table crm.applied_event_1 partition of crm.applied_event for values in (1);
create table crm.applied_event_2 partition of crm.applied_event for values in (2);
create table crm.applied_event_3 partition of crm.applied_event for values in (3);

-- The day of each slot.
create table crm.applied_day (
    slot smallint primary key,
    day   date not null
);
insert into crm.applied_day select s, 'epoch' from generate_series(0, 3) s;

-- How far each partition of the event queue was applied to this database.  position is the broker's time of the last event in
-- microseconds since 1970; it rises along a partition.  Written in the transaction that applies the events (crm.ingest).
create table crm.ingest_checkpoint (
    queue     text not null,
    partition text not null,
    position  bigint not null,
    at        timestamptz not null,
    primary key (queue, partition)
) with (fillfactor = 50);
