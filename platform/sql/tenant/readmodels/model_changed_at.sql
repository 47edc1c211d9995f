-- crm.model_changed_at(model): the time of the last change of the data behind a model; null: never.
-- called by: the view crm.mv_refresh_status, the statement segment_explain_state
-- in: model          out: the time          locks: none          raises: nothing
create or replace function crm.model_changed_at(p_model text) returns timestamptz
language sql stable
set search_path = crm, pg_temp
as $$
    select to_timestamp(nullif(case p_model
                                   when 'customer_attributes' then (select last_value from crm.customer_attributes_changed)
                                   when 'customer_transactions' then (select last_value from crm.customer_transactions_changed)
                               end, 0) / 1000000.0)
$$;
