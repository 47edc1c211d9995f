-- queen.group_acks: convert acknowledgements from JSON to the arguments of queen.settle.
--
-- needs: check_names, transaction_key
-- called by  queen.ack_messages_v2; queen.execute_transaction_v2
-- in         p_entries: array of {transactionId, partitionId, status?, leaseId?, consumerGroup?, error?, errorCode?, worker?, retryAfter?}
-- out        one row: the arguments; item: for each entry argument, the position (0-based) of its object in p_entries
-- raises     QN001, naming the entry, where the HTTP interface answers 400
create or replace function queen.group_acks(p_entries jsonb)
returns table (lane_id uuid[], grp text[], keys bytea[], uniform boolean[], lease uuid[],
               entry_group int[], entry_status int2[], entry_lease uuid[], entry_error text[], entry_code text[], entry_worker text[],
               item int[], entry_after int[])
language plpgsql
as $$
#variable_conflict use_column
declare
    v_wrong int;
    r       record;
begin
    if jsonb_typeof(p_entries) is distinct from 'array' then
        raise exception 'acknowledgments must be an array' using errcode = 'QN001';
    end if;
    select min(e.ord) - 1 into v_wrong
      from jsonb_array_elements(p_entries) with ordinality e(value, ord)
     where jsonb_typeof(e.value -> 'transactionId') is distinct from 'string'
        or jsonb_typeof(e.value -> 'partitionId') is distinct from 'string';
    if v_wrong is not null then
        raise exception 'acknowledgment %: transactionId and partitionId must be strings', v_wrong
            using errcode = 'QN001';
    end if;

    -- Another type would change the meaning: the group, the lease that is checked, whether the message is retried.
    select e.ord - 1 as at, f.name into r
      from jsonb_array_elements(p_entries) with ordinality e(value, ord)
      join unnest('{status,leaseId,consumerGroup,errorCode,worker}'::text[]) f(name)
        on jsonb_typeof(e.value -> f.name) not in ('string', 'null')
     order by e.ord limit 1;
    if found then
        raise exception 'acknowledgment %: % must be a string', r.at, r.name using errcode = 'QN001';
    end if;
    perform queen.check_names(e.value, '{transactionId,partitionId,status,leaseId,consumerGroup,error,errorCode,worker,retryAfter,index,type}',
                              format('acknowledgment %s: ', e.ord - 1))
       from jsonb_array_elements(p_entries) with ordinality e(value, ord)
      where exists (select from jsonb_object_keys(e.value) k
                     where k <> all ('{transactionId,partitionId,status,leaseId,consumerGroup,error,errorCode,worker,retryAfter,index,type}'::text[]));

    select min(e.ord) - 1 into v_wrong
      from jsonb_array_elements(p_entries) with ordinality e(value, ord)
     where coalesce(e.value -> 'retryAfter', 'null') <> 'null'
       and (jsonb_typeof(e.value -> 'retryAfter') <> 'number' or e.value ->> 'retryAfter' !~ '^[0-9]{1,7}$'
            or (e.value ->> 'retryAfter')::int > 604800 or e.value ->> 'status' is distinct from 'retry');
    if v_wrong is not null then
        raise exception 'acknowledgment %: retryAfter must be a whole number from 0 to 604800 (seconds), with the status retry', v_wrong
            using errcode = 'QN001';
    end if;

    return query
    with entries as (
        -- An error that is not a string counts as absent. A partitionId that is not a UUID matches no partition.
        select e.ord::int - 1 as item,
               case when e.value ->> 'partitionId'
                         ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
                    then (e.value ->> 'partitionId')::uuid end as lane_id,
               coalesce(nullif(e.value ->> 'consumerGroup', ''), '__QUEUE_MODE__') as grp,
               uuid_send(queen.transaction_key(e.value ->> 'transactionId')) as key,
               case coalesce(e.value ->> 'status', 'completed')
                    when 'completed' then 0 when 'success' then 0 when 'failed' then 1
                    when 'dlq' then 2 when 'retry' then 3 else 4 end::int2 as status,
               case when e.value ->> 'leaseId' <> '' then queen.transaction_key(e.value ->> 'leaseId') end as lease,
               case when jsonb_typeof(e.value -> 'error') = 'string' then e.value ->> 'error' end as error,
               nullif(e.value ->> 'errorCode', '') as code,
               nullif(e.value ->> 'worker', '') as worker,
               (e.value ->> 'retryAfter')::int as after
          from jsonb_array_elements(p_entries) with ordinality e(value, ord)
    ), numbered as (
        select e.*, dense_rank() over (order by e.lane_id, e.grp) as n from entries e
    ), groups as (
        select n, min(lane_id::text)::uuid as lane_id, min(grp) as grp, string_agg(key, '' order by item) as keys
          from numbered group by n
    )
    select coalesce(g.lane_id, '{}'), coalesce(g.grp, '{}'), coalesce(g.keys, '{}'),
           array_fill(false, array[cardinality(coalesce(g.grp, '{}'))]),
           array_fill(null::uuid, array[cardinality(coalesce(g.grp, '{}'))]),
           coalesce(e.n, '{}'), coalesce(e.status, '{}'), coalesce(e.lease, '{}'), coalesce(e.error, '{}'),
           coalesce(e.code, '{}'), coalesce(e.worker, '{}'), coalesce(e.item, '{}'), coalesce(e.after, '{}')
      from (select array_agg(lane_id order by n) as lane_id, array_agg(grp order by n) as grp,
                   array_agg(keys order by n) as keys from groups) g
      cross join (select array_agg(n::int order by n, item) as n, array_agg(status order by n, item) as status,
                         array_agg(lease order by n, item) as lease, array_agg(error order by n, item) as error,
                         array_agg(code order by n, item) as code, array_agg(worker order by n, item) as worker,
                         array_agg(item order by n, item) as item, array_agg(after order by n, item) as after from numbered) e;
end
$$;
