/* wattle list: the runs of a folder, one per line. */
#include "cli/command.h"

#include "base/clock.h"
#include "base/fields.h"
#include "base/num.h"
#include "base/util.h"
#include "report/format_helpers.h"
#include "report/report.h"
#include "report/table.h"
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

/* ---- lines ---- */

static void add_start(const struct run_listing *listing, struct buf *out)
{
	if (!value_ok(listing->wall_start_ns)) {
		buf_str(out, "n/a");
		return;
	}
	time_t seconds = (time_t)(listing->wall_start_ns / NS_PER_S);
	struct tm local;
	char text[32];
	localtime_r(&seconds, &local);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local);
	buf_str(out, text);
}

static void add_state(const struct run_listing *listing, struct buf *out)
{
	if (!listing->complete)
		buf_str(out, "incomplete");
	else if (value_ok(listing->exit_code))
		buf_printf(out, "exit %lld", (long long)listing->exit_code);
	else
		buf_str(out, "attached");
}

// Quoted for a shell, truncated to the width of a terminal line.
static void add_command(const struct run_listing *listing, struct buf *out)
{
	const struct run_segment segment = {.command_json = listing->command_json};
	struct buf line;
	buf_init(&line, 1 << 22);
	command_text(&line, &segment);
	if (line.size <= COMMAND_WIDTH) {
		buf_add(out, line.data, line.size);
	} else {
		size_t cut = COMMAND_WIDTH - 1;
		while (cut > 0 && ((unsigned char)line.data[cut] & 0xc0) == 0x80) // not inside a UTF-8 sequence
			cut--;
		buf_add(out, line.data, cut);
		buf_str(out, "…");
	}
	buf_finish(&line);
}

// Removes control characters: texts written by others must not control the terminal.
static void add_printable(struct buf *out, const char *text)
{
	text_add_printable(out, text, strlen(text));
}

// The columns that both kinds of lines have after the first ones.
static void add_what(const struct run_listing *listing, struct buf *out)
{
	if (listing->label != NULL) {
		buf_char(out, '[');
		add_printable(out, listing->label);
		buf_str(out, "] ");
	}
	add_command(listing, out);
	buf_char(out, '\n');
}

static void add_owner(const struct run_listing *listing, struct buf *out)
{
	add_printable(out, listing->user != NULL ? listing->user : "?");
	buf_char(out, '@');
	add_printable(out, listing->host != NULL ? listing->host : "?");
	if (listing->job_id != NULL) {
		buf_str(out, " job ");
		add_printable(out, listing->job_id);
	}
	if (value_ok(listing->rank))
		buf_printf(out, " rank %lld", (long long)listing->rank);
	buf_str(out, "  ");
}

static void add_line(const struct run_listing *listing, struct buf *out)
{
	static const size_t columns[] = {21, 36, 48};
	size_t start = out->size;
	if (listing->problem != NULL) { // the message names the file
		buf_printf(out, "%s\n", listing->problem);
		return;
	}
	add_start(listing, out);
	buf_pad_to(out, start, columns[0]);
	human_time(out, listing->duration_s);
	buf_pad_to(out, start, columns[1]);
	add_state(listing, out);
	buf_pad_to(out, start, columns[2]);
	if (listing->user != NULL || listing->job_id != NULL || value_ok(listing->rank)) // missing in runs of an older wattle
		add_owner(listing, out);
	buf_printf(out, "%s  ", listing->path);
	add_what(listing, out);
}

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

// A run of a store: listed by its id, with its energy.
static void add_stored_line(const struct run_listing *listing, size_t id_columns, struct buf *out)
{
	const size_t columns[] = {id_columns + 2, id_columns + 23, id_columns + 34, id_columns + 46, id_columns + 56};
	size_t start = out->size;
	buf_add(out, listing->id, id_columns);
	buf_pad_to(out, start, columns[0]);
	add_start(listing, out);
	buf_pad_to(out, start, columns[1]);
	human_short_time(out, listing->duration_s);
	buf_pad_to(out, start, columns[2]);
	add_state(listing, out);
	buf_pad_to(out, start, columns[3]);
	human_energy(out, listing->energy_j);
	buf_pad_to(out, start, columns[4]);
	add_owner(listing, out);
	add_what(listing, out);
}

static void add_lines(const struct run_listing *listings, size_t n, struct arena *arena, struct buf *out)
{
	size_t id_columns = n > 0 && listings[0].path == NULL ? id_length(listings, n, arena) : 0;
	for (size_t i = 0; i < n; i++) {
		if (listings[i].path == NULL)
			add_stored_line(&listings[i], id_columns, out);
		else
			add_line(&listings[i], out);
	}
}

/* ---- JSON ---- */

struct listed {
	const struct run_listing *runs;
	size_t n;
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
		document_json(&out, &list_type, &(struct listed){listings, n}, true);
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
