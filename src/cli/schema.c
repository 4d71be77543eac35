/* wattle schema: the JSON Schema of each document that wattle writes, made from the tables that the documents are made from. */
#include "cli/help.h"

#include "base/fields.h"
#include "base/util.h"
#include "cli/sensors.h"
#include "report/bench.h"
#include "report/cap_report.h"
#include "report/documents.h"
#include "report/picture/charts_json.h"
#include "report/fields/document.h"
#include "report/page/page.h"
#include "serve/view.h"
#include "store/export.h"

#include <string.h>

struct values {
	const char *output;
};

static const struct option options[] = {
	{"output", 'o', "FILE", "output file (default: standard output)", OPTION_TEXT,
		.offset = offsetof(struct values, output)},
};

static const struct schema {
	const char *name;
	const struct object_type *type;
} schemas[] = {
#define SCHEMA(name_, type_) {(name_), &(type_)},
#include "cli/schemas.def"
#undef SCHEMA
};

const struct object_type *schema_document(size_t i, const char **ret_name)
{
	if (i >= ARRAY_SIZE(schemas))
		return NULL;
	*ret_name = schemas[i].name;
	return schemas[i].type;
}

static const struct schema *schema_named(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(schemas); i++)
		if (strcmp(schemas[i].name, name) == 0)
			return &schemas[i];
	return NULL;
}

static void add_names(struct buf *out, const char *separator)
{
	for (size_t i = 0; i < ARRAY_SIZE(schemas); i++)
		buf_printf(out, "%s%s", i > 0 ? separator : "", schemas[i].name);
}

static int unknown(const struct command *command, const char *name)
{
	struct buf names;
	buf_init(&names, 1 << 12);
	add_names(&names, ", ");
	int status = cli_usage(command, EXIT_USAGE, "unknown document '%.100s'; valid are %s", name, names.data);
	buf_finish(&names);
	return status;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct values values = {0};
	struct option_list words;
	int status;
	if (!cli_parse_operands(command, argc, argv, &values, &words, &status))
		return status;
	if (words.n > 1)
		return cli_usage(command, EXIT_USAGE, "give at most one NAME");
	const struct schema *schema = words.n == 1 ? schema_named(words.items[0]) : NULL;
	if (words.n == 1 && schema == NULL)
		return unknown(command, words.items[0]);
	struct buf out = cli_buf();
	if (schema != NULL) {
		document_schema(&out, schema->name, schema->type);
	} else {
		add_names(&out, "\n");
		buf_char(&out, '\n');
	}
	return cli_finish(&out, values.output);
}

const struct command command_schema = {
	.name = "schema",
	.usage = "[NAME] [-o FILE]",
	.summary = "print the JSON Schema of a document that wattle writes",
	.details = "Without NAME, prints the names, one per line. The schemas follow draft 2020-12.",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.run = run,
};
