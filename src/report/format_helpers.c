#include "report/format_helpers.h"

#include "analysis/metadata_keys.h"
#include "base/units.h"
#include "base/util.h"
#include "report/phrases.h"
#include "report/table.h"

#include <time.h>

enum { WORDS_CEILING = 1 << 22 }; // the kernel limits command lines to 2 MB

const struct run_segment *report_segment(const struct run *run)
{
	return run->n_segments > 0 ? &run->segments[run->n_segments - 1] : NULL;
}

// Calls `call` for each word of a segment's command.
static void each_word(const struct run_segment *segment, void (*call)(void *data, const char *word), void *data)
{
	struct buf words;
	buf_init(&words, WORDS_CEILING);
	if (segment != NULL && segment->command_json != NULL && command_quoted(segment->command_json, &words) == 0)
		for (const char *word = words.data; word < words.data + words.size; word += strlen(word) + 1)
			call(data, word);
	buf_finish(&words);
}

static bool needs_quotes(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^";
	return word[0] == '\0' || word[strspn(word, plain)] != '\0';
}

// Quotes a word for a shell, except for control characters.
static void shell_word(void *data, const char *word)
{
	struct buf *out = data;
	bool quotes = needs_quotes(word);
	if (out->size > 0)
		buf_char(out, ' ');
	if (quotes)
		buf_char(out, '\'');
	for (const char *c = word; *c != '\0'; c++) {
		if (*c == '\'')
			buf_str(out, "'\\''");
		else
			text_add_printable(out, c, 1);
	}
	if (quotes)
		buf_char(out, '\'');
}

void command_text(struct buf *out, const struct run_segment *segment)
{
	each_word(segment, shell_word, out);
}

void rfc3339(struct buf *out, int64_t wall_ns)
{
	// Microseconds, because at 300 W the energy of one millisecond exceeds the resolution of RAPL.
	int64_t us = wall_ns / 1000 - (wall_ns % 1000 < 0);
	time_t s = (time_t)(us / 1000000 - (us % 1000000 < 0));
	struct tm tm;
	char date[40], offset[8];
	if (localtime_r(&s, &tm) == NULL)
		return;
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(offset, sizeof(offset), "%z", &tm); // +hhmm
	buf_printf(out, "%s.%06d%.3s:%s", date, (int)(us - (int64_t)s * 1000000), offset, offset + 3);
}

void start_time_text(struct buf *out, int64_t wall_ns)
{
	struct buf text;
	buf_init(&text, 64);
	rfc3339(&text, wall_ns);
	const char *zone = text.size > 19 ? strpbrk(text.data + 19, "+-") : NULL;
	if (zone != NULL)
		buf_printf(out, "%.10s %.8s %s", text.data, text.data + 11, zone);
	buf_finish(&text);
}

double column_factor(const struct run *run, enum tracking_column_id column)
{
	const char *fact = tracking_columns[column].unit_metadata;
	return fact != NULL ? 1 / unit_size(UNIT_MEMORY, run_unit(run, fact)) : 1;
}

char *command_line_text(const char *const *argv)
{
	struct buf line, word;
	buf_init(&line, WORDS_CEILING);
	buf_init(&word, WORDS_CEILING);
	for (; *argv != NULL; argv++) {
		buf_clear(&word);
		buf_utf8(&word, *argv);
		shell_word(&line, word.size > 0 ? word.data : "");
	}
	buf_finish(&word);
	char *text = buf_take(&line);
	buf_finish(&line);
	return text;
}
