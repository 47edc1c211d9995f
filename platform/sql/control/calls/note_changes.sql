select platform.note_changes($1::text[])
