-- Segments with a name, who is in those that are watched, and campaigns that are sent to them.

create table crm.segment (
    id           uuid primary key default gen_random_uuid(),
    name         text not null unique,
    -- As it was written; read and compiled by the platform, never by SQL.
    filter       json not null,
    created_at   timestamptz not null default now(),
    updated_at   timestamptz not null default now(),

    -- A subscription: customers who come and go are told to this queue.
    watch_queue  text,
    -- Those who are inside when it begins are told too.
    watch_initial boolean not null default false,
    -- How often it is looked at; null: neither a subscription nor a campaign wants it.
    watch_every_s int,
    -- When the members below were complete for the first time; null: not yet.
    watched_since timestamptz,
    evaluated_at timestamptz
) with (fillfactor = 70);

-- Counts over time, of saved segments.
create table crm.segment_history (
    segment_id uuid not null references crm.segment on delete cascade,
    at         timestamptz not null default clock_timestamp(),
    count      bigint not null,
    path       text not null,
    primary key (segment_id, at)
);

-- Who is in a watched segment, as of its last look.
create table crm.segment_member (
    segment_id    uuid not null references crm.segment on delete cascade,
    customer_uuid uuid not null,
    since         timestamptz not null default now(),
    primary key (segment_id, customer_uuid)
);

-- Comings and goings that no queue has yet.  Written with the members they speak of, deleted when the broker has them; the
-- transaction id of the message is made from the row's id, so that sending one again does no harm.
create table crm.segment_outbox (
    id            bigint generated always as identity primary key,
    segment_id    uuid not null references crm.segment on delete cascade,
    customer_uuid uuid not null,
    entered       boolean not null,
    at            timestamptz not null default now()
);
create index segment_outbox_of_segment on crm.segment_outbox (segment_id, id);

create table crm.campaign (
    id           uuid primary key default gen_random_uuid(),
    name         text not null unique,
    segment_id   uuid not null references crm.segment,
    -- now: once, at once; at: once, then; cron: again and again; entering: whoever comes into the segment
    kind         text not null check (kind in ('now', 'at', 'cron', 'entering')),
    at           timestamptz,
    cron         text,
    timezone     text,
    queue        text not null,
    -- The payload of each message, with {{first_name}} and the like in its texts.
    template     json not null,
    -- For each message: what the broker does when its consumer fails.  Null: scheduled retries with the defaults.
    retry_policy json,
    paused       boolean not null default false,
    created_at   timestamptz not null default now()
);
create index campaign_of_segment on crm.campaign (segment_id);

-- One firing of a campaign.  The key names the trigger, so that a trigger that is delivered twice finds its run.
create table crm.campaign_run (
    id           uuid primary key default gen_random_uuid(),
    campaign_id  uuid not null references crm.campaign on delete cascade,
    key          text not null unique,
    path         text,
    recipients   bigint not null default 0,
    -- Recipients up to this number are with the broker.
    sent         bigint not null default 0,
    created_at   timestamptz not null default now(),
    finished_at  timestamptz
) with (fillfactor = 50);
create index campaign_run_of_campaign on crm.campaign_run (campaign_id, created_at desc);

-- Who a run is for: found by one query, when it begins.
create table crm.campaign_recipient (
    run_id        uuid not null references crm.campaign_run on delete cascade,
    n             bigint not null,
    customer_uuid uuid not null,
    primary key (run_id, n)
);
