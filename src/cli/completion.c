/* wattle --completion SHELL prints a script for bash, zsh or fish that calls `wattle --complete WORD…` at each Tab. The
 * possible words at the cursor follow from the tables of --help, in one place for all shells. */
#include "cli/help.h"

#include "base/env.h"
#include "base/util.h"
#include "cap/lease.h"

#include <stdio.h>
#include <string.h>

extern const char shell_bash[], shell_fish[], shell_zsh[];

bool completion_print(const char *shell, struct buf *out)
{
	const struct {
		const char *name, *script;
	} shells[] = {{"bash", shell_bash}, {"fish", shell_fish}, {"zsh", shell_zsh}};
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (strcmp(shells[i].name, shell) == 0) {
			buf_str(out, shells[i].script);
			return true;
		}
	return false;
}

/* ---- cursor ---- */

struct cursor {
	const struct command *const *commands; // commands of the program
	size_t n_commands;
	const struct command *command; // NULL: none yet
	struct operands takes;         // operands of the command
	const struct option *awaits;   // the preceding option, whose value is at the cursor
	size_t operands;               // number of operands before the cursor
	int target;                    // index where another program's command line begins; -1: none
	bool after_dashes;
};

static const struct command *find_command(const struct cursor *at, const char *word)
{
	const struct command *const *commands = at->command != NULL ? at->command->parts : at->commands;
	size_t n = at->command != NULL ? at->command->n_parts : at->n_commands;
	size_t in_front = at->command != NULL ? strlen(at->command->name) + strlen(" ") : 0;
	for (size_t i = 0; i < n && at->operands == 0; i++)
		if (strcmp(commands[i]->name + in_front, word) == 0)
			return commands[i];
	return NULL;
}

// "-i", "--interval" or "--interval=…"; NULL: no such option, or one without a value.
static const struct option *find_valued(const struct command *command, const char *word)
{
	size_t length = strcspn(word, "=");
	for (size_t i = 0; command != NULL && i < command->n_options; i++) {
		const struct option *option = &command->options[i];
		bool is_long = strncmp(word, "--", 2) == 0 && strlen(option->name) == length - 2 &&
			memcmp(option->name, word + 2, length - 2) == 0;
		bool is_letter = word[0] == '-' && option->letter != 0 && word[1] == option->letter && word[2] == '\0';
		bool has_value = option->argument != NULL && (option->bare == NULL || word[length] == '=');
		if ((is_long || is_letter) && has_value)
			return option;
	}
	return NULL;
}

static bool is_at_target(const struct cursor *at)
{
	return at->takes.command == TAKES_COMMAND && at->operands == at->takes.n;
}

// Processes word i of the command line, which precedes the cursor.
static void take(struct cursor *at, const char *word, int i)
{
	const struct command *found = word[0] != '-' && at->awaits == NULL ? find_command(at, word) : NULL;
	if (at->awaits != NULL) {
		at->awaits = NULL;
	} else if (found != NULL) {
		at->command = found;
		at->takes = operands_of(found);
	} else if (at->command == NULL) {
		return;
	} else if (strcmp(word, "--") == 0) {
		at->after_dashes = true;
		at->target = at->takes.command != TAKES_NO_COMMAND ? i + 1 : -1;
	} else if (word[0] == '-' && !at->after_dashes) {
		at->awaits = strchr(word, '=') == NULL ? find_valued(at->command, word) : NULL;
	} else if (is_at_target(at)) {
		at->target = i;
	} else {
		at->operands++;
	}
}

/* ---- candidates ---- */

// One line per candidate: the word, a tab, and a short description.
static void add_word(struct buf *out, const char *before, const char *word, size_t length, const char *summary)
{
	buf_printf(out, "%s%.*s", before, (int)length, word);
	buf_printf(out, summary[0] != '\0' ? "\t%s\n" : "\n", summary);
}

static void add_commands(const struct cursor *at, struct buf *out)
{
	const struct command *const *commands = at->command != NULL ? at->command->parts : at->commands;
	size_t n = at->command != NULL ? at->command->n_parts : at->n_commands;
	size_t in_front = at->command != NULL ? strlen(at->command->name) + strlen(" ") : 0;
	for (size_t i = 0; i < n; i++)
		add_word(out, "", commands[i]->name + in_front, strlen(commands[i]->name + in_front),
			commands[i]->summary);
}

