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
