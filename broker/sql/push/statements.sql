-- Columns that pushes return, one row per segment that was stored and one or more per segment that was not (queen.push_segments).
--
-- columns push: lane int8?, first_seq int8?, created_at timestamptz?, seg int4?, status int2, pos int4?, dup_id uuid?
-- enum seg_status: SEG_STORED 0, SEG_DUPLICATES 1, SEG_DEFERRED 2, SEG_LANE_GONE 3, SEG_QUEUE_FULL 4, SEG_LANE_LIMITED 5,
-- enum seg_status: SEG_LANE_SEALED 6, SEG_NO_KEY 7

-- statement: ensure_lanes
-- returns: idx int4, lane int8, lane_id uuid?
select idx, lane, lane_id from queen.resolve_lanes($1::text[], $2::text[], $3::boolean);

-- statement: locked_lanes
-- returns: lane int8?
select lane from queen.locked_lanes($1::bigint[]) lane;

-- statement: push
-- returns: @push
select lane, first_seq, created_at, seg, status, pos, dup_id
  from queen.push_segments($1::int, $2::boolean, $3::int, $4::bigint[], $5::bigint[], $6::int[], $7::bigint[],
                           $8::int[], $9::bigint[], $10::bigint[], $11::bytea[], $12::bytea[],
                           $13::int[], $14::int[], $15::uuid[]);

-- statement: push_correlated
-- returns: @push
select lane, first_seq, created_at, seg, status, pos, dup_id
  from queen.push_correlated($1::int, $2::boolean, $3::int, $4::bigint[], $5::bigint[], $6::int[], $7::bigint[],
                             $8::int[], $9::bigint[], $10::bigint[], $11::bytea[], $12::bytea[],
                             $13::int[], $14::int[], $15::uuid[], $16::int[], $17::int[], $18::uuid[]);

-- statement: push_mixed
-- returns: @push, later int4?, wait_us int8?
select lane, first_seq, created_at, seg, status, pos, dup_id, later, wait_us
  from queen.push_mixed($1::int, $2::int, $3::bigint[], $4::bigint[], $5::int[], $6::bigint[],
                        $7::int[], $8::bigint[], $9::bigint[], $10::bytea[], $11::bytea[],
                        $12::int[], $13::int[], $14::uuid[], $15::int[], $16::int[], $17::uuid[],
                        $18::boolean, $19::bigint[], $20::uuid[], $21::bigint[], $22::bigint[],
                        $23::text[], $24::text[], $25::bytea[], $26::int[]);
