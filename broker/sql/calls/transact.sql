-- returns: kind int2, error text?, lane int8?, created_at timestamptz?, seg int4?, status int2?, pos int4?,
-- returns: grp int4?, entry int4?, why int2?, released bool?, dead bool?, queue_name text?, lane_name text?,
-- returns: lane int8?, consumer int8?, more bool?
select kind, error, lane, created_at, seg, status, pos,
       grp, entry, why, released, dead, queue_name, lane_name, lane, consumer, more
  from queen.transact_2($1::int, $2::int, $3::bigint[], $4::bigint[], $5::int[], $6::bigint[], $7::int[],
                        $8::bigint[], $9::bigint[], $10::bytea[], $11::bytea[],
                        $12::int[], $13::int[], $14::uuid[],
                        $15::uuid[], $16::text[], $17::bytea[], $18::boolean[], $19::uuid[],
                        $20::int[], $21::int2[], $22::uuid[], $23::text[], $24::text[], $25::text[], $26::text[], $27::uuid[])
