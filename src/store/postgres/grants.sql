-- What the two groups may do. Again after each step, for those that are there.
revoke all on schema provost from public;
do $$
begin
    if exists (select 1 from pg_roles where rolname = 'provost_host') then
        grant usage on schema provost to provost_host;
        grant select, insert, update, delete on all tables in schema provost to provost_host;
        revoke update, delete, truncate on provost.event, provost.entry, provost.host_key, provost.signature from provost_host;
        revoke insert, update, delete, truncate on provost.host_before from provost_host;
        revoke delete on provost.repo, provost.host, provost.checkpoint from provost_host;
        revoke insert, update, delete on provost.schema from provost_host;
        grant execute on function provost.prune_events(int, bigint, bigint), provost.cut_log(int, bigint, bigint) to provost_host;
    end if;
    if exists (select 1 from pg_roles where rolname = 'provost_reader') then
        grant usage on schema provost to provost_reader;
        grant select on all tables in schema provost to provost_reader;
    end if;
end
$$;
