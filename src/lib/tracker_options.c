#include "lib/tracker.h"

#include "base/units.h"
#include "base/util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { SIZE_MOST = 4096, ARGUMENTS_MAX = 256 };

/* ---- texts: one row for everything about them ---- */

static bool is_memory_unit(const char *text)
{
	return !isnan(unit_size(UNIT_MEMORY, text));
}

static bool is_time_unit(const char *text)
{
	return !isnan(unit_size(UNIT_TIME, text));
}

static bool is_tracking_file(const char *text)
{
	const char *ending = strrchr(text, '.');
	return ending != NULL && (strcmp(ending, ".csv") == 0 || strcmp(ending, ".sqlite") == 0);
}

bool tracker_option_is_brand(const char *text)
{
	return strcmp(text, "nvidia") == 0 || strcmp(text, "amd") == 0 || strcmp(text, "intel") == 0;
}

static const struct {
	size_t offset;
	const char *option;                 // option of `wattle attach`; NULL: none
	bool (*is_valid)(const char *text); // NULL: the recorder validates the text
} texts[] = {
	{offsetof(struct wattle_tracker_options, output), NULL, NULL},
	{offsetof(struct wattle_tracker_options, program), NULL, NULL},
	{offsetof(struct wattle_tracker_options, tracking_file), "--tracking-file", is_tracking_file},
	{offsetof(struct wattle_tracker_options, ram_unit), "--ram-unit", is_memory_unit},
	{offsetof(struct wattle_tracker_options, gpu_ram_unit), "--gpu-ram-unit", is_memory_unit},
	{offsetof(struct wattle_tracker_options, time_unit), "--time-unit", is_time_unit},
	{offsetof(struct wattle_tracker_options, gpus), "--gpus", NULL},
	{offsetof(struct wattle_tracker_options, gpu_brand), "--gpu-brand", tracker_option_is_brand},
	{offsetof(struct wattle_tracker_options, label), "--label", NULL},
};

static const char **text_of(struct wattle_tracker_options *options, size_t row)
{
	return (const char **)(void *)((char *)options + texts[row].offset);
}

/* ---- checks ---- */

static bool texts_are_valid(struct wattle_tracker_options *options)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *text = *text_of(options, i);
		if (text != NULL && (text[0] == '\0' || (texts[i].is_valid != NULL && !texts[i].is_valid(text))))
			return false;
	}
	return true;
}

static bool numbers_are_valid(const struct wattle_tracker_options *options)
{
	bool interval = options->interval_s == 0 || (options->interval_s >= 0.001 && options->interval_s <= 3600);
	bool cores = options->expected_cores >= 0 && options->expected_cores <= 1000000;
	bool timeout = options->stop_timeout_s >= 0 && options->stop_timeout_s <= 1e9;
	return interval && cores && timeout && options->pid >= 0 && options->pid <= INT32_MAX;
}

static bool arguments_are_valid(const struct wattle_tracker_options *options)
{
	size_t n = 0;
	while (options->arguments != NULL && options->arguments[n] != NULL && n <= ARGUMENTS_MAX)
		n++;
	return n <= ARGUMENTS_MAX;
}

// Rejects options of a newer program that this version would ignore: members beyond the known size must be 0.
static bool is_of_our_time(const struct wattle_tracker_options *options)
{
	if (options->size < sizeof(options->size) || options->size > SIZE_MOST)
		return false;
	for (size_t at = sizeof(*options); at < options->size; at++)
		if (((const char *)options)[at] != 0)
			return false;
	return true;
}

/* ---- copies ---- */

static size_t count(const char *const *list)
{
	size_t n = 0;
	while (list != NULL && list[n] != NULL)
		n++;
	return n;
}

static const char *const *copy_arguments(const char *const *arguments)
{
	size_t n = count(arguments);
	char **copy = calloc_array(n + 1, sizeof(*copy));
	for (size_t i = 0; copy != NULL && i < n; i++)
		copy[i] = strdup(arguments[i]); // a failed copy ends the list early; the caller detects it by counting
	return (const char *const *)copy;
}

