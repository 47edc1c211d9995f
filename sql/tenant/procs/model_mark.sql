-- crm.model_mark(model): when the data behind a model last changed, in microseconds since 1970; 0: never.
-- called by: crm.refresh_view, crm.read_model_sources, the view crm.mv_refresh_status, calls of src/audience
-- in: model          out: the mark          locks: none          raises: nothing
create or replace function crm.model_mark(p_model text) returns bigint
language plpgsql stable -- every question about a segment asks for it, and plans of `sql` are not kept
as $$
begin
    return case p_model
               when 'customer_attributes' then (select last_value from crm.customer_attributes_changed)
               when 'customer_transactions' then (select last_value from crm.customer_transactions_changed)
           end;
end
$$;
