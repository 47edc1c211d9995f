-- statement: create_key
-- returns: status int4, answer text
select status, answer::text from queen.create_key($1::text, $2::text, $3::bytea, $4::text, $5::text, $6::int8, $7::text, $8::text);

-- statement: list_keys
-- The parameter is not used: every report has one.
-- returns: @answer
select 200, queen.list_keys()::text, null::bytea, false where $1::text is not null;

-- statement: read_keys
-- returns: version uuid, id text?, name text?, hash bytea?, role text?, rules text?, expires_s int8?, limits text?
select version, id, name, hash, role, rules, expires_s, limits from queen.read_keys($1::uuid);

-- statement: revoke_key
-- returns: status int4, answer text, id text?
select status, answer::text, id from queen.revoke_key($1::text);

-- statement: lease_queues
-- The queues and groups of a lease, by its key.
-- returns: queue text, grp text
select distinct q.name::text as queue, c.grp
  from (select a.consumer from queen.consumer_states_a a where a.lease = $1::uuid
         union select b.consumer from queen.consumer_states_b b where b.lease = $1::uuid
         union select a.consumer from queen.holds_a a where a.lease = $1::uuid and a.until is not null
         union select b.consumer from queen.holds_b b where b.lease = $1::uuid and b.until is not null) s
  join queen.consumers c on c.num = s.consumer
  join queen.lanes l on l.num = c.lane
  join queen.queues q on q.id = coalesce(l.origin_queue, l.queue_id);

-- statement: partition_queues
-- The queues of partitions, by their ids; unknown ids are missing.
-- returns: id uuid, queue text
select l.id, q.name::text as queue
  from queen.lanes l
 cross join lateral (select q.name from queen.queues q where q.id = coalesce(l.origin_queue, l.queue_id) offset 0) q
 where l.id = any ($1::uuid[]);

-- statement: record_audit
-- returns: record_audit int8
select queen.record_audit($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::int[], $10::int8[],
                          $11::text[], $12::text);

-- statement: list_audit
-- returns: @answer
select 200, queen.list_audit($1::jsonb)::text, null::bytea, false;

-- statement: count_stored
-- returns: count_stored int8
select queen.count_stored($1::bigint[], $2::text[], $3::bigint[], $4::timestamptz[], $5::bigint[]);

-- statement: read_stored
-- returns: subject text, bytes int8, next int8
select subject, bytes, next from queen.read_stored($1::text[], $2::bigint, $3::int);
