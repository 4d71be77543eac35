/* The recorder's environment. The recorder runs outside of the job's limits, so variables of the job must not choose code that it loads
 * (LD_PRELOAD, WATTLE_NVML, GCONV_PATH …). Only listed variables pass: facts of the job (rank, visible GPUs, locale, paths of files, a
 * store), and the site's paths of the machine. None of them names a library. */
#pragma once

/* job: the environment of the task; site: of slurmd. Both and the result are NULL-terminated. The strings are borrowed; the list is
 * malloc'ed and has VISIBLE_ROOM. Returns NULL if out of memory. */
char **recorder_environment(char **job, char **site);
