-- queen.forget_message: remove everything that refers to one message.
--
-- called by  queen.remove_message
-- A new table that refers to messages must be added here and in queen.forget_messages.
create or replace function queen.forget_message(p_lane bigint, p_seq bigint)
returns void
language plpgsql
as $$
begin
    delete from queen.dead_letter_queue d where d.lane = p_lane and d.seq = p_seq;
    delete from queen.correlations c where c.lane = p_lane and c.seq = p_seq;
    delete from queen.message_traces t where t.lane = p_lane and t.seq = p_seq;
end
$$;
