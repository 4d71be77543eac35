#include "process/tree.h"

#include "base/util.h"

#include <errno.h>
#include <unistd.h>

struct process_units process_units_get(void)
{
	long ticks_per_s = sysconf(_SC_CLK_TCK);
	long page = sysconf(_SC_PAGESIZE);
	return (struct process_units){
		.tick_ns = NS_PER_S / (ticks_per_s > 0 ? ticks_per_s : 100),
		.page_bytes = page > 0 ? page : 4096,
	};
}

// Fields after the name, counted from the state = 0 (proc(5) counts from the pid = 1).
enum {
	PPID = 1,
	MINFLT = 7,
	CMINFLT,
	MAJFLT,
	CMAJFLT,
	UTIME,
	STIME,
	CUTIME,
	CSTIME,
	THREADS = 17,
	START = 19,
	RSS = 21,
	FIELDS,
	START_STACK = 25
};

uint64_t process_stat_start_stack(const char *text, size_t size)
{
	const char *at = memrchr(text, ')', size), *end = text + size;
	for (int field = -1; at != NULL && field < START_STACK; field++) {
		at = memchr(at, ' ', (size_t)(end - at));
		at = at != NULL ? at + 1 : NULL;
	}
	uint64_t address = 0;
	for (; at != NULL && at < end && *at >= '0' && *at <= '9'; at++)
		address = address * 10 + (uint64_t)(*at - '0');
	return address;
}

int process_stat_parse(const char *text, size_t size, const struct process_units *units, struct process_stat *ret_stat)
{
	const char *open = memchr(text, '(', size);
	const char *close = memrchr(text, ')', size); // last ')': the name itself may contain some
	if (open == NULL || close == NULL || close < open || (size_t)(close - text) + 3 > size)
		return -EINVAL;

	int64_t field[FIELDS] = {0};
	const char *at = close + 2, *end = text + size;
	char state = *at;
	at++;
	for (int i = 1; i < FIELDS; i++) {
		if (at >= end || *at != ' ')
			return -EINVAL;
		at++;
		bool negative = at < end && *at == '-';
		at += negative;
		const char *digits = at;
		uint64_t value = 0; // overflows only for numbers above 64 bits, which the kernel does not write
		for (; at < end && *at >= '0' && *at <= '9'; at++)
			value = value * 10 + (uint64_t)(*at - '0');
		if (at == digits)
			return -EINVAL;
		field[i] = (int64_t)(negative ? 0 - value : value);
	}

	*ret_stat = (struct process_stat){
		.state = state,
		.ppid = (pid_t)field[PPID],
		.own_ns = (field[UTIME] + field[STIME]) * units->tick_ns,
		.children_ns = (field[CUTIME] + field[CSTIME]) * units->tick_ns,
		.minor_faults = field[MINFLT],
		.major_faults = field[MAJFLT],
		.children_minor_faults = field[CMINFLT],
		.children_major_faults = field[CMAJFLT],
		.threads = field[THREADS],
		.start_ticks = (uint64_t)field[START],
		.rss_bytes = field[RSS] * units->page_bytes,
	};
	size_t length = (size_t)(close - open - 1);
	length = length < PROCESS_NAME_SIZE ? length : PROCESS_NAME_SIZE - 1;
	memcpy(ret_stat->name, open + 1, length);
	ret_stat->name[length] = '\0';
	return 0;
}
