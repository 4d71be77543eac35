/* Registers that are files of /sys: decimal numbers, one a file. */
#pragma once

#include "cap/ops.h"

struct cap_files {
	struct {
		char name[CAP_FIELD_NAME_SIZE]; // of the register
		char path[200];                 // relative to /sys
	} files[CAP_FIELDS_MAX];
	size_t n;
};

/* Adds folder/file as a register called prefix + file, if it holds a number. Its number in `files`; -1: it does not, or
 * there is no room. */
int cap_files_add(struct cap_files *files, const struct wattle_env *env, const char *folder, const char *file,
	const char *prefix);
// The value of register i in a setting; VALUE_MISSING: it is not in there, or i is negative.
int64_t cap_files_value(const struct cap_files *files, int i, const struct cap_setting *setting);

int cap_files_read(const struct cap_files *files, const struct wattle_env *env, const struct cap_device *device,
	struct cap_setting *ret_setting, struct wattle_error *reterr);
int cap_files_write(const struct cap_files *files, const struct wattle_env *env, const struct cap_device *device,
	const struct cap_setting *setting, struct wattle_error *reterr);
// Fills settable, why and remedy, from whether this process may write them all.
void cap_files_ask_permission(const struct cap_files *files, const struct wattle_env *env, struct cap_device *device);
