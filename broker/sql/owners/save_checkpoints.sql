-- queen.save_checkpoints: POST /api/v1/consumer-groups/:group/queues/:queue/owners/checkpoint.
--
-- needs: read_owned, find_message, transaction_key
-- called by  broker/src/api/admin/owners.c
-- in         body.owner; body.partitions: [{"partition", "epoch", "transactionId", "before"}]: everything up to that message, or with before
--            up to the message in front of it, need not be processed again
-- out        {"results":[{"partition","success","error"}]}, in order. Rejected if it is not the owner in that epoch, or moves backwards
-- locks      rows of owners by lane
-- raises     QN001 for a malformed request
create or replace function queen.save_checkpoints(p_args jsonb)
returns json
language plpgsql
as $$
declare
    v_group   text := p_args ->> 'group';
    v_owner   text := p_args -> 'body' ->> 'owner';
    v_results json[] := '{}';
    v_seq     bigint;
    v_error   text;
    w         record;
    o         queen.owners%rowtype;
begin
    for w in select * from queen.read_owned(p_args) order by lane, idx loop
        if jsonb_typeof(w.item -> 'transactionId') is distinct from 'string' then
            raise exception 'partitions, element %: transactionId must be a string', w.idx using errcode = 'QN001';
        end if;
        select * into o from queen.owners where lane = w.lane and grp = v_group for update;
        if not found or o.owner is distinct from v_owner or o.epoch <> w.epoch then
            v_error := 'it has another owner';
        else
            v_seq := queen.find_message(w.lane, queen.transaction_key(w.item ->> 'transactionId'))
                     - (w.item -> 'before' = 'true' is true)::int;
            v_error := case when v_seq is null then 'Message not found'
                            when v_seq < o.checkpoint then 'a checkpoint never goes back' end;
        end if;
        if v_error is null then
            update queen.owners set checkpoint = v_seq, checkpoint_at = clock_timestamp()
             where lane = w.lane and grp = v_group;
        end if;
        v_results[w.idx] := json_build_object('partition', w.partition, 'success', v_error is null, 'error', v_error);
    end loop;
    return json_build_object('results', v_results);
end
$$;
