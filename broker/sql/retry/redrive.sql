-- queen.redrive: POST /api/v1/dlq/redrive: deliver dead letters again, one bounded batch.
--
-- needs: redrive_request, redrive_here, redrive_elsewhere, param_time, messages_at
-- called by  broker/src/api/admin/retries.c
-- in         body: ids (of dead letters, "dlqId", or of their messages), or queue, partition, consumerGroup, error (part of the text),
--            exactError (its first 255 characters), from, to (of the failure); all true: all dead letters. targetQueue: push them there as new messages; otherwise deliver them
--            again, only to the group in which they failed. ratePerSecond: how many become due per second; limit (1000)
-- out        200 {"redriven","more","lastDueAt"}: oldest failures first; more: call again for the rest
-- locks      partitions against deletion, by num; without targetQueue the groups' consumers there, by num, because retries are added
--            (queen.retry_lane); dead letters, skipping those of another redrive; with targetQueue lanes of the target, by num
-- raises     QN001 for an invalid field, or a target that cannot take them
--
-- The batch succeeds or fails as a whole. A dead letter is redriven once, because its row is deleted in the same transaction. One whose
-- partition or message is being deleted meanwhile is not counted, and stays until it is deleted with them.
create or replace function queen.redrive(p_args jsonb)
returns table (status int, answer text)
language plpgsql
as $$
declare
    b         jsonb := p_args -> 'body';
    v_limit   int := coalesce((p_args -> 'body' ->> 'limit')::numeric, 1000);
    v_rate    double precision := b ->> 'ratePerSecond';
    v_from    timestamptz;
    v_to      timestamptz;
    v_ids     uuid[];
    v_found   record; -- the selected dead letters, with their partitions and groups
    v_letters uuid[]; -- those of them that this call has locked
    v_due     timestamptz[];
    v_done    uuid[] := '{}'; -- those that were delivered again
    v_now     timestamptz := clock_timestamp();
begin
    perform queen.redrive_request(b);
    v_from := queen.param_time(b, 'from', null);
    v_to := queen.param_time(b, 'to', null);
    if b ? 'ids' then
        v_ids := array(select e::uuid from jsonb_array_elements_text(b -> 'ids') e);
    end if;
    select array_agg(k.id) as id, array_agg(k.lane) as lane, array_agg(k.grp) as grp, count(*) as n into v_found
      from (select d.id, l.num as lane, d.consumer_group::text as grp
              from queen.dead_letter_queue d
              join queen.lanes l on l.id = d.partition_id
              join queen.queues q on q.id = l.queue_id
             where (v_ids is null or d.id = any (v_ids) or d.message_id = any (v_ids))
               and (not b ? 'queue' or q.name = b ->> 'queue')
               and (not b ? 'partition' or l.name = b ->> 'partition')
               and (not b ? 'consumerGroup' or d.consumer_group = b ->> 'consumerGroup')
               and (not b ? 'error' or position(lower(b ->> 'error') in lower(d.error_message)) > 0)
               and (not b ? 'exactError' or left(d.error_message, 255) = b ->> 'exactError')
               -- A dead letter that was set aside because it cannot be read stays, unless it can be read now.
               and (d.error_message not like 'damaged:%'
                    or exists (select from queen.messages_at(d.lane, array[d.seq]) m where (m.message).payload is not null))
               and (v_from is null or d.failed_at >= v_from) and (v_to is null or d.failed_at <= v_to)
             order by d.failed_at, d.id limit v_limit + 1) k;
    perform l.num from queen.lanes l where l.num = any (v_found.lane) order by l.num for key share;
    if not b ? 'targetQueue' then
        perform c.num from queen.consumers c
          where c.num = any (array(select k.num from unnest(v_found.lane, v_found.grp) u(lane, grp)
                                    cross join lateral (select k.num from queen.consumers k
                                                         where k.lane = u.lane and k.grp = u.grp offset 0) k))
          order by c.num for no key update;
    end if;
    select array_agg(k.id order by k.failed_at, k.id) into v_letters
      from (select d.id, d.failed_at from queen.dead_letter_queue d
             where d.id = any (v_found.id)
               -- The partition may have been deleted before it was locked. Its dead letters go with it.
               and exists (select from queen.lanes l where l.num = d.lane)
             order by d.failed_at, d.id limit v_limit for update skip locked) k;
    v_due := array(select v_now + case when v_rate is null then interval '0' else (i - 1) / v_rate * interval '1 second' end
                     from generate_series(1, coalesce(cardinality(v_letters), 0)) i);
    if v_letters is not null then
        if b ? 'targetQueue' then
            v_done := queen.redrive_elsewhere(v_letters, v_due, b ->> 'targetQueue', v_now);
        else
            v_done := queen.redrive_here(v_letters, v_due, v_now);
        end if;
        delete from queen.dead_letter_queue where id = any (v_done);
        perform nextval('queen.redriven') from unnest(v_done);
    end if;
    return query
    select 200, json_build_object('redriven', cardinality(v_done), 'more', v_found.n > v_limit or coalesce(cardinality(v_letters) < v_found.n, false),
                                  'lastDueAt', queen.iso_ms(case when v_done <> '{}' then v_due[cardinality(v_due)] end))::text;
end
$$;
