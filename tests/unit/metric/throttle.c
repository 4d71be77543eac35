// NVML's reasons that hold clocks back, and their names.
#include "metric/metric.h"

#include "rows.h"

#include <string.h>

static const struct row {
	const char *teaches;
	int64_t bits, held_back;
	const char *words;
} table[] = {
	{"unknown", VALUE_MISSING, 0, ""},
	{"no reason", 0, 0, ""},
	{"idle, application clocks, display: not throttling", 0x103, 0, ""},
	{"power limit while idle", 0x5, 0x4, "power limit"},
	{"several", 0x68, 0x68, "hardware slowdown, thermal slowdown, thermal slowdown by hardware"},
	{"reason of a later driver", 0x200, 0x200, "other reasons"},
	{"known reason and one of a later driver", 0x280, 0x280, "power brake"},
	{"all reasons", INT64_MAX, INT64_MAX & ~INT64_C(0x103),
		"power limit, hardware slowdown, waits for other GPUs, thermal slowdown, thermal slowdown by hardware, "
		"power brake"},
};

static void check(void **state)
{
	const struct row *row = *state;
	char words[THROTTLE_PHRASE_SIZE];
	memset(words, 'x', sizeof(words));
	throttle_phrase(row->bits, words);
	assert_string_equal(words, row->words);
	assert_true(throttle_held_back(row->bits) == row->held_back);
}

int main(void)
{
	struct rows rows = {0};
	ROWS_ADD(&rows, table, check);
	return rows_run(&rows, "reasons for throttling");
}
