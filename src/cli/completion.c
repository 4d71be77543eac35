/* wattle --completion: a script for bash, zsh or fish, of a part that is the same for each program and lies in shell/, and tables
 * of commands, options and what their words are, from which that part works. */
#include "cli/completion.h"

#include "base/env.h"
#include "base/util.h"
#include "cap/lease.h"
#include "cli/completion_shells.h"

#include <string.h>

static const struct {
	const char *name;
	void (*print)(const struct command *const *commands, size_t n, struct buf *out);
} shells[] = {
	{"bash", completion_bash},
	{"zsh", completion_zsh},
	{"fish", completion_fish},
};

bool completion_print(const char *shell, const struct command *const *commands, size_t n, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++)
		if (strcmp(shells[i].name, shell) == 0) {
			shells[i].print(commands, n, out);
			return true;
		}
	return false;
}

void completion_list(const char *what, struct buf *out)
{
	struct wattle_env env;
	struct cap_devices devices;
	if (strcmp(what, "devices") != 0 || env_open(&env, NULL) < 0)
		return;
	const char *before = "";
	bool is_open = cap_devices_open(&devices, &env, NULL) == 0;
	for (size_t i = 0; is_open && i < devices.n; i++) { // power and clocks of one stand side by side
		if (strcmp(devices.devices[i].name, before) != 0)
			buf_printf(out, "%s\n", devices.devices[i].name);
		before = devices.devices[i].name;
	}
	if (is_open)
		cap_devices_close(&devices);
	env_close(&env);
}
