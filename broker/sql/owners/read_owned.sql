-- queen.read_owned: the partitions in a request of a processor.
--
-- needs: body_text
-- called by  queen.claim_owners, queen.renew_owners, queen.release_owners, queen.save_checkpoints
-- in         p_args.queue; body.owner, body.partitions: objects with partition and epoch
-- out        one row per element, in order (idx from 0); lane null: the queue has no such partition
-- raises     QN001 for a malformed body, and for a queue without a fixed set of partitions
create or replace function queen.read_owned(p_args jsonb)
returns table (idx int, partition text, epoch bigint, item jsonb, lane bigint, lane_id uuid)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_items jsonb := p_args -> 'body' -> 'partitions';
    v_queue uuid;
    v_bad   bigint;
begin
    perform queen.body_text(p_args -> 'body', 'owner', true);
    if length(p_args -> 'body' ->> 'owner') > 255 then
        raise exception 'owner is longer than 255 characters' using errcode = 'QN001';
    elsif jsonb_typeof(v_items) is distinct from 'array' or jsonb_array_length(v_items) not between 1 and 1024 then
        raise exception 'partitions must be an array of 1 to 1024 objects' using errcode = 'QN001';
    end if;
    select min(e.ord) - 1 into v_bad
      from jsonb_array_elements(v_items) with ordinality e(item, ord)
     where jsonb_typeof(e.item) <> 'object' or jsonb_typeof(e.item -> 'partition') is distinct from 'string'
        or (e.item ->> 'epoch') is null or jsonb_typeof(e.item -> 'epoch') <> 'number'
        or (e.item ->> 'epoch') !~ '^[0-9]{1,18}$';
    if v_bad is not null then
        raise exception 'partitions, element %: partition must be a string and epoch a whole number', v_bad
            using errcode = 'QN001';
    end if;
    select q.id into v_queue from queen.queues q where q.name = p_args ->> 'queue' and q.partitions > 0;
    if not found then
        raise exception 'there is no queue of that name with a fixed set of partitions' using errcode = 'QN001';
    elsif exists (select from queen.queues q where q.id = v_queue and q.ordering = 'none') then
        raise exception 'a work queue (ordering "none") has no owners: any consumer takes any message' using errcode = 'QN001';
    elsif exists (select from queen.queues q where q.id = v_queue and q.by_message) then
        raise exception 'a queue with settlement "message" has no owners: a checkpoint is a cursor' using errcode = 'QN001';
    end if;
    return query
    select (e.ord - 1)::int, e.item ->> 'partition', (e.item ->> 'epoch')::bigint, e.item, l.num, l.id
      from jsonb_array_elements(v_items) with ordinality e(item, ord)
      left join queen.lanes l on l.queue_id = v_queue and l.name = e.item ->> 'partition';
end
$$;
