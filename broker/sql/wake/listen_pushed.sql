-- queen.listen_pushed: receive the notifications of queen.notify_pushed on this connection.
--
-- called by  broker/src/server/sql_wake.c
-- out        true
-- locks      none
create or replace function queen.listen_pushed()
returns boolean
language plpgsql
as $$
begin
    listen queen_pushed;
    return true;
end
$$;
