-- queen.schedule_answer: a recurring message as an HTTP answer, with its payload in a separate column.
--
-- needs: schedule_json
-- called by  queen.create_schedule, queen.change_schedule
create or replace function queen.schedule_answer(p_status int, s queen.schedules)
returns table (status int, piece text, payload bytea, sealed boolean)
language plpgsql stable
as $$
begin
    return query select p_status, left(queen.schedule_json(s)::text, -1) || ', "payload" : ', convert_to(s.payload::text, 'UTF8'), s.sealed;
    return query select p_status, '}', null::bytea, false;
end
$$;
