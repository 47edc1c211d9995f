-- Columns that claims return: one row per target that was not claimed, and one per segment of a claimed target (queen.claim_careful).
--
-- columns claim: target int4, status int2, wait_us int8?, lane_id uuid?, retries int4?, start_seq int8?, take int4?,
-- columns claim: more bool?, first_seq int8?, count int4?, created_at timestamptz?, keys bytea?, body bytea?, ver int8?,
-- columns claim: buried int4?
-- enum claim_status: CLAIM_CLAIMED 0, CLAIM_BUSY 1, CLAIM_LEASED 2, CLAIM_EMPTY 3, CLAIM_NOT_YET 4, CLAIM_GONE 5,
-- enum claim_status: CLAIM_NOT_NEEDED 6, CLAIM_WANTS_CARE 7, CLAIM_IS_WORK 8, CLAIM_WANTS_CARE_ONCE 9, CLAIM_FULL 10

-- statement: claim
-- returns: @claim
select target, status, wait_us, lane_id, retries, start_seq, take, more,
       first_seq, count, created_at, keys, body, ver, null::int as buried
  from queen.claim($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::boolean[], $6::uuid[]);

-- statement: claim_careful
-- returns: @claim
select target, status, wait_us, lane_id, retries, start_seq, take, more,
       first_seq, count, created_at, keys, body, 0::bigint as ver, buried
  from queen.claim_careful($1::int[], $2::bigint[], $3::int[], $4::int[], $5::boolean[], $6::uuid[],
                           $7::text[], $8::int[]);

-- statement: push_claim
-- A push and claims for pops that wait for its messages. Rows without a target are about the push, and come first; their columns are those of
-- @push in its order, from stored_lane on.
-- returns: @claim?, stored_lane int8?, stored_seq int8?, stored_at timestamptz?, seg int4?, stored_status int2?, pos int4?, dup_id uuid?
select target, status, wait_us, lane_id, retries, start_seq, take, more,
       first_seq, count, created_at, keys, body, ver, buried,
       stored_lane, stored_seq, stored_at, seg, stored_status, pos, dup_id
  from queen.push_and_claim($1::int, $2::boolean, $3::int, $4::bigint[], $5::bigint[], $6::int[], $7::bigint[],
                            $8::int[], $9::bigint[], $10::bigint[], $11::bytea[], $12::bytea[],
                            $13::int[], $14::int[], $15::uuid[],
                            $16::bigint[], $17::bigint[], $18::bigint[], $19::int[], $20::boolean[], $21::uuid[]);

-- statement: discover
-- A last row with lane 0: request the next page. Consumer 0: the partition is locked. A retry lane has the name of its partition
-- and its group; other lanes have null.
-- returns: lane int8, lane_id uuid, lane_name text, consumer int8, pending bool, lease_us int8?,
-- returns: partition_name text?, only_group text?
select lane, lane_id, lane_name, consumer, pending, lease_us, partition_name, only_group
  from (select d.*, o.name::text as partition_name, r.name::text as only_group
          from queen.discover_page($1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text)
               with ordinality d(lane, lane_id, lane_name, consumer, pending, lease_us, ord)
          left join queen.lanes r on r.num = d.lane and r.origin is not null
          left join queen.lanes o on o.num = r.origin) d
 order by ord;

-- statement: ensure_consumers
-- Consumer 0: the partition is locked.
-- returns: idx int4, lane int8?, consumer int8
select idx, lane, consumer from queen.number_consumers($1::bigint[], $2::text[]);

-- statement: note_empty
-- returns: note_empty void
select queen.note_empty($1::text[], $2::text[]);
