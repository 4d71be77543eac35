/* The tables of a store and their columns. */
#include "store/postgres/tables.h"

#include "base/util.h"
#include "store/schema.h"

#include <assert.h>
#include <string.h>

static const struct pg_big_table big_tables[] = {
	{"sample", "t_ns", true, "run_id, t_ns"},
	{"device_sample", "t_ns", true, "run_id, t_ns"},
	{"process_sample", "t_ns", false, "run_id, t_ns"},
	{"span", "begin_ns", false, "run_id, id"},
	{"user_metric", "t_ns", false, "run_id, t_ns"},
	{"event", "t_ns", false, "run_id, t_ns"},
};

// clang-format off
/* Columns of the store beyond the tables of the run file. Types are PostgreSQL's. A sixth text is the key of the run's
 * metadata that fills the column. */
static const struct schema_column own_columns[] = {
	{"recording", "sent_by", "name NOT NULL", "", "database role that started the run; only this role can add rows"},
	{"recording", "user_name", "text", "", "user name on the run's host", "user"},
	{"recording", "host", "text", "", "name of the machine", "host"},
	{"recording", "machine", "text", "", "identity of the machine whose sensors were read: its boot, and the root of the sensor files", "machine"},
	{"recording", "node", "text", "", "the scheduler's name of the node", "node"},
	{"recording", "job_id", "text", "", "the job; null outside of jobs", "job_id"},
	{"recording", "job_step", "text", "", "the step of a Slurm job", "job_step"},
	{"recording", "job_name", "text", "", "the job's name", "job_name"},
	{"recording", "job_cluster", "text", "", "the cluster's name", "job_cluster"},
	{"recording", "job_launcher", "text", "", "launcher that set the rank: slurm, openmpi, torchrun ...", "job_launcher"},
	{"recording", "rank", "bigint", "", "rank in the job, from 0", "rank"},
	{"recording", "local_rank", "bigint", "", "rank on the node, from 0", "local_rank"},
	{"recording", "world_size", "bigint", "", "ranks of the job", "world_size"},
	{"recording", "local_size", "bigint", "", "ranks on the node", "local_size"},
	{"recording", "n_nodes", "bigint", "", "nodes of the job", "n_nodes"},
	{"recording", "restart", "bigint", "", "how often the job or its workers were started again", "restart"},
	{"recording", "label", "text", "", "--label of the run", "label"},
	{"recording", "command", "text", "", "the command, a JSON array"},
	{"recording", "wattle_version", "text", "", "version of the recorder", "wattle_version"},
	{"recording", "interval_ns", "bigint", "ns", "sampling period", "interval_ns"},
	{"recording", "started", "timestamptz", "", "when the target started, by its host's clock"},
	{"recording", "ended", "timestamptz", "", "when it ended, by its host's clock; null: still running, or its end was not recorded"},
	{"recording", "duration_s", "double precision", "s", "sum over its segments"},
	{"recording", "segments", "bigint", "", "recordings in it"},
	{"recording", "samples", "bigint", "", "samples taken"},
	{"recording", "spans", "bigint", "", "spans in it"},
	{"recording", "exit_code", "bigint", "", "exit status of the last segment, as returned by wattle"},
	{"recording", "complete", "boolean", "", "false: still running, or its recorder died"},
	{"recording", "energy_j", "double precision", "j", "total of its report; null where another rank read the sensors"},
	{"recording", "error_j", "double precision", "j", "error of energy_j"},
	{"recording", "provenance", "text", "", "provenance of energy_j: measured, derived or estimated"},
	{"recording", "clock_offset_s", "double precision", "s", "the server's clock minus the host's at the last upload, network delay included"},

	{"process", "time", "timestamptz", "", "start_ns by the wall clock of its host"},

	{"block", "name", "text NOT NULL", "", "name of the code block"},
#define BLOCK_COUNT(member, key, column, title, meaning) {"block", #column, "bigint", "", meaning},
#define BLOCK_FIGURE(member, column, RANKS, unit, title, meaning) {"block", #column, "double precision", unit, meaning},
#include "metric/blocks.def"

	{"sent", "table_name", "text NOT NULL", "", "table whose rows are sent"},
	{"sent", "mark", "bigint", "", "position reached: time or number of the last row; earlier rows are not sent again"},
	{"sent", "n", "bigint", "", "rows of the table that were sent"},
	{"sent", "ids", "int8multirange", "", "for spans: the numbers of the spans that were sent"},
	{"sent", "changed", "timestamptz NOT NULL DEFAULT now()", "", "when rows last arrived, by the server's clock"},

	{"wattle_schema", "version", "integer NOT NULL", "", "version of these tables and functions"},
	{"wattle_schema", "compatible", "integer NOT NULL", "", "oldest version whose programs can still use them"},
	{"wattle_schema", "changed", "timestamptz NOT NULL DEFAULT now()", "", "when the store was updated to this version"},

	{"wattle_big", "name", "text NOT NULL PRIMARY KEY", "", "table with one partition per day"},
	{"wattle_big", "has_level", "boolean NOT NULL", "", "whether its days are subdivided by level"},
	{"wattle_big", "indexes", "text NOT NULL", "", "columns of a partition's B-tree index; level 2 has none"},
};

static const struct pg_table tables[] = {
	{"recording", "", true, " WITH (fillfactor = 70)"},
	{"sent", ", table_name", true, " WITH (fillfactor = 50)"}, // updated per batch: space for a new version on the page
	{"run", ", key", true, ""},
	{"segment", ", id", true, ""},
	{"device", ", id", true, ""},
	{"process", ", pid, start_ns", true, ""},
	{"block", ", name", true, ""},
	{"metric", NULL, true, ""},
	{"sample", NULL, true, ""},
	{"device_sample", NULL, true, ""},
	{"process_sample", NULL, true, ""},
	{"span", NULL, true, ""},
	{"user_metric", NULL, true, ""},
	{"event", NULL, true, ""},
	{"wattle_schema", NULL, false, ""},
	{"wattle_big", NULL, false, ""},
};
// clang-format on

