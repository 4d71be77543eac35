/* wattle --manual [COMMAND]: prints the manual pages, from the same tables as --help. The build installs the output. */
#include "cli/help.h"

#include "base/util.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

// In roff a dash is a hyphen, a backslash starts an escape, and a dot or quote at the start of a line starts a request.
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

// A text of several lines; lines that begin with a blank are kept as they are, and an empty line starts a paragraph.
static void add_paragraphs(struct buf *out, const char *text)
{
	bool is_table = false, is_empty = true;
	while (*text != '\0') {
		char line[512];
		size_t length = strcspn(text, "\n");
		snprintf(line, sizeof(line), "%.*s", (int)length, text);
		text += length + (text[length] == '\n');
		bool is_row = line[0] == ' ' || line[0] == '\t';
		if (is_row != is_table)
			buf_str(out, is_row ? ".PP\n.nf\n" : ".fi\n.PP\n");
		else if (line[0] == '\0' && !is_empty && *text != '\0')
			buf_str(out, ".PP\n");
		is_table = is_row;
		is_empty = line[0] == '\0';
		if (is_empty)
			continue;
		add_text(out, line);
		buf_char(out, '\n');
	}
	if (is_table)
		buf_str(out, ".fi\n");
}

static void add_sentence(struct buf *out, const char *summary)
{
	buf_char(out, (char)toupper((unsigned char)summary[0]));
	add_text(out, summary + 1);
	buf_str(out, ".\n");
}

static void add_header(struct buf *out, const char *name, const char *summary)
{
	buf_str(out, ".TH WATTLE");
	buf_str(out, name[0] != '\0' ? "-" : "");
	for (const char *c = name; *c != '\0'; c++)
		buf_char(out, (char)toupper((unsigned char)*c));
	buf_printf(out, " 1 \"%s\" \"wattle %s\" \"User Commands\"\n.SH NAME\nwattle%s%s \\- ", WATTLE_DATE,
		WATTLE_VERSION, name[0] != '\0' ? "\\-" : "", name);
	add_text(out, summary);
	buf_char(out, '\n');
}

/* roff joins lines anyway, and checkers of manual pages require short lines. Tables and lines that begin with a request are not
 * wrapped. */
static void wrap(const struct buf *page, struct buf *out)
{
	enum { MOST = 78 };
	bool is_table = false;
	for (const char *line = page->data; *line != '\0';) {
		size_t length = strcspn(line, "\n");
		is_table = (is_table || strncmp(line, ".nf", 3) == 0) && strncmp(line, ".fi", 3) != 0;
		while (!is_table && line[0] != '.' && length > MOST) {
			const char *blank = memrchr(line, ' ', MOST);
			if (blank == NULL || blank == line)
				break;
			buf_add(out, line, (size_t)(blank - line));
			buf_str(out, blank[1] == '.' || blank[1] == '\'' ? "\n\\&" : "\n");
			length -= (size_t)(blank + 1 - line);
			line = blank + 1;
		}
		buf_add(out, line, length);
		buf_char(out, '\n');
		line += length + (line[length] == '\n');
	}
}

static void finish(struct buf *page, struct buf *out)
{
	if (page->failed == 0)
		wrap(page, out);
	else
		out->failed = page->failed;
	buf_finish(page);
}

/* ---- a command ---- */

static void add_usage(struct buf *out, const struct command *command)
{
	buf_printf(out, ".B wattle %s\n", command->name);
	add_text(out, command->usage);
	buf_char(out, '\n');
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
		buf_str(out, option->bare != NULL ? "[=\\fI" : " \\fI");
		add_text(out, option->argument);
		buf_str(out, option->bare != NULL ? "\\fR]" : "\\fR");
	}
	buf_char(out, '\n');
	add_text(out, option->help);
	buf_char(out, '\n');
}

static void add_options(struct buf *out, const struct command *command)
{
	for (size_t i = 0; i < command->n_options; i++)
		add_option(out, &command->options[i]);
}

static void add_part(struct buf *out, const struct command *part)
{
	buf_printf(out, ".SS wattle %s\n", part->name);
	add_usage(out, part);
	buf_str(out, ".PP\n");
	add_sentence(out, part->summary);
	if (part->details != NULL) {
		buf_str(out, ".PP\n");
		add_paragraphs(out, part->details);
	}
	add_options(out, part);
}

