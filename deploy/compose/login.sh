#!/usr/bin/env bash
# Makes the login of the daemons, or gives it the password that secrets/host has now.
set -euo pipefail
PGPASSWORD="$(</run/secrets/owner)" LOGIN="$(</run/secrets/host)"
export PGPASSWORD LOGIN
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username=provost_owner --dbname=shop <<'SQL'
\getenv login LOGIN
select 'create role provost_daemon login in role provost_host connection limit 20'
 where not exists (select from pg_roles where rolname = 'provost_daemon') \gexec
alter role provost_daemon password :'login';
SQL
