-- Several hosts write one repository: what a host owes names it, and what all daemons have in memory is here, too.
alter table provost.repo add column roots text;         -- root commits, to compare when a host joins; null until one is known

alter table provost.effect add column host text, add column inc bigint;
update provost.effect set
    host = coalesce((select id from provost.host where host.repo = effect.repo order by beat desc limit 1), repeat('0', 32)),
    inc = coalesce((select inc from provost.host where host.repo = effect.repo order by beat desc limit 1), 0);
alter table provost.effect alter column host set not null, alter column inc set not null;

-- Who waits for a lock, by ticket; mail that a daemon hands over, by number; where agents have given signs of life.
create table provost.waiter (repo int not null references provost.repo, id bigint not null, body text not null, primary key (repo, id));
create table provost.carried (repo int not null references provost.repo, id bigint not null, body text not null, primary key (repo, id));
create table provost.present (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));

-- A host that is down reads the rows when it comes back, so it keeps no entries.
create or replace function provost.cut_log(of_repo int, before bigint, most bigint) returns bigint
    language sql security definer set search_path = pg_catalog, pg_temp
    as $$
        with gone as (
            delete from provost.entry where repo = of_repo and n in (
                select n from provost.entry where repo = of_repo and at < before
                and n < (select min(head) from provost.host where repo = of_repo and state in ('live', 'draining'))
                order by n limit most
            ) returning n
        ), moved as (
            update provost.repo set log_from = greatest(log_from, (select max(n) from gone) + 1)
            where id = of_repo and exists (select from gone)
        )
        select count(*) from gone
    $$;
