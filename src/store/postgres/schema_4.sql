-- A check of the repository's number at each row took a quarter of the server's work for a commit. No login of a daemon may remove a
-- repository's row, and a row with another number belongs to no repository and is never read.
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
