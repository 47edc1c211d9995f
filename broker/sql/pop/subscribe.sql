-- queen.subscribe: record where a named group starts; the first record wins.
--
-- called by  queen.discover, queen.discover_page
-- in         p_mode  'new', 'new-only', 'all', ...; p_from  'now', a timestamp or null; wins over p_mode
-- raises     QN002 if p_from is not a time
create or replace function queen.subscribe(
    p_group text, p_queue text, p_partition text, p_namespace text, p_task text, p_mode text, p_from text)
returns void
language plpgsql
as $$
declare
    v_mode text;
    v_from timestamptz;
begin
    if p_group = '__QUEUE_MODE__' then
        return;
    elsif p_from = 'now' or (coalesce(p_from, '') = '' and p_mode in ('new', 'new-only')) then
        v_mode := 'new';
        v_from := clock_timestamp();
    elsif coalesce(p_from, '') <> '' then
        v_mode := 'timestamp';
        begin
            v_from := p_from::timestamptz;
        exception when data_exception then
            raise exception 'subscriptionFrom "%" must be "now" or a timestamp', p_from
                using errcode = 'QN002';
        end;
    else
        return;
    end if;
    insert into queen.consumer_groups_metadata
           (consumer_group, queue_name, partition_name, namespace, task,
            subscription_mode, subscription_timestamp)
    values (p_group, p_queue, p_partition, p_namespace, p_task, v_mode, v_from)
        on conflict do nothing;
end
$$;
