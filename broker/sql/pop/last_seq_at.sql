-- queen.last_seq_at: the sequence number of the last message of a lane created at or before a time; 0 if there is none.
--
-- called by  queen.newest_messages
--
-- created_at rises with the sequence numbers, so this is a binary search: about twenty probes for a lane of any length.
create or replace function queen.last_seq_at(p_lane bigint, p_time timestamptz)
returns bigint
language plpgsql stable
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan -- its callers use custom plans: planning for 20,000 lanes would take half a minute
as $$
declare
    v_low  bigint;  -- start of a segment that is not too late
    v_high bigint;  -- start of one that is
    v_end  bigint := 0;
    s      record;
begin
    select first_seq, count, created_at into s from queen.segments where lane = p_lane order by first_seq desc limit 1;
    if s.created_at <= p_time then
        return s.first_seq + s.count - 1;
    end if;
    v_high := s.first_seq;
    select first_seq, count, created_at into s from queen.segments where lane = p_lane order by first_seq limit 1;
    if s.created_at is null or s.created_at > p_time then
        return 0;
    end if;
    v_low := s.first_seq;
    v_end := s.first_seq + s.count - 1;
    loop
        select first_seq, count, created_at into s from queen.segments
         where lane = p_lane and first_seq <= v_low + (v_high - v_low) / 2 order by first_seq desc limit 1;
        if s.first_seq = v_low then -- the next segment, if there is one before v_high
            select first_seq, count, created_at into s from queen.segments
             where lane = p_lane and first_seq > v_low order by first_seq limit 1;
            if s.first_seq >= v_high then
                return v_end;
            end if;
        end if;
        if s.created_at <= p_time then
            v_low := s.first_seq;
            v_end := s.first_seq + s.count - 1;
        else
            v_high := s.first_seq;
        end if;
    end loop;
end
$$;
