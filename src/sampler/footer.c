/* The sums at the end of a run. */
#include "sampler/recorder.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/util.h"
#include "process/cgroup.h"
#include "process/machine.h"

#include <sys/wait.h>

/* rusage and perf's task-clock differ by some per cent under load. Beyond this the kernel's sum has lost children. */
static const double referee_tolerance = 1.15;
static const int64_t referee_slack_ns = 100 * NS_PER_MS;

// Waited for by the recorder, or by a parent that reported it.
static bool is_waited_for(const struct recorder *recorder)
{
	return recorder->target != NULL || recorder->has_outcome;
}

static const char *cpu_method(const struct recorder *recorder)
{
	if (is_waited_for(recorder))
		return "rusage";
	return value_ok(recorder->tree.cgroup_cpu_ns) ? cgroup_cpu_method(recorder->tree.cgroup) : "proc";
}

static void finish_cpu(struct recorder *recorder, struct store_footer *footer)
{
	tree_cpu(&recorder->tree, &footer->main_cpu_ns, &footer->descendants_cpu_ns);
	footer->cpu_method = cpu_method(recorder);
	footer->referee_cpu_ns = referee_read_ns(recorder->sampler.referee_fd);
	int64_t total_ns = footer->main_cpu_ns + footer->descendants_cpu_ns;
	double limit_ns = (double)total_ns * referee_tolerance + (double)referee_slack_ns;
	if (!value_ok(footer->referee_cpu_ns) || (double)footer->referee_cpu_ns <= limit_ns)
		return;
	footer->cpu_method = "perf task-clock";
	footer->descendants_cpu_ns = footer->referee_cpu_ns - footer->main_cpu_ns;
	struct event event = event_make(EVENT_WARNING_CPU_LOST, recorder->end_ns);
	event.duration_ns = footer->referee_cpu_ns - total_ns;
	sampler_event(&recorder->sampler, &event);
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b; // VALUE_MISSING is smaller than any
}

// ru_maxrss is the largest peak of a process and its children, and starts from the recorder's own at the fork.
static int64_t usage_peak(const struct recorder *recorder, const struct rusage *usage)
{
	int64_t peak = usage->ru_maxrss * 1024;
	return peak > recorder->fork_floor_bytes ? peak : VALUE_MISSING;
}

// The kernel's peak of the cgroup does not belong to this run: it covers the cgroup's whole life and includes the page
// cache.
static void report_cgroup_peak(struct recorder *recorder)
{
	const struct cgroup *cgroup = recorder->tree.cgroup;
	int64_t peak_bytes = cgroup != NULL ? cgroup_memory_peak_bytes(cgroup) : VALUE_MISSING;
	struct event event = event_make(EVENT_NOTE_CGROUP_PEAK, recorder->end_ns);
	event.new_value = peak_bytes;
	if (value_ok(peak_bytes))
		sampler_event(&recorder->sampler, &event);
}

static void finish_peaks(struct recorder *recorder, struct store_footer *footer)
{
	report_cgroup_peak(recorder);
	int64_t main_peak = larger(recorder->sampler.main_peak_rss_bytes, recorder->exits.main_peak_bytes);
	if (recorder->main_ended && recorder->main_childless)
		main_peak = larger(main_peak, usage_peak(recorder, &recorder->main_usage));
	footer->main_peak_rss_bytes = main_peak;
	int64_t any_peak = larger(main_peak, usage_peak(recorder, &recorder->tree.reaped));
	footer->peak_rss_bytes = larger(recorder->sampler.peak_rss_bytes, any_peak);
}

static void add_io(const struct process_io *io, const struct process_io *base, struct store_footer *footer)
{
	footer->read_bytes += io->read_bytes - base->read_bytes;
	footer->written_bytes += io->written_bytes - base->written_bytes;
	footer->voluntary_switches += io->voluntary_switches - base->voluntary_switches;
	footer->involuntary_switches += io->involuntary_switches - base->involuntary_switches;
}

// Living processes have not been waited for yet. False if one of them is unreadable (another user's).
static bool add_running(const struct recorder *recorder, struct store_footer *footer)
{
	const struct tree *tree = &recorder->tree;
	bool io_known = true;
	for (size_t i = 0; i < tree->n_members; i++) {
		const struct tree_member *member = &tree->members[i];
		if (!member->alive || member->is_reaper)
			continue;
		const struct process_stat *stat = &member->stat;
		footer->major_faults += stat->major_faults + stat->children_major_faults - member->base_major_faults;
		footer->minor_faults += stat->minor_faults + stat->children_minor_faults - member->base_minor_faults;
		struct process_io io;
		bool known = process_io_read(tree->procfs_fd, member->pid, &io) == 0; // a zombie is readable too
		if (known)
			add_io(&io, &member->base_io, footer);
		io_known = io_known && known;
	}
	return io_known;
}

