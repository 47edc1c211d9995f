-- platform.end_visit(tenant, model, who, error, retry_ms, refreshed, again): records the result of a visit and releases the claim.
-- called by: platform/src/readmodel/visit.c
-- in:  error: null on success; refreshed: the view was refreshed; again: the visit is not complete, because other tenants wait;
--      retry_ms: pause after a failure or an incomplete visit
-- out: true if the claim was still valid        locks: the row        raises: nothing
create or replace function platform.end_visit(p_tenant text, p_model text, p_who text, p_error text, p_retry_ms int,
                                              p_refreshed boolean, p_again boolean default false) returns boolean
language plpgsql
set search_path = platform, pg_temp
as $$
begin
    update platform.read_model r
    set claimed_by = null, claimed_at = null, claimed_until = null,
        refreshed_at = case when p_refreshed then clock_timestamp() else r.refreshed_at end,
        visited_at = case when p_error is null and not p_again then r.claimed_at else r.visited_at end,
        -- Changes reported before the claim are done; later ones are new changes.
        first_change_at = case when p_error is not null or p_again then r.first_change_at
                               when r.changes > r.claimed_changes then r.claimed_at end,
        -- Behind the tenants that wait.
        wanted_at = case when p_again then clock_timestamp() when p_error is not null or r.wishes > r.claimed_wishes then r.wanted_at end,
        failures = case when p_again then r.failures when p_error is null then 0 else r.failures + 1 end,
        error = p_error,
        retry_at = case when p_error is not null or p_again then clock_timestamp() + p_retry_ms * interval '1 ms' end
    where r.tenant = p_tenant and r.model = p_model and r.claimed_by = p_who;
    return found;
end
$$;
