/* wattle compare: compares runs, or results saved by wattle blocks. */
#include "cli/command.h"

#include "base/util.h"
#include "report/documents.h"
#include "report/page/page.h"
#include "task/task.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct values {
	const char *statistic, *format, *output, *url;
	bool all;
};

static const struct option options[] = {
	{"all", 0, NULL, "text: show all blocks, time per call and resource usage", OPTION_FLAG,
		.offset = offsetof(struct values, all)},
	{"stat", 0, "STATISTIC",
		"statistic of time per call and resource usage: min, max, mean or std (default mean); implies --all",
		OPTION_CHOICE, .offset = offsetof(struct values, statistic), .choices = "min|max|mean|std"},
	{"format", 0, "text|json|html",
		"output format (default: by the suffix of FILE, .html or .json, else text); html is a self-contained page",
		OPTION_CHOICE, .offset = offsetof(struct values, format), .choices = "text|json|html"},
	{"output", 'o', "FILE", "output file (default standard output)", OPTION_TEXT,
		.offset = offsetof(struct values, output)},
	{"store", 0, "URL", "each FILE is the id of a job in this PostgreSQL database: postgresql://HOST/DATABASE",
		OPTION_TEXT, .offset = offsetof(struct values, url)},
};

static const char *find_same_name(const struct named_file *files, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			if (strcmp(files[i].name, files[k].name) == 0)
				return files[i].name;
	return NULL;
}

/* ---- names of files ---- */

// The last `parts` parts of a path: "run.sqlite", "new/run.sqlite".
static const char *end_of_path(const char *path, size_t parts)
{
	const char *at = path + strlen(path);
	while (at > path && (at[-1] != '/' || --parts > 0))
		at--;
	return at;
}

static bool is_name_of_other(const struct named_file *files, size_t n, size_t i, const char *name, size_t parts)
{
	for (size_t k = 0; k < n; k++) {
		const char *other = files[k].name != NULL ? files[k].name : end_of_path(files[k].file, parts);
		if (k != i && strcmp(other, name) == 0)
			return true;
	}
	return false;
}

// The shortest end of its path that differs from the names of all others; the whole path if none does.
static const char *name_of_file(const struct named_file *files, size_t n, size_t i)
{
	size_t parts = 1;
	const char *name = end_of_path(files[i].file, parts);
	while (name > files[i].file && is_name_of_other(files, n, i, name, parts))
		name = end_of_path(files[i].file, ++parts);
	return name;
}

static void name_files(struct named_file *files, size_t n)
{
	const char *names[OPTION_LIST_MAX];
	for (size_t i = 0; i < n; i++)
		names[i] = files[i].name != NULL ? files[i].name : name_of_file(files, n, i);
	for (size_t i = 0; i < n; i++)
		files[i].name = names[i];
}

// NULL: the word is a file without a name, perhaps one with "=" in its path.
static const char *equals_in(const char *word)
{
	const char *equals = strchr(word, '=');
	bool is_file = equals != NULL && access(word, F_OK) == 0 && access(equals + 1, F_OK) != 0;
	return is_file ? NULL : equals;
}

// The folder of a job may end in slashes, which its name does not.
static bool split_word(const char *word, struct arena *arena, struct named_file *file)
{
	const char *equals = equals_in(word);
	char *text = arena_text(arena, word);
	if (text == NULL)
		return false;
	if (equals != NULL) {
		text[equals - word] = '\0';
		*file = (struct named_file){text, equals + 1, file->store};
		return true;
	}
	for (size_t n = strlen(text); n > 1 && text[n - 1] == '/'; n--)
		text[n - 1] = '\0';
	file->file = text;
	return true;
}

// True if the operands are valid; otherwise prints the reason and sets *ret_status.
static bool split(const struct command *command, const struct option_list *words, struct arena *arena, const char *url,
	struct named_file *files, int *ret_status)
{
	for (size_t i = 0; i < words->n; i++) {
		files[i] = (struct named_file){.store = url};
		if (!split_word(words->items[i], arena, &files[i])) {
			*ret_status = cli_no_memory();
			return false;
		}
		if (files[i].file[0] == '\0' || (files[i].name != NULL && files[i].name[0] == '\0')) {
			*ret_status = cli_usage(command, EXIT_USAGE, "'%.200s' is neither FILE nor NAME=FILE", words->items[i]);
			return false;
		}
	}
	name_files(files, words->n);
	const char *same_name = find_same_name(files, words->n);
	if (same_name != NULL)
		*ret_status = cli_usage(command, EXIT_USAGE,
			"two files are named %.200s; give each a unique name: NAME=FILE", same_name);
	else if (words->n < 2)
		*ret_status = cli_usage(command, EXIT_USAGE, "at least two FILEs are needed");
	return same_name == NULL && words->n >= 2;
}

