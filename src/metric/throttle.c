#include "metric/metric.h"

#include <stdio.h>

const struct throttle_reason throttle_reasons[THROTTLE_REASONS] = {
	{0x4, "sw_power_cap", "power limit"},
	{0x8, "hw_slowdown", "hardware slowdown"},
	{0x10, "sync_boost", "waits for other GPUs"},
	{0x20, "sw_thermal_slowdown", "thermal slowdown"},
	{0x40, "hw_thermal_slowdown", "thermal slowdown by hardware"},
	{0x80, "hw_power_brake", "power brake"},
};

// Reasons that cost no performance: an idle GPU, clocks that the user requested, display requirements.
static const int64_t harmless_bits = 0x1 | 0x2 | 0x100;

int64_t throttle_held_back(int64_t bits)
{
	return value_ok(bits) ? bits & ~harmless_bits : 0;
}

void throttle_phrase(int64_t bits, char words[THROTTLE_PHRASE_SIZE])
{
	size_t n = 0;
	words[0] = '\0';
	bits = throttle_held_back(bits);
	for (size_t i = 0; i < THROTTLE_REASONS; i++)
		if ((bits & throttle_reasons[i].bit) != 0)
			n += (size_t)snprintf(words + n, THROTTLE_PHRASE_SIZE - n, "%s%s", n > 0 ? ", " : "",
				throttle_reasons[i].words);
	if (bits != 0 && n == 0) // from a later driver
		snprintf(words, THROTTLE_PHRASE_SIZE, "other reasons");
}
