-- queen.note_attempts: add a row to the history of each of these messages.
--
-- needs: transaction_key, note_attempt
-- called by  queen.fail_messages, queen.note_completed
-- in         arguments as queen.note_attempt, one element per message; p_nth: rows of history that it has
create or replace function queen.note_attempts(
    p_message queen.stored_message[], p_group text, p_lane bigint, p_nth int[], p_attempt int[], p_outcome "char"[],
    p_correlation_id text[], p_delivered_at timestamptz, p_at timestamptz, p_due_at timestamptz[], p_max_attempts int[],
    p_error text[], p_error_code text[], p_worker text[])
returns void
language plpgsql
as $$
declare
    v_n    int;
    v_done uuid[];
begin
    with noted as (
        insert into queen.attempts (message_id, grp, nth, attempt, outcome, lane, key, correlation, correlation_id, transaction_id,
                                    delivered_at, at, due_at, max_attempts, error, error_code, worker)
        select u.message_id, p_group, u.nth + 1, u.attempt, u.outcome, p_lane, u.key,
               case when u.correlation_id = u.transaction_id then u.key else queen.transaction_key(u.correlation_id) end,
               u.correlation_id, u.transaction_id, p_delivered_at, p_at, u.due_at, u.most, left(u.error, 4000), left(u.code, 255),
               left(u.worker, 255)
          from rows from (unnest(p_message),
                          unnest(p_nth, p_attempt, p_outcome, p_correlation_id, p_due_at, p_max_attempts, p_error, p_error_code, p_worker))
               u(message_id, key, transaction_id, trace_id, producer_sub, is_encrypted, meta, payload, created_at,
                 nth, attempt, outcome, correlation_id, due_at, most, error, code, worker)
            on conflict do nothing
        returning message_id)
    select count(*), array_agg(n.message_id) into v_n, v_done from noted n;
    if v_n < cardinality(p_message) then
        -- The same message was settled elsewhere a moment ago: the next number is free.
        for i in 1 .. cardinality(p_message) loop
            continue when (p_message[i]).message_id = any (v_done);
            perform queen.note_attempt(p_message[i], p_group, p_lane, p_attempt[i], p_outcome[i], p_correlation_id[i], p_delivered_at,
                                       p_at, p_due_at[i], p_max_attempts[i], p_error[i], p_error_code[i], p_worker[i]);
        end loop;
    end if;
end
$$;
