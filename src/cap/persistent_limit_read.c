#include "base/util.h"
#include "cap/journal.h"
#include "cap/lease.h"

static bool find(const struct wattle_env *env, const struct cap_device *device, struct journal_entry *ret_persistent)
{
	struct journal journal;
	char stem[JOURNAL_NAME_SIZE];
	if (journal_open(env, false, &journal, NULL) < 0)
		return false;
	journal_stem(device->id, device->what, stem);
	bool found = journal_read(&journal, stem, JOURNAL_PERSISTENT, ret_persistent, NULL) == 0;
	journal_close(&journal);
	// next: the process was killed before it could journal `set`.
	return found && (ret_persistent->set.n > 0 || ret_persistent->next.n > 0);
}

bool cap_has_persistent(const struct wattle_env *env, const struct cap_device *device, double *ret_before,
	struct cap_owner *ret_owner)
{
	struct journal_entry persistent;
	if (!find(env, device, &persistent))
		return false;
	*ret_owner = persistent.owner;
	*ret_before = cap_value_of(device, &persistent.previous);
	return true;
}

bool cap_persistent_is_current(const struct wattle_env *env, const struct cap_device *device, double *ret_before)
{
	struct journal_entry persistent;
	if (!find(env, device, &persistent))
		return false;
	// False if either value is unknown, and so if the limit can't be read.
	bool is_other = fabs(device->current - cap_value_of(device, &persistent.set)) > 0.0005;
	if (is_other && persistent.next.n == 0 && device->lease[0] == '\0')
		return false;
	*ret_before = cap_value_of(device, &persistent.previous);
	return true;
}
