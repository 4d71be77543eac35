/* wattle --manual: the manual page, from the same tables as --help. The build installs what it prints. */
#include "cli/manual.h"

#include <stdio.h>
#include <string.h>

// roff takes a dash for a hyphen, a backslash for a command, and a dot or quote at the start of a line for a request.
static void add_text(struct buf *out, const char *text)
{
	bool line_start = out->size == 0 || out->data[out->size - 1] == '\n';
	for (; *text != '\0'; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			buf_str(out, "\\&");
		if (*text == '-' || *text == '\\')
			buf_char(out, '\\');
		buf_char(out, *text == '\\' ? 'e' : *text);
		line_start = *text == '\n';
	}
}

static void add_option(struct buf *out, const struct option *option)
{
	buf_str(out, ".TP\n");
	if (option->letter != 0)
		buf_printf(out, "\\fB\\-%c\\fR, ", option->letter);
	buf_str(out, "\\fB\\-\\-");
	add_text(out, option->name);
	buf_str(out, "\\fR");
	if (option->argument != NULL) {
		buf_str(out, " \\fI");
		add_text(out, option->argument);
		buf_str(out, "\\fR");
	}
	buf_char(out, '\n');
	add_text(out, option->help);
	buf_char(out, '\n');
}

static bool same_options(const struct command *a, const struct command *b)
{
	return a != b && a->n_options > 0 && a->options == b->options;
}

static void add_command(struct buf *out, const struct command *const *commands, size_t i)
{
	const struct command *command = commands[i];
	buf_printf(out, ".SS wattle %s\n.B wattle %s\n", command->name, command->name);
	add_text(out, command->usage);
	buf_str(out, "\n.PP\n");
	add_text(out, command->summary);
	buf_str(out, ".\n");
	if (command->details != NULL) {
		buf_str(out, ".PP\n");
		add_text(out, command->details);
		buf_char(out, '\n');
	}
	for (size_t before = 0; before < i; before++)
		if (same_options(commands[before], command)) {
			buf_printf(out, ".PP\nThe options are those of wattle %s.\n", commands[before]->name);
			return;
		}
	for (size_t o = 0; o < command->n_options; o++)
		add_option(out, &command->options[o]);
	for (size_t p = 0; p < command->n_parts; p++)
		add_command(out, command->parts, p);
}

static const char environment[] =
	".SH ENVIRONMENT\n"
	".TP\n.B WATTLE_SYSFS, WATTLE_PROCFS\nFolders that stand for /sys and /proc.\n"
	".TP\n.B WATTLE_NVML\nLibrary to load instead of libnvidia\\-ml.so.1.\n"
	".TP\n.B WATTLE_HELPER\nSocket of the helper, wattled, that is asked where wattle itself is refused; "
	"/run/wattle/wattled.sock, or off.\n"
	".TP\n.B WATTLE_STATE\nFolder in which the journal of limits and the idle power that wattle sensors "
	"\\-\\-calibrate\\-idle measured are kept; /var/lib/wattle for root, $XDG_STATE_HOME/wattle or "
	"~/.local/state/wattle else.\n"
	".TP\n.B CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER\nThe GPUs that the command sees are the ones measured, unless "
	"\\-\\-gpus says otherwise.\n"
	".TP\n.B NO_COLOR\nNo colour on a terminal either.\n";

static const char exit_status[] =
	".SH EXIT STATUS\n"
	".B wattle run\nand wattle cap set with a command return the command's own status, 128+N if signal N ended it, 125 if "
	"wattle itself failed before the command started, 126 if the command can't be executed, 127 if it was not found. All others return 0, 1 if they "
	"failed, 2 for a wrong use.\n";

void manual_print(const struct command *const *commands, size_t n_commands, struct buf *out)
{
	buf_str(out,
		".TH WATTLE 1 \"\" \"wattle " WATTLE_VERSION "\" \"User Commands\"\n"
		".SH NAME\nwattle \\- energy and resources that a program uses\n"
		".SH SYNOPSIS\n.B wattle\n.I COMMAND\n[OPTIONS]\n"
		".SH DESCRIPTION\nMeasures the energy and the resources that a program and all that it starts use, and "
		"where they go. Each figure says whether it was measured, derived or estimated, and how wrong it may "
		"be. A run is one SQLite file.\n.SH COMMANDS\n");
	for (size_t i = 0; i < n_commands; i++)
		add_command(out, commands, i);
	buf_str(out, environment);
	buf_str(out, exit_status);
}
