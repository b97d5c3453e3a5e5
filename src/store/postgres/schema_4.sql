-- Daemons take this row before other tables: in another order, this step and a turn of a daemon could wait for each other.
lock table provost.repo in access exclusive mode;

-- A check of the repository's number at each row took a quarter of the server's work for a commit. What remains of it: no login of a daemon may
-- remove a repository's row, and no statement changes its number.
create function provost.keep_number() returns trigger
    language plpgsql set search_path = pg_catalog, pg_temp
    as $$ begin raise exception 'a repository keeps its number'; end $$;
create trigger repo_keeps_number before update of id on provost.repo for each row execute function provost.keep_number();

do $$
declare it record;
begin
    for it in
        select conrelid::regclass as of_table, conname from pg_constraint
        where contype = 'f' and connamespace = 'provost'::regnamespace
    loop
        execute format('alter table %s drop constraint %I', it.of_table, it.conname);
    end loop;
end
$$;

-- A server without this form of compression keeps its own.
do $$
begin
    alter table provost.entry alter column body set compression lz4;
exception when feature_not_supported then null;
end
$$;