const struct pg_big_table *pg_big_tables(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(big_tables);
	return big_tables;
}

const struct pg_big_table *pg_big_table(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(big_tables); i++)
		if (strcmp(big_tables[i].name, name) == 0)
			return &big_tables[i];
	return NULL;
}

const struct pg_table *pg_table(size_t i)
{
	return i < ARRAY_SIZE(tables) ? &tables[i] : NULL;
}

/* ---- columns ---- */

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

// These tables have hundreds of millions of rows, so metrics that never need 64 bits use 32. The encoder writes null for a
// value out of range.
static const char *type_of_metric(const struct metric *metric)
{
	static const char *const narrow[] = {"mw", "percent", "c", "mhz", "threads", "processes", "ppm", NULL};
	return is_one_of(metric->unit, narrow) ? "integer" : "bigint";
}

static struct pg_column of_schema(const struct schema_column *column, bool in_big_table)
{
	static const char *const narrow[] = {"device", "pid", "tid", NULL};
	bool is_number = strncmp(column->type, "INTEGER", 7) == 0;
	const char *integer = in_big_table && is_one_of(column->name, narrow) ? "integer" : "bigint";
	return (struct pg_column){
		.name = column->name,
		.type = is_number                               ? integer
			: strncmp(column->type, "REAL", 4) == 0 ? "double precision"
								: "text",
		// "NOT NULL" in the run file, or a key that is an id there
		.not_null = strstr(column->type, "NOT NULL") != NULL || strstr(column->type, "PRIMARY KEY") != NULL,
		.unit = column->unit,
		.meaning = column->meaning,
	};
}

struct columns {
	struct pg_column *rows;
	size_t n;
};

static void add(struct columns *columns, struct pg_column column)
{
	assert(columns->n < PG_COLUMNS_MAX);
	columns->rows[columns->n++] = column;
}

static void add_of_run_file(const char *table, bool in_big_table, struct columns *columns)
{
	size_t n;
	const struct schema_column *all = schema_columns(&n);
	for (size_t i = 0; i < n; i++)
		if (strcmp(all[i].table, table) == 0)
			add(columns, of_schema(&all[i], in_big_table));
}

static void add_metrics(const char *table, struct columns *columns)
{
	for (int scope = 0; scope < METRIC_SCOPES; scope++) {
		size_t n;
		const struct metric *metrics = metric_table((enum metric_scope)scope, &n);
		for (size_t i = 0; strcmp(table, schema_sample_table((enum metric_scope)scope)) == 0 && i < n; i++)
			add(columns,
				(struct pg_column){metrics[i].name, type_of_metric(&metrics[i]), false, metrics[i].unit,
					metrics[i].meaning});
	}
}

static size_t width_of(const char *type)
{
	static const struct {
		const char *type;
		size_t width;
	} widths[] = {{"uuid", 16}, {"timestamptz", 8}, {"bigint", 8}, {"double precision", 8}, {"integer", 4},
		{"smallint", 2}};
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++)
		if (strcmp(widths[i].type, type) == 0)
			return widths[i].width;
	return 0;
}

// Sorts wide columns first within each part of the row, so that alignment wastes no bytes. Stable.
static void by_width(struct pg_column *columns, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t at = i; at > 0 && width_of(columns[at - 1].type) < width_of(columns[at].type); at--) {
			struct pg_column narrow = columns[at - 1];
			columns[at - 1] = columns[at];
			columns[at] = narrow;
		}
}

static void add_big(const struct pg_big_table *big, struct columns *columns)
{
	add(columns, (struct pg_column){"time", "timestamptz", true, "", "wall-clock time of the row, by its host"});
	size_t from = columns->n;
	add_of_run_file(big->name, true, columns);
	if (big->has_level)
		add(columns,
			(struct pg_column){"level", "smallint", true, "",
				"0: first sample of a minute, 1: of a second, 2: all others; also 0 where "
				"counting begins"});
	by_width(columns->rows + from, columns->n - from);
	from = columns->n;
	add_metrics(big->name, columns);
	by_width(columns->rows + from, columns->n - from);
}

static void add_own_columns(const char *table, struct columns *columns)
{
	for (size_t i = 0; i < ARRAY_SIZE(own_columns); i++)
		if (strcmp(own_columns[i].table, table) == 0)
			add(columns,
				(struct pg_column){own_columns[i].name, own_columns[i].type, false,
					strcmp(own_columns[i].unit, "J") == 0 ? "j" : own_columns[i].unit, // the last word of its name
					own_columns[i].meaning, own_columns[i].fact});
}

static const struct pg_table *find_table(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (strcmp(tables[i].name, name) == 0)
			return &tables[i];
	return NULL;
}

size_t pg_columns(const char *name, struct pg_column ret_columns[PG_COLUMNS_MAX])
{
	const struct pg_table *table = find_table(name);
	if (table == NULL)
		return 0;
	struct columns columns = {.rows = ret_columns};
	// Table metric describes the columns for all runs: its run_id is null.
	if (table->has_run)
		add(&columns, (struct pg_column){"run_id", "uuid", strcmp(name, "metric") != 0, "", "id of the run"});
	const struct pg_big_table *big = pg_big_table(name);
	if (big != NULL)
		add_big(big, &columns);
	else
		add_of_run_file(name, false, &columns);
	add_own_columns(name, &columns);
	return columns.n;
}
