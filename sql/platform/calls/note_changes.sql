select platform.note_changes($1::text[], $2::bool[], $3::bool[])