static void add_options(const struct cursor *at, struct buf *out)
{
	add_word(out, "--", "help", 4, "print help");
	if (at->command == NULL)
		add_word(out, "--", "version", 7, "print the version");
	for (size_t i = 0; at->command != NULL && i < at->command->n_options; i++) {
		const struct option *option = &at->command->options[i];
		struct buf summary;
		buf_init(&summary, 4096);
		option_summary(option, &summary);
		const char *text = summary.failed == 0 && summary.size > 0 ? summary.data : "";
		add_word(out, "--", option->name, strlen(option->name), text);
		if (option->letter != 0)
			add_word(out, "-", &option->letter, 1, text);
		buf_finish(&summary);
	}
}

// Device names for `wattle cap`. Prints nothing, not even an error, if there are none.
static void add_devices(const char *before, struct buf *out)
{
	struct wattle_env env;
	struct cap_devices devices;
	if (env_open(&env, NULL) < 0)
		return;
	const char *last = "";
	bool is_open = cap_devices_open(&devices, &env, NULL) == 0;
	for (size_t i = 0; is_open && i < devices.n; i++) { // power and clocks of a device are adjacent
		const char *name = devices.devices[i].name;
		if (strcmp(name, last) != 0)
			add_word(out, before, name, strlen(name), "");
		last = name;
	}
	if (is_open)
		cap_devices_close(&devices);
	env_close(&env);
}

static void add_kind(int kind, const char *before, struct buf *out)
{
	static const char *const kinds[] = {
		[WORD_ANY] = "anything",
		[WORD_FILE] = "files",
		[WORD_FOLDER] = "folders",
		[WORD_RUN] = "runs",
		[WORD_NAMED_RUN] = "named_runs",
		[WORD_ONNX] = "onnx",
		[WORD_JSON] = "json",
		[WORD_DEVICE] = "words",
		[WORD_PID] = "pids",
	};
	buf_printf(out, "%s\n", kind >= 0 ? kinds[kind] : "unknown"); // a test searches for "unknown"
	if (kind == WORD_DEVICE)
		add_devices(before, out);
}

static void add_value(const struct option *option, const char *before, struct buf *out)
{
	if (option->choices == NULL) {
		add_kind(word_kind_of(option->argument), before, out);
		return;
	}
	buf_str(out, "words\n");
	for (const char *at = option->choices; *at != '\0'; at += *at == '|') {
		size_t length = strcspn(at, "|");
		add_word(out, before, at, length, "");
		at += length;
	}
}

static void add_operand(const struct cursor *at, struct buf *out)
{
	const struct operands *takes = &at->takes;
	size_t i = at->operands < takes->n ? at->operands : takes->n - 1;
	bool is_one = at->operands < takes->n || (takes->n > 0 && takes->repeats);
	add_kind(is_one ? (int)takes->at[i].kind : WORD_ANY, "", out);
}

void completion_at(const struct command *const *commands, size_t n, int n_words, char **words, struct buf *out)
{
	struct cursor at = {.commands = commands, .n_commands = n, .target = -1};
	const char *word = n_words > 0 ? words[n_words - 1] : "";
	for (int i = 0; i < n_words - 1; i++) {
		if (at.target < 0)
			take(&at, words[i], i);
		else if (strcmp(words[i], ":::") == 0) // wattle bench -- A ::: B
			at.target = i + 1;
	}
	char before[64];
	const struct option *valued = strchr(word, '=') != NULL && !at.after_dashes ? find_valued(at.command, word)
										    : NULL;
	snprintf(before, sizeof(before), "%.*s=", (int)strcspn(word, "="), word);
	bool has_parts = at.command == NULL || (at.command->n_parts > 0 && at.operands == 0);
	if (at.target < 0 && at.awaits == NULL && is_at_target(&at) && word[0] != '-')
		at.target = n_words - 1;
	if (at.target >= 0) {
		buf_printf(out, "target %d\n", at.target);
	} else if (at.awaits != NULL || valued != NULL) {
		add_value(at.awaits != NULL ? at.awaits : valued, at.awaits != NULL ? "" : before, out);
	} else if ((word[0] == '-' && !at.after_dashes) || has_parts) {
		buf_str(out, "words\n");
		if (word[0] == '-')
			add_options(&at, out);
		else
			add_commands(&at, out);
	} else {
		add_operand(&at, out);
	}
}
