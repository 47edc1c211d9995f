-- crm.write_customers: writes the current state of customers, unless a newer event has written them; created_at stays that
-- of the first event.
--
-- called by: crm.ingest, crm.patch_customers          out: the new customers          locks: the rows          raises: 22xxx, 23xxx
-- in:  an array of objects, one per row, with the members named below; an absent member becomes null
create or replace function crm.write_customers(p_rows jsonb) returns uuid[]
language plpgsql
as $$
declare
    fresh uuid[];
begin
    with written as (
        insert into crm.customer as t (customer_uuid, first_name, last_name, email, phone, gender, city, postal_code,
                country, language, source, home_location, note, birth_date, tags, email_opt_in, sms_opt_in, is_blocked,
                updated_at, created_at)
        select r.customer_id, r.first_name, r.last_name, r.email, r.phone, r.gender, r.city, r.postal_code, r.country,
               r.language, r.source, r.home_location, r.note, r.birth_date, coalesce(r.tags, '{}'),
               coalesce(r.email_opt_in, false), coalesce(r.sms_opt_in, false), coalesce(r.is_blocked, false), r.at,
               r.created_at
          from jsonb_to_recordset(p_rows) r(customer_id uuid, first_name text, last_name text, email text, phone text,
                 gender text, city text, postal_code text, country text, language text, source text, home_location text,
                 note text, birth_date date, tags text[], email_opt_in boolean, sms_opt_in boolean, is_blocked boolean,
                 at timestamptz, created_at timestamptz)
            on conflict (customer_uuid) do update
           set (first_name, last_name, email, phone, gender, city, postal_code, country, language, source,
                home_location, note, birth_date, tags, email_opt_in, sms_opt_in, is_blocked, updated_at) =
               (excluded.first_name, excluded.last_name, excluded.email, excluded.phone, excluded.gender,
                excluded.city, excluded.postal_code, excluded.country, excluded.language, excluded.source,
                excluded.home_location, excluded.note, excluded.birth_date, excluded.tags, excluded.email_opt_in,
                excluded.sms_opt_in, excluded.is_blocked, excluded.updated_at)
         where excluded.updated_at >= t.updated_at
        returning t.customer_uuid, t.xmax = 0 as is_new -- an existing row was locked by this transaction
    )
    select array_agg(customer_uuid) filter (where is_new) into fresh from written;
    return coalesce(fresh, '{}');
end
$$;
