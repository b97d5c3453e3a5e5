-- The first schema. What was released is never changed: the next step has a file of its own.
create schema provost;

-- One row that each batch changes: its order is the repository's. No index on what changes, and room in the page.
create table provost.repo (
    id          int generated always as identity primary key,
    name        text unique not null,
    format      int not null,                   -- of changes in `entry`
    n           bigint not null,                -- the last entry, and its link
    mac         bytea not null,
    event       bigint not null,                -- the last event, and its link
    event_mac   bytea not null,
    pruned_to   bigint not null,                -- the last event that may be without a body
    log_from    bigint not null,                -- the first entry that is kept
    system      text not null,                  -- where numbers were last given
    timeline    bigint not null,
    key_print   text not null,                  -- recognises the journal's key, which is not here
    counters    jsonb not null,
    finished    bigint not null,                -- the last place given to a finished task
    searched_to bigint not null,                -- the last event whose words are in the index
    at          bigint not null                 -- milliseconds; never goes back
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create table provost.entry (
    repo   int not null references provost.repo,
    n      bigint not null,
    host   text not null,
    inc    bigint not null,
    own_n  bigint not null,
    at     bigint not null,
    format int not null,
    body   text not null,
    mac    bytea not null,
    primary key (repo, n),
    unique (repo, host, inc, own_n)
);

create table provost.host (
    repo    int not null references provost.repo,
    id      text not null,
    inc     bigint not null,                    -- one more with each start
    name    text not null,
    version text not null,
    formats int4range not null,
    state   text not null,
    clean   boolean not null,                   -- whether the last daemon stopped in order
    beat    timestamptz not null,
    head    bigint not null,
    primary key (repo, id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create table provost.task (
    repo         int not null references provost.repo,
    id           text not null,
    live         boolean not null,
    finished_seq bigint,
    at           bigint not null,
    status       text not null,
    body         text not null,
    primary key (repo, id)
);
create index task_live on provost.task (repo) where live;
create index task_finished on provost.task (repo, finished_seq) where not live;
create index task_ended_as on provost.task (repo, status, finished_seq) where not live;
create index task_old on provost.task (repo, at) where not live;

create table provost.effect (
    repo    int not null references provost.repo,
    id      bigint not null,
    body    text not null,
    started boolean not null,
    primary key (repo, id)
);

create table provost.event (
    repo  int not null references provost.repo,
    seq   bigint not null,
    at    bigint not null,
    kind  text not null,
    actor text not null,
    task  text,
    body  text,                                 -- null where pruned
    hash  bytea not null,
    mac   bytea not null,
    primary key (repo, seq)
);

create table provost.checkpoint (
    repo      int not null references provost.repo,
    seq       bigint not null,
    mac       bytea not null,
    pruned_to bigint not null,
    counters  text not null,
    seal      bytea not null,
    primary key (repo, seq)
);

create table provost.timeline (
    repo  int not null references provost.repo,
    seq   bigint not null,
    at    bigint not null,
    agent text not null,
    word  text not null,
    file  text,
    primary key (repo, seq)
);
create index timeline_at on provost.timeline (repo, at, seq);
create index timeline_agent on provost.timeline (repo, agent, at);
create index timeline_word on provost.timeline (repo, word, at);
create index timeline_file on provost.timeline (repo, file, at) where file is not null;

create table provost.imported (repo int not null references provost.repo, id text not null, primary key (repo, id));

create table provost.post (
    repo int not null references provost.repo, n bigint not null, seq bigint not null, at bigint not null, primary key (repo, n)
);
create index post_seq on provost.post (repo, seq);
create table provost.inbox (
    repo int not null references provost.repo, slug text not null, n bigint not null, seq bigint not null, primary key (repo, slug, n)
);
create table provost.parked (
    repo int not null references provost.repo, slug text not null, n bigint not null, seq bigint not null, primary key (repo, slug, n)
);
create table provost.emptied (
    repo int not null references provost.repo, slug text not null, n bigint not null, primary key (repo, slug)
);

create table provost.usage_day (
    repo        int not null references provost.repo,
    day         bigint not null,
    worker      text not null,
    model       text not null,
    runs        bigint not null,
    input       bigint,
    output      bigint,
    reasoning   bigint,
    cache_read  bigint,
    cache_write bigint,
    cost        bigint,
    primary key (repo, day, worker, model)
);
create table provost.usage_task (
    repo        int not null references provost.repo,
    task        text not null,
    at          bigint not null,
    worker      text not null,
    model       text not null,
    input       bigint,
    output      bigint,
    reasoning   bigint,
    cache_read  bigint,
    cache_write bigint,
    cost        bigint,
    primary key (repo, task)
);
create index usage_task_at on provost.usage_task (repo, at);

create table provost.counted_day (
    repo           int not null references provost.repo,
    day            bigint not null,
    worker         text not null,
    model          text not null,
    calls          bigint not null,
    input          bigint not null,
    output         bigint not null,
    reasoning      bigint not null,
    cache_read     bigint not null,
    cache_write    bigint not null,
    guessed_input  bigint not null,
    guessed_output bigint not null,
    primary key (repo, day, worker, model)
);
create table provost.counted_task (
    repo           int not null references provost.repo,
    task           text not null,
    model          text not null,
    worker         text not null,
    at             bigint not null,
    calls          bigint not null,
    input          bigint not null,
    output         bigint not null,
    reasoning      bigint not null,
    cache_read     bigint not null,
    cache_write    bigint not null,
    guessed_input  bigint not null,
    guessed_output bigint not null,
    primary key (repo, task, model)
);
create index counted_task_at on provost.counted_task (repo, at);

-- Words for the search: `words` is what an index finds, `said` is held against phrases.
create table provost.search_event (
    repo int not null references provost.repo, seq bigint not null, words tsvector not null, said text not null, primary key (repo, seq)
);
create index search_event_words on provost.search_event using gin (words);
create table provost.search_task (
    repo  int not null references provost.repo,
    id    text not null,
    n     bigint generated always as identity,
    words tsvector not null,
    said  text not null,
    primary key (repo, id)
);
create index search_task_words on provost.search_task using gin (words);

-- Rows that are a key and a body.
create table provost.agent (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.uses (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.symbol_lock (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.intent (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.contract (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.correspondent (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.footprint (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.standoff (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.member (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.claim (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.assignment (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.transfer (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.token (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.job (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.job_order (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.job_result (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.switched (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.passkey (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.passkey_reset (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.daemon (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.push (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.spent (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.meta (repo int not null references provost.repo, id text not null, body text not null, primary key (repo, id));
create table provost.mail (repo int not null references provost.repo, id bigint not null, body text not null, primary key (repo, id));
create table provost.approval (repo int not null references provost.repo, id bigint not null, body text not null, primary key (repo, id));
create table provost.question (repo int not null references provost.repo, id bigint not null, body text not null, primary key (repo, id));
create table provost.merge_entry (repo int not null references provost.repo, id bigint not null, body text not null, primary key (repo, id));

-- Who may only add events takes their bodies through this, strictly in order; those of passkeys stay.
create function provost.prune_events(of_repo int, after bigint, upto bigint) returns void
    language sql security definer set search_path = pg_catalog, pg_temp
    as $$
        update provost.event set body = null
        where repo = of_repo and seq > after and seq <= upto and kind not in ('passkey_added', 'passkey_revoked', 'passkeys_reset')
    $$;
revoke all on function provost.prune_events(int, bigint, bigint) from public;

-- Entries that every host has, and that are old enough, go through this; never the newest.
create function provost.cut_log(of_repo int, before bigint, most bigint) returns bigint
    language sql security definer set search_path = pg_catalog, pg_temp
    as $$
        with gone as (
            delete from provost.entry where repo = of_repo and n in (
                select n from provost.entry where repo = of_repo and at < before
                and n < (select min(head) from provost.host where repo = of_repo and state <> 'removed')
                order by n limit most
            ) returning n
        ), moved as (
            update provost.repo set log_from = greatest(log_from, (select max(n) from gone) + 1)
            where id = of_repo and exists (select from gone)
        )
        select count(*) from gone
    $$;
revoke all on function provost.cut_log(int, bigint, bigint) from public;

-- The number of the last step, and which release made it.
create table provost.schema (one boolean primary key check (one), version int not null, made_by text not null);
