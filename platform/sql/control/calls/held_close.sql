-- A lane was seen to be empty.
select platform.held_close($1::text, $2::text, $3::text, $4::int8, $5::text)
