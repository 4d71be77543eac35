#include "process/memory.h"

#include "base/util.h"
#include "rows.h"

#include <stdio.h>
#include <string.h>

#define KB(n) ((n)*INT64_C(1024))
#define MAPPING(range, path) range " r-xp 00000000 fe:00 12 " path "\n"
#define FIELDS(pss, clean, dirty, private_dirty)                                                                       \
	"Rss: 99 kB\nPss: " pss " kB\nPss_Dirty: 77 kB\nShared_Clean: " clean " kB\nShared_Dirty: " dirty              \
	" kB\nPrivate_Clean: 1 kB\nPrivate_Dirty: " private_dirty " kB\nVmFlags: rd ex mr\n"

/* Up to three processes; the first is the root. */
static const struct row {
	const char *teaches;
	const char *files[3];
	int64_t main_pss_kb, main_private_kb, main_shared_kb, descendants_shared_kb, combined_shared_kb;
} rows[] = {
	{"two files of one process: private is added, shared is per path",
		{MAPPING("00400000-00401000", "/a") FIELDS("10", "4", "2", "3") MAPPING("00500000-00501000", "/b")
				FIELDS("20", "5", "0", "6")},
		30, 11, 11, 0, 11},
	{"several mappings of one path in a process: added",
		{MAPPING("00400000-00401000", "/a") FIELDS("1", "4", "0", "0") MAPPING("00500000-00501000", "/a")
				FIELDS("1", "9", "0", "0")},
		2, 2, 13, 0, 13},
	{"all anonymous mappings: one path",
		{MAPPING("7f00-7f10", "") FIELDS("1", "3", "0", "0") MAPPING("7f20-7f30", "")
				FIELDS("1", "2", "0", "0")},
		2, 2, 5, 0, 5},
	{"path shared by root and child: counted once, as the larger of the two",
		{MAPPING("1000-2000", "/lib x.so") FIELDS("1", "8", "0", "0"),
			MAPPING("1000-2000", "/lib x.so") FIELDS("1", "12", "0", "0"),
			MAPPING("1000-2000", "/other") FIELDS("1", "1", "0", "0")},
		1, 1, 8, 13, 13},
	{"path of several processes: the largest share counts, not the sum",
		{"",
			MAPPING("1000-2000", "") FIELDS("1", "8", "0", "0") MAPPING("3000-4000", "")
				FIELDS("1", "8", "0", "0"),
			MAPPING("1000-4000", "") FIELDS("1", "12", "0", "0")},
		0, 0, 0, 16, 16},
	{"mappings without shared pages: no effect", {MAPPING("1000-2000", "[heap]") FIELDS("5", "0", "0", "5")}, 5, 6,
		0, 0, 0},
	{"empty file: adds nothing", {""}, 0, 0, 0, 0, 0},
};

static void check(void **state)
{
	const struct row *row = *state;
	struct memory_reader reader;
	assert_int_equal(memory_reader_open(&reader, 1, 0), 0);
	struct smaps_state main_state = {.is_main = true};
	for (size_t i = 0; i < 3 && row->files[i] != NULL; i++) {
		struct smaps_state child = {0};
		struct smaps_state *file = i == 0 ? &main_state : &child;
		smaps_feed(&reader, file, row->files[i], strlen(row->files[i]));
		smaps_end(&reader, file);
	}
	struct memory_shared shared = memory_reader_shared(&reader);
	assert_int_equal(main_state.pss_bytes, KB(row->main_pss_kb));
	assert_int_equal(main_state.private_bytes, KB(row->main_private_kb));
	assert_int_equal(shared.main_bytes, KB(row->main_shared_kb));
	assert_int_equal(shared.descendants_bytes, KB(row->descendants_shared_kb));
	assert_int_equal(shared.combined_bytes, KB(row->combined_shared_kb));
	memory_reader_close(&reader);
}

static void rss_of_a_reading(void **state)
{
	(void)state;
	struct memory_reader reader;
	struct smaps_state file = {.is_main = true};
	const char text[] = MAPPING("1000-2000", "/a") "Rss: 30 kB\nPss: 9 kB\nReferenced: 30 kB\nAnonymous: 20 kB\n"
						       "AnonHugePages: 2048 kB\n" MAPPING("3000-4000",
							       "") "Rss: 5 kB\nAnonymous: 5 kB\n";
	assert_int_equal(memory_reader_open(&reader, 1, 0), 0);
	smaps_feed(&reader, &file, text, strlen(text));
	smaps_end(&reader, &file);
	assert_int_equal(file.rss_bytes, KB(35));
	assert_int_equal(file.anonymous_bytes, KB(25));
	memory_reader_close(&reader);
}