static void free_arguments(const char *const *arguments)
{
	for (size_t i = 0; arguments != NULL && arguments[i] != NULL; i++)
		free((void *)(uintptr_t)arguments[i]);
	free((void *)(uintptr_t)arguments);
}

// Replaces each pointer of `copy`, which still borrows from the caller, by an owned copy.
static int own(struct wattle_tracker_options *copy)
{
	bool whole = true;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char **text = text_of(copy, i);
		if (*text == NULL)
			continue;
		*text = strdup(*text);
		whole = whole && *text != NULL;
	}
	if (copy->arguments != NULL) {
		size_t n = count(copy->arguments);
		copy->arguments = copy_arguments(copy->arguments);
		whole = whole && copy->arguments != NULL && count(copy->arguments) == n;
	}
	if (whole)
		return 0;
	tracker_options_finish(copy);
	return -ENOMEM;
}

int tracker_options_copy(const struct wattle_tracker_options *options, struct wattle_tracker_options *ret_copy)
{
	struct wattle_tracker_options copy = {.size = sizeof(copy)};
	if (options != NULL) {
		if (!is_of_our_time(options))
			return -EINVAL;
		memcpy(&copy, options, options->size < sizeof(copy) ? options->size : sizeof(copy));
		copy.size = sizeof(copy);
	}
	if (!texts_are_valid(&copy) || !numbers_are_valid(&copy) || !arguments_are_valid(&copy))
		return -EINVAL;
	int r = own(&copy);
	if (r == 0)
		*ret_copy = copy;
	return r;
}

void tracker_options_finish(struct wattle_tracker_options *copy)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free((void *)(uintptr_t)*text_of(copy, i));
	free_arguments(copy->arguments);
	*copy = (struct wattle_tracker_options){0};
}

/* ---- the command line ---- */

__attribute__((format(printf, 2, 3))) static void add(struct tracker_command *command, const char *format, ...)
{
	char **words = array_reserve(command->words, command->n + 1, &command->capacity, sizeof(*words), 32);
	if (words != NULL)
		command->words = words;
	va_list args;
	va_start(args, format);
	if (words == NULL || vasprintf(&words[command->n], format, args) < 0)
		command->failed = -ENOMEM;
	else
		words[++command->n] = NULL;
	va_end(args);
}

static void add_texts(struct tracker_command *command, struct wattle_tracker_options *options)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *text = *text_of(options, i);
		if (text != NULL && texts[i].option != NULL)
			add(command, "%s=%s", texts[i].option, text);
	}
}

int tracker_command_make(struct tracker_command *command, const struct wattle_tracker_options *options,
	const char *output, int64_t pid, int control_fd)
{
	struct wattle_tracker_options borrowed = *options;
	*command = (struct tracker_command){0};
	add(command, "wattle");
	add(command, "attach");
	add(command, "--control-fd");
	add(command, "%d", control_fd);
	add(command, "--quiet");
	add(command, "--output=%s", output);
	add_texts(command, &borrowed);
	if (options->interval_s > 0)
		add(command, "--interval=%lldus", llround(options->interval_s * 1e6));
	if (options->expected_cores > 0)
		add(command, "--expected-cores=%lld", (long long)options->expected_cores);
	if (options->overwrite)
		add(command, "--overwrite");
	if (options->quiet)
		add(command, "--disable-logs");
	for (size_t i = 0; options->arguments != NULL && options->arguments[i] != NULL; i++)
		add(command, "%s", options->arguments[i]);
	add(command, "--");
	add(command, "%lld", (long long)pid);
	return command->failed;
}

void tracker_command_finish(struct tracker_command *command)
{
	for (size_t i = 0; i < command->n; i++)
		free(command->words[i]);
	free(command->words);
	*command = (struct tracker_command){0};
}
