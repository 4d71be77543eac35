/* wattle list: the runs of a folder, one line each. */
#include "cli/command.h"

#include "base/jsonw.h"
#include "base/util.h"
#include "report/parts.h"
#include "report/report.h"
#include "store/list.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { TEXT_CEILING = 1 << 26, COMMAND_WIDTH = 60 };

struct values {
	bool json;
	const char *refused;
};

static const char later[] = "runs in PostgreSQL are not in this version; name a folder instead";
static const struct option options[] = {
	{"json", 0, NULL, "as JSON", OPTION_FLAG, .offset = offsetof(struct values, json)},
	{"store", 0, "URL", "runs in PostgreSQL (in a later version)", OPTION_REFUSED, .choices = later},
};

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

// As a shell would take it, cut where a line of a terminal ends.
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

static void add_line(const struct run_listing *listing, struct buf *out)
{
	static const size_t columns[] = {21, 36, 48};
	size_t start = out->size;
	if (listing->problem != NULL) {
		buf_printf(out, "%s: %s\n", listing->path, listing->problem);
		return;
	}
	add_start(listing, out);
	buf_pad_to(out, start, columns[0]);
	human_time(out, listing->duration_s);
	buf_pad_to(out, start, columns[1]);
	add_state(listing, out);
	buf_pad_to(out, start, columns[2]);
	buf_printf(out, "%s  ", listing->path);
	if (listing->label != NULL)
		buf_printf(out, "[%s] ", listing->label);
	add_command(listing, out);
	buf_char(out, '\n');
}

static void add_json(const struct run_listing *listing, struct jsonw *j)
{
	jsonw_begin_object(j);
	jsonw_key_string(j, "path", listing->path);
	jsonw_key_string(j, "id", listing->id);
	jsonw_key_string(j, "host", listing->host);
	jsonw_key_string(j, "label", listing->label);
	jsonw_key_double(j, "start_unix_s", value_to_double(listing->wall_start_ns, 1e-9));
	jsonw_key_double(j, "duration_s", listing->duration_s);
	jsonw_key_i64(j, "segments", listing->segments);
	jsonw_key_i64(j, "samples", listing->samples);
	jsonw_key_i64(j, "exit_code", listing->exit_code);
	jsonw_key_bool(j, "complete", listing->complete);
	jsonw_key_string(j, "problem", listing->problem);
	jsonw_end_object(j);
}

static void add_all(const struct run_listing *listings, size_t n, bool as_json, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out, true);
	if (as_json)
		jsonw_begin_array(&j);
	for (size_t i = 0; i < n; i++) {
		if (as_json)
			add_json(&listings[i], &j);
		else
			add_line(&listings[i], out);
	}
	if (as_json)
		jsonw_end_array(&j);
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {0};
	struct option_list words;
	int status;
	if (!cli_parse_words(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n > 1)
		return cli_usage(command, EXIT_USAGE, "more than one folder given");
	struct wattle_error error = {0};
	struct run_listing *listings;
	size_t n;
	struct arena *arena = arena_new();
	if (arena == NULL)
		return EXIT_FAILED;
	if (list_runs(words.n == 1 ? words.items[0] : ".", arena, &listings, &n, &error) < 0) {
		status = cli_fail(EXIT_FAILED, &error);
	} else {
		struct buf out;
		buf_init(&out, TEXT_CEILING);
		add_all(listings, n, values.json, &out);
		status = cli_write(&out, "-");
		buf_finish(&out);
	}
	arena_free(arena);
	return status;
}

const struct command command_list = {
	.name = "list",
	.usage = "[DIR] [--json]",
	.summary = "the runs of a folder, one line each",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
