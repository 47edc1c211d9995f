-- crm.read_model_query(model, some): the select behind a read model.
-- called by: crm.read_model_version, crm.build_view, crm.build_live
-- in:  model  customer_attributes or customer_transactions
--      some   true: only the customers of the array $1; false: all
-- out: the text          locks: none          raises: 22023 for another name
create or replace function crm.read_model_query(p_model text, p_some boolean) returns text
language plpgsql immutable
set search_path = crm, pg_temp
as $$
declare
    definition text;
begin
    if p_model = 'customer_attributes' then
        definition := crm.customer_attributes_definition();
    elsif p_model = 'customer_transactions' then
        definition := crm.customer_transactions_definition();
    else
        raise exception 'there is no read model "%"', p_model using errcode = '22023';
    end if;
    return regexp_replace(definition, '\{only ([a-z_.]+)\}',
                          case when p_some then '\1 = any ($1)' else 'true' end, 'g');
end
$$;
