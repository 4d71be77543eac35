#include "cli/help.h"

#include "base/util.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SUMMARY_BYTES = 90 };

static const struct {
	const char *name;
	enum word_kind kind;
} vocabulary[] = {
	{"FILE", WORD_FILE},
	{"F", WORD_FILE},
	{"PATH", WORD_FILE},
	{"OUT", WORD_FILE},
	{"IN", WORD_FILE},
	{"FILE.json", WORD_JSON},
	{"FILE.onnx", WORD_ONNX},
	{"DIR", WORD_FOLDER},
	{"RUN", WORD_RUN},
	{"NAME=]FILE", WORD_NAMED_RUN}, // "[NAME=]FILE": operands_of removes the first bracket
	{"DEVICE", WORD_DEVICE},
	{"PID", WORD_PID},
	{"PID,", WORD_PID}, // "PID,…"
	{"ADDRESS", WORD_ANY},
	{"BRAND", WORD_ANY},
	{"COLUMN", WORD_ANY},
	{"COUNTRY", WORD_ANY},
	{"DUR", WORD_ANY},
	{"FORMAT", WORD_ANY},
	{"G", WORD_ANY},
	{"ID", WORD_ANY},
	{"KEY=VALUE", WORD_ANY},
	{"LIST", WORD_ANY},
	{"METHOD", WORD_ANY},
	{"MHZ", WORD_ANY},
	{"N", WORD_ANY},
	{"NAME", WORD_ANY},
	{"NAME=SIZE", WORD_ANY},
	{"OCTAL", WORD_ANY},
	{"PATTERN", WORD_ANY},
	{"PERCENT", WORD_ANY},
	{"PERCENT±ERROR", WORD_ANY},
	{"INDEX", WORD_ANY},
	{"INDEX=FACTOR±PERCENT", WORD_ANY},
	{"ROLE", WORD_ANY},
	{"S", WORD_ANY},
	{"STATISTIC", WORD_ANY},
	{"STEP", WORD_ANY},
	{"STYLE", WORD_ANY},
	{"TEXT", WORD_ANY},
	{"TIME", WORD_ANY},
	{"UNIT", WORD_ANY},
	{"URL", WORD_ANY},
	{"WATTS", WORD_ANY},
	{"WHAT", WORD_ANY},
	{"WHICH", WORD_ANY},
	{"X", WORD_ANY},
};

// "FILE…" is a list of FILE.
static size_t length_of(const char *name)
{
	const char *dots = strstr(name, "…");
	return dots != NULL ? (size_t)(dots - name) : strlen(name);
}

int word_kind_of(const char *name)
{
	size_t length = length_of(name);
	if (strchr(name, '|') != NULL)
		return WORD_ANY; // a choice between fixed words
	for (size_t i = 0; i < ARRAY_SIZE(vocabulary); i++)
		if (strlen(vocabulary[i].name) == length && memcmp(vocabulary[i].name, name, length) == 0)
			return (int)vocabulary[i].kind;
	return -ENOENT;
}

/* ---- a usage ---- */

struct usage {
	struct operands operands;
	bool after_option; // the next word is the argument of the option
	bool after_dashes;
};

static void take_operand(struct operands *operands, const char *word)
{
	struct operand operand = {.kind = WORD_ANY};
	int kind = word_kind_of(word);
	if (kind < 0 || operands->n == OPERANDS_MAX)
		return;
	size_t length = length_of(word);
	operands->repeats = word[length] != '\0';
	operand.kind = (enum word_kind)kind;
	snprintf(operand.name, sizeof(operand.name), "%.*s", (int)length, word);
	bool is_again = operands->n > 0 && strcmp(operands->at[operands->n - 1].name, operand.name) == 0;
	if (!is_again)
		operands->at[operands->n++] = operand;
}

// Returns false if the rest of the usage does not matter.
static bool take_word(struct usage *usage, const char *word)
{
	bool is_argument = usage->after_option;
	usage->after_option = false;
	if (strcmp(word, "--") == 0) {
		usage->after_dashes = true;
	} else if (word[0] == '-') {
		usage->after_option = true;
	} else if (strncmp(word, "CMD", 3) == 0) {
		usage->operands.command = usage->after_dashes ? TAKES_COMMAND_AFTER_DASHES : TAKES_COMMAND;
		return false;
	} else if (!is_argument && isupper((unsigned char)word[0]) && strcmp(word, "OPTIONS") != 0) {
		take_operand(&usage->operands, word);
	}
	return true;
}

struct operands operands_of(const struct command *command)
{
	struct usage usage = {0};
	char text[512];
	snprintf(text, sizeof(text), "%s", command->usage);
	char *rest = text;
	for (char *word; (word = strsep(&rest, " ")) != NULL;) {
		bool is_optional_dashes = strcmp(word, "[--]") == 0, ends_option = strchr(word, ']') != NULL;
		word += strspn(word, "[");
		char *closing = strchr(word, ']');
		if (closing != NULL && !isupper((unsigned char)closing[1])) // not the one of "[NAME=]FILE"
			*closing = '\0';
		if (word[0] == '\0' || word[0] == '|' || is_optional_dashes) {
			usage.after_option = false;
			continue;
		}
		if (!take_word(&usage, word))
			break;
		usage.after_option &= !ends_option; // an option in brackets such as "[--json]" has no argument
	}
	return usage.operands;
}

/* ---- an option ---- */

// The first clause of the help; a newline becomes a blank.
void option_summary(const struct option *option, struct buf *out)
{
	size_t n = 0;
	const char *at = option->help;
	for (; *at != '\0' && *at != ';' && !(n > 0 && at[0] == ' ' && at[1] == '('); at++, n++)
		if (n > SUMMARY_BYTES && (*at == ' ' || *at == '\n'))
			break;
		else if (*at == '\n' && at[1] == '(')
			break;
		else
			buf_char(out, *at == '\n' ? ' ' : *at);
}
