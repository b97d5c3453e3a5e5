-- Hosts sign what they write. Rows of these tables are only ever added.
-- Who is a host ('first', 'before', 'invited'), with its key; n and event are where it was said. The journal alone says which
-- hosts were removed: rows of 'gone' count for nothing.
create table provost.host_key (
    repo  int not null references provost.repo,
    host  text not null,
    what  text not null check (what in ('first', 'before', 'invited', 'gone')),
    n     bigint not null,
    event bigint not null,
    body  text not null,
    primary key (repo, host, what)
);
create unique index host_key_one on provost.host_key (repo, host) where what <> 'gone';
create unique index host_key_first on provost.host_key (repo) where what = 'first';

-- Hosts from before: each enrols its key at its next start. No daemon writes here.
create table provost.host_before (repo int not null references provost.repo, host text not null, primary key (repo, host));
insert into provost.host_before select repo, id from provost.host where state <> 'removed';

-- Who has signed the journal up to which event, with the entry's link: kept for as long as the event.
create table provost.signature (
    repo  int not null references provost.repo,
    event bigint not null,
    n     bigint not null,
    host  text not null,
    mac   bytea not null,
    sig   bytea not null,
    primary key (repo, event)
);

-- What the users of the hosts may do.
create table provost.host_user (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));

-- A daemon of an earlier release that still runs writes nothing from now on.
alter table provost.entry add column sig bytea;
alter table provost.entry add constraint entry_is_signed check (sig is not null) not valid;

-- Work goes to the host that can do it: what each host can do, and what its runs have left for the others.
create table provost.ability (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));

-- Pieces of what a run has left, in their order. The seal is of the whole, with the journal's key, which is not here.
create table provost.artifact (
    repo  int not null references provost.repo,
    shelf text not null,                        -- the folder's name in the state folder of the host that ran it
    n     int not null,
    task  text not null,
    host  text not null,
    at    timestamptz not null default clock_timestamp(),
    seal  bytea not null,
    bytes bytea not null,
    primary key (repo, shelf, n)
);
create index artifact_at on provost.artifact (repo, at);

-- Texts of events that say who may sign later stay: passkeys, and removals of hosts. No login takes the text of a new event away: hosts that
-- are to check it have not read it yet.
create or replace function provost.prune_events(of_repo int, after bigint, upto bigint) returns void
    language sql security definer set search_path = pg_catalog, pg_temp
    as $$
        update provost.event set body = null
        where repo = of_repo and seq > after and seq <= upto
        and kind not in ('passkey_added', 'passkey_revoked', 'passkeys_reset', 'host_removed')
        and at < (extract(epoch from clock_timestamp()) * 1000)::bigint - 3600000
    $$;

-- Entries of the last ten minutes stay, also where the table of hosts says that all hosts have read them: each login can write there.
create or replace function provost.cut_log(of_repo int, before bigint, most bigint) returns bigint
    language sql security definer set search_path = pg_catalog, pg_temp
    as $$
        with gone as (
            delete from provost.entry where repo = of_repo and n in (
                select n from provost.entry where repo = of_repo
                and at < least(before, (extract(epoch from clock_timestamp()) * 1000)::bigint - 600000)
                and n < (select min(head) from provost.host where repo = of_repo and state in ('live', 'draining'))
                order by n limit most
            ) returning n
        ), moved as (
            update provost.repo set log_from = greatest(log_from, (select max(n) from gone) + 1)
            where id = of_repo and exists (select from gone)
        )
        select count(*) from gone
    $$;