static bool root_is_there(const struct tree *tree)
{
	for (size_t i = 0; i < tree->n_members; i++)
		if (tree->members[i].is_main)
			return tree->members[i].alive;
	return false;
}

/* A sum with an unknown part is unknown. A process that ends while attached adds its faults and bytes to a living
 * member that waits for it, but its context switches to no process, and those of the root are not available here. */
static void finish_running(const struct recorder *recorder, struct store_footer *footer)
{
	const struct tree *tree = &recorder->tree;
	bool io_known = add_running(recorder, footer);
	bool attached = !is_waited_for(recorder);
	bool root_is_gone = attached && !root_is_there(tree);
	// Processes of a cgroup are often waited for outside of it.
	bool ended_in_cgroup = tree->cgroup != NULL && (int64_t)tree->n_pids < footer->processes_seen;
	bool left_to_nobody = (attached && tree->orphan_ns > 0) || ended_in_cgroup;
	if (root_is_gone || left_to_nobody)
		footer->major_faults = footer->minor_faults = VALUE_MISSING;
	if (root_is_gone || left_to_nobody || !io_known)
		footer->read_bytes = footer->written_bytes = VALUE_MISSING;
	if (!io_known || (attached && (int64_t)tree->n_pids < footer->processes_seen))
		footer->voluntary_switches = footer->involuntary_switches = VALUE_MISSING;
}

/* Peak memory of this program, not ru_maxrss: that one starts from the process that called exec. */
static int64_t own_peak_bytes(const struct recorder *recorder)
{
	char text[4096];
	ssize_t n = file_read_in(recorder->tree.procfs_fd, "self/status", text, sizeof(text));
	const char *line = n > 0 ? strstr(text, "\nVmHWM:") : NULL;
	return line != NULL ? strtoll(line + 7, NULL, 10) * 1024 : VALUE_MISSING;
}

static void finish_self(const struct recorder *recorder, struct store_footer *footer)
{
	footer->self_cpu_ns = clock_cpu_ns();
	footer->self_max_rss_bytes = own_peak_bytes(recorder);
	const struct companion *companion = recorder->env->companion;
	if (companion != NULL)
		footer->self_cpu_ns += companion->cpu_ns;
	if (companion != NULL && value_ok(footer->self_max_rss_bytes))
		footer->self_max_rss_bytes += companion->max_rss_bytes;
	footer->self_wakeups = recorder->n_wakeups;
	footer->periods = recorder->sampler.periods; // used before the sampler is closed
	footer->n_devices = recorder->sensors->n_devices;
}

static int64_t exit_code(const struct recorder *recorder)
{
	if (!is_waited_for(recorder))
		return VALUE_MISSING;
	int status = recorder->wait_status;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void recorder_make_footer(struct recorder *recorder, struct store_footer *ret_footer)
{
	const struct rusage *reaped = &recorder->tree.reaped;
	struct store_footer footer = {
		.start_ns = recorder->start_ns,
		.end_ns = recorder->end_ns,
		.pid = recorder->pid,
		.exit_code = exit_code(recorder),
		.n_samples = recorder->sampler.n_samples,
		.n_lost = recorder->n_missed,
		.processes_seen = recorder->tree.n_seen + recorder->exits.n_unseen,
		.processes_sampled = recorder->tree.n_sampled,
		.read_bytes = (int64_t)reaped->ru_inblock * 512, // the kernel counts bytes and reports blocks of 512
		.written_bytes = (int64_t)reaped->ru_oublock * 512,
		.major_faults = reaped->ru_majflt,
		.minor_faults = reaped->ru_minflt,
		.voluntary_switches = reaped->ru_nvcsw,
		.involuntary_switches = reaped->ru_nivcsw,
	};
	finish_cpu(recorder, &footer);
	finish_peaks(recorder, &footer);
	finish_running(recorder, &footer);
	finish_self(recorder, &footer);
	recorder_count_spans(recorder, &footer);
	*ret_footer = footer;
}
