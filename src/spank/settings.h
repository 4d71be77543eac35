/* What is to be measured of a job step and how: what the site wrote behind the plugin's name in plugstack.conf, and above that
 * what a user said to srun, sbatch or salloc. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SETTING_SIZE = 1024 };

struct settings {
	bool wanted;                   // this step is measured
	bool comment;                  // the energy goes into the job's comment
	char interval[32];             // of samples, as wattle takes it
	char folder[SETTING_SIZE];     // of the run files; %j is the job's id; relative to the step's working folder
	char program[SETTING_SIZE];    // wattle itself
	char scontrol[SETTING_SIZE];   // a path, or a name to be found in PATH
	char site_words[SETTING_SIZE]; // further options of `wattle attach`, blanks between them …
	char user_words[SETTING_SIZE]; // … and the user's, which come later and win
	int64_t ready_ns, wait_ns;     // the longest that a task waits for its recorder, and its node for their ends
};

void settings_init(struct settings *settings, const char *program);
// One argument of plugstack.conf: KEY=VALUE. -EINVAL with a sentence; *settings is untouched then.
int settings_take_site(struct settings *settings, const char *argument, struct wattle_error *reterr);

enum settings_option { SETTINGS_INTERVAL, SETTINGS_FOLDER, SETTINGS_WORDS };
/* One option of srun. value: NULL, "" or "(null)" if it has none: as the latter, Slurm hands on an option that sbatch was given
 * without a value. -EINVAL with a sentence; *settings is untouched then. */
int settings_take_user(struct settings *settings, enum settings_option option, const char *value,
	struct wattle_error *reterr);

// `pattern` with the job's id for %j; %% is a %. -EINVAL with a sentence: another letter; or too long.
int settings_folder(const struct settings *settings, const char *job_id, char *ret_folder, size_t size,
	struct wattle_error *reterr);