static void add_examples(struct buf *out, const char *command, bool of_parts)
{
	size_t at = 0;
	const struct example *example = example_next(command, of_parts, &at);
	if (example != NULL)
		buf_str(out, ".SH EXAMPLES\n");
	for (; example != NULL; example = example_next(command, of_parts, &at)) {
		buf_str(out, ".TP\n.B ");
		add_text(out, example->line);
		buf_char(out, '\n');
		add_text(out, example->meaning);
		buf_char(out, '\n');
	}
}

static const struct {
	const char *command, *text;
} exit_statuses[] = {
	{"run",
		"The command's own; 128+N if signal N ended it; 125 if wattle failed before it started; 126 "
		"if it can't be executed; 127 if it was not found.\n"},
	{"cap",
		"list, get, reset, and set without a command: 0; 1 if it failed; 2 for wrong "
		"usage.\n.PP\nset with a command: the command's own; 128+N if signal N ended it; 125 if "
		"wattle failed before it started; 126 if it can't be executed; 127 if it was not "
		"found.\n.PP\ntune: the command's own; 1 if no limit was found; 2 for wrong usage; 128+N "
		"after signal N.\n"},
	{"bench", "0; 1 if a command or wattle failed; 2 for wrong usage; 128+N after signal N.\n"},
	{"sensors", "0; 1 if nothing is measured on this machine (energy is only estimated, or unavailable); 2 for wrong usage.\n"},
};

static void add_exit_status(struct buf *out, const char *command)
{
	const char *text = "0; 1 if it failed; 2 for wrong usage.\n";
	for (size_t i = 0; i < ARRAY_SIZE(exit_statuses); i++)
		if (strcmp(exit_statuses[i].command, command) == 0)
			text = exit_statuses[i].text;
	buf_str(out, ".SH EXIT STATUS\n");
	buf_str(out, text);
}

/* ---- fields of JSON, in the page of `wattle schema` ---- */

static const char *type_word(const struct field *field)
{
	static const char *const words[] = {
		[FIELD_IS_NUMBER] = "number",
		[FIELD_IS_INTEGER] = "integer",
		[FIELD_IS_UNSIGNED] = "integer",
		[FIELD_IS_BOOLEAN] = "true or false",
		[FIELD_IS_TEXT] = "text",
		[FIELD_IS_ANY] = "number or text",
		[FIELD_IS_OBJECT] = "object",
		[FIELD_IS_INLINE] = "fields of",
		[FIELD_IS_LIST] = "list",
		[FIELD_IS_MAP] = "object by name",
	};
	return words[field_value_type(field)];
}

static void add_field(struct buf *out, const struct field *field)
{
	buf_str(out, ".TP\n\\fB");
	add_text(out, field->key != NULL ? field->key : "(items)");
	buf_str(out, "\\fR (");
	add_text(out, field->unit != NULL ? field->unit : type_word(field));
	if (field->object != NULL) {
		buf_str(out, " ");
		add_text(out, field->object->name);
	}
	buf_str(out, ")\n");
	add_text(out, field->meaning != NULL ? field->meaning : field->object != NULL ? field->object->meaning : "");
	buf_str(out, "\n");
}

static void add_documents(struct buf *out)
{
	struct object_types all = {.n = 0};
	const struct object_type *type;
	const char *name;
	buf_str(out, ".SH DOCUMENTS\n");
	for (size_t i = 0; (type = schema_document(i, &name)) != NULL; i++) {
		buf_printf(out, ".TP\n.B ");
		add_text(out, name);
		buf_str(out, "\n");
		add_text(out, type->meaning);
		buf_str(out, " Object: ");
		add_text(out, type->name);
		buf_str(out, ".\n");
		object_types_collect(&all, type);
	}
	buf_str(out, ".SH FIELDS\nThe fields of each object, with unit (or type, if there is no unit) and meaning. Unknown values are null.\n");
	for (size_t i = 0; i < all.n; i++) {
		buf_str(out, ".SS ");
		add_text(out, all.types[i]->name);
		buf_str(out, "\n");
		add_text(out, all.types[i]->meaning);
		buf_str(out, "\n");
		for (size_t k = 0; k < all.types[i]->n_fields; k++)
			add_field(out, &all.types[i]->fields[k]);
	}
}

