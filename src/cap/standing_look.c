#include "base/util.h"
#include "cap/journal.h"
#include "cap/lease.h"

bool cap_stands(const struct wattle_env *env, const struct cap_device *device, double *ret_before)
{
	struct journal journal;
	struct journal_entry standing;
	char stem[JOURNAL_NAME_SIZE];
	if (journal_open(env, false, &journal, NULL) < 0)
		return false;
	journal_stem(device->id, device->what, stem);
	bool stands = journal_read(&journal, stem, JOURNAL_STANDING, &standing, NULL) == 0 &&
		(standing.set.n > 0 || standing.next.n > 0); // next: whoever set it was killed before it could say so
	journal_close(&journal);
	if (stands)
		*ret_before = cap_value_of(device, &standing.previous);
	return stands;
}
