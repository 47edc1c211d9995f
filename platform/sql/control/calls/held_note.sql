-- An attempt has failed.
select platform.held_note($1::text, $2::text, $3::text, $4::int8, $5::text, $6::int4, $7::int8, $8::text)
