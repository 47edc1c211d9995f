-- The write model of a tenant on MySQL: the tables of platform/sql/tenant/schema/0001_baseline/01_write_model.sql, which describes them.
-- Times are UTC.  tags is a JSON array.  The character set does not depend on the database, so that every text of an event can be stored.

create table if not exists belongs_to (
    directory char(36) character set ascii primary key,
    tenant    varchar(64) not null
) character set utf8mb4 collate utf8mb4_bin;

create table if not exists customer (
    id            bigint auto_increment primary key,
    customer_uuid char(36) character set ascii not null unique,
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
    tags          json not null default '[]',
    email_opt_in  boolean not null default false,
    sms_opt_in    boolean not null default false,
    is_blocked    boolean not null default false,
    created_at    datetime(6) not null,
    updated_at    datetime(6) not null
) character set utf8mb4 collate utf8mb4_bin;

create table if not exists subscription_account (
    id             char(36) character set ascii primary key,
    customer_id    char(36) character set ascii not null,
    package_id     int,
    location_code  text,
    status         smallint,
    price          decimal(12,2),
    currency       text,
    billing_period text,
    started_at     datetime(6),
    next_bill_date date,
    cancelled_at   datetime(6),
    updated_at     datetime(6) not null,
    index (customer_id)
) character set utf8mb4 collate utf8mb4_bin;

create table if not exists wallet_account (
    id            char(36) character set ascii primary key,
    customer_id   char(36) character set ascii not null,
    kind          text,
    balance       decimal(14,2) not null default 0,
    currency      text,
    last_topup_at datetime(6),
    expires_at    datetime(6),
    status        smallint,
    updated_at    datetime(6) not null,
    index (customer_id)
) character set utf8mb4 collate utf8mb4_bin;

create table if not exists package_account (
    id              char(36) character set ascii primary key,
    customer_id     char(36) character set ascii not null,
    package_id      int,
    location_code   text,
    status          smallint,
    total_units     int,
    remaining_units int,
    price           decimal(12,2),
    purchased_at    datetime(6),
    expires_at      datetime(6),
    updated_at      datetime(6) not null,
    index (customer_id)
) character set utf8mb4 collate utf8mb4_bin;

create table if not exists transaction_log (
    id             char(36) character set ascii not null,
    customer_id    char(36) character set ascii not null,
    location_code  text,
    kind           varchar(10) not null,
    payment_method text,
    amount         decimal(12,2) not null,
    discount       decimal(12,2),
    tip            decimal(12,2),
    created_at     datetime(6) not null,
    index (customer_id)
) character set utf8mb4 collate utf8mb4_bin;

create table if not exists visit_log (
    id               char(36) character set ascii not null,
    customer_id      char(36) character set ascii not null,
    location_code    text,
    service          text,
    duration_minutes int,
    rating           smallint,
    visited_at       datetime(6) not null,
    index (customer_id)
) character set utf8mb4 collate utf8mb4_bin;

create table if not exists purchase_log (
    id            char(36) character set ascii not null,
    customer_id   char(36) character set ascii not null,
    product_id    int,
    category      text,
    location_code text,
    quantity      int,
    amount        decimal(12,2) not null,
    purchased_at  datetime(6) not null,
    index (customer_id)
) character set utf8mb4 collate utf8mb4_bin;

-- Ids of applied events.  Four slots take turns, one per day: the procedure ingest truncates a slot before a new day uses it.
create table if not exists applied_event (
    slot tinyint not null,
    id    char(36) character set ascii not null,
    primary key (slot, id)
) character set utf8mb4 collate utf8mb4_bin partition by list (slot) (
    partition s0 values in (0),
    partition s1 values in (1),
    partition s2 values in (2),
    partition s3 values in (3)
);

-- The day of each slot.
create table if not exists applied_day (
    slot tinyint primary key,
    day   date not null
) character set utf8mb4 collate utf8mb4_bin;
insert ignore into applied_day values (0, '1970-01-01'), (1, '1970-01-01'), (2, '1970-01-01'), (3, '1970-01-01');

-- How far each partition of the event queue was applied to this database.
create table if not exists ingest_checkpoint (
    queue     varchar(255) not null,
    `partition` varchar(100) not null,
    position  bigint not null,
    at        datetime(6) not null,
    primary key (queue, `partition`)
) character set utf8mb4 collate utf8mb4_bin;
