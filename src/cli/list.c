/* wattle list: the runs of a folder, one per line. */
#include "cli/command.h"

#include "base/clock.h"
#include "base/fields.h"
#include "base/num.h"
#include "base/util.h"
#include "report/format_helpers.h"
#include "report/report.h"
#include "report/section/grid.h"
#include "sensor/sensor.h"
#include "store/postgres/load.h"
#include "store/postgres/pq.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COMMAND_WIDTH = 60, ID_MIN = 8, ID_SIZE = 37 };

struct values {
	bool json;
	const char *store, *user, *job, *since, *until;
};

static const struct option options[] = {
	{"json", 0, NULL, "print JSON", OPTION_FLAG, .offset = offsetof(struct values, json)},
	{"store", 0, "URL", "list the runs in PostgreSQL, postgresql://user@host/database, instead of a folder",
		OPTION_TEXT, .offset = offsetof(struct values, store)},
	{"user", 0, "NAME", "only runs of this user", OPTION_TEXT, .offset = offsetof(struct values, user)},
	{"job", 0, "ID", "only runs of this job", OPTION_TEXT, .offset = offsetof(struct values, job)},
	{"since", 0, "TIME",
		"only runs that started at or after TIME: 2026-01-31, '2026-01-31 12:00', or 7d\nfor seven days ago",
		OPTION_TEXT, .offset = offsetof(struct values, since)},
	{"until", 0, "TIME", "only runs that started before TIME", OPTION_TEXT,
		.offset = offsetof(struct values, until)},
};

/* ---- selection ---- */

// Parses a local time, in the displayed format, or a duration before now.
static int parse_time(const char *option, const char *text, int64_t *ret_wall_ns, struct wattle_error *reterr)
{
	static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
		"%Y-%m-%dT%H:%M:%S"};
	int64_t ago_ns;
	if (num_parse_duration(text, &ago_ns) == 0) {
		*ret_wall_ns = clock_wall_ns() - ago_ns;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		struct tm local = {.tm_isdst = -1};
		const char *end = strptime(text, formats[i], &local);
		if (end == NULL || *end != '\0')
			continue;
		*ret_wall_ns = (int64_t)mktime(&local) * NS_PER_S;
		return 0;
	}
	return error_set(reterr, -EINVAL,
		"--%s: '%s' is not a time; give a date (2026-01-31), a date and time ('2026-01-31 12:00'), "
		"or an age (90m, 7d)",
		option, text);
}

static int choice_of(const struct values *values, struct list_choice *choice, struct wattle_error *reterr)
{
	*choice = (struct list_choice){.user = values->user,
		.job_id = values->job,
		.since_wall_ns = VALUE_MISSING,
		.until_wall_ns = VALUE_MISSING};
	int r = values->since != NULL ? parse_time("since", values->since, &choice->since_wall_ns, reterr) : 0;
	return r == 0 && values->until != NULL ? parse_time("until", values->until, &choice->until_wall_ns, reterr) : r;
}

/* ---- field table ---- */

struct listed {
	const struct run_listing *runs;
	size_t n;
	size_t id_length; // of runs in a store
};

// clang-format off
#define L struct run_listing
static const struct field listing_fields[] = {
	FIELD(L, path, NULL, "run file; null: the run is in a store"),
	FIELD(L, id, NULL, "ID of the run"),
	FIELD(L, host, NULL, "name of the machine"),
	FIELD(L, label, NULL, "value of --label"),
	FIELD(L, user, NULL, "user who measured"),
	FIELD_AS(L, "job", job_id, NULL, "id of the job"),
	FIELD(L, job_step, NULL, "job step of Slurm"),
	FIELD(L, rank, NULL, "rank in the job"),
	FIELD_AS(L, "start_unix_s", wall_start_ns, "s", "when the run started, Unix time", .scale = 1e-9),
	FIELD(L, duration_s, "s", "duration, over all segments"),
	FIELD(L, segments, NULL, "recordings in this run"),
	FIELD(L, samples, NULL, "stored samples"),
	FIELD(L, exit_code, NULL, "exit status of wattle; null: wattle was attached"),
	FIELD(L, complete, NULL, "false: the recorder is still running, or died before the end"),
	FIELD(L, energy_j, "J", "energy of all domains that do not overlap; for runs in a store"),
	FIELD(L, error_j, "J", "half of the 95 % interval"),
	FIELD(L, provenance, NULL, "weakest provenance of its parts", .one_of = provenance_names),
	FIELD(L, problem, NULL, "reason why the file could not be read"),
};
#undef L
// clang-format on
static const struct object_type listing_type = OBJECT_TYPE("listing", "One run.", listing_fields);

