-- Columns that acknowledgements return, alone and in transactions (queen.settle, queen.transact).
--
-- columns ack: grp int4, entry int4?, why int2, released bool?, dead bool?, queue_name text?, lane_name text?, lane int8?,
-- columns ack: consumer int8?, more bool?
-- columns transact: kind int2, error text?, lane int8?, created_at timestamptz?, seg int4?, status int2?, pos int4?, @ack?
--
-- The status that a client asks for, why an entry failed, and the kind of a row of a transaction:
-- enum ack_status: ACK_COMPLETED 0, ACK_FAILED 1, ACK_DLQ 2, ACK_RETRY 3, ACK_UNKNOWN 4
-- enum ack_why: ACK_OK 0, ACK_NOT_FOUND 1, ACK_BAD_LEASE 2, ACK_BAD_STATUS 3, ACK_WAITING 4, ACK_NOT_DELIVERED 5,
-- enum ack_why: ACK_SETTLED 6, ACK_NOT_WORK 7
-- enum transact_kind: TX_PUSHED 0, TX_ACKED 1, TX_FAILED 2, TX_SCHEDULED 3, TX_NOT_SCHEDULED 4

-- statement: finish
-- returns: consumer int8
select consumer from queen.finish($1::int, $2::bigint[], $3::bigint[], $4::bigint[], $5::uuid[], $6::boolean[]);

-- statement: set_aside
-- returns: set_aside int4?
select queen.set_aside($1::text, $2::int8[], $3::int8[], $4::int4[], $5::uuid, $6::text);

-- statement: settle
-- returns: @ack, attempt int4?, due_at timestamptz?, wait_us int8?
select grp, entry, why, released, dead, queue_name, lane_name, lane, consumer, more,
       attempt, due_at, (extract(epoch from due_at - clock_timestamp()) * 1000000)::int8 as wait_us
  from queen.settle($1::int, $2::uuid[], $3::text[], $4::bytea[], $5::boolean[], $6::uuid[],
                      $7::int[], $8::int2[], $9::uuid[], $10::text[], $11::text[], $12::text[], $13::text[], false,
                    '{}'::uuid[], $14::int[]);

-- statement: settle_tries
-- returns: @ack, attempt int4?, due_at timestamptz?, wait_us int8?
select grp, entry, why, released, dead, queue_name, lane_name, lane, consumer, more,
       attempt, due_at, (extract(epoch from due_at - clock_timestamp()) * 1000000)::int8 as wait_us
  from queen.settle_tries($1::int, $2::uuid[], $3::text[], $4::bytea[], $5::boolean[], $6::uuid[],
                          $7::int[], $8::int2[], $9::uuid[], $10::text[], $11::text[], $12::text[], $13::text[], $14::int[], $15::text[]);

-- statement: transact
-- returns: @transact
select kind, error, lane, created_at, seg, status, pos,
       grp, entry, why, released, dead, queue_name, lane_name, lane, consumer, more
  from queen.transact($1::int, $2::int, $3::bigint[], $4::bigint[], $5::int[], $6::bigint[], $7::int[],
                        $8::bigint[], $9::bigint[], $10::bytea[], $11::bytea[],
                        $12::int[], $13::int[], $14::uuid[],
                        $15::uuid[], $16::text[], $17::bytea[], $18::boolean[], $19::uuid[],
                        $20::int[], $21::int2[], $22::uuid[], $23::text[], $24::text[], $25::text[], $26::text[], $27::uuid[]);

-- statement: transact_scheduled
-- returns: @transact, dup_id uuid?, wait_us int8?
select kind, error, lane, created_at, seg, status, pos,
       grp, entry, why, released, dead, queue_name, lane_name, lane, consumer, more, dup_id,
       case when kind = 3 then (extract(epoch from created_at - clock_timestamp()) * 1000000)::int8 end as wait_us
  from queen.transact_scheduled(
           $1::int, $2::int, $3::bigint[], $4::bigint[], $5::int[], $6::bigint[], $7::int[],
           $8::bigint[], $9::bigint[], $10::bytea[], $11::bytea[],
           $12::int[], $13::int[], $14::uuid[],
           $15::uuid[], $16::text[], $17::bytea[], $18::boolean[], $19::uuid[],
           $20::int[], $21::int2[], $22::uuid[], $23::text[], $24::text[], $25::text[], $26::text[], $27::uuid[],
           $28::boolean, $29::bigint[], $30::uuid[], $31::bigint[], $32::bigint[],
           $33::text[], $34::text[], $35::bytea[], $36::int[]);