static void warn(const struct comparison *comparison)
{
	for (size_t i = 0; i < comparison->n_warnings; i++)
		cli_warn(comparison->warnings[i]);
}

static int print(const struct values *values, const struct comparison *comparison)
{
	warn(comparison);
	struct buf out = cli_buf();
	if (strcmp(values->format, "json") == 0)
		compare_json(comparison, &out);
	else
		compare_text(comparison, values->statistic, values->all, &out, cli_use_colour(values->output));
	return cli_finish(&out, values->output);
}

static int compare(const struct values *values, const struct named_file *files, size_t n, struct arena *arena)
{
	struct wattle_error error = {0};
	struct comparison comparison;
	int r = compare_files(files, n, values->statistic, arena, &comparison, &error);
	return r < 0 ? cli_fail(EXIT_FAILED, &error) : print(values, &comparison);
}

static int write_page(const struct values *values, const struct named_file *files, size_t n,
	const struct comparison *comparison, const struct compared_run *runs, struct arena *arena)
{
	struct page_run *shown = arena_alloc(arena, n, sizeof(*shown));
	if (shown == NULL)
		return cli_no_memory();
	for (size_t i = 0; i < n; i++)
		shown[i] = (struct page_run){files[i].name, runs[i].is_run ? &runs[i].charts : NULL};
	warn(comparison);
	struct buf out = cli_buf();
	page_compare(comparison, shown, n, values->statistic, &out);
	return cli_finish(&out, values->output);
}

static int compare_page(const struct values *values, const struct named_file *files, size_t n, struct arena *arena)
{
	struct wattle_error error = {0};
	struct comparison comparison;
	struct compared_run *runs = arena_alloc(arena, n, sizeof(*runs));
	if (runs == NULL)
		return cli_no_memory();
	int r = compare_runs(files, n, values->statistic, arena, runs, &comparison, &error);
	int status = r < 0 ? cli_fail(EXIT_FAILED, &error) : write_page(values, files, n, &comparison, runs, arena);
	compare_runs_finish(runs, n);
	return status;
}

static bool check_not_inputs(const char *output, const struct named_file *files, size_t n, int *ret_status)
{
	const char *inputs[OPTION_LIST_MAX];
	for (size_t i = 0; i < n; i++)
		inputs[i] = files[i].file;
	return cli_check_not_input(output, inputs, n, ret_status);
}

static bool is_page(const struct values *values)
{
	return strcmp(values->format, "html") == 0;
}

static bool is_for_terminal(const struct values *values)
{
	return (values->output == NULL || strcmp(values->output, "-") == 0) && isatty(STDOUT_FILENO);
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {0};
	struct option_list words;
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	values.format = cli_format(values.format, values.output, "html|json");
	values.all |= values.statistic != NULL;
	values.statistic = values.statistic != NULL ? values.statistic : "mean";
	if (is_page(&values) && is_for_terminal(&values))
		return cli_usage(command, EXIT_USAGE,
			"--format html can't be shown in a terminal: give -o FILE");
	struct arena *arena = arena_new();
	struct named_file files[OPTION_LIST_MAX];
	if (arena == NULL)
		return cli_no_memory();
	if (split(command, &words, arena, values.url, files, &status) &&
		(values.url != NULL || check_not_inputs(values.output, files, words.n, &status)))
		status = is_page(&values) ? compare_page(&values, files, words.n, arena)
					  : compare(&values, files, words.n, arena);
	arena_free(arena);
	return status;
}

const struct command command_compare = {
	.name = "compare",
	.usage =
		"[NAME=]FILE [NAME=]FILE… [--all] [--store URL] [--stat min|max|mean|std] [--format text|json|html] [-o FILE]",
	.summary = "compare runs or saved results",
	.details =
		"Prints energy, time and mean power relative to the first FILE, and the code blocks whose energy differs by more than "
		"the errors. FILE is a run file, JSON from `wattle blocks --format json`, or a folder with the run files of a job. All "
		"ranks of a job count as one run, and each machine's energy counts once. NAME defaults to the file name. Code blocks match "
		"by name. Names that differ only in the line number (train.py:12) match in line order.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
