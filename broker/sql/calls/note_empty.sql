-- returns: note_empty void
select queen.note_empty($1::text[], $2::text[])
