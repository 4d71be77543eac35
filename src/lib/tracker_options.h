/* The options of a tracker: checked, copied, and made into the recorder's command line. */
#pragma once

#include "wattle.h"

#include <stdbool.h>

// Deep copy; members that `options` is too old for, or all of them (NULL), have their defaults. -EINVAL, -ENOMEM.
int tracker_options_copy(const struct wattle_tracker_options *options, struct wattle_tracker_options *ret_copy);
void tracker_options_finish(struct wattle_tracker_options *copy);

// Of GPUs, as meters take them too.
bool tracker_option_is_brand(const char *text);

struct tracker_command {
	char **words; // owned, NULL-terminated
	size_t n, capacity;
	int failed; // 0 or -ENOMEM; sticky
};

/* `wattle attach` for these options: run file `output`, process `pid`, its end of the line at descriptor control_fd.
 * 0 or -ENOMEM; to be released with tracker_command_finish either way. */
int tracker_command_make(struct tracker_command *command, const struct wattle_tracker_options *options,
	const char *output, int64_t pid, int control_fd);
void tracker_command_finish(struct tracker_command *command);
