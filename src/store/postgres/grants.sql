-- What the groups may do. Again after each step, for those that are there.
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
    -- A machine that only works changes none of this in its entries either.
    if exists (select 1 from pg_roles where rolname = 'provost_worker') then
        grant usage on schema provost to provost_worker;
        grant select, insert, update, delete on all tables in schema provost to provost_worker;
        revoke update, delete, truncate on provost.event, provost.entry, provost.host_key, provost.signature from provost_worker;
        revoke insert, update, delete, truncate on provost.host_before from provost_worker;
        revoke delete on provost.host, provost.checkpoint from provost_worker;
        revoke insert, delete on provost.repo from provost_worker;
        revoke insert, update, delete on provost.schema from provost_worker;
        revoke insert, update, delete on provost.token, provost.passkey, provost.passkey_reset, provost.daemon, provost.host_user, provost.push,
            provost.job, provost.job_order, provost.job_result, provost.merge_entry, provost.switched from provost_worker;
        grant execute on function provost.prune_events(int, bigint, bigint), provost.cut_log(int, bigint, bigint) to provost_worker;
    end if;
    if exists (select 1 from pg_roles where rolname = 'provost_reader') then
        grant usage on schema provost to provost_reader;
        grant select on all tables in schema provost to provost_reader;
    end if;
end
$$;
