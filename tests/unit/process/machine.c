#include "process/machine.h"

#include "base/util.h"
#include "rows.h"

static const struct stat_row {
	const char *teaches, *text;
	int64_t busy_ns, idle_ns;
} stat_rows[] = {
	{"busy is user+nice+system+irq+softirq+steal, idle is idle+iowait; user includes guest",
		"cpu  100 10 50 1000 200 3 4 5 60 7\ncpu0 1 2 3\n", 1720000000, 12000000000},
	{"old kernels: columns end at iowait", "cpu  1 2 3 4 5\n", 60000000, 90000000},
	{"four columns: the minimum", "cpu  1 2 3 4", 60000000, 40000000},
	{"three columns: unknown", "cpu  1 2 3\n", VALUE_MISSING, VALUE_MISSING},
	{"empty stat file: unknown, not 0", "", VALUE_MISSING, VALUE_MISSING},
	{"other first line: unknown", "cpu0 1 2 3 4 5\n", VALUE_MISSING, VALUE_MISSING},
	{"number beyond 64 bits: unknown", "cpu  99999999999999999999 1 1 1\n", VALUE_MISSING, VALUE_MISSING},
};

static void check_stat(void **state)
{
	const struct stat_row *row = *state;
	struct machine_reading reading;
	machine_parse_stat(row->text, 10000000, &reading);
	assert_true(reading.cpu_busy_ns == row->busy_ns);
	assert_true(reading.cpu_idle_ns == row->idle_ns);
}

static const struct memory_row {
	const char *teaches, *text;
	int64_t total_bytes, used_bytes;
} memory_rows[] = {
	{"used is total minus available; kB means KiB",
		"MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    600 kB\n", 1024000, 409600},
	{"before kernel 3.14: MemFree only", "MemTotal: 1000 kB\nMemFree: 100 kB\n", 1024000, 921600},
	{"no total: used is unknown", "MemAvailable: 600 kB\n", VALUE_MISSING, VALUE_MISSING},
	{"garbage: unknown", "MemTotal: lots\nMemAvailable: 1 kB\n", VALUE_MISSING, VALUE_MISSING},
	{"empty meminfo file: unknown", "", VALUE_MISSING, VALUE_MISSING},
};

static void check_memory(void **state)
{
	const struct memory_row *row = *state;
	struct machine_reading reading;
	machine_parse_meminfo(row->text, &reading);
	assert_true(reading.memory_total_bytes == row->total_bytes);
	assert_true(reading.memory_used_bytes == row->used_bytes);
}

int main(void)
{
	struct rows tests = {0};
	ROWS_ADD(&tests, stat_rows, check_stat);
	ROWS_ADD(&tests, memory_rows, check_memory);
	return rows_run(&tests, "machine");
}
