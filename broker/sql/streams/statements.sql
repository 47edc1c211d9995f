-- Kinds of the rows of a cycle (queen.stream_cycle):
-- enum cycle_kind: CYCLE_STORED 0, CYCLE_ACKED 1, CYCLE_FAILED 2, CYCLE_DUPLICATE 3, CYCLE_REPEATED 4, CYCLE_SOURCE 5

-- statement: list_streams
-- returns: @answer
select 200, queen.list_streams($1::text::jsonb)::text, null::bytea, false;

-- statement: stream_cycle
-- returns: kind int2, error text?, created_at timestamptz?, seg int4?, status int2?, pos int4?, dup_id uuid?,
-- returns: released bool?, queue_name text?, consumer int8?, more bool?, items bytea?
select kind, error, created_at, seg, status, pos, dup_id, released, queue_name, consumer, more, items
  from queen.stream_cycle($1::int, $2::uuid, $3::uuid, $4::text, $5::bytea, $6::bytea, $7::text[], $8::text[],
                          $9::int, $10::bigint[], $11::bigint[], $12::int[], $13::bigint[], $14::int[],
                          $15::bigint[], $16::bigint[], $17::bytea[], $18::bytea[],
                          $19::int[], $20::int[], $21::uuid[],
                          $22::uuid, $23::uuid, $24::int, $25::boolean, $26::text, $27::boolean);

-- statement: stream_register
-- returns: @answer
select status, answer, null::bytea, false from queen.stream_register($1::text::jsonb);

-- statement: stream_state
-- returns: @answer
select 200, queen.stream_state($1::text::jsonb), null::bytea, false;
