#include "store/tracking.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

void csv_init(struct csv *csv, char *text, const char *path)
{
	*csv = (struct csv){.at = text, .path = path, .line = 0, .next_line = 1};
	if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
		csv->at += 3;
}

static bool is_line_end(char c)
{
	return c == '\n' || c == '\r';
}

static void skip_line_end(struct csv *csv)
{
	if (csv->at[0] == '\r' && csv->at[1] == '\n')
		csv->at++;
	if (*csv->at != '\0')
		csv->at++;
	csv->next_line++;
}

// Starts after the opening quote: unquotes in place and leaves csv->at after the closing quote.
static bool read_quoted(struct csv *csv)
{
	char *out = csv->at;
	for (; *csv->at != '\0'; csv->at++) {
		if (csv->at[0] == '"' && csv->at[1] != '"') {
			csv->at++;
			*out = '\0';
			return true;
		}
		csv->at += *csv->at == '"'; // a doubled quote is one quote character
		csv->next_line += *csv->at == '\n';
		*out++ = *csv->at;
	}
	return false;
}

// Reads one field; *ret_more: a comma follows the field.
static int read_field(struct csv *csv, char **ret_field, bool *ret_more, struct wattle_error *reterr)
{
	bool quoted = *csv->at == '"';
	*ret_field = csv->at + quoted;
	csv->at += quoted;
	if (quoted && !read_quoted(csv))
		return error_set(reterr, -EINVAL, "%s, line %d: a quote is opened and never closed", csv->path,
			csv->line);
	char *end = csv->at; // end of an unquoted field
	while (!quoted && *end != ',' && *end != '\n' && *end != '\r' && *end != '\0')
		end++;
	char after = *end;
	if (after != ',' && after != '\0' && !is_line_end(after))
		return error_set(reterr, -EINVAL, "%s, line %d: text follows a closing quote", csv->path, csv->line);
	csv->at = end;
	*ret_more = after == ',';
	if (after == ',')
		csv->at++;
	else
		skip_line_end(csv);
	if (!quoted)
		*end = '\0';
	return 0;
}

int csv_next(struct csv *csv, char **fields, int max, struct wattle_error *reterr)
{
	while (is_line_end(*csv->at))
		skip_line_end(csv);
	if (*csv->at == '\0')
		return 0;
	csv->line = csv->next_line;
	int n = 0;
	for (bool more = true; more; n++) {
		if (n == max)
			return error_set(reterr, -EINVAL, "%s, line %d: more than %d fields", csv->path, csv->line,
				max);
		int r = read_field(csv, &fields[n], &more, reterr);
		if (r < 0)
			return r;
	}
	return n;
}
