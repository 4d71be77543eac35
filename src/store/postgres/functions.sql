-- What writers may do. They have INSERT on the tables that COPY fills, and these functions; they read nothing. Every function runs
-- with the rights of its owner, so each says who may ask for what, and trusts no search path but the one pinned at the end.

-- Version of this store, and the oldest version of wattle's schema whose programs may go on using it.
CREATE OR REPLACE FUNCTION wattle_version(OUT version integer, OUT compatible integer)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
	SELECT version, compatible FROM wattle_schema
$$;

-- The first thing of each batch. Makes the run known, locks its row until the transaction ends, so that two senders of one run
-- follow each other, and returns how far each table has come: {"sample": 123, ...}. about: columns of `recording` to be set, and
-- host_unix_s, the host's clock now; null: nothing new.
-- A run belongs to the role that began it: others can't add to it through these functions, even if they know its id.
CREATE OR REPLACE FUNCTION wattle_begin(run uuid, about jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	known record;
BEGIN
	INSERT INTO sent (run_id, sent_by, marks) VALUES (run, session_user, '{}') ON CONFLICT (run_id) DO NOTHING;
	SELECT s.marks, s.sent_by INTO known FROM sent s WHERE s.run_id = run FOR UPDATE;
	IF known.sent_by <> session_user AND NOT pg_has_role(session_user, current_user, 'MEMBER') THEN
		RAISE EXCEPTION 'run % was begun by another role than %', run, session_user
			USING ERRCODE = 'insufficient_privilege';
	END IF;
	IF about IS NOT NULL THEN
		IF about ? 'host_unix_s' THEN
			about := about || jsonb_build_object('clock_offset_s',
				round((extract(epoch FROM clock_timestamp()) - (about->>'host_unix_s')::numeric), 6));
		END IF;
		PERFORM wattle_rows(run, 'recording', jsonb_build_array(about));
	END IF;
	RETURN known.marks;
END
$$;

-- Whether the session may write to a run: it holds its lock, or could.
CREATE OR REPLACE FUNCTION wattle_check(run uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	PERFORM 1 FROM sent s WHERE s.run_id = run
		AND (s.sent_by = session_user OR pg_has_role(session_user, current_user, 'MEMBER')) FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'run % is not known, or was begun by another role than %', run, session_user
			USING ERRCODE = 'insufficient_privilege';
	END IF;
END
$$;

-- Rows of a small table, as a JSON array of objects with the table's columns (unknown ones are passed over): new ones are added,
-- others replaced as a whole; of `recording` only the columns that are not null.
CREATE OR REPLACE FUNCTION wattle_rows(run uuid, name text, rows jsonb) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	keys text[];
	columns text;
	changes text;
	n bigint;
BEGIN
	keys := CASE name WHEN 'recording' THEN '{}' WHEN 'run' THEN '{key}' WHEN 'segment' THEN '{id}' WHEN 'device' THEN '{id}'
		WHEN 'process' THEN '{pid,start_ns}' WHEN 'block' THEN '{name}' END;
	IF keys IS NULL THEN
		RAISE EXCEPTION 'wattle_rows fills no table "%"', name USING ERRCODE = 'undefined_table';
	END IF;
	PERFORM wattle_check(run);
	SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum),
		string_agg(format(CASE WHEN name = 'recording' THEN '%1$I = coalesce(excluded.%1$I, t.%1$I)'
			ELSE '%1$I = excluded.%1$I' END, a.attname), ', ' ORDER BY a.attnum) FILTER (WHERE a.attname <> ALL (keys))
		INTO columns, changes
		FROM pg_attribute a
		WHERE a.attrelid = to_regclass(quote_ident(name)) AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> 'run_id';
	EXECUTE format('INSERT INTO %1$I AS t (run_id, %2$s) SELECT $1, %2$s FROM jsonb_populate_recordset(NULL::%1$I, $2) '
		'ON CONFLICT (%3$s) DO UPDATE SET %4$s', name, columns, array_to_string(array_prepend('run_id', keys), ', '), changes)
		USING run, rows;
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END
$$;

-- Spans that were stored open and have ended since: [{"id", "time" (of the row), "end_ns", "cpu_ns", "close"} ...].
CREATE OR REPLACE FUNCTION wattle_close_spans(run uuid, spans jsonb) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	n bigint;
	low timestamptz;
	high timestamptz;
BEGIN
	PERFORM wattle_check(run);
	-- The bounds are plain values, so that days which hold none of them are never looked at.
	SELECT min(e."time"), max(e."time") INTO low, high FROM jsonb_to_recordset(spans) AS e ("time" timestamptz);
	UPDATE span s SET end_ns = e.end_ns, cpu_ns = e.cpu_ns, close = e.close
		FROM jsonb_to_recordset(spans) AS e (id bigint, "time" timestamptz, end_ns bigint, cpu_ns bigint, close text)
		WHERE s.run_id = run AND s.id = e.id AND s."time" = e."time" AND s."time" BETWEEN low AND high AND s.end_ns IS NULL;
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n;
END
$$;

-- The last thing of each batch: how far each table has come (a mark never goes back), and the time of the newest row.
CREATE OR REPLACE FUNCTION wattle_mark(run uuid, news jsonb, newest timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	PERFORM wattle_check(run);
	UPDATE sent s SET newest = greatest(s.newest, wattle_mark.newest), changed = now(), batches = s.batches + 1,
		marks = s.marks || (SELECT coalesce(jsonb_object_agg(m.key, greatest(m.value::bigint, (s.marks->>m.key)::bigint)), '{}')
			FROM jsonb_each_text(news) m)
		WHERE s.run_id = run;
END
$$;

-- Makes a day's partitions of all tables that have them; 0: they were there. A table is made apart and attached: making it in
-- place would lock out everyone who reads or writes.
CREATE OR REPLACE FUNCTION wattle_day(day date) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	big record;
	part text;
	leaf text;
	made integer := 0;
BEGIN
	IF day < '1970-01-01' OR day > (now() AT TIME ZONE 'UTC')::date + 366 THEN
		RAISE EXCEPTION 'no partition for %: a day between 1970 and a year from now is wanted; is the clock of the host right?', day
			USING ERRCODE = 'datetime_field_overflow';
	END IF;
	FOR big IN SELECT b.name, b.has_level, b.indexes FROM wattle_big b ORDER BY b.name LOOP
		part := big.name || to_char(day, '_YYYYMMDD');
		CONTINUE WHEN to_regclass(quote_ident(part)) IS NOT NULL;
		PERFORM pg_advisory_xact_lock(1465142321, 1); -- "WTL1": one at a time
		CONTINUE WHEN to_regclass(quote_ident(part)) IS NOT NULL;
		IF big.has_level THEN
			EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING STORAGE) PARTITION BY LIST (level)',
				part, big.name);
		ELSE
			EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING STORAGE)', part, big.name);
		END IF;
		FOR level IN 0 .. CASE WHEN big.has_level THEN 2 ELSE 0 END LOOP
			leaf := part;
			IF big.has_level THEN
				leaf := part || '_' || level;
				EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING STORAGE)', leaf, big.name);
				EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES IN (%s)', part, leaf, level);
			END IF;
			IF NOT big.has_level OR level < 2 THEN
				EXECUTE format('CREATE INDEX ON %I (%s)', leaf, big.indexes);
			END IF;
		END LOOP;
		EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', big.name, part,
			day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
		made := made + 1;
	END LOOP;
	RETURN made;
END
$$;

-- Nobody but their owner runs them unless it is granted, and none looks anywhere but here for what it names.
DO $$
DECLARE
	f regprocedure;
BEGIN
	FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace AND p.proname IN ('wattle_version',
			'wattle_begin', 'wattle_check', 'wattle_rows', 'wattle_close_spans', 'wattle_mark', 'wattle_day') LOOP
		EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', f, current_schema());
		EXECUTE format('ALTER FUNCTION %s SET timezone = ''UTC''', f);
		EXECUTE format('ALTER FUNCTION %s SET datestyle = ''ISO''', f);
		EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
	END LOOP;
END
$$;
