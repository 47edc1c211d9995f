-- queen.work_floor: the last message of a work queue before the first one that is not settled.
--
-- called by  queen.claim_work, queen.settle_work and others that settle messages, which have locked the consumer
-- in         columns of its state: walk_seq, holds_from, taken_seq; p_open: number of messages that are not settled
-- out        cursor_seq and walk_seq for its next state. cursor_seq may be lower than possible if many holds have ended at once: the
--            next call goes on
--
-- Walks from one hold to the next and stops at the first open message. Holds that have ended before it are never read again, so the
-- cost follows the holds that were made. A statement reads a bounded stretch: one over all holds would sort all of them, although the
-- first one is usually open.
create or replace function queen.work_floor(
    p_consumer bigint, p_walk bigint, p_from bigint, p_taken bigint, p_open int, out cursor_seq bigint, out walk_seq bigint)
language plpgsql stable
as $$
#variable_conflict use_column
declare
    c_steps constant int := 40;
    h       record;
    v_from  bigint := p_walk; -- the stretch that is read
    v_to    bigint;           -- one behind
    v_first bigint;           -- the hold whose versions are being read, and its newest version so far
    v_hold  bigint;
    v_until timestamptz;
    v_done  bytea;
    v_open  bigint;           -- first open message found
    v_seq   bigint;
begin
    if p_open <= 0 then
        cursor_seq := p_taken;
        walk_seq := p_taken + 1;
        return;
    end if;
    walk_seq := null;
    for i in 1 .. c_steps loop
        v_to := v_from + case when i = 1 then 16 else 256 end;
        v_first := null;
        for h in
            select * from (
                select a.first_seq, a.hold, a.ver, a.until, a.done from queen.holds_a a
                 where a.consumer = p_consumer and a.first_seq >= v_from and a.first_seq < v_to
                 union all
                select b.first_seq, b.hold, b.ver, b.until, b.done from queen.holds_b b
                 where b.consumer = p_consumer and b.first_seq >= v_from and b.first_seq < v_to
                 union all
                select null, null, null, null, null) x -- the end
             order by first_seq, hold, ver
        loop
            if v_first is not null and (h.first_seq = v_first and h.hold = v_hold) is not true then
                -- All versions of a hold were read.
                if v_until is not null and v_hold >= p_from then
                    walk_seq := coalesce(walk_seq, v_first);
                    v_seq := v_first;
                    while v_done is not null and get_bit(v_done, (v_seq - v_first)::int) = 1 loop
                        v_seq := v_seq + 1;
                    end loop;
                    v_open := least(v_open, v_seq);
                end if;
                exit when h.first_seq > v_open;
            end if;
            v_first := h.first_seq;
            v_hold := h.hold;
            v_until := h.until;
            v_done := h.done;
        end loop;
        -- A hold that begins later cannot contain an earlier message.
        exit when v_open < v_to or v_to > p_taken;
        v_from := v_to;
    end loop;
    if v_open < v_to or v_to > p_taken then
        cursor_seq := coalesce(v_open - 1, p_taken);
        walk_seq := coalesce(walk_seq, p_taken + 1);
    else
        cursor_seq := v_to - 1;
        walk_seq := coalesce(walk_seq, v_to);
    end if;
end
$$;
