-- queen.delete_through_messages: DELETE FROM queen.messages.
--
-- needs: lock_lane, find_message, transaction_key, forget_retries, remove_message
-- called by  a row trigger on the view queen.messages (broker/sql/compat/messages.sql)
-- locks      as queen.lock_lane, partition by partition in the order of the statement: two statements with several partitions may deadlock
create or replace function queen.delete_through_messages()
returns trigger
language plpgsql
as $$
declare
    v_lane bigint;
    v_seq  bigint;
begin
    select num into v_lane from queen.lanes where id = old.partition_id;
    perform queen.lock_lane(v_lane);
    v_seq := queen.find_message(v_lane, queen.transaction_key(old.transaction_id));
    if v_seq is null then
        return null; -- another session has deleted it
    end if;
    perform queen.forget_retries(v_lane, queen.transaction_key(old.transaction_id), null, true);
    perform queen.remove_message(v_lane, v_seq);
    return old;
end
$$;
