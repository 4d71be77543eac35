#include "monitor/internal.h"

#include "base/util.h"

#include <errno.h>

int now_history_open(struct now_history *history, size_t room)
{
	*history = (struct now_history){.room = room < NOW_HISTORY ? room : NOW_HISTORY};
	if (history->room == 0)
		return 0;
	history->values = calloc_array(history->room, sizeof(*history->values));
	return history->values != NULL ? 0 : -ENOMEM;
}

void now_history_close(struct now_history *history)
{
	free(history->values);
	*history = (struct now_history){0};
}

void now_history_add(struct now_history *history, double value)
{
	if (history->values == NULL)
		return;
	history->values[history->next] = value;
	history->next = (history->next + 1) % history->room;
	history->n += history->n < history->room;
}

double now_history_at(const struct now_history *history, size_t ago)
{
	if (ago >= history->n)
		return (double)NAN;
	return history->values[(history->next + history->room - 1 - ago) % history->room];
}
