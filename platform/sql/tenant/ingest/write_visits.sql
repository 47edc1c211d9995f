-- crm.write_visits: appends visits.
--
-- called by: crm.ingest          out: -          locks: the rows          raises: 22xxx, 23xxx
-- in:  an array of objects, one per row, with the members named below; an absent member becomes null
create or replace function crm.write_visits(p_rows jsonb) returns void
language plpgsql
as $$
begin
    insert into crm.visit_log as t (id, customer_id, location_code, service, duration_minutes, rating, visited_at)
    select r.id, r.customer_id, r.location_code, r.service, r.duration_minutes, r.rating, r.at
      from jsonb_to_recordset(p_rows) r(id uuid, customer_id uuid, location_code text, service text,
             duration_minutes int, rating smallint, at timestamptz);
end
$$;