static void many_paths(void **state)
{
	struct memory_reader reader;
	assert_int_equal(memory_reader_open(&reader, 1, 0), 0);
	struct smaps_state file = {.is_main = true};
	for (int i = 0; i < 20000; i++) {
		char text[256];
		int n = snprintf(text, sizeof(text), MAPPING("1000-2000", "/lib/%d.so") "Shared_Clean: 1 kB\n", i);
		smaps_feed(&reader, &file, text, (size_t)n);
	}
	smaps_end(&reader, &file);
	assert_int_equal(memory_reader_shared(&reader).main_bytes, KB(20000));
	memory_reader_close(&reader);
}

/* The budget: 0.5 % of the elapsed time, whatever else is requested. */
static const struct due_row {
	const char *teaches;
	double budget_percent;
	int64_t rss_mb; // 10 ms for each GB is expected
	int64_t last_read_ms, now_ms;
	int64_t credit_ms; // at last_read_ms
	int64_t seen_mb;   // largest RSS at a reading so far
	bool expected;
	int64_t before_mb; // RSS at the tick before; 0: the same
} due_rows[] = {
	{"budget 0: never reads", 0, 1, -1, 1000, 10, 0, false},
	{"first reading: always allowed", 1, 1000, -1, 0, 0, 0, true},
	{"1 GB costs 10 ms: after 1 s only 5 ms are available", 1, 1000, 0, 1000, 0, 1000, false},
	{"1 GB costs 10 ms: available after 2.1 s", 1, 1000, 0, 2100, 0, 1000, true},
	{"--budget 0.1: waits ten times longer than at the maximum of 1 %", 0.1, 1000, 0, 5000, 0, 1000, false},
	{"small program, RSS constant: not before a second", 1, 10, 0, 800, 10, 10, false},
	{"small program, RSS constant: read after a second", 1, 10, 0, 1001, 10, 10, true},
	{"new maximum: read sooner", 1, 10, 0, 150, 10, 5, true},
	{"new maximum: not within 100 ms", 1, 10, 0, 50, 10, 5, false},
	{"RSS rises slightly: not read", 1, 10, 0, 150, 10, 9, false, 9},
	{"RSS doubles: read", 1, 10, 0, 150, 10, 4, true, 9},
};

/* A program that grows to 200 MB and then stops growing: its peak is read before it ends, whatever a reading costs. */
static const struct growth_row {
	const char *teaches;
	int64_t grows_ms, lives_ms, ns_per_mb; // expected cost: 10 us
	int64_t first_cost_ns;                 // of the first reading, when there is almost nothing to read
} growth_rows[] = {
	{"200 MB at once: peak is read", 50, 1000, 10000, 100000},
	{"slow growth, read all the way: enough budget left for the peak", 2000, 2600, 10000, 100000},
	{"slow growth, readings four times as expensive: enough budget left for the peak", 900, 2000, 40000, 400000},
	{"first reading delayed by 30 ms: not taken as its cost", 50, 1000, 10000, 30000000},
	{"first reading delayed on a loaded machine: not taken as its cost", 800, 1600, 10000, 5000000},
};

static void check_growth(void **state)
{
	const struct growth_row *row = *state;
	struct memory_reader reader;
	assert_int_equal(memory_reader_open(&reader, 1, 0), 0);
	int64_t largest_mb = 0;
	for (int64_t t_ms = 0; t_ms < row->lives_ms; t_ms += 100) {
		int64_t rss_mb = t_ms < row->grows_ms ? 2 + 198 * t_ms / row->grows_ms : 200;
		if (!memory_reader_due(&reader, t_ms * NS_PER_MS, rss_mb * 1000000, 1))
			continue;
		int64_t cost_ns = t_ms == 0 ? row->first_cost_ns : 100000 + rss_mb * row->ns_per_mb;
		memory_reader_charge(&reader, cost_ns, t_ms * NS_PER_MS, rss_mb * 1000000, 1);
		largest_mb = rss_mb;
	}
	assert_int_equal(largest_mb, 200);
	memory_reader_close(&reader);
}

/* However wrong the first estimate is, the budget is kept a minute later. */
static void allowance_is_kept(void **state)
{
	(void)state;
	struct memory_reader reader;
	assert_int_equal(memory_reader_open(&reader, 1, 0), 0);
	for (int64_t t_ms = 0; t_ms < 600000; t_ms += 100)
		if (memory_reader_due(&reader, t_ms * NS_PER_MS, 100000000, 1))
			memory_reader_charge(&reader, 100 * NS_PER_MS, t_ms * NS_PER_MS, 100000000, 1);
	assert_true(reader.n_readings >= 10);
	assert_true((double)reader.spent_ns < 0.005 * 600e9 * 1.15);
	memory_reader_close(&reader);
}

