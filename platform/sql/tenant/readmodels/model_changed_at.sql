-- crm.model_changed_at(model): when the data behind a model last changed, for people; null: never.
-- called by: the view crm.mv_refresh_status, platform/sql/tenant/calls/segment_explain_state.sql
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
