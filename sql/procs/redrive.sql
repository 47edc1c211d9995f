-- queen.redrive: POST /api/v1/dlq/redrive: dead letters are sent on their way again: one bounded batch.
--
-- needs: redrive_request, redrive_here, redrive_elsewhere, param_time, messages_at
-- called by  src/api/retries.c
-- in         body: ids (of dead letters, "dlqId", or of their messages), or queue, partition, consumerGroup, error (part of the text),
--            from, to (of the failure); all true: every one there is.  targetQueue: pushed there as new messages; else delivered again to
--            the group that gave up, and to no other.  ratePerSecond: how many of them fall due in a second; limit (1000)
-- out        200 {"redriven","more","lastDueAt"}: oldest failures first; more: call again for the rest
-- locks      dead letters, skipping those that another redrive has; lanes that it makes or schedules on
-- raises     QN001 for a wrong field, or a target that cannot take them
--
-- All of the batch happens or nothing, and a dead letter goes once: with it goes its row.
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
    v_letters uuid[];
    v_due     timestamptz[];
    v_now     timestamptz := clock_timestamp();
begin
    perform queen.redrive_request(b);
    v_from := queen.param_time(b, 'from', null);
    v_to := queen.param_time(b, 'to', null);
    if b ? 'ids' then
        v_ids := array(select e::uuid from jsonb_array_elements_text(b -> 'ids') e);
    end if;
    select array_agg(k.id order by k.failed_at, k.id) into v_letters
      from (select d.id, d.failed_at
              from queen.dead_letter_queue d
              join queen.lanes l on l.id = d.partition_id
              join queen.queues q on q.id = l.queue_id
             where (v_ids is null or d.id = any (v_ids) or d.message_id = any (v_ids))
               and (not b ? 'queue' or q.name = b ->> 'queue')
               and (not b ? 'partition' or l.name = b ->> 'partition')
               and (not b ? 'consumerGroup' or d.consumer_group = b ->> 'consumerGroup')
               and (not b ? 'error' or position(lower(b ->> 'error') in lower(d.error_message)) > 0)
               -- One that was set aside because it cannot be read stays, unless it can be read now.
               and (d.error_message not like 'damaged:%'
                    or exists (select from queen.messages_at(d.lane, array[d.seq]) m where (m.message).payload is not null))
               and (v_from is null or d.failed_at >= v_from) and (v_to is null or d.failed_at <= v_to)
             order by d.failed_at, d.id limit v_limit + 1
               for update of d skip locked) k;
    v_due := array(select v_now + case when v_rate is null then interval '0' else (i - 1) / v_rate * interval '1 second' end
                     from generate_series(1, least(coalesce(cardinality(v_letters), 0), v_limit)) i);
    if v_letters is not null then
        if b ? 'targetQueue' then
            perform queen.redrive_elsewhere(v_letters[:v_limit], v_due, b ->> 'targetQueue', v_now);
        else
            perform queen.redrive_here(v_letters[:v_limit], v_due, v_now);
        end if;
        delete from queen.dead_letter_queue where id = any (v_letters[:v_limit]);
        perform nextval('queen.redriven') from unnest(v_due);
    end if;
    return query
    select 200, json_build_object('redriven', cardinality(v_due), 'more', coalesce(cardinality(v_letters), 0) > v_limit,
                                  'lastDueAt', queen.iso_ms(v_due[cardinality(v_due)]))::text;
end
$$;
