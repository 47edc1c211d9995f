-- platform.read_model_agenda(zone): the read models with work, and the time by this database's clock.
-- called by: platform/src/readmodel/readmodel.c
-- in:  zone of the bulk window
-- out: one row per model with changes or a requested visit; times in microseconds since 1970, null: never. minute: of the
--      day in that zone
-- locks: none          raises: 22023 for an unknown zone
create or replace function platform.read_model_agenda(p_zone text)
returns table (tenant text, model text, mode text, wanted_us bigint, first_change_us bigint, last_change_us bigint,
               visited_us bigint, refreshed_us bigint, retry_us bigint, claimed_until_us bigint, failures int,
               now_us bigint, minute int)
language sql volatile
set search_path = platform, pg_temp
as $$
    -- The first row has no tenant: it returns the time even when there is no work.
    select null, null, null, null::bigint, null::bigint, null::bigint, null::bigint, null::bigint, null::bigint, null::bigint, 0,
           (extract(epoch from clock_timestamp()) * 1000000)::bigint,
           (extract(hour from clock_timestamp() at time zone p_zone) * 60
            + extract(minute from clock_timestamp() at time zone p_zone))::int
    union all
    select r.tenant, r.model, r.mode,
           (extract(epoch from r.wanted_at) * 1000000)::bigint,
           (extract(epoch from r.first_change_at) * 1000000)::bigint,
           (extract(epoch from r.last_change_at) * 1000000)::bigint,
           (extract(epoch from r.visited_at) * 1000000)::bigint,
           (extract(epoch from r.refreshed_at) * 1000000)::bigint,
           (extract(epoch from r.retry_at) * 1000000)::bigint,
           (extract(epoch from r.claimed_until) * 1000000)::bigint,
           r.failures, 0, 0
    from platform.read_model r
    where (r.first_change_at is not null or r.wanted_at is not null)
      and exists (select from platform.tenant t where t.name = r.tenant and t.state = 'ready')
$$;
