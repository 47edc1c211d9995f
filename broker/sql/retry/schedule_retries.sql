-- queen.schedule_retries: store copies of messages that are to be delivered once more, to one group.
--
-- needs: pack_message, schedule_rows
-- called by  queen.fail_messages, queen.schedule_retry; in the transaction that settles the failure
-- in         p_retry_lane: the lane that gets them when they are due (queen.retry_lane).  One element per message; those with p_outcome
--            'r' are stored: p_attempt, which has failed; p_due_at; p_meta: the further fields of the retry
--
-- A copy keeps payload, id, transaction id and all else; a sealed payload stays sealed.  The further fields
-- (docs/internals/segment-format.md) are for the consumer.
create or replace function queen.schedule_retries(
    p_retry_lane bigint, p_group text, p_message queen.stored_message[], p_outcome "char"[], p_attempt int[], p_due_at timestamptz[],
    p_correlation_id text[], p_meta text[])
returns void
language sql
as $$
    select queen.schedule_rows(
               'r', array_agg(p_retry_lane), array_agg(u.key order by u.ord), array_agg(p_due_at[u.ord] order by u.ord),
               array_agg(p_group), array_agg(p_attempt[u.ord] + 1 order by u.ord), array_agg(p_correlation_id[u.ord] order by u.ord),
               array_agg(u.transaction_id order by u.ord), null,
               array_agg(queen.pack_message(nullif(u.transaction_id, u.key::text), u.trace_id, u.producer_sub, u.is_encrypted,
                                            u.message_id, p_meta[u.ord], u.payload) order by u.ord))
      from unnest(p_message) with ordinality
           u(message_id, key, transaction_id, trace_id, producer_sub, is_encrypted, meta, payload, created_at, ord)
     where p_outcome[u.ord] = 'r'
$$;