static const struct field list_fields[] = {
	FIELD_ITEMS(struct listed, NULL, runs, n, &listing_type, "runs of a folder or of a store"),
};
const struct object_type list_type = OBJECT_TYPE("list", "Runs of a folder or of a store.", list_fields);

/* ---- text: a run per line ---- */

static const struct run_listing *listing_of(const struct object_at *row)
{
	return row->data;
}

// Runs in a store are listed by their ids, runs in a folder by their paths.
static void add_id(struct buf *out, const struct object_at *row, bool is_page)
{
	if (listing_of(row)->path == NULL)
		buf_add(out, listing_of(row)->id, ((const struct listed *)object_document(row))->id_length);
}

// Not from the field's seconds, whose rounding can be just below a whole second.
static void add_start(struct buf *out, const struct object_at *row, bool is_page)
{
	int64_t wall_ns = listing_of(row)->wall_start_ns;
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	struct tm local;
	char text[32];
	if (!value_ok(wall_ns)) {
		buf_str(out, "n/a");
		return;
	}
	localtime_r(&seconds, &local);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local);
	buf_str(out, text);
}

static void add_state(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct run_listing *listing = listing_of(row);
	if (!listing->complete)
		buf_str(out, "incomplete");
	else if (value_ok(listing->exit_code))
		buf_printf(out, "exit %lld", (long long)listing->exit_code);
	else
		buf_str(out, "attached");
}

static void add_owner(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct run_listing *listing = listing_of(row);
	if (listing->user == NULL && listing->job_id == NULL && !value_ok(listing->rank)) // a run of an older wattle
		return;
	buf_printf(out, "%s@%s", listing->user != NULL ? listing->user : "?",
		listing->host != NULL ? listing->host : "?");
	if (listing->job_id != NULL)
		buf_printf(out, " job %s", listing->job_id);
	if (value_ok(listing->rank))
		buf_printf(out, " rank %lld", (long long)listing->rank);
}

// The label, and the command quoted for a shell.
static void add_command(struct buf *out, const struct object_at *row, bool is_page)
{
	const struct run_segment segment = {.command_json = listing_of(row)->command_json};
	struct buf line;
	buf_init(&line, 1 << 22);
	command_text(&line, &segment);
	if (listing_of(row)->label != NULL)
		buf_printf(out, "[%s] ", listing_of(row)->label);
	text_fit(out, line.data, COMMAND_WIDTH, false);
	buf_finish(&line);
}

static bool is_readable(const struct object_at *row)
{
	return listing_of(row)->problem == NULL;
}

static const struct column columns[] = {
	{NULL, "", COLUMN_TEXT, .write = add_id, .is_optional = true},
	{"start_unix_s", .kind = COLUMN_TEXT, .write = add_start},
	{"duration_s"},
	{NULL, "", COLUMN_TEXT, .write = add_state},
	{"energy_j", .is_optional = true},
	{NULL, "", COLUMN_TEXT, .write = add_owner, .is_optional = true},
	{"path", .kind = COLUMN_TEXT, .is_optional = true},
	{NULL, "", COLUMN_TEXT, .write = add_command},
};
static const struct grid runs_grid = GRID(NULL, columns, .is_shown = is_readable, .is_plain = true);

