-- queen.stream_register: POST /streams/v1/queries.
--
-- needs: body_text
-- called by  broker/src/api/messages/streams.c (call "stream_register")
-- in         p_args.body: {name, source_queue, config_hash, sink_queue?, reset?}
-- out        status and the answer; 409: registered with another config_hash, and no reset was requested
-- locks      the row of queen_streams.queries; for a reset queen.stream_lock of the whole query
-- raises     QN001, naming the field
create or replace function queen.stream_register(p_args jsonb)
returns table (status int, answer text)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_body   jsonb := p_args -> 'body';
    v_name   text := queen.body_text(v_body, 'name', true);
    v_source text := queen.body_text(v_body, 'source_queue', true);
    v_hash   text := queen.body_text(v_body, 'config_hash', true);
    v_sink   text := queen.body_text(v_body, 'sink_queue', false);
    v_reset  boolean := false;
    v_new    uuid;
    q        queen_streams.queries%rowtype;
begin
    if jsonb_typeof(coalesce(v_body -> 'reset', 'null')) not in ('boolean', 'null') then
        raise exception 'reset must be true or false' using errcode = 'QN001';
    end if;
    if exists (select from queen.queues where name = v_source and ordering = 'none') then
        raise exception 'source_queue: "%" is a work queue (ordering "none"); a stream needs an ordered queue', v_source
            using errcode = 'QN001';
    end if;
    if exists (select from queen.queues where name = v_source and by_message) then
        raise exception 'source_queue: "%" has settlement "message"; a stream acknowledges by cursor', v_source using errcode = 'QN001';
    end if;
    v_reset := coalesce((v_body ->> 'reset')::boolean, false);

    -- Wait for another session that registers the same name; then it exists. If it is deleted
    -- meanwhile, register it again.
    loop
        select * into q from queen_streams.queries where name = v_name for no key update;
        exit when found;
        insert into queen_streams.queries (name, source_queue, sink_queue, config_hash)
        values (v_name, v_source, v_sink, v_hash)
            on conflict (name) do nothing
        returning id into v_new;
        if v_new is not null then
            return query select 200, json_build_object('success', true, 'query_id', v_new, 'name', v_name,
                'config_hash', v_hash, 'fresh', true, 'reset', false)::text;
            return;
        end if;
    end loop;

    if q.config_hash <> v_hash and not v_reset then
        return query select 409, json_build_object('success', false, 'query_id', q.id, 'name', v_name,
            'error', format('config_hash mismatch for query %s: its operators have changed; '
                            'register it with reset to start with empty state', v_name))::text;
        return;
    end if;
    v_reset := q.config_hash <> v_hash;
    if v_reset then
        perform queen.stream_lock(q.id, null);
        delete from queen_streams.state where query_id = q.id;
    end if;
    -- An unchanged query leaves no dead row. A change also makes the receipts of cycles void.
    update queen_streams.queries u
       set source_queue = v_source, sink_queue = v_sink, config_hash = v_hash, updated_at = clock_timestamp()
     where u.id = q.id
       and (u.source_queue, u.sink_queue, u.config_hash) is distinct from (v_source, v_sink, v_hash);
    return query select 200, json_build_object('success', true, 'query_id', q.id, 'name', v_name,
        'config_hash', v_hash, 'fresh', false, 'reset', v_reset)::text;
end
$$;
