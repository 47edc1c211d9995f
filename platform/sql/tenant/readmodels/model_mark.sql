-- crm.model_mark(model): how many transactions changed the data behind a model.
--
-- A counter, not a time: it never goes back.  A transaction counts while it holds the lock 7642/changes, which it keeps until it
-- commits, so whoever reads the mark and then finds nobody with that lock sees all that was counted (crm.refresh_view).
-- called by: crm.refresh_view, crm.read_model_sources, the view crm.mv_refresh_status, calls of src/audience
-- in: model          out: the mark          locks: none          raises: nothing
create or replace function crm.model_mark(p_model text) returns bigint
language plpgsql stable -- every question about a segment asks for it, and plans of `sql` are not kept
as $$
begin
    return case p_model
               when 'customer_attributes' then (select last_value from crm.customer_attributes_changes)
               when 'customer_transactions' then (select last_value from crm.customer_transactions_changes)
           end;
end
$$;
