-- 0003: which read models of which tenants have something to be done: the platform's processes share this work.
--
-- What is true of a tenant's read models is in the tenant's own database (crm.read_model); this is only where to look
-- next, so that nobody opens connections to tenants without changes.
create table platform.read_model (
    tenant          text not null references platform.tenant on delete cascade,
    model           text not null check (model in ('customer_attributes', 'customer_transactions')),
    -- Null: as the process is set.
    mode            text check (mode in ('live', 'views')),
    enrolled_at     timestamptz not null default clock_timestamp(),
    -- Changes since the last visit: the first one and the last one that we were told of.
    first_change_at timestamptz,
    last_change_at  timestamptz,
    -- Somebody asks for a visit, changes or not.
    wanted_at       timestamptz,
    -- When the last visit that worked began, and when the view was last refreshed.
    visited_at      timestamptz,
    refreshed_at    timestamptz,
    -- Who is at it, and until when we believe that without hearing from them.
    claimed_by      text,
    claimed_at      timestamptz,
    claimed_until   timestamptz,
    -- Visits that failed in a row; the next one is not before retry_at.
    failures        int not null default 0,
    error           text,
    retry_at        timestamptz,
    primary key (tenant, model)
) with (fillfactor = 70);

-- The agenda: not the models of all tenants, only those with something to do.
create index read_model_agenda on platform.read_model (tenant)
    where first_change_at is not null or wanted_at is not null;
