-- queen.note_expired: record that a lease has expired, for the timeline.
--
-- called by  queen.claim_careful, queen.limit_deliveries, which hold the consumer
-- in         the lane, the group, and the lease: its messages, when it was given out and when it expired
-- effects    one row per set of messages: equal leases that expire again are counted in it
create or replace function queen.note_expired(
    p_lane bigint, p_group text, p_first bigint, p_last bigint, p_lease_at timestamptz, p_until timestamptz)
returns void
language sql
as $$
    insert into queen.expired_leases as e (lane, grp, first_seq, last_seq, delivered_at, expired_at)
    values (p_lane, p_group, p_first, p_last, p_lease_at, p_until)
        on conflict (lane, grp, first_seq, last_seq) do update
       set times = e.times + 1, delivered_at = excluded.delivered_at, expired_at = excluded.expired_at
$$;
