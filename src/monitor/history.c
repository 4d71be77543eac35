#include "monitor/internal.h"

#include "base/util.h"

#include <errno.h>

int monitor_history_open(struct monitor_history *history, size_t capacity)
{
	*history = (struct monitor_history){.capacity = capacity < MONITOR_HISTORY ? capacity : MONITOR_HISTORY};
	if (history->capacity == 0)
		return 0;
	history->values = calloc_array(history->capacity, sizeof(*history->values));
	return history->values != NULL ? 0 : -ENOMEM;
}

void monitor_history_close(struct monitor_history *history)
{
	free(history->values);
	*history = (struct monitor_history){0};
}

void monitor_history_add(struct monitor_history *history, double value)
{
	if (history->values == NULL)
		return;
	history->values[history->next] = value;
	history->next = (history->next + 1) % history->capacity;
	history->n += history->n < history->capacity;
}

double monitor_history_at(const struct monitor_history *history, size_t ago)
{
	if (ago >= history->n)
		return (double)NAN;
	return history->values[(history->next + history->capacity - 1 - ago) % history->capacity];
}
