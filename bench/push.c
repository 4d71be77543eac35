/* Cost of reading rows from a run file and storing them exactly once: `wattle push` without its report compared with a plain libpq COPY of
 * the same rows, encoded in memory, one COPY for each table, one transaction. Into the same tables, which are emptied in between.
 *
 *	push FILE URL ROUNDS		prints: rows, minimum seconds of the plain COPY, of the push, its CPU seconds */
#include "store/postgres/pq.h"
#include "store/postgres/send.h"
#include "store/postgres/tables.h"

#include "base/util.h"

#include <stdio.h>
#include <time.h>

static const char clear[] = "TRUNCATE sample, device_sample, process_sample, span, user_metric, event, sent";

struct bytes {
	unsigned char *data;
	size_t size;
};

struct plain { // all rows of a file, a buffer for each table
	struct bytes tables[LAYOUT_TABLES];
	const char *sql[LAYOUT_TABLES];
	struct source source;
	int64_t rows;
};

static double seconds(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void check(int r, const struct wattle_error *error)
{
	if (r >= 0)
		return;
	fprintf(stderr, "push: %s\n", error->text);
	exit(1);
}

// The rows of one batch without the format's header and trailer.
static void append(struct bytes *all, const struct copy *rows, size_t skip)
{
	const size_t end = 2;
	if (rows->n_rows == 0)
		return;
	size_t size = rows->size - skip - end;
	all->data = realloc(all->data, all->size + size + end);
	if (all->data == NULL)
		exit(1);
	memcpy(all->data + all->size, rows->bytes + skip, size);
	all->size += size;
	memset(all->data + all->size, 0xff, end);
}

static void read_all(struct plain *plain, const char *path, struct pg *pg, struct wattle_error *error)
{
	struct layout_server *servers = calloc(LAYOUT_TABLES, sizeof(*servers));
	struct source_marks marks = {0};
	for (enum layout_table i = 0; i < LAYOUT_TABLES; i++) {
		marks.tables[i].mark = VALUE_MISSING;
		check(layout_query(pg, i, &servers[i], error), error);
	}
	source_init(&plain->source, path);
	check(source_open(&plain->source, false, error), error);
	check(source_lay_out(&plain->source, servers, error), error);
	do {
		int64_t n = source_read(&plain->source, &marks, error);
		check((int)n, error);
		plain->rows += n;
		for (size_t i = 0; i < LAYOUT_TABLES; i++) {
			const struct copy *rows = &plain->source.tables[i].rows;
			append(&plain->tables[i], rows, plain->tables[i].size > 0 ? rows->header_size : 0);
			plain->sql[i] = plain->source.tables[i].copy_sql.data;
		}
		check(source_marks_copy(&plain->source.next, &marks), error);
	} while (plain->source.is_more);
	source_close(&plain->source);
	source_marks_finish(&marks);
	free(servers);
}

static double copy_plain(const struct plain *plain, struct pg *pg, struct wattle_error *error)
{
	double begin = seconds(CLOCK_MONOTONIC);
	check(pg_exec(pg, "BEGIN; SET LOCAL synchronous_commit = off", error), error);
	for (size_t i = 0; i < LAYOUT_TABLES; i++) {
		if (plain->tables[i].size == 0)
			continue;
		check(pg_copy_begin(pg, plain->sql[i], error), error);
		for (size_t at = 0; at < plain->tables[i].size; at += 65536) {
			size_t rest = plain->tables[i].size + 2 - at;
			check(pg_copy_data(pg, plain->tables[i].data + at, rest < 65536 ? rest : 65536, error), error);
		}
		check(pg_copy_end(pg, error), error);
	}
	check(pg_exec(pg, "COMMIT", error), error);
	return seconds(CLOCK_MONOTONIC) - begin;
}

static double push(const char *path, const char *url, struct wattle_error *error)
{
	double begin = seconds(CLOCK_MONOTONIC);
	struct send *send = send_new(path, url);
	int r;
	while ((r = send_batch(send, false, error)) == 1)
		continue;
	check(r, error);
	send_free(send);
	return seconds(CLOCK_MONOTONIC) - begin;
}

int main(int argc, char **argv)
{
	struct wattle_error error = {0};
	struct pg *pg = NULL;
	if (argc != 4)
		return 2;
	double min_plain = INFINITY, min_push = INFINITY, min_cpu = INFINITY;
	check(pg_open(argv[2], &pg, &error), &error);
	push(argv[1], argv[2], &error); // the store and its days exist
	struct plain plain = {0};
	read_all(&plain, argv[1], pg, &error);
	for (int i = 0; i < atoi(argv[3]); i++) {
		check(pg_exec(pg, clear, &error), &error);
		min_plain = fmin(min_plain, copy_plain(&plain, pg, &error));
		check(pg_exec(pg, clear, &error), &error);
		double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
		min_push = fmin(min_push, push(argv[1], argv[2], &error));
		min_cpu = fmin(min_cpu, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	}
	printf("%lld %.4f %.4f %.4f\n", (long long)plain.rows, min_plain, min_push, min_cpu);
	pg_close(pg);
	return 0;
}
