#include "cli/command.h"

#include "base/num.h"
#include "base/suggest.h"
#include "base/util.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct parse {
	const struct option *options;
	size_t n_options;
	const char *command;
	void *values;
	struct wattle_error *reterr;
};

static void *value_of(const struct parse *parse, const struct option *option)
{
	return (char *)parse->values + option->offset;
}

static bool is_choice(const char *choices, const char *text)
{
	size_t length = strlen(text);
	for (const char *at = choices; *at != '\0'; at += *at == '|') {
		size_t n = strcspn(at, "|");
		if (n == length && memcmp(at, text, n) == 0)
			return true;
		at += n;
	}
	return false;
}

static bool in_range(const struct option *option, double value)
{
	return (option->least == 0 && option->most == 0) || (value >= option->least && value <= option->most);
}

static int bad_value(const struct parse *parse, const struct option *option, const char *text)
{
	return error_set(parse->reterr, -EINVAL, "--%s: '%s' is not valid; give %s", option->name, text,
		option->range != NULL ? option->range : option->argument);
}

static int bad_choice(const struct parse *parse, const struct option *option, const char *text)
{
	struct suggest suggest;
	char meant[SUGGEST_WORD_MAX + 32];
	suggest_begin(&suggest, text, strlen(text));
	suggest_offer_choices(&suggest, option->choices);
	return error_set(parse->reterr, -EINVAL, "--%s: '%s' is not valid%s; give one of %s", option->name, text,
		suggest_text(&suggest, "", meant), option->choices);
}

static int set_list(const struct parse *parse, const struct option *option, const char *text)
{
	struct option_list *list = value_of(parse, option);
	if (option->choices != NULL && !is_choice(option->choices, text))
		return bad_choice(parse, option, text);
	if (list->n == OPTION_LIST_MAX)
		return error_set(parse->reterr, -EINVAL, "--%s: given more than %d times", option->name,
			OPTION_LIST_MAX);
	list->items[list->n++] = text;
	return 0;
}

static int set_value(const struct parse *parse, const struct option *option, const char *text)
{
	void *value = value_of(parse, option);
	int64_t integer;
	double number;
	switch (option->kind) {
	case OPTION_FLAG:
		*(bool *)value = true;
		return 0;
	case OPTION_TEXT:
		if (text[0] == '\0')
			return error_set(parse->reterr, -EINVAL, "--%s: is empty; give %s", option->name,
				option->argument);
		*(const char **)value = text;
		return 0;
	case OPTION_LIST:
		return set_list(parse, option, text);
	case OPTION_DURATION:
		if (num_parse_duration(text, &integer) < 0 || !in_range(option, (double)integer))
			return bad_value(parse, option, text);
		*(int64_t *)value = integer;
		return 0;
	case OPTION_NUMBER:
		if (num_parse_double(text, &number) < 0 || !in_range(option, number))
			return bad_value(parse, option, text);
		*(double *)value = number;
		return 0;
	case OPTION_INTEGER:
		if (num_parse_i64(text, &integer) < 0 || !in_range(option, (double)integer))
			return bad_value(parse, option, text);
		*(int64_t *)value = integer;
		return 0;
	case OPTION_CHOICE:
		if (!is_choice(option->choices, text))
			return bad_choice(parse, option, text);
		*(const char **)value = text;
		return 0;
	}
	return -EINVAL;
}

const char *deprecated_name(enum deprecated_kind kind, const char *old, size_t length)
{
	static const struct {
		enum deprecated_kind kind;
		const char *old, *name;
	} names[] = {
#define DEPRECATED(kind_, command_, old_, new_, since_) {DEPRECATED_##kind_, old_, new_},
#include "cli/deprecated.def"
#undef DEPRECATED
	};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].kind == kind && strlen(names[i].old) == length && memcmp(names[i].old, old, length) == 0)
			return names[i].name;
	return NULL;
}

static const struct option *find_current(const struct parse *parse, const char *name, size_t length)
{
	for (size_t i = 0; i < parse->n_options; i++)
		if (strlen(parse->options[i].name) == length && memcmp(parse->options[i].name, name, length) == 0)
			return &parse->options[i];
	return NULL;
}

// By its name or a deprecated one.
static const struct option *find_long(const struct parse *parse, const char *name, size_t length)
{
	const struct option *option = find_current(parse, name, length);
	const char *new_name = option == NULL ? deprecated_name(DEPRECATED_OPTION, name, length) : NULL;
	return new_name != NULL ? find_current(parse, new_name, strlen(new_name)) : option;
}

