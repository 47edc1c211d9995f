-- returns: set_aside int4?
select queen.set_aside($1::text, $2::int8[], $3::int8[], $4::int4[], $5::uuid, $6::text)
