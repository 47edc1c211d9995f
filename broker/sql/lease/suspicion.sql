-- queen.suspicion: how often a message was delivered without an acknowledgement, and which messages with it.
--
-- called by  queen.claim_careful, queen.limit_deliveries
-- in         p_seq: the next message to deliver; p_first, p_last, p_expired: the messages of the lease that has expired, and the earlier
--            expired deliveries of the first of them (p_first null: no lease); p_to, p_times: columns suspects_to and suspect_times
-- out        deliveries: that ended without an acknowledgement of this message
--            upto, times: the new suspects_to and suspect_times: the messages up to that one were delivered together so often.
--            A message that is delivered alone leaves them unchanged, because the others were not delivered with it
create or replace function queen.suspicion(
    p_seq bigint, p_first bigint, p_last bigint, p_expired int, p_to bigint, p_times int)
returns table (deliveries int, upto bigint, times int)
language sql immutable parallel safe
as $$
    select case when k.inside and p_seq = p_first then coalesce(p_expired, 0) + 1 else k.before + k.inside::int end,
           case when k.together then least(p_last, k.upto) else k.upto end,
           case when k.together then k.before + 1 when k.upto is not null then k.before end
      from (select i.inside, i.inside and not coalesce(p_first = p_last and p_to > p_last, false) as together,
                   case when p_to >= p_seq then p_to end as upto, case when p_to >= p_seq then p_times else 0 end as before
              from (select coalesce(p_seq between p_first and p_last, false)) i(inside)) k
$$;
