-- queen.freshen_stats: before figures are shown, count what changed since the last pass, if that is little.
--
-- needs: refresh_stats
-- called by  the functions behind the status pages
--
-- Up to 16 lanes at any time, up to 300 once a second; more is left to the pass in the background.
create or replace function queen.freshen_stats()
returns void
language plpgsql
as $$
declare
    p       queen.stats_pass%rowtype;
    v_young boolean;
begin
    select * into p from queen.stats_pass;
    v_young := p.passed_at > clock_timestamp() - interval '1 second';
    -- A long way to read, just to find out that it is too much?
    if p.seen is not null
       and (pg_relation_size('queen.consumer_states_a') + pg_relation_size('queen.consumer_states_b')) / 8192
           - p.blocks_a - p.blocks_b < 200
       and (pg_relation_size('queen.changes_a') + pg_relation_size('queen.changes_b')) / 8192 - p.blocks_feed < 50 then
        perform queen.refresh_stats(case when v_young then 16 else 300 end, false, 30);
    end if;
end
$$;
