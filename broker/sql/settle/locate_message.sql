-- queen.locate_message: find the message of a path /:partitionId/:transactionId.
--
-- needs: find_message, transaction_key
-- called by  the functions behind /api/v1/messages/:partitionId/:transactionId
-- out        no row if there is none. A partitionId that is not a UUID matches no partition. The id of a retry lane, which
--            consumers of a retry receive, stands for its partition
create or replace function queen.locate_message(p_args jsonb)
returns table (lane bigint, lane_id uuid, seq bigint)
language sql stable
as $$
    select l.num, l.id, m.seq
      from queen.lanes k
      join queen.lanes l on l.num = coalesce(k.origin, k.num)
      cross join lateral (select queen.find_message(l.num, queen.transaction_key(p_args ->> 'transactionId'))) m(seq)
     where k.id = case when p_args ->> 'partitionId'
                            ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
                       then (p_args ->> 'partitionId')::uuid end
       and m.seq is not null
$$;
