-- statement: ask_owners
-- returns: @answer
select 200, queen.ask_owners($1::text::jsonb)::text, null::bytea, false;

-- statement: claim_owners
-- returns: @answer
select 200, queen.claim_owners($1::text::jsonb)::text, null::bytea, false;

-- statement: list_owner_changes
-- returns: @answer
select status, answer::text, null::bytea, false from queen.list_owner_changes($1::text::jsonb);

-- statement: list_owners
-- returns: @answer
select status, answer::text, null::bytea, false from queen.list_owners($1::text::jsonb);

-- statement: list_processors
-- returns: @answer
select 200, queen.list_processors($1::text::jsonb)::text, null::bytea, false;

-- statement: owns_partition
-- returns: owns_partition bool?
select queen.owns_partition($1::text, $2::text, $3::text, $4::text, $5::int8);

-- statement: release_owners
-- returns: @answer
select 200, queen.release_owners($1::text::jsonb)::text, null::bytea, false;

-- statement: renew_owners
-- returns: @answer
select 200, queen.renew_owners($1::text::jsonb)::text, null::bytea, false;

-- statement: save_checkpoints
-- returns: @answer
select 200, queen.save_checkpoints($1::text::jsonb)::text, null::bytea, false;
