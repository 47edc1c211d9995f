-- queen.round2: a number in the format of reports: at most two decimals; 0 for null.
--
-- called by  the functions behind broker/src/api/monitoring/analytics.c
create or replace function queen.round2(p_value float8)
returns float8
language sql immutable parallel safe
as $$
    select coalesce(round(p_value::numeric, 2), 0)::float8
$$;
