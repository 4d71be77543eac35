/* wattle store status: shows the contents of a store. */
#include "cli/command.h"

#include "base/cleanup.h"
#include "base/fields.h"
#include "base/util.h"
#include "report/format_helpers.h"
#include "report/report.h"
#include "report/section/grid.h"
#include "store/postgres/pq.h"
#include "store/postgres/tables.h"

#include <stddef.h>

enum { LABEL_WIDTH = 12 };

struct values {
	bool json;
};

static const struct option options[] = {
	{"json", 0, NULL, "print JSON", OPTION_FLAG, .offset = offsetof(struct values, json)},
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
	buf_printf(out, "owned by %s", status->owner);
	for (size_t i = 0; i < status->n_roles; i++) {
		const struct pg_role_status *role = &status->roles[i];
		buf_printf(out, "; %s %s", role->name,
			role->writes && role->reads ? "adds and reads runs"
				: role->writes      ? "adds runs"
						    : "reads runs");
	}
	buf_char(out, '\n');
}

static const struct column columns[] = {
	{"table", "TABLE", .kind = COLUMN_TEXT},
	{"rows_about", "ROWS, ABOUT", .print = human_whole},
	{"bytes", "SIZE"},
};
static const struct grid tables_grid = GRID(NULL, columns);

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
	label(out, "last change");
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
	grid_list(&tables_grid, &(struct object_at){.type = &store_status_type, .data = status}, "tables", out,
		style_for(false));
}

/* ---- JSON ---- */

// clang-format off
#define R struct pg_role_status
static const struct field role_fields[] = {
	FIELD_AS(R, "role", name, NULL, "name of the role", .known = true),
	FIELD(R, writes, NULL, "whether it may add runs"),
	FIELD(R, reads, NULL, "whether it may read runs"),
};
#undef R
static const struct object_type role_type = OBJECT_TYPE("role", "A role besides the owner.", role_fields);

#define T struct pg_table_status
static const struct field table_fields[] = {
	FIELD_AS(T, "table", name, NULL, "name of the table", .known = true),
	FIELD_AS(T, "rows_about", rows, NULL, "number of rows, estimated by the server"),
	FIELD(T, bytes, "bytes", "size including indexes"),
};
#undef T
static const struct object_type table_type = OBJECT_TYPE("table", "A table partitioned by day.", table_fields);

#define S struct pg_status
static const struct field status_fields[] = {
	FIELD_AS(S, "schema", store.schema, NULL, "schema of the database that holds the store", .known = true),
	FIELD_AS(S, "version", store.version, NULL, "version of its tables"),
	FIELD_AS(S, "compatible", store.compatible, NULL, "oldest version compatible with this one"),
	FIELD_AS(S, "server_version", server, NULL, "version of PostgreSQL"),
	FIELD(S, owner, NULL, "role that owns the store"),
	FIELD_ITEMS(S, "roles", roles, n_roles, &role_type, "roles besides the owner"),
	FIELD(S, runs, NULL, "runs"),
	FIELD(S, incomplete, NULL, "runs that are not complete"),
	FIELD(S, jobs, NULL, "jobs"),
	FIELD(S, hosts, NULL, "machines"),
	FIELD(S, users, NULL, "users"),
	FIELD_AS(S, "first_start_unix_s", first_wall_ns, "s", "when the first run started, Unix time", .scale = 1e-9),
	FIELD_AS(S, "last_start_unix_s", last_wall_ns, "s", "when the last run started, Unix time", .scale = 1e-9),
	FIELD_AS(S, "last_rows_unix_s", last_batch_wall_ns, "s", "when rows were last added, Unix time", .scale = 1e-9),
	FIELD(S, days, NULL, "number of days with partitions"),
	FIELD(S, first_day, NULL, "first day, UTC"),
	FIELD(S, last_day, NULL, "last day, UTC"),
	FIELD(S, bytes, "bytes", "size of all tables and indexes"),
	FIELD_ITEMS(S, "tables", tables, n_tables, &table_type, "tables partitioned by day"),
};
#undef S
// clang-format on
const struct object_type store_status_type = OBJECT_TYPE("store_status", "Contents of a store.", status_fields);

/* ---- the command ---- */

static int poll_once(const char *url, bool as_json, struct arena *arena, struct buf *out, struct wattle_error *reterr)
{
	struct pg *pg = NULL;
	struct pg_status status;
	int r = pg_open(url, &pg, reterr);
	if (r == 0)
		r = pg_status_read(pg, arena, &status, reterr);
	if (r == 0 && as_json)
		document_json(out, &store_status_type, &status, true);
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
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n != 1)
		return cli_usage(command, EXIT_USAGE,
			words.n == 0 ? "the URL of a store is missing" : "more than one URL given");
	if (pg_check_url(words.items[0], &error) < 0)
		return cli_fail(EXIT_USAGE, &error);
	struct arena *arena = arena_new();
	if (arena == NULL)
		return cli_no_memory();
	struct buf out = cli_buf();
	status = poll_once(words.items[0], values.json, arena, &out, &error) < 0 ? cli_fail(EXIT_FAILED, &error)
										 : cli_write(&out, "-");
	buf_finish(&out);
	arena_free(arena);
	return status;
}

const struct command command_store_status = {
	.name = "store status",
	.usage = "URL [--json]",
	.summary = "show a store's runs, days, sizes and access rights",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
