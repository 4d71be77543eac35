#include "process/machine.h"

#include "base/cleanup.h"
#include "base/util.h"

#include <string.h>

void machine_open(struct machine *machine, const struct wattle_env *env)
{
	machine->units = process_units_get();
	file_kept_open(&machine->stat, env->procfs_fd, "stat");
	file_kept_open(&machine->meminfo, env->procfs_fd, "meminfo");
}

void machine_close(struct machine *machine)
{
	file_kept_close(&machine->stat);
	file_kept_close(&machine->meminfo);
}

static const char *read_number(const char *at, int64_t *ret_value)
{
	while (*at == ' ')
		at++;
	if (*at < '0' || *at > '9')
		return NULL;
	int64_t value = 0;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *at - '0', &value))
			return NULL;
	*ret_value = value;
	return at;
}

void machine_parse_stat(const char *text, int64_t tick_ns, struct machine_reading *reading)
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };
	int64_t ticks[COLUMNS] = {0};
	reading->cpu_busy_ns = reading->cpu_idle_ns = VALUE_MISSING;
	if (strncmp(text, "cpu ", 4) != 0)
		return;
	const char *at = text + 4;
	for (int i = 0; i < COLUMNS; i++) {
		at = read_number(at, &ticks[i]);
		if (at == NULL && i <= IDLE)
			return;
		if (at == NULL) // old kernels have fewer columns
			break;
	}
	int64_t busy = ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[IRQ] + ticks[SOFTIRQ] + ticks[STEAL];
	reading->cpu_busy_ns = busy * tick_ns;
	reading->cpu_idle_ns = (ticks[IDLE] + ticks[IOWAIT]) * tick_ns;
}

static int64_t meminfo_bytes(const char *text, const char *key)
{
	const char *line = strstr(text, key);
	int64_t kilobytes;
	if (line == NULL || read_number(line + strlen(key), &kilobytes) == NULL)
		return VALUE_MISSING;
	return kilobytes * 1024; // "kB" in the file means KiB
}

void machine_parse_meminfo(const char *text, struct machine_reading *reading)
{
	reading->memory_total_bytes = meminfo_bytes(text, "MemTotal:");
	int64_t available = meminfo_bytes(text, "MemAvailable:");
	if (!value_ok(available)) // missing before Linux 3.14
		available = meminfo_bytes(text, "MemFree:");
	bool known = value_ok(reading->memory_total_bytes) && value_ok(available);
	reading->memory_used_bytes = known ? reading->memory_total_bytes - available : VALUE_MISSING;
}

void machine_read(struct machine *machine, struct machine_reading *ret_reading)
{
	*ret_reading = (struct machine_reading){VALUE_MISSING, VALUE_MISSING, VALUE_MISSING, VALUE_MISSING};
	char text[1024]; // the sums come first in both files
	if (file_kept_read(&machine->stat, text, sizeof(text)) > 0)
		machine_parse_stat(text, machine->units.tick_ns, ret_reading);
	if (file_kept_read(&machine->meminfo, text, sizeof(text)) > 0)
		machine_parse_meminfo(text, ret_reading);
}

int64_t machine_cores(const struct wattle_env *env)
{
	wattle_cleanup_free char *text = NULL;
	size_t size;
	if (file_read_all_in(env->procfs_fd, "stat", 1 << 24, &text, &size) < 0)
		return VALUE_MISSING;
	int64_t cores = 0;
	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		cores += strncmp(line, "cpu", 3) == 0 && line[3] >= '0' && line[3] <= '9';
	}
	return cores > 0 ? cores : VALUE_MISSING;
}