static void note_if_deprecated(const struct parse *parse, const struct option *option, const char *name, size_t length)
{
	if (find_current(parse, name, length) == NULL)
		fprintf(stderr, "wattle %s: --%.*s is deprecated; use --%s\n", parse->command, (int)length, name,
			option->name);
}

static const struct option *find_letter(const struct parse *parse, char letter)
{
	for (size_t i = 0; i < parse->n_options; i++)
		if (parse->options[i].letter == letter)
			return &parse->options[i];
	return NULL;
}

// The option most similar to the first `length` characters of `name`, as a phrase of suggest_text.
static const char *meant_option(const struct parse *parse, const char *name, size_t length, const char *prefix,
	char out[SUGGEST_WORD_MAX + 32])
{
	struct suggest suggest;
	suggest_begin(&suggest, name, length);
	for (size_t i = 0; i < parse->n_options; i++)
		suggest_offer(&suggest, parse->options[i].name, strlen(parse->options[i].name));
	return suggest_text(&suggest, prefix, out);
}

static int unknown(const struct parse *parse, const char *word)
{
	char meant[SUGGEST_WORD_MAX + 32];
	size_t dashes = strspn(word, "-");
	return error_set(parse->reterr, -EINVAL, "unknown option %s%s; `wattle %s --help` lists the options", word,
		meant_option(parse, word + dashes, strcspn(word + dashes, "="), "--", meant), parse->command);
}

// Sets the option's value from `attached` (--name=value, -nvalue) or from the next word; a flag takes neither.
static int take(const struct parse *parse, const struct option *option, const char *attached, int argc, char **argv,
	int *at)
{
	if (option->argument == NULL && attached != NULL)
		return error_set(parse->reterr, -EINVAL, "--%s: takes no value", option->name);
	if (option->argument == NULL)
		return set_value(parse, option, "");
	if (attached != NULL || option->bare != NULL)
		return set_value(parse, option, attached != NULL ? attached : option->bare);
	if (*at + 1 >= argc)
		return error_set(parse->reterr, -EINVAL, "--%s: needs a value: %s", option->name, option->argument);
	return set_value(parse, option, argv[++*at]);
}

static int take_long(const struct parse *parse, int argc, char **argv, int *at)
{
	const char *name = argv[*at] + 2;
	size_t length = strcspn(name, "=");
	const struct option *option = find_long(parse, name, length);
	if (option == NULL)
		return unknown(parse, argv[*at]);
	note_if_deprecated(parse, option, name, length);
	return take(parse, option, name[length] == '=' ? name + length + 1 : NULL, argc, argv, at);
}

static int take_letters(const struct parse *parse, int argc, char **argv, int *at)
{
	for (const char *letter = argv[*at] + 1; *letter != '\0'; letter++) {
		const struct option *option = find_letter(parse, *letter);
		if (option == NULL)
			return unknown(parse, argv[*at]);
		bool wants = option->argument != NULL;
		int r = take(parse, option, wants && letter[1] != '\0' ? letter + 1 : NULL, argc, argv, at);
		if (r < 0 || wants)
			return r;
	}
	return 0;
}

static int take_words(const struct parse *parse, int argc, char **argv, int *ret_first)
{
	int at = 0;
	for (; at < argc && argv[at][0] == '-' && argv[at][1] != '\0'; at++) {
		if (strcmp(argv[at], "--") == 0) {
			at++;
			break;
		}
		int r = argv[at][1] == '-' ? take_long(parse, argc, argv, &at) : take_letters(parse, argc, argv, &at);
		if (r < 0)
			return r;
	}
	*ret_first = at;
	return 0;
}

/* ---- --config ---- */

// Converts a JSON value to the text that the command line would have; the text lives as long as the configuration.
static const char *config_text(json_t *config, const char *key, json_t *value)
{
	if (json_is_string(value))
		return json_string_value(value);
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	json_t *kept = text != NULL ? json_string(text) : NULL;
	free(text);
	if (kept == NULL)
		return NULL;
	char name[128];
	snprintf(name, sizeof(name), "\n%s", key); // a key that no option has; the configuration owns the text
	json_object_set_new(config, name, kept);
	return json_string_value(kept);
}

