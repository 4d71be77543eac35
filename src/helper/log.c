#include "helper/helper.h"

#include "base/util.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINES_MAX = 20, LINES_PERIOD_S = 10 };

// Compares with stderr: a program may inherit JOURNAL_STREAM from a service although its stderr goes elsewhere.
static bool is_to_journal(void)
{
	struct stat st;
	char mine[64];
	const char *journal = getenv("JOURNAL_STREAM");
	if (journal == NULL || fstat(STDERR_FILENO, &st) < 0)
		return false;
	snprintf(mine, sizeof(mine), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return strcmp(journal, mine) == 0;
}

__attribute__((format(printf, 2, 0))) static void write_line(enum log_level level, const char *format, va_list args)
{
	char line[1024];
	int length = is_to_journal() ? snprintf(line, sizeof(line), "<%d>", (int)level)
				     : snprintf(line, sizeof(line), "wattled: ");
	int n = vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, args);
	if (n < 0)
		return;
	for (char *at = line + length; *at != '\0'; at++)
		if ((unsigned char)*at < ' ') // so that a name from a client can't start a line of its own
			*at = '?';
	length = (int)strlen(line);
	line[length++] = '\n';
	ssize_t written = write(STDERR_FILENO, line, (size_t)length); // a single write, so that lines of two processes do not mix
	(void)written;                                                // a failure can't be reported
}

void log_line(enum log_level level, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	write_line(level, format, args);
	va_end(args);
}

static int64_t now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

// Whether one more line of this level is within the limit.
static bool is_let_through(struct log_shares *shares, enum log_level level)
{
	struct log_share *share = &shares->of[level];
	int64_t now = now_s();
	pthread_mutex_lock(&shares->mutex);
	if (now - share->period_s >= LINES_PERIOD_S) {
		int left_out = share->left_out;
		*share = (struct log_share){.period_s = now};
		if (left_out > 0)
			log_line(LOG_LEVEL_NOTICE, "%d more lines about clients were suppressed", left_out);
	}
	bool has_room = share->n < LINES_MAX;
	*(has_room ? &share->n : &share->left_out) += 1;
	pthread_mutex_unlock(&shares->mutex);
	return has_room;
}

void log_client(struct log_shares *shares, enum log_level level, const char *format, ...)
{
	va_list args;
	if (!is_let_through(shares, level))
		return;
	va_start(args, format);
	write_line(level, format, args);
	va_end(args);
}
