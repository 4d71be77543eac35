-- Functions for writers (tables.h): writers have INSERT on the tables that COPY fills, may call these functions, and read nothing.
-- Each function runs with the rights of its owner, so it checks who owns the run. Names without a schema are those of pg_catalog.
-- With the store's schema on the path, any user who may create functions there (all users in schema public of PostgreSQL 14) could
-- add a better match for a call, which the owner would run. @store@ is the store's schema, @name@ its name as a literal.
DO $make$
BEGIN
	EXECUTE pg_catalog.replace(pg_catalog.replace($functions$

-- Version of this store, and the oldest schema version whose programs can still use it.
CREATE OR REPLACE FUNCTION @store@.wattle_version(OUT version integer, OUT compatible integer)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
	SELECT s.version, s.compatible FROM @store@.wattle_schema s
$$;

-- A run belongs to the role that began it. Its row is locked until the transaction ends, so two senders of one run take turns.
CREATE OR REPLACE FUNCTION @store@.wattle_lock(run uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	writer name;
BEGIN
	SELECT r.sent_by INTO writer FROM @store@.recording r WHERE r.run_id = run FOR UPDATE;
	IF writer IS NULL OR writer <> session_user AND NOT pg_has_role(session_user, current_user, 'MEMBER') THEN
		RAISE EXCEPTION 'run % belongs to another writer than %', run, session_user USING ERRCODE = 'insufficient_privilege';
	END IF;
END
$$;

CREATE OR REPLACE FUNCTION @store@.wattle_begin(run uuid) RETURNS TABLE (table_name text, mark bigint, n bigint, ids text)
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	INSERT INTO @store@.recording (run_id, sent_by) VALUES (run, session_user) ON CONFLICT (run_id) DO NOTHING;
	PERFORM @store@.wattle_lock(run);
	RETURN QUERY SELECT s.table_name, s.mark, s.n, s.ids::text FROM @store@.sent s WHERE s.run_id = run;
END
$$;

-- Rows of a small table. Columns that the JSON lacks become null, or with `keep` stay unchanged.
CREATE OR REPLACE FUNCTION @store@.wattle_put_rows(run uuid, target text, keys text[], keep boolean, news jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	names text;
	changes text;
BEGIN
	SELECT string_agg(quote_ident(a.attname), ', '),
		string_agg(format(CASE WHEN keep THEN '%1$I = coalesce(excluded.%1$I, t.%1$I)' ELSE '%1$I = excluded.%1$I' END,
			a.attname), ', ') FILTER (WHERE a.attname <> ALL (keys))
		INTO names, changes
		FROM pg_attribute a
		WHERE a.attrelid = to_regclass(format('%I.%I', @name@, target)) AND a.attnum > 0 AND NOT a.attisdropped
			AND a.attname NOT IN ('run_id', 'sent_by');
	EXECUTE format('INSERT INTO %7$I.%1$I AS t (run_id, %5$s %2$s) SELECT $1, %6$s %2$s '
		'FROM jsonb_populate_recordset(NULL::%7$I.%1$I, $2) ON CONFLICT (%3$s) DO UPDATE SET %4$s',
		target, names, array_to_string(array_prepend('run_id', keys), ', '), changes, CASE WHEN keep THEN 'sent_by,' END,
		CASE WHEN keep THEN 'session_user,' END, @name@) USING run, news;
END
$$;

CREATE OR REPLACE FUNCTION @store@.wattle_put(run uuid, rows jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	small record;
BEGIN
	PERFORM @store@.wattle_lock(run);
	IF rows ? 'block' THEN
		DELETE FROM @store@.block b WHERE b.run_id = run;
	END IF;
	FOR small IN SELECT * FROM (VALUES ('run', '{key}'::text[]), ('device', '{id}'), ('segment', '{id}'),
			('process', '{pid,start_ns}'), ('block', '{name}')) AS v (name, keys) LOOP
		IF rows ? small.name THEN
			PERFORM @store@.wattle_put_rows(run, small.name, small.keys, false, rows->small.name);
		END IF;
	END LOOP;
	-- Meanings that the store has for all runs are not stored again for each run.
	IF rows ? 'metric' THEN
		PERFORM @store@.wattle_put_rows(run, 'metric', '{table_name,name}', false, coalesce((SELECT jsonb_agg(e.row)
			FROM jsonb_array_elements(rows->'metric') AS e (row) WHERE NOT EXISTS (SELECT FROM @store@.metric m WHERE m.run_id IS NULL
				AND m.table_name = e.row->>'table_name' AND m.name = e.row->>'name'
				AND m.meaning IS NOT DISTINCT FROM e.row->>'meaning')), '[]'));
	END IF;
	IF rows ? 'recording' THEN
		PERFORM @store@.wattle_put_rows(run, 'recording', '{}', true, jsonb_build_array(rows->'recording'));
	END IF;
	-- Difference between the clocks of host and server, for joining runs of several hosts.
	IF rows->'recording' ? 'host_unix_s' THEN
		UPDATE @store@.recording r SET clock_offset_s = extract(epoch FROM clock_timestamp())::float8
			- (rows->'recording'->>'host_unix_s')::float8 WHERE r.run_id = run;
	END IF;
END
$$;

CREATE OR REPLACE FUNCTION @store@.wattle_mark(run uuid, marks jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	PERFORM @store@.wattle_lock(run);
	INSERT INTO @store@.sent AS s (run_id, table_name, mark, n, ids)
		SELECT run, m.table_name, m.mark, m.n, m.ids::int8multirange
		FROM jsonb_to_recordset(marks) AS m (table_name text, mark bigint, n bigint, ids text)
		ON CONFLICT (run_id, table_name) DO UPDATE
		SET mark = greatest(excluded.mark, s.mark), n = excluded.n, ids = excluded.ids, changed = now();
END
$$;

-- Creates a table's partition of a day. It is created separately and then attached: created in place it would block all readers and
-- writers.
CREATE OR REPLACE FUNCTION @store@.wattle_make_day(day date, parent text, has_level boolean, indexed text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	part text := parent || to_char(day, '_YYYYMMDD');
	leaf text;
BEGIN
	EXECUTE format('CREATE TABLE %1$I.%2$I (LIKE %1$I.%3$I INCLUDING DEFAULTS INCLUDING STORAGE) %4$s', @name@, part, parent,
		CASE WHEN has_level THEN 'PARTITION BY LIST (level)' END);
	FOR step IN 0 .. CASE WHEN has_level THEN 2 ELSE 0 END LOOP
		leaf := part;
		IF has_level THEN
			leaf := part || '_' || step;
			EXECUTE format('CREATE TABLE %1$I.%2$I (LIKE %1$I.%3$I INCLUDING DEFAULTS INCLUDING STORAGE)', @name@, leaf, parent);
			EXECUTE format('ALTER TABLE %1$I.%2$I ATTACH PARTITION %1$I.%3$I FOR VALUES IN (%4$s)', @name@, part, leaf, step);
		END IF;
		IF has_level AND step = 2 THEN
			-- Nine rows of ten: a btree would cost a third of all work (docs/scale.md). Only a vacuum summarises a BRIN, and by
			-- default it starts when a fifth of the table is new.
			EXECUTE format('CREATE INDEX ON %I.%I USING brin ("time", run_id uuid_bloom_ops (n_distinct_per_range = 16)) '
				'WITH (pages_per_range = 16)', @name@, leaf);
			EXECUTE format('ALTER TABLE %I.%I SET (autovacuum_vacuum_insert_scale_factor = 0, '
				'autovacuum_vacuum_insert_threshold = 1000000)', @name@, leaf);
		ELSE
			EXECUTE format('CREATE INDEX ON %I.%I (%s)', @name@, leaf, indexed);
			EXECUTE format('CREATE INDEX ON %I.%I USING brin ("time")', @name@, leaf);
		END IF;
	END LOOP;
	EXECUTE format('ALTER TABLE %1$I.%2$I ATTACH PARTITION %1$I.%3$I FOR VALUES FROM (%4$L) TO (%5$L)', @name@, parent, part,
		day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
END
$$;

CREATE OR REPLACE FUNCTION @store@.wattle_days(first date, last date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	big record;
BEGIN
	IF first < '1970-01-01' OR last > (now() AT TIME ZONE 'UTC')::date + 366 THEN
		RAISE EXCEPTION 'no partitions from % to %: give days between 1970 and a year from now; check the clock of the host',
			first, last USING ERRCODE = 'datetime_field_overflow';
	END IF;
	IF last - first >= 64 THEN
		RAISE EXCEPTION 'no partitions from % to %: at most 64 days at a time', first, last
			USING ERRCODE = 'program_limit_exceeded';
	END IF;
	FOR big IN SELECT b.*, d.day FROM @store@.wattle_big b, generate_series(0, last - first) AS i, LATERAL (SELECT first + i) AS d (day)
			WHERE to_regclass(format('%I.%I', @name@, b.name || to_char(d.day, '_YYYYMMDD'))) IS NULL ORDER BY d.day, b.name LOOP
		PERFORM pg_advisory_xact_lock(1465142321, 1); -- "WTL1": one session at a time
		-- Not to_regclass: an advisory lock does not update its view of tables that another session has just created.
		IF NOT EXISTS (SELECT FROM pg_class c WHERE c.relname = big.name || to_char(big.day, '_YYYYMMDD')
				AND c.relnamespace = quote_ident(@name@)::regnamespace) THEN
			PERFORM @store@.wattle_make_day(big.day, big.name, big.has_level, big.indexes);
		END IF;
	END LOOP;
END
$$;

-- Only their owner may run them unless granted.
DO $$
DECLARE
	f regprocedure;
BEGIN
	FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = quote_ident(@name@)::regnamespace AND p.proname IN ('wattle_version',
			'wattle_lock', 'wattle_begin', 'wattle_put_rows', 'wattle_put', 'wattle_mark', 'wattle_make_day', 'wattle_days') LOOP
		EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, pg_temp', f);
		EXECUTE format('ALTER FUNCTION %s SET timezone = ''UTC''', f);
		EXECUTE format('ALTER FUNCTION %s SET datestyle = ''ISO''', f);
		EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
	END LOOP;
END
$$;

$functions$, '@store@', pg_catalog.quote_ident(current_schema()::text)), '@name@', pg_catalog.quote_literal(current_schema()::text));
END
$make$;
