-- crm.refresh_failed(model, error): records why a refresh failed; the next successful one clears it.
-- called by: platform/src/readmodel/visit.c
-- in: model, the error          out: -          locks: the row of crm.read_model          raises: nothing
create or replace function crm.refresh_failed(p_model text, p_error text) returns void
language sql
set search_path = crm, pg_temp
as $$
    update crm.read_model
    set failures = failures + 1, last_error = p_error, last_error_at = clock_timestamp()
    where model = p_model
$$;
