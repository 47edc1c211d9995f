-- queen.freshen_stats: count recent changes before statistics are shown, if there are few.
--
-- needs: refresh_stats
-- called by  the functions behind the status pages
--
-- Up to 16 lanes at any time, up to 300 once a second. More are left to the background pass.
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
    -- Skip it if much would have to be read only to find that there are too many changes.
    if p.seen is not null
       and (pg_relation_size('queen.consumer_states_a') + pg_relation_size('queen.consumer_states_b')) / 8192
           - p.blocks_a - p.blocks_b < 200
       and (pg_relation_size('queen.changes_a') + pg_relation_size('queen.changes_b')) / 8192 - p.blocks_feed < 50 then
        perform queen.refresh_stats(case when v_young then 16 else 300 end, false, 30);
    end if;
end
$$;
