-- queen.body_text: a text field of a request body.
--
-- called by  queen.stream_register and other functions that read a body
-- out        its text; null: absent, null or empty
-- raises     QN001, naming the field, if it is not a string, or is required and missing
create or replace function queen.body_text(p_body jsonb, p_name text, p_required boolean)
returns text
language plpgsql immutable
as $$
begin
    if jsonb_typeof(coalesce(p_body -> p_name, 'null')) not in ('string', 'null')
       or (p_required and coalesce(p_body ->> p_name, '') = '') then
        raise exception '% must be a string%', p_name, case when p_required then ' that is not empty' else '' end
            using errcode = 'QN001';
    end if;
    return nullif(p_body ->> p_name, '');
end
$$;