static void add_command_page(const struct command *command, struct buf *out)
{
	add_header(out, command->name, command->summary);
	buf_str(out, ".SH SYNOPSIS\n");
	if (command->n_parts == 0)
		add_usage(out, command);
	for (size_t i = 0; i < command->n_parts; i++) {
		add_usage(out, command->parts[i]);
		buf_str(out, i + 1 < command->n_parts ? ".br\n" : "");
	}
	buf_str(out, ".SH DESCRIPTION\n");
	add_sentence(out, command->summary);
	if (command->details != NULL) {
		buf_str(out, ".PP\n");
		add_paragraphs(out, command->details);
	}
	buf_str(out, command->n_parts > 0 ? ".SH COMMANDS\n" : command->n_options > 0 ? ".SH OPTIONS\n" : "");
	add_options(out, command);
	for (size_t i = 0; i < command->n_parts; i++)
		add_part(out, command->parts[i]);
	if (strcmp(command->name, "schema") == 0)
		add_documents(out);
	add_exit_status(out, command->name);
	add_examples(out, command->name, true);
	buf_str(out, ".SH SEE ALSO\n.BR wattle (1),\n.BR wattle\\-schema (1)\n");
}

void manual_print_command(const struct command *command, struct buf *out)
{
	struct buf page;
	buf_init(&page, 1 << 20);
	add_command_page(command, &page);
	finish(&page, out);
}

/* ---- wattle(1) ---- */

static const char description[] =
	".SH SYNOPSIS\n.B wattle\n.I COMMAND\n[OPTIONS]\n"
	".br\n.B wattle \\-\\-version\n|\n.B \\-\\-help\n"
	".SH DESCRIPTION\nMeasures the energy and resources that a program and its child processes use, and "
	"attributes them to its code. Each energy figure has an uncertainty and a provenance: measured, "
	"derived or estimated. A run is stored in one SQLite file.\n";

static const char environment[] =
	".SH ENVIRONMENT\n"
	".TP\n.B WATTLE_SYSFS\\fR, \\fBWATTLE_PROCFS\nFolders to use instead of /sys and /proc.\n"
	".TP\n.B WATTLE_NVML\\fR, \\fBWATTLE_ROCM_SMI\nLibraries to load instead of libnvidia\\-ml.so.1 and librocm_smi64.so.\n"
	".TP\n.B WATTLE_HELPER\nSocket of the helper, wattled, which reads counters that wattle may not "
	"read; default /run/wattle/wattled.sock; off: don't use the helper.\n"
	".TP\n.B WATTLE_STATE\nFolder of the journal of limits, of the idle power measured by wattle sensors "
	"\\-\\-calibrate\\-idle and of the counters of wattle serve; default /var/lib/wattle for root, "
	"otherwise $XDG_STATE_HOME/wattle or ~/.local/state/wattle.\n"
	".TP\n.B WATTLE_SPANS\nFile to which a program without a recorder writes its spans; %p is its process ID.\n"
	".TP\n.B WATTLE_DISABLE\n1: library calls do nothing.\n"
	".TP\n.B CUDA_VISIBLE_DEVICES\\fR, \\fBCUDA_DEVICE_ORDER\nwattle measures the GPUs visible to the "
	"command, unless \\-\\-gpus selects others.\n"
	".TP\n.B NO_COLOR\nIf set, no colours on a terminal.\n";

static const char exit_status[] =
	".SH EXIT STATUS\n"
	"wattle run, and wattle cap set with a command, return the command's own status; 128+N if signal N "
	"ended it; 125 if wattle failed before the command started; 126 if the command can't be executed; "
	"127 if it was not found. All other commands return 0; 1 if they failed; 2 for wrong usage. Their "
	"pages list further values.\n";

static void add_page(const struct command *const *commands, size_t n_commands, struct buf *out)
{
	add_header(out, "", "energy and resources that a program uses");
	buf_str(out, description);
	buf_str(out, ".SH COMMANDS\n");
	for (size_t i = 0; i < n_commands; i++) {
		buf_printf(out, ".TP\n.BR wattle\\-%s (1)\n", commands[i]->name);
		add_sentence(out, commands[i]->summary);
	}
	buf_str(out, environment);
	buf_str(out, exit_status);
	add_examples(out, "run", false);
	buf_str(out, ".SH SEE ALSO\n");
	for (size_t i = 0; i < n_commands; i++)
		buf_printf(out, ".BR wattle\\-%s (1),\n", commands[i]->name);
	buf_str(out, ".BR wattled (8)\n");
}

void manual_print(const struct command *const *commands, size_t n_commands, struct buf *out)
{
	struct buf page;
	buf_init(&page, 1 << 20);
	add_page(commands, n_commands, &page);
	finish(&page, out);
}
