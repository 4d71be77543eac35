/* What a sender says to the server: the SQL functions that a writer may call, and the tables that it fills by COPY. Who makes them
 * (schema) and who calls them (send) meet here. A writer has EXECUTE on these, INSERT on the tables of COPY, and nothing else.
 *
 * One batch is one transaction:
 *	BEGIN; wattle_begin(…); COPY …; COPY …; wattle_put(…); wattle_mark(…); COMMIT
 * The days of its rows were asked for before it began (wattle_days), in a transaction of their own.
 *
 * wattle_days(first date, last date) RETURNS void
 *	Makes the partitions of these days where they are missing. Refuses days before 1970 or more than a year from now, and more
 *	than 3,660 at a time.
 *
 * wattle_begin(run uuid) RETURNS TABLE (table_name text, mark bigint, n bigint, ids text)
 *	Makes the run's row in `recording` (its writer: session_user) unless it is there, locks it until the transaction ends, so
 *	that two senders of one run queue up, and returns what of the run has been sent: its rows of `sent`; none for a new one.
 *	42501 when another writer began that run.
 *
 * wattle_put(run uuid, rows jsonb) RETURNS void
 *	Rows of the small tables, which replace those with the same key: {"run": [{"key", "value"}…], "device": [{"id", …}…],
 *	"segment": [{"id", …}…], "metric": [{"table_name", "name", …}…], "process": [{"pid", "start_ns", "time", …}…],
 *	"block": [{"name", …}…], "recording": {"user_name", "host", …}}, the columns in tables.c, and in "recording"
 *	also "host_unix_s", the host's clock now (a number), which becomes clock_offset_s. A part that is missing says nothing; "block" replaces
 *	all blocks of the run; a key of "recording" that is missing leaves its column alone. Keys that are no columns are passed over.
 *
 * wattle_mark(run uuid, marks jsonb) RETURNS void
 *	[{"table_name", "mark", "n", "ids"}…] into `sent`. mark: t_ns of the last row sent of sample, device_sample, process_sample;
 *	rowid of user_metric and event. ids: of span, as text of an int8multirange: a span is sent once it has ended, and spans end
 *	in another order than they begin. n: rows sent in all, to be compared with the run file's.
 *
 * COPY fills sample, device_sample, process_sample, span, user_metric and event: run_id, time, the run file's columns by name, and
 * level in sample and device_sample. Columns of the server that the sender does not know stay null, those it lacks are left out
 * (pg_attribute tells; it is open to everybody). */
#pragma once

#define PG_CALL_DAYS "SELECT wattle_days($1::date, $2::date)"
#define PG_CALL_BEGIN "SELECT table_name, mark, n, ids FROM wattle_begin($1::uuid)"
#define PG_CALL_PUT "SELECT wattle_put($1::uuid, $2::jsonb)"
#define PG_CALL_MARK "SELECT wattle_mark($1::uuid, $2::jsonb)"

/* Which of a device's (or the run's) samples a row of sample or device_sample is. The first and the last of a segment, and rows with
 * energy_raw_uj, are of level 0: those who read no more than that see all of a run's energy. */
enum pg_level {
	PG_LEVEL_MINUTE, // the first in its minute of the run's clock
	PG_LEVEL_SECOND, // the first in its second
	PG_LEVEL_REST,
};
