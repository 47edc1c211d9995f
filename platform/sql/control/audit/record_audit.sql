-- platform.record_audit: store records of the audit log.
--
-- called by  platform/src/platform/audit.c (call "record_audit")
-- in         one element per record; empty texts are null.  p_server: name of the server
-- out        the number of new rows: a record that is there already is left as it is
create or replace function platform.record_audit(p_record uuid[], p_at timestamptz[], p_address text[], p_subject text[], p_operation text[], p_method text[],
                                              p_path text[], p_target text[], p_status int[], p_count bigint[], p_detail text[], p_server text)
returns bigint
language plpgsql
as $$
declare
    v_n bigint;
begin
    insert into platform.audit (record, at, subject, address, operation, method, path, target, status, count, detail, server)
    select r.record, r.at, nullif(r.subject, ''), nullif(r.address, ''), nullif(r.operation, ''), r.method, r.path, nullif(r.target, ''), r.status, r.count,
           nullif(r.detail, '')::json, p_server
      from unnest(p_record, p_at, p_address, p_subject, p_operation, p_method, p_path, p_target, p_status, p_count, p_detail) with ordinality
           r(record, at, address, subject, operation, method, path, target, status, count, detail, nth)
     order by r.nth
        on conflict (record) do nothing;
    get diagnostics v_n = row_count;
    return v_n;
end
$$;
