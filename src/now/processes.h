/* All processes of the machine, followed from look to look: what each used meanwhile, who came and who went.
 *
 * An open /proc/PID/stat belongs to one process for ever (it gives ESRCH when that one is gone), and reading it again costs
 * half of opening it, so they are kept open as far as the limit of open files allows. */
#pragma once

#include "base/buf.h"
#include "base/env.h"
#include "now/now.h"
#include "process/tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process_row { // one process, as long as it lives
	struct now_process now;
	char comm[PROCESS_NAME_SIZE];
	int64_t own_ns, children_ns; // CPU time as of the last look
	/* CPU time since the look before: its own, and that of children which it waited for meanwhile and no look has counted.
	 * VALUE_MISSING: not known. */
	int64_t used_ns, late_ns; // late_ns: the children's part of it
	int64_t counted_ns;       // of children that ended meanwhile: what earlier looks have counted of them
	int stat_fd;              // owned; -1: opened at each look
	bool is_new, words_known;
	double added_j[NOW_RESOURCES]; // attributed since the look before
	uint32_t group[NOW_GROUPINGS]; // where it belongs: index + 1 in the group table; 0: nowhere, or not known
	uint32_t asked;                // looks at which that could be asked
};

struct process_table {
	const struct wattle_env *env; // borrowed
	struct process_units units;
	int folder_fd; // owned, once it is_open: /proc itself
	bool is_open, keeps_files;
	enum now_arguments arguments;
	pid_t own_pid, target_pid; // as /proc numbers them; 0: not there
	bool target_is_gone;
	struct process_row *rows; // owned; ascending by pid; in the last look
	size_t n, room;
	struct process_row *old; // owned: those of the look before, while a look is taken
	size_t n_old, old_room;
	struct process_row *gone; // owned: those that ended since the look before
	size_t n_gone, gone_room;
	size_t n_files, most_files;
	const struct now_kept_process *kept; // borrowed during the first look
	size_t n_kept;
	int64_t last_t_ns; // of the look before; VALUE_MISSING: this is the first one
	int64_t threads, own_sum_ns;
	char *text;       // owned scratch
	struct buf shown; // … of one process: its words as they are shown
};

// -ENOENT: options->pid is no process, with a sentence; -ENOMEM. *table is to be closed in every case.
int process_table_open(struct process_table *table, const struct now_options *options, struct wattle_error *reterr);
void process_table_close(struct process_table *table);
/* One look. busy_ns: CPU time of the whole machine since the look before, which the processes together can't exceed;
 * VALUE_MISSING unknown. Never fails: with no memory for more rows those that came last are left out. */
void process_table_look(struct process_table *table, int64_t t_ns, int64_t busy_ns);
struct process_row *process_table_find(const struct process_table *table, pid_t pid); // NULL: not there

/* ---- between the files of it ---- */

struct process_row *process_rows_find(struct process_row *rows, size_t n, pid_t pid); // ascending ones; NULL: not there
// process_kin.c: adds to used_ns what children used that ended meanwhile; marks who came to the target's tree.
void process_kin_count(struct process_table *table, int64_t busy_ns);
void process_kin_mark_target(struct process_table *table);
// process_words.c: fills command and uid from /proc/PID/cmdline and status.
void process_words_read(struct process_table *table, const char *comm, struct now_process *process);
// Pure half: the words of a command line, a NUL after each, as one line. False if there are none (a kernel thread, a zombie).
bool process_words_join(const char *words, size_t size, char *out, size_t out_size);
