-- queen.partition_named: the partition of a pushed message.
--
-- called by  queen.read_items
-- in         p_partition: as sent; p_key: its concurrencyKey, which takes the place of the partition; p_priority: 0 to 9. Null: not sent
-- raises     QN001 if both p_partition and p_key are given, or the name would be too long
create or replace function queen.partition_named(p_partition text, p_key text, p_priority int)
returns text
language plpgsql immutable
as $$
declare
    v_name text := coalesce(nullif(p_key, ''), nullif(p_partition, ''), 'Default')
                   -- A key that ends like a priority has none: tenants choose their keys, and not how urgent they are.
                   || case when p_priority > 0 or p_key ~ '.~p[0-9]$' then '~p' || coalesce(p_priority, 0) else '' end;
begin
    if p_partition <> '' and p_key <> '' then
        raise exception 'concurrencyKey is given together with partition or partitionKey' using errcode = 'QN001';
    elsif length(v_name) > 255 then
        raise exception 'partition or concurrencyKey, with its priority, is longer than 255 characters' using errcode = 'QN001';
    end if;
    return v_name;
end
$$;
