-- queen.note_attempt: add an entry to the history of a message that has failed.
--
-- called by  queen.fail_messages, queen.note_completed, queen.redrive_here, queen.redrive_elsewhere, queen.cancel_retries, queen.move_to_dlq
create or replace function queen.note_attempt(
    p_message queen.stored_message, p_group text, p_lane bigint, p_attempt int, p_outcome "char", p_correlation_id text,
    p_delivered_at timestamptz, p_at timestamptz, p_due_at timestamptz, p_max_attempts int,
    p_error text, p_error_code text, p_worker text, p_target text default null)
returns void
language plpgsql
as $$
begin
    loop
        insert into queen.attempts (message_id, grp, nth, attempt, outcome, lane, key, correlation, correlation_id, transaction_id,
                                    delivered_at, at, due_at, max_attempts, error, error_code, worker, target)
        select p_message.message_id, p_group, coalesce(max(a.nth), 0) + 1, p_attempt, p_outcome, p_lane, p_message.key,
               case when p_correlation_id = p_message.transaction_id then p_message.key
                    else queen.transaction_key(p_correlation_id) end, p_correlation_id, p_message.transaction_id,
               p_delivered_at, p_at, p_due_at, p_max_attempts, p_error, p_error_code, p_worker, p_target
          from queen.attempts a where a.message_id = p_message.message_id and a.grp = p_group
            on conflict do nothing;
        exit when found; -- otherwise another session settled the same message at this moment: try the next number
    end loop;
end
$$;
