-- queen.find_messages: GET /api/v1/messages/find: the messages with an id, whichever kind of id it is.
--
-- needs: timeline
-- called by  broker/src/api/admin/retries.c
-- in         p_args: id; queue, partition: where a transaction id is looked for
-- out        200 {"by","timeline","note"}: the kind of the id (messageId, correlationId, transactionId) and the answer of queen.timeline; both null if
--            nothing is found. note: why the transaction ids were not searched, or null
-- raises     QN001 without an id
create or replace function queen.find_messages(p_args jsonb)
returns json
language plpgsql
as $$
declare
    v_id   text := p_args ->> 'id';
    v_kind text;
    v_note text;
    v_row  record;
begin
    if coalesce(v_id, '') = '' then
        raise exception 'id must be given' using errcode = 'QN001';
    end if;
    foreach v_kind in array array['messageId', 'correlationId', 'transactionId'] loop
        continue when v_kind = 'messageId' and v_id !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$';
        begin
            select t.status, t.answer into v_row
              from queen.timeline(case when v_kind = 'transactionId' then p_args - 'id' else '{}' end || jsonb_build_object(v_kind, v_id)) t;
            if v_row.status = 200 then
                return json_build_object('by', v_kind, 'timeline', v_row.answer::json, 'note', null);
            end if;
        exception when sqlstate 'QN001' then -- too many partitions, or no id of this kind can be so long
            v_note := sqlerrm;
        end;
    end loop;
    return json_build_object('by', null, 'timeline', null, 'note', v_note);
end
$$;
