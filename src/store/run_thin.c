/* Selects the samples of a run file to read when not all are wanted. The samples are found by their times, which are the keys
 * of the tables: for one hour at 10 Hz, reading one sample per second takes a third of the time of reading all. */
#include "store/run_read.h"

#include <errno.h>

struct thinning {
	struct run_reader *reader;
	struct run_range *ranges; // owned
	size_t n, capacity;
	sqlite3_stmt *next, *last; // first sample at or after a time; last sample before it
};

static int64_t ask(sqlite3_stmt *s, int64_t t_ns)
{
	sqlite3_reset(s);
	sqlite3_bind_int64(s, 1, t_ns);
	return sqlite3_step(s) == SQLITE_ROW ? sql_i64(s, 0) : VALUE_MISSING;
}

static int add(struct thinning *thin, int64_t from_ns, int64_t to_ns)
{
	struct run_range *larger = array_reserve(thin->ranges, thin->n, &thin->capacity, sizeof(*larger), 256);
	if (larger == NULL)
		return SQLITE_NOMEM;
	thin->ranges = larger;
	thin->ranges[thin->n++] = (struct run_range){from_ns, to_ns};
	return 0;
}

static int add_sample(struct thinning *thin, int64_t t_ns)
{
	return value_ok(t_ns) ? add(thin, t_ns, t_ns) : 0;
}

/* For a segment: the first sample of each period of every_ns, and all samples from the last one on, because devices are read
 * once or twice more after the end of the run. */
static int add_segment(struct thinning *thin, int64_t start_ns, int64_t limit_ns, int64_t every_ns)
{
	int r = 0;
	int64_t t_ns = ask(thin->next, start_ns);
	for (; r == 0 && value_ok(t_ns) && t_ns < limit_ns; t_ns = ask(thin->next, t_ns - (t_ns % every_ns) + every_ns))
		r = add_sample(thin, t_ns);
	int64_t last_ns = ask(thin->last, limit_ns);
	return r == 0 && value_ok(last_ns) && last_ns >= start_ns ? add(thin, last_ns, limit_ns - 1) : r;
}

/* At a counter reset, a gap, a suspend or a change of the sensor's reader, the samples on both sides are selected: nothing is
 * known between these readings. */
static int add_event(struct thinning *thin, int64_t t_ns)
{
	int64_t first_ns = ask(thin->next, t_ns);
	int r = add_sample(thin, ask(thin->last, t_ns));
	if (r == 0)
		r = add_sample(thin, first_ns);
	return r == 0 && value_ok(first_ns) && first_ns < INT64_MAX ? add_sample(thin, ask(thin->next, first_ns + 1))
								    : r;
}

static int each_row(struct thinning *thin, const char *sql, int (*take)(struct thinning *, sqlite3_stmt *, int64_t),
	int64_t value)
{
	sqlite3_stmt *s = NULL;
	int r = sqlite3_prepare_v2(thin->reader->db, sql, -1, &s, NULL);
	int step = SQLITE_DONE;
	while (r == 0 && (step = sqlite3_step(s)) == SQLITE_ROW)
		r = take(thin, s, value);
	sqlite3_finalize(s);
	return r == 0 && step != SQLITE_DONE ? step : r;
}

static int take_segment(struct thinning *thin, sqlite3_stmt *s, int64_t every_ns)
{
	int64_t limit_ns = sql_i64(s, 1);
	return add_segment(thin, sql_i64(s, 0), value_ok(limit_ns) ? limit_ns : INT64_MAX, every_ns);
}

static int take_event(struct thinning *thin, sqlite3_stmt *s, int64_t unused)
{
	(void)unused;
	return add_event(thin, sql_i64(s, 0));
}

static int by_time(const void *left, const void *right)
{
	const struct run_range *a = left, *b = right;
	return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

// Sorts and merges the ranges, so that each sample is in one range only.
static void join(struct thinning *thin)
{
	size_t n = 0;
	if (thin->n > 0)
		qsort(thin->ranges, thin->n, sizeof(*thin->ranges), by_time);
	for (size_t i = 0; i < thin->n; i++) {
		struct run_range *before = n > 0 ? &thin->ranges[n - 1] : NULL;
		if (before == NULL || thin->ranges[i].from_ns > before->to_ns)
			thin->ranges[n++] = thin->ranges[i];
		else if (thin->ranges[i].to_ns > before->to_ns)
			before->to_ns = thin->ranges[i].to_ns;
	}
	thin->n = n;
}

// The limit protects against damaged files with very many events.
#define EVENTS "SELECT t_ns FROM event WHERE kind IN ('reset', 'gap', 'suspend', 'sensors') LIMIT 10000"
#define SEGMENTS "SELECT start_ns, (SELECT min(l.start_ns) FROM segment l WHERE l.id > s.id) FROM segment s ORDER BY id"

static int find(struct thinning *thin, int64_t every_ns)
{
	sqlite3 *db = thin->reader->db;
	int r = sqlite3_prepare_v2(db, "SELECT min(t_ns) FROM sample WHERE t_ns >= ?1", -1, &thin->next, NULL);
	if (r == 0)
		r = sqlite3_prepare_v2(db, "SELECT max(t_ns) FROM sample WHERE t_ns < ?1", -1, &thin->last, NULL);
	if (r == 0)
		r = each_row(thin, SEGMENTS, take_segment, every_ns);
	return r == 0 ? each_row(thin, EVENTS, take_event, 0) : r;
}

int run_thin(struct run_reader *reader, int64_t every_ns)
{
	struct thinning thin = {.reader = reader};
	int r = find(&thin, every_ns);
	sqlite3_finalize(thin.next);
	sqlite3_finalize(thin.last);
	join(&thin);
	struct run_range *ranges = r == 0 ? arena_alloc(reader->arena, thin.n, sizeof(*ranges)) : NULL;
	if (r == 0 && ranges == NULL)
		r = SQLITE_NOMEM;
	if (r == 0 && thin.n > 0)
		memcpy(ranges, thin.ranges, thin.n * sizeof(*ranges));
	free(thin.ranges);
	if (r == 0) {
		reader->ranges = ranges;
		reader->n_ranges = thin.n;
	}
	return r;
}
