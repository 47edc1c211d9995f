-- crm.read_model_version(model): the version of a model's definition: a checksum of its select, its indexes and its parts.
-- called by: crm.refresh_view, crm.start_live, the view crm.mv_refresh_status
-- in: model          out: 32 hex digits          locks: none          raises: as crm.read_model_query
-- needs: read_model_query, read_model_indexes, read_model_parts
create or replace function crm.read_model_version(p_model text) returns text
language sql immutable
set search_path = crm, pg_temp
as $$
    select md5(crm.read_model_query(p_model, false)
               || (select string_agg(i::text, ' ' order by i.suffix) from crm.read_model_indexes(p_model) i)
               || (select string_agg(p::text, ' ' order by p.nth) from crm.read_model_parts(p_model) p))
$$;
