-- crm.write_packages: writes the current state of packages.
--
-- called by: crm.ingest          out: -          locks: the rows          raises: 22xxx, 23xxx
-- in:  an array of objects, one per row, with the members named below; an absent member becomes null
create or replace function crm.write_packages(p_rows jsonb) returns void
language plpgsql
as $$
begin
    insert into crm.package_account as t (id, customer_id, package_id, location_code, status, total_units,
            remaining_units, price, purchased_at, expires_at, updated_at)
    select r.id, r.customer_id, r.package_id, r.location_code, r.status, r.total_units, r.remaining_units, r.price,
           r.purchased_at, r.expires_at, r.at
      from jsonb_to_recordset(p_rows) r(id uuid, customer_id uuid, package_id int, location_code text, status
             smallint, total_units int, remaining_units int, price numeric, purchased_at timestamptz, expires_at
             timestamptz, at timestamptz)
        on conflict (id) do update
       set (customer_id, package_id, location_code, status, total_units, remaining_units, price, purchased_at,
            expires_at, updated_at) =
           (excluded.customer_id, excluded.package_id, excluded.location_code, excluded.status,
            excluded.total_units, excluded.remaining_units, excluded.price, excluded.purchased_at,
            excluded.expires_at, excluded.updated_at);
end
$$;