/* A tree of processes: when a sample of their pages is due. MB; 1 ms for each process. */
static const struct sample_row {
	const char *teaches;
	double budget_percent;
	int64_t processes, rss_mb, changed_mb, changed_before_mb;
	int64_t credit_ms, since_ms,
		wait_ms; // of the budget; since the last sample (-1: none), and how long it should wait
	bool expected;
} sample_rows[] = {
	{"new children: most memory is unknown, sampled", 1, 9, 4500, 4000, 0, 10, -1, 0, true},
	{"single process: no shared memory, not sampled", 1, 1, 500, 500, 0, 10, -1, 0, false},
	{"no change: not sampled", 1, 9, 4500, 0, 0, 50, 10000, 90, false},
	{"change below a megabyte: not sampled", 1, 9, 50, 0, 0, 50, 10000, 90, false},
	{"change of a quarter: sampled with the last of the budget", 1, 9, 4000, 1000, 0, 9, 100, 90, true},
	{"change of a tenth, still changing: does not use up the budget", 1, 9, 4000, 400, 0, 9, 100, 90, false},
	{"change of a tenth, then stable: sampled", 1, 9, 4000, 400, 400, 9, 100, 90, true},
	{"change of a tenth, still changing, enough budget for two: sampled", 1, 9, 4000, 400, 0, 18, 100, 90, true},
	{"change of a thousandth: not sampled", 1, 9, 4000, 4, 4, 50, 100, 90, false},
	{"budget used up: not sampled", 1, 9, 4500, 4000, 0, 5, 100, 90, false},
	{"cost above 10 ms: a part is sampled", 1, 64, 4500, 4000, 0, 10, 100, 90, true},
	{"last samples showed no news: waits", 1, 9, 4500, 4000, 0, 50, 300, 720, false},
	{"last samples showed no news, long ago: sampled", 1, 9, 4500, 4000, 0, 50, 730, 720, true},
	{"budget 0: never samples", 0, 9, 4500, 4000, 0, 50, -1, 0, false},
};

static void check_sample(void **state)
{
	const struct sample_row *row = *state;
	struct memory_reader reader;
	int64_t t_ns = 100 * NS_PER_S;
	assert_int_equal(memory_reader_open(&reader, row->budget_percent, t_ns), 0);
	reader.all_credit_ns = row->credit_ms * NS_PER_MS;
	reader.sample_ns_per_process = NS_PER_MS;
	reader.sample_t_ns = row->since_ms >= 0 ? t_ns - row->since_ms * NS_PER_MS : VALUE_MISSING;
	reader.sample_wait_ns = row->wait_ms * NS_PER_MS;
	reader.sample_processes = row->processes;
	const struct memory_estimate estimate = {
		.processes = row->processes,
		.rss_bytes = row->rss_mb * 1000000,
		.changed_bytes = row->changed_mb * 1000000,
		.last_changed_bytes = row->changed_before_mb * 1000000,
	};
	assert_int_equal(memory_sample_due(&reader, &estimate, t_ns), row->expected);
	memory_reader_close(&reader);
}

static void check_due(void **state)
{
	const struct due_row *row = *state;
	struct memory_reader reader;
	int64_t start_ns = row->last_read_ms < 0 ? 0 : row->last_read_ms * NS_PER_MS;
	assert_int_equal(memory_reader_open(&reader, row->budget_percent, start_ns), 0);
	reader.credit_ns = row->credit_ms * NS_PER_MS;
	reader.max_rss_bytes = row->seen_mb * 1000000;
	reader.last_rss_bytes = (row->before_mb != 0 ? row->before_mb : row->rss_mb) * 1000000;
	if (row->last_read_ms >= 0)
		reader.last_read_t_ns = start_ns;
	assert_int_equal(memory_reader_due(&reader, row->now_ms * NS_PER_MS, row->rss_mb * 1000000, 1), row->expected);
	memory_reader_close(&reader);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, rows, check);
	ROWS_ADD_ONE(&tests, "thousands of paths: the table grows and loses none", many_paths);
	ROWS_ADD_ONE(&tests, "resident and anonymous pages come from one reading", rss_of_a_reading);
	ROWS_ADD(&tests, due_rows, check_due);
	ROWS_ADD(&tests, sample_rows, check_sample);
	ROWS_ADD(&tests, growth_rows, check_growth);
	ROWS_ADD_ONE(&tests, "readings a hundred times as expensive as estimated: still 0.5 % of the time",
		allowance_is_kept);
	return rows_run(&tests, "memory");
}
