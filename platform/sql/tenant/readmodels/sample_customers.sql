-- crm.sample_customers(n): at most n customers at random ids, so that the cost does not depend on the number of customers.
-- called by: crm.check_live
-- in: n          out: their uuids; null when there are none          locks: none          raises: nothing
create or replace function crm.sample_customers(p_n int) returns uuid[]
language sql volatile
set search_path = crm, pg_temp
as $$
    select array_agg(distinct c.customer_uuid)
    from (select min(id) as low, max(id) as high from crm.customer) ids,
         lateral (select ids.low + floor(random() * (ids.high - ids.low + 1))::bigint as point
                  from generate_series(1, p_n)) at,
         lateral (select customer_uuid from crm.customer where id >= at.point order by id limit 1) c
$$;