static int config_value(const struct parse *parse, json_t *config, const struct option *option, json_t *value)
{
	if (option->kind == OPTION_FLAG) {
		if (!json_is_boolean(value))
			return error_set(parse->reterr, -EINVAL, "--config: \"%s\" must be true or false",
				option->name);
		*(bool *)value_of(parse, option) = json_is_true(value);
		return 0;
	}
	if (option->bare != NULL && json_is_true(value))
		return set_value(parse, option, option->bare);
	if (!json_is_string(value) && !json_is_number(value))
		return error_set(parse->reterr, -EINVAL, "--config: \"%s\" must be a string or a number", option->name);
	const char *text = config_text(config, option->name, value);
	return text != NULL ? set_value(parse, option, text) : -ENOMEM;
}

static int config_member(const struct parse *parse, json_t *config, const char *key, json_t *value)
{
	const struct option *option = find_long(parse, key, strlen(key));
	char meant[SUGGEST_WORD_MAX + 32];
	if (option == NULL || strcmp(key, "config") == 0)
		return error_set(parse->reterr, -EINVAL,
			"--config: unknown option \"%s\"%s; `wattle %s --help` lists them", key,
			meant_option(parse, key, strlen(key), "", meant), parse->command);
	note_if_deprecated(parse, option, key, strlen(key));
	if (option->kind != OPTION_LIST || !json_is_array(value))
		return config_value(parse, config, option, value);
	size_t i;
	json_t *item;
	json_array_foreach(value, i, item)
	{
		if (!json_is_string(item))
			return error_set(parse->reterr, -EINVAL, "--config: \"%s\" must be a list of strings", key);
		int r = set_value(parse, option, json_string_value(item));
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_config(const struct parse *parse, const char *path, void **ret_config)
{
	json_error_t error;
	json_t *config = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (config == NULL && error.line < 0) // the file could not be opened
		return error_set(parse->reterr, -EINVAL, "--config: %s", error.text);
	if (config == NULL)
		return error_set(parse->reterr, -EINVAL, "--config %s: line %d: %s", path, error.line, error.text);
	*ret_config = config;
	if (!json_is_object(config))
		return error_set(parse->reterr, -EINVAL, "--config %s: must hold one JSON object of options by name",
			path);
	// Numbers are replaced by strings that the configuration owns. It must not change during the iteration, so this
	// iterates over a copy.
	json_t *members = json_copy(config);
	const char *key;
	json_t *value;
	int r = members != NULL ? 0 : -ENOMEM;
	json_object_foreach(members, key, value)
	{
		r = config_member(parse, config, key, value);
		if (r < 0)
			break;
	}
	json_decref(members);
	return r;
}

void option_config_free(void *config)
{
	json_decref(config);
}

// Number of further words that belong to an option: 1 if its value is the next word, otherwise 0.
static int words_after(const struct parse *parse, const char *word)
{
	if (word[1] == '-') {
		size_t length = strcspn(word + 2, "=");
		const struct option *option = find_long(parse, word + 2, length);
		return option != NULL && option->argument != NULL && option->bare == NULL && word[2 + length] == '\0';
	}
	for (const char *letter = word + 1; *letter != '\0'; letter++) {
		const struct option *option = find_letter(parse, *letter);
		if (option != NULL && option->argument != NULL)
			return letter[1] == '\0';
	}
	return 0;
}

static bool is_option(int argc, char **argv, int i)
{
	return i < argc && argv[i][0] == '-' && argv[i][1] != '\0' && strcmp(argv[i], "--") != 0;
}

bool options_request_help(const struct option *options, size_t n_options, int argc, char **argv)
{
	struct parse parse = {.options = options, .n_options = n_options};
	for (int i = 0; is_option(argc, argv, i); i += 1 + words_after(&parse, argv[i]))
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

// The last value of --config on the command line; ignores arguments of the measured command.
static const char *find_config(const struct parse *parse, int argc, char **argv)
{
	const char *path = NULL;
	for (int i = 0; is_option(argc, argv, i); i++) {
		if (strncmp(argv[i], "--config=", 9) == 0)
			path = argv[i] + 9;
		else if (strcmp(argv[i], "--config") == 0 && i + 1 < argc)
			path = argv[i + 1];
		i += words_after(parse, argv[i]);
	}
	return path;
}

int options_parse(const struct option *options, size_t n_options, const char *command, int argc, char **argv,
	void *values, int *ret_first, void **ret_config, struct wattle_error *reterr)
{
	struct parse parse = {options, n_options, command, values, reterr};
	*ret_config = NULL;
	bool has_config = find_long(&parse, "config", 6) != NULL;
	if (has_config) {
		const char *path = find_config(&parse, argc, argv);
		int r = path != NULL ? read_config(&parse, path, ret_config) : 0;
		if (r < 0)
			return r;
	}
	return take_words(&parse, argc, argv, ret_first);
}
