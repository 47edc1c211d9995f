-- crm.model_mark(model): how many transactions changed the data behind a model.
--
-- A counter instead of a time, because it never decreases.  A transaction counts while it holds the lock 7642/changes,
-- which it keeps until commit.  So a reader that reads the mark and then finds the lock free sees all counted changes
-- (crm.refresh_view).
-- called by: crm.refresh_view, crm.read_model_sources, the view crm.mv_refresh_status, statements of platform/src/audience
-- in: model          out: the mark          locks: none          raises: nothing
create or replace function crm.model_mark(p_model text) returns bigint
language plpgsql stable -- every query of a segment calls it, and plans of `sql` functions are not cached
as $$
begin
    return case p_model
               when 'customer_attributes' then (select last_value from crm.customer_attributes_changes)
               when 'customer_transactions' then (select last_value from crm.customer_transactions_changes)
           end;
end
$$;
