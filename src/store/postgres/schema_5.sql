-- Each login can change the repository's row, so hosts seal it with the journal's key, which is not here. A row without a seal, as this step leaves
-- it, is worked out again from the log by the next start.
lock table provost.repo in access exclusive mode;
alter table provost.repo add column checkpoint bigint not null default 0;    -- the event of the last checkpoint
alter table provost.repo add column seal bytea;

-- A daemon of an earlier release that still runs writes nothing from now on.
create function provost.must_seal() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp
    as $$ begin raise exception 'this daemon does not seal the repository''s row: install the release that made these tables'; end $$;
create trigger repo_is_sealed before update on provost.repo for each row
    when (new.seal is not distinct from old.seal
        and row(new.n, new.mac, new.event, new.event_mac, new.pruned_to, new.counters, new.finished, new.searched_to, new.checkpoint, new.at,
            new.system, new.timeline)
        is distinct from row(old.n, old.mac, old.event, old.event_mac, old.pruned_to, old.counters, old.finished, old.searched_to, old.checkpoint,
            old.at, old.system, old.timeline))
    execute function provost.must_seal();

-- The newest entries stay, also where the table of hosts says that all hosts have read them: they say what the repository's row should.
create or replace function provost.cut_log(of_repo int, before bigint, most bigint) returns bigint
    language sql security definer set search_path = pg_catalog, pg_temp
    as $$
        with gone as (
            delete from provost.entry where repo = of_repo and n in (
                select n from provost.entry where repo = of_repo
                and at < least(before, (extract(epoch from clock_timestamp()) * 1000)::bigint - 600000)
                and n < (select min(head) from provost.host where repo = of_repo and state in ('live', 'draining'))
                and n <= (select n from provost.entry where repo = of_repo order by n desc offset 256 limit 1)
                order by n limit most
            ) returning n
        ), moved as (
            update provost.repo set log_from = greatest(log_from, (select max(n) from gone) + 1)
            where id = of_repo and exists (select from gone)
        )
        select count(*) from gone
    $$;