static int by_id(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static size_t common(const char *a, const char *b)
{
	size_t length = 0;
	while (a[length] != '\0' && a[length] == b[length])
		length++;
	return length;
}

// The shortest id prefix length that distinguishes these runs.
static size_t id_length(const struct run_listing *listings, size_t n, struct arena *arena)
{
	size_t length = ID_MIN;
	const char **ids = arena_alloc(arena, n, sizeof(*ids));
	if (ids == NULL)
		return ID_SIZE - 1;
	for (size_t i = 0; i < n; i++)
		ids[i] = listings[i].id;
	qsort(ids, n, sizeof(*ids), by_id);
	for (size_t i = 1; i < n; i++)
		if (common(ids[i - 1], ids[i]) >= length)
			length = common(ids[i - 1], ids[i]) + 1;
	return length < ID_SIZE ? length : ID_SIZE - 1;
}

static void add_lines(const struct run_listing *listings, size_t n, struct arena *arena, struct buf *out)
{
	const bool is_stored = n > 0 && listings[0].path == NULL;
	const struct listed listed = {listings, n, is_stored ? id_length(listings, n, arena) : 0};
	grid_list(&runs_grid, &(struct object_at){.type = &list_type, .data = &listed}, NULL, out, style_for(false));
	for (size_t i = 0; i < n; i++)
		if (listings[i].problem != NULL) // the message names the file
			buf_printf(out, "%s\n", listings[i].problem);
}

/* ---- the command ---- */

static int list_folder(const char *folder, const struct list_choice *choice, struct arena *arena,
	struct run_listing **ret_listings, size_t *ret_n, struct wattle_error *reterr)
{
	struct run_listing *listings;
	size_t n, wanted = 0;
	int r = list_runs(folder, arena, &listings, &n, reterr);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (list_accepts(choice, &listings[i]))
			listings[wanted++] = listings[i];
	*ret_listings = listings;
	*ret_n = wanted;
	return r;
}

static int list_store(const char *url, const struct list_choice *choice, struct arena *arena,
	struct run_listing **ret_listings, size_t *ret_n, struct wattle_error *reterr)
{
	struct pg *pg = NULL;
	int r = pg_open(url, &pg, reterr);
	if (r == 0)
		r = pg_list_runs(pg, choice, arena, ret_listings, ret_n, reterr);
	pg_close(pg);
	return r;
}

static bool is_filtered(const struct values *values)
{
	return values->user != NULL || values->job != NULL || values->since != NULL || values->until != NULL;
}

static int print(const struct values *values, const char *folder, struct arena *arena)
{
	struct wattle_error error = {0};
	struct list_choice choice;
	struct run_listing *listings = NULL;
	size_t n = 0;
	if (choice_of(values, &choice, &error) < 0 ||
		(values->store != NULL && pg_check_url(values->store, &error) < 0))
		return cli_fail(EXIT_USAGE, &error);
	int r = values->store != NULL ? list_store(values->store, &choice, arena, &listings, &n, &error)
				      : list_folder(folder, &choice, arena, &listings, &n, &error);
	if (r < 0)
		return cli_fail(EXIT_FAILED, &error);
	struct buf out = cli_buf();
	if (n == 0 && !values->json)
		fprintf(stderr, "wattle: no runs to list in %s; `wattle run` makes run files%s\n",
			values->store != NULL ? "the store" : folder,
			is_filtered(values) ? ", or the options exclude them" : "");
	if (values->json)
		document_json(&out, &list_type, &(struct listed){listings, n, 0}, true);
	else
		add_lines(listings, n, arena, &out);
	return cli_finish(&out, "-");
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {0};
	struct option_list words;
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n > 1)
		return cli_usage(command, EXIT_USAGE, "more than one folder given");
	if (words.n == 1 && values.store != NULL)
		return cli_usage(command, EXIT_USAGE, "give either a folder or --store");
	struct arena *arena = arena_new();
	if (arena == NULL)
		return cli_no_memory();
	status = print(&values, words.n == 1 ? words.items[0] : ".", arena);
	arena_free(arena);
	return status;
}

const struct command command_list = {
	.name = "list",
	.usage = "[DIR | --store URL] [--user NAME] [--job ID] [--since TIME] [--until TIME] [--json]",
	.summary = "list the runs of a folder or of a store, one line each",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
