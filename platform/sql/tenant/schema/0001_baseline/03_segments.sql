-- Named segments of customers, the members of watched segments, and campaigns that are sent to segments.

create table crm.segment (
    id            uuid primary key default gen_random_uuid(),
    name          text not null unique,
    filter        json not null,                   -- as the user wrote it; compiled by the platform, never by SQL
    created_at    timestamptz not null default now(),
    updated_at    timestamptz not null default now(),

    -- A subscription: customers that enter or leave the segment are reported to this queue.
    watch_queue   text,
    watch_initial boolean not null default false,  -- report the members at the start of the subscription too
    watch_every_s int,                             -- seconds between evaluations; null: no subscription or campaign needs them
    watched_since timestamptz,                     -- when crm.segment_member was first complete; null: not yet
    evaluated_at  timestamptz
) with (fillfactor = 70);

-- Counts of saved segments over time.
create table crm.segment_history (
    segment_id uuid not null references crm.segment on delete cascade,
    at         timestamptz not null default clock_timestamp(),
    count      bigint not null,
    path       text not null,
    primary key (segment_id, at)
);

-- The members of a watched segment at its last evaluation.
create table crm.segment_member (
    segment_id    uuid not null references crm.segment on delete cascade,
    customer_uuid uuid not null,
    since         timestamptz not null default now(),
    primary key (segment_id, customer_uuid)
);

-- Customers that entered or left and are not reported yet.  Rows are written together with crm.segment_member and deleted when the broker has
-- stored the message.  The transaction id of the message is derived from the row's id, so the broker rejects a second copy.
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
    -- now: once, at once; at: once, at a given time; cron: repeatedly; entering: for each customer that enters the segment
    kind         text not null check (kind in ('now', 'at', 'cron', 'entering')),
    at           timestamptz,
    cron         text,
    timezone     text,
    queue        text not null,
    -- The consent and the address that a recipient needs.  other: neither.  Blocked customers never get a message.
    channel      text not null default 'email' check (channel in ('email', 'sms', 'other')),
    template     json not null,  -- payload of each message, with placeholders such as {{first_name}}
    retry_policy json,           -- of each message; null: scheduled retries with the defaults
    paused       boolean not null default false,
    created_at   timestamptz not null default now()
);
create index campaign_of_segment on crm.campaign (segment_id);

-- One run of a campaign.  key identifies its trigger, so that a trigger that is delivered twice finds the same run.
create table crm.campaign_run (
    id           uuid primary key default gen_random_uuid(),
    campaign_id  uuid not null references crm.campaign on delete cascade,
    key          text not null unique,
    path         text,
    recipients   bigint not null default 0,
    sent         bigint not null default 0,  -- recipients up to this number were skipped or handed to the broker
    blocked      bigint not null default 0,  -- skipped ones by reason
    no_consent   bigint not null default 0,
    no_address   bigint not null default 0,
    deleted      bigint not null default 0,
    created_at   timestamptz not null default now(),
    finished_at  timestamptz,
    -- The broker has the trigger of this run and retries it.  Only runs created by an evaluation of a segment start as false.
    announced    boolean not null default true
) with (fillfactor = 50);
create index campaign_run_of_campaign on crm.campaign_run (campaign_id, created_at desc);
create index campaign_run_unannounced on crm.campaign_run (campaign_id, created_at) where not announced;

-- The recipients of a run, found by one query when it begins.
create table crm.campaign_recipient (
    run_id        uuid not null references crm.campaign_run on delete cascade,
    n             bigint not null,
    customer_uuid uuid not null,
    skipped       text,           -- why it got no message: blocked, no_consent, no_address or deleted
    primary key (run_id, n)
);
create index campaign_recipient_skipped on crm.campaign_recipient (run_id, customer_uuid) where skipped is not null;
