/* wattle store status: what a store holds. */
#include "cli/command.h"

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "base/util.h"
#include "report/parts.h"
#include "report/report.h"
#include "report/table.h"
#include "store/postgres/pq.h"
#include "store/postgres/status.h"

#include <stddef.h>

enum { TEXT_CEILING = 1 << 22, LABEL_WIDTH = 12 };

struct values {
	bool json;
};

static const struct option options[] = {
	{"json", 0, NULL, "as JSON", OPTION_FLAG, .offset = offsetof(struct values, json)},
};

/* ---- text ---- */

static void label(struct buf *out, const char *name)
{
	size_t start = out->size;
	buf_str(out, name);
	buf_pad_to(out, start, LABEL_WIDTH);
}

static void add_time(struct buf *out, int64_t wall_ns)
{
	if (value_ok(wall_ns))
		rfc3339(out, wall_ns);
	else
		buf_str(out, "n/a");
}

static void add_roles(const struct pg_status *status, struct buf *out)
{
	label(out, "roles");
	buf_printf(out, "%s owns it", status->owner);
	for (size_t i = 0; i < status->n_roles; i++) {
		const struct pg_role_status *role = &status->roles[i];
		buf_printf(out, "; %s %s", role->name,
			role->writes && role->reads ? "adds and reads runs"
				: role->writes      ? "adds runs"
						    : "reads runs");
	}
	buf_char(out, '\n');
}

static void add_table(const struct pg_status *status, struct buf *out)
{
	static const struct table_column columns[] = {{"TABLE"}, {"ROWS, ABOUT", .right = true},
		{"SIZE", .right = true}};
	struct table table;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < status->n_tables; i++) {
		const struct pg_table_status *row = &status->tables[i];
		buf_str(table_cell(&table, false), row->name);
		if (value_ok(row->rows))
			buf_i64(table_cell(&table, false), row->rows);
		else
			buf_str(table_cell(&table, false), "n/a");
		human_bytes(table_cell(&table, false), value_to_double(row->bytes, 1));
	}
	table_print(&table, out, style_for(false));
	table_finish(&table);
}

static void print_text(const struct pg_status *status, const char *where, struct buf *out)
{
	label(out, "store");
	buf_printf(out, "%s, schema %s, version %lld, PostgreSQL %s\n", where, status->store.schema,
		(long long)status->store.version, status->server);
	add_roles(status, out);
	label(out, "runs");
	buf_printf(out, "%lld (%lld not complete) of %lld jobs, %lld hosts, %lld users\n", (long long)status->runs,
		(long long)status->incomplete, (long long)status->jobs, (long long)status->hosts,
		(long long)status->users);
	label(out, "started");
	add_time(out, status->first_wall_ns);
	buf_str(out, " to ");
	add_time(out, status->last_wall_ns);
	buf_str(out, "\n");
	label(out, "last rows");
	add_time(out, status->last_batch_wall_ns);
	buf_str(out, "\n");
	label(out, "days");
	buf_printf(out, "%lld", (long long)status->days);
	if (status->first_day != NULL)
		buf_printf(out, ", %s to %s (UTC)", status->first_day, status->last_day);
	buf_str(out, "\n");
	label(out, "size");
	human_bytes(out, value_to_double(status->bytes, 1));
	buf_str(out, "\n\n");
	add_table(status, out);
}

/* ---- JSON ---- */

static void add_time_key(struct jsonw *j, const char *key, int64_t wall_ns)
{
	jsonw_key_double(j, key, value_to_double(wall_ns, 1e-9));
}

static void print_json(const struct pg_status *status, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, true);
	jsonw_begin_object(&j);
	jsonw_key_string(&j, "schema", status->store.schema);
	jsonw_key_i64(&j, "version", status->store.version);
	jsonw_key_i64(&j, "compatible", status->store.compatible);
	jsonw_key_string(&j, "server_version", status->server);
	jsonw_key_string(&j, "owner", status->owner);
	jsonw_key(&j, "roles");
	jsonw_begin_array(&j);
	for (size_t i = 0; i < status->n_roles; i++) {
		jsonw_begin_object(&j);
		jsonw_key_string(&j, "role", status->roles[i].name);
		jsonw_key_bool(&j, "writes", status->roles[i].writes);
		jsonw_key_bool(&j, "reads", status->roles[i].reads);
		jsonw_end_object(&j);
	}
	jsonw_end_array(&j);
	jsonw_key_i64(&j, "runs", status->runs);
	jsonw_key_i64(&j, "incomplete", status->incomplete);
	jsonw_key_i64(&j, "jobs", status->jobs);
	jsonw_key_i64(&j, "hosts", status->hosts);
	jsonw_key_i64(&j, "users", status->users);
	add_time_key(&j, "first_start_unix_s", status->first_wall_ns);
	add_time_key(&j, "last_start_unix_s", status->last_wall_ns);
	add_time_key(&j, "last_rows_unix_s", status->last_batch_wall_ns);
	jsonw_key_i64(&j, "days", status->days);
	jsonw_key_string(&j, "first_day", status->first_day);
	jsonw_key_string(&j, "last_day", status->last_day);
	jsonw_key_i64(&j, "bytes", status->bytes);
	jsonw_key(&j, "tables");
	jsonw_begin_array(&j);
	for (size_t i = 0; i < status->n_tables; i++) {
		jsonw_begin_object(&j);
		jsonw_key_string(&j, "table", status->tables[i].name);
		jsonw_key_i64(&j, "rows_about", status->tables[i].rows);
		jsonw_key_i64(&j, "bytes", status->tables[i].bytes);
		jsonw_end_object(&j);
	}
	jsonw_end_array(&j);
	jsonw_end_object(&j);
}

/* ---- the command ---- */

static int look(const char *url, bool as_json, struct arena *arena, struct buf *out, struct wattle_error *reterr)
{
	struct pg *pg = NULL;
	struct pg_status status;
	int r = pg_open(url, &pg, reterr);
	if (r == 0)
		r = pg_status_read(pg, arena, &status, reterr);
	if (r == 0 && as_json)
		print_json(&status, out);
	else if (r == 0)
		print_text(&status, pg_where(pg), out);
	pg_close(pg);
	return r;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {0};
	struct option_list words;
	struct wattle_error error = {0};
	int status;
	if (!cli_parse_words(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n != 1)
		return cli_usage(command, EXIT_USAGE,
			words.n == 0 ? "the URL of a store is missing" : "more than one URL given");
	if (pg_check_url(words.items[0], &error) < 0)
		return cli_fail(EXIT_USAGE, &error);
	struct arena *arena = arena_new();
	if (arena == NULL)
		return cli_no_memory();
	struct buf out;
	buf_init(&out, TEXT_CEILING);
	status = look(words.items[0], values.json, arena, &out, &error) < 0 ? cli_fail(EXIT_FAILED, &error)
									    : cli_write(&out, "-");
	buf_finish(&out);
	arena_free(arena);
	return status;
}

const struct command command_store_status = {
	.name = "store status",
	.usage = "URL [--json]",
	.summary = "what a store holds: runs, days, sizes, and who may write and read",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
