/* wattle: where in a program time, CPU and joules go, and what a stretch of it costs.
 *
 * Link with -lwattle (pkg-config wattle). C99 and C++. Every call returns 0 or a negative code (-errno style, wattle_strerror
 * tells it in words), never aborts the program and never prints. All calls may be made from any thread and go on working in
 * a forked child.
 *
 *   spans     mark stretches of the program. They cost nanoseconds under a recorder (`wattle run`, a tracker) and one load and
 *             one branch without. WATTLE_SPANS=FILE-%p leaves them in a file where there is no recorder.
 *   metrics   what the program did: tokens, images, accuracy. Inside a span they give joules per token.
 *   tracker   records the calling process and its descendants, from start to stop, in a process of its own.
 *   meter     reads the machine's energy counters at start and at stop, in the calling thread.
 *   caps      power limits of GPUs and CPU packages, which go back when the program ends, and the search for the best one.
 *
 * WATTLE_DISABLE=1 makes every call a no-op that succeeds. In set-uid programs the environment is not looked at. */
#ifndef WATTLE_H
#define WATTLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WATTLE_API __attribute__((visibility("default")))

/* What a code of any call means, in English; never NULL, static storage. */
WATTLE_API const char *wattle_strerror(int code);

/* ---- spans ----
 *
 * A span is a named interval of one thread. Spans of a thread nest: an end closes the one that began last. The name is copied
 * when it is first seen (at most 1023 bytes, what is longer is cut), so it may live anywhere and change between calls; the
 * same name from different places is one code block. begin and end are safe in signal handlers, need no lock and make no
 * system call once a thread has its ring. Where the recorder can't keep up, whole spans are lost and counted, never half of
 * one; nothing ever waits.
 *
 * 0; -EINVAL: name is NULL; -ENOENT: no span is open in this thread; -EMSGSIZE: more than 1024 spans are open in this thread
 * (this one is not recorded, its end is expected all the same); -ENOBUFS: no room in the ring (likewise). Without a recorder
 * always 0. */
WATTLE_API int wattle_span_begin(const char *name);
WATTLE_API int wattle_span_end(void);

/* The same for languages and code that may leave a span by another way than its end (longjmp, exceptions): enter gives the
 * depth of the new span, leave ends it and every span that is still open inside it; these are recorded as ending at that time,
 * and counted as unwound. leave of a depth that is not open any more: -ENOENT. */
WATTLE_API int wattle_span_enter(const char *name, uint32_t *ret_depth);
WATTLE_API int wattle_span_leave(uint32_t depth);

/* A range may begin in one thread and end in another and overlaps others freely. *ret_range names it within this process.
 * -ENOENT: no range of that number began here (a range that ended already may not be noticed). */
WATTLE_API int wattle_range_begin(const char *name, uint64_t *ret_range);
WATTLE_API int wattle_range_end(uint64_t range);

/* An instant, kept as an event of the run. -EINVAL: name is NULL. */
WATTLE_API int wattle_mark(const char *name);

/* A number that the program knows: tokens, images, accuracy. It belongs to the spans that are open in this thread. Whole
 * numbers that are not negative count as units of work: their sum inside a block gives joules per unit.
 * -EINVAL: name is NULL or the value is not finite. */
WATTLE_API int wattle_metric(const char *name, double value);

/* 1: spans of this process are being recorded; 0: they are not. That a recorder was killed shows in new threads and processes
 * only: what a thread with a ring writes then is lost. */
WATTLE_API int wattle_is_recording(void);

/* ---- tracker ----
 *
 * new -> start -> stop -> report -> free. start spawns the recorder (the program wattle) on the calling process and returns
 * when its first sample is taken; the recorder is no child that the program's own wait() or SIGCHLD could meet (where orphans
 * are inherited, by PID 1 of a container or a subreaper, it becomes one, and stop waits for it), and ends by itself when the
 * program does, its run file whole. It goes on through an exec. Children that the program starts afterwards count as its
 * descendants. Of two trackers at once, and of a tracker inside `wattle run`, the one that was started last gets the spans.
 *
 * In a forked child the tracker is its parent's: every call is refused (-EBADF), free only releases the child's memory. Calls
 * on one tracker from several threads wait for each other. start and stop change the environment (WATTLE_RING), which is
 * not safe beside threads that read it. With WATTLE_DISABLE=1 nothing is recorded and the report is `null`. */
typedef struct wattle_tracker wattle_tracker;

enum wattle_state { WATTLE_NEW = 0, WATTLE_STARTED = 1, WATTLE_STOPPED = 2 };

struct wattle_tracker_options {
	size_t size;               /* sizeof(struct wattle_tracker_options); members that an older program lacks have their defaults */
	double interval_s;         /* sampling period, 0.001 to 3600; 0: 0.1 */
	const char *output;        /* run file, %p is the pid; NULL: a temporary one in $TMPDIR that free removes */
	int overwrite;             /* 1: replace an existing run file or tracking file */
	const char *tracking_file; /* gpu_tracker's tracking file as well, .csv or .sqlite; NULL: none */
	const char *ram_unit, *gpu_ram_unit, *time_unit; /* as `wattle run` has them; NULL: gigabytes, gigabytes, hours */
	int64_t expected_cores;    /* 0: all of the machine */
	const char *gpus;          /* UUIDs or indices, comma separated; NULL: those visible to the program */
	const char *gpu_brand;     /* nvidia, amd, intel; NULL: any */
	const char *label;         /* kept with the run; NULL: none */
	int64_t pid;               /* process to track; 0: the calling one. Spans reach the recorder from that one alone */
	int keep_environment;      /* 1: don't set WATTLE_RING, by which programs started later find the recorder for their spans */
	int quiet;                 /* 1: the recorder's warnings are not shown on stderr */
	const char *program;       /* path of the program wattle; NULL: the one installed with this library, else of $PATH */
	const char *const *arguments; /* further options of `wattle attach`, NULL-terminated; NULL: none */
	double stop_timeout_s;     /* stop waits so long for the recorder, then kills it (-EIO); 0: 600 */
};

/* options NULL: all defaults. Copies what it needs. -EINVAL: an option is not valid (unit, interval, ending, brand, number, a
 * text that is empty, a size that is none, or a member set that this library does not know); -ENOMEM. *ret is the caller's, to
 * be released with wattle_tracker_free. */
WATTLE_API int wattle_tracker_new(const struct wattle_tracker_options *options, wattle_tracker **ret);
/* -EALREADY: it is started; -EPERM: it has been stopped (a tracker records once); -ENOENT: the program wattle was not found;
 * -EEXIST: a file is there and is not to be overwritten; -ESRCH: no such process; -ETIMEDOUT: not ready within a minute; -EIO
 * and others: the recorder refused. wattle_tracker_error tells why. After a failure the state is as before. */
WATTLE_API int wattle_tracker_start(wattle_tracker *tracker);
/* Returns when the run file is whole. -EPERM: it is not started. -EIO: the recorder died, and what it had recorded is in the run
 * file; or the program has closed the tracker's descriptor (closefrom), and the recording goes on until the program ends. The
 * state is WATTLE_STOPPED in all these cases. */
WATTLE_API int wattle_tracker_stop(wattle_tracker *tracker);
WATTLE_API enum wattle_state wattle_tracker_state(const wattle_tracker *tracker);
/* The report of contract "wattle-report/1" as JSON text in *ret, the caller's to free(). -EPERM: not stopped yet; -EIO. */
WATTLE_API int wattle_tracker_report_json(wattle_tracker *tracker, char **ret);
/* Path of the run file, borrowed until free; NULL before start. */
WATTLE_API const char *wattle_tracker_run_file(const wattle_tracker *tracker);
/* One line about the last failure of a call on this tracker, borrowed until the next call; "" if there was none. */
WATTLE_API const char *wattle_tracker_error(const wattle_tracker *tracker);
/* Stops it if need be. NULL allowed. */
WATTLE_API void wattle_tracker_free(wattle_tracker *tracker);

/* ---- meter ----
 *
 * Energy of the whole machine (not of the program alone) between start and stop, from the counters themselves: no process, no
 * thread, no file. A counter that is renewed once in 100 ms tells little about 10 ms: error_j says how little. Counters that
 * can have wrapped more than once since the reading before give NaN: where a stretch is long, wattle_meter_read now and then
 * (the counters of an Intel package may wrap after 131 s at 2 kW, those of AMD after 33 s; nothing slower is ruled out). So do
 * counters that were reset, that can't be read, and those that stand still for seconds. Devices that tell power only are
 * unknown. Where no package can be read the load model's guess takes its place, `estimated`. One meter belongs to one
 * thread at a time. It reads on in a forked child, on its own. open takes milliseconds, with GPU drivers up to seconds; start
 * takes as long as reading the counters: 1 us each; stop computes the error, 3 us each. */
typedef struct wattle_meter wattle_meter;

struct wattle_meter_options {
	size_t size;           /* sizeof(struct wattle_meter_options) */
	const char *gpus;      /* as above; NULL: those visible to the program */
	const char *gpu_brand; /* as above */
};

struct wattle_reading {
	size_t size;     /* sizeof(struct wattle_reading), set by the caller: later members may be added */
	double seconds;  /* between start and stop, CLOCK_MONOTONIC */
	double cpu_j;    /* all packages; NaN unknown, as are the next ones, and as one that can't be read makes them all */
	double dram_j;   /* all memory domains */
	double gpu_j;    /* all GPUs that were chosen */
	double total_j;  /* of the outermost domains that do not overlap: cpu + dram + gpu as far as they are known; NaN if a
	                    counter of one of them was reset or could not be read since start */
	double error_j;  /* half of a 95 % interval of total_j: the sensor's stated error, the counter's step, and when it was
	                    updated and how power changed at both ends (docs/tracker.md) */
	int estimated;   /* 1: some of it is a model's estimate, no measurement */
	double calibration_error_j; /* beside error_j, of total_j: the gain of GPU power sensors, ± 10 % of each uncalibrated GPU's
	                               energy (half of a 95 % interval; docs/accuracy.md), added over GPUs; NaN: no GPU is measured */
};

/* options NULL: all defaults. -ENODEV: nothing that could be read gives energy; -EINVAL: an option is not valid, a GPU of that
 * name is not here; -ENOENT, -ENOTDIR: WATTLE_SYSFS or WATTLE_PROCFS name no folder; -ENOMEM. *ret is the caller's,
 * wattle_meter_close. */
WATTLE_API int wattle_meter_open(const struct wattle_meter_options *options, wattle_meter **ret);
/* Takes the readings that the next ones are compared with. May be called again at any time: it starts anew. */
WATTLE_API int wattle_meter_start(wattle_meter *meter);
/* What was used since start. The meter goes on: a later read tells of the longer stretch. -EPERM: not started. */
WATTLE_API int wattle_meter_read(wattle_meter *meter, struct wattle_reading *ret);
/* The same, and the meter must be started again. */
WATTLE_API int wattle_meter_stop(wattle_meter *meter, struct wattle_reading *ret);
WATTLE_API void wattle_meter_close(wattle_meter *meter); /* NULL allowed */

/* ---- caps ----
 *
 * Limits of power (W), or of the clock of NVIDIA's GPUs (MHz). A limit that is set here is a lease of the calling process: what
 * was there before comes back at wattle_cap_reset, at exit, and within a second of any other death, kill -9 included. A
 * process of its own sees to that, the program wattle, which is found as trackers find it. If that is killed, the next call
 * of these functions starts another one; if the program is killed before, the next start of wattle puts the limit back. A
 * forked child does not own its parent's limits: it can't change them, and its end changes nothing. There is one lease on a
 * device: while another process has it, set, reset and tune are refused. All threads share the leases of their process.
 *
 * device: "gpu-0", "package-1", the UUID of a GPU or the beginning of one, several of these with commas between them, or "gpus",
 * which are the GPUs visible to the program; they are set one after the other, and if one refuses, those before it go back.
 * Where the program may not set limits the helper wattled does it, if it allows. Each of these codes may come from any of the
 * calls that take a device:
 *
 *   -ENODEV   there is no such device, or it can't be limited, or it was lost
 *   -EACCES   neither this program nor the helper may do that (-EPERM where the driver said so)
 *   -EBUSY    another process has a lease on it, or a thread of this one is searching on it
 *   -ERANGE   outside of what the device takes; nothing was changed
 *   -ENOENT   the program wattle was not found, without which no lease is taken; WATTLE_SYSFS names no folder
 *   -EINVAL   an argument is not valid
 *   -ESTALE   set: somebody else has changed the limit since this process set it; theirs stays, until reset and a new set
 *   -ENOMEM; -EIO, -EROFS, -ENOSPC and their like: the device, or the journal in WATTLE_STATE, failed
 *
 * and wattle_cap_error says in a sentence what is wrong and what would be right. The first call opens the drivers, which may
 * take seconds; later ones take as long as the device. With WATTLE_DISABLE=1 the list is empty, all values are unknown, and
 * set, reset and tune do nothing and succeed; the step of tune is never called. */

/* What is wrong: one line about the last call of this thread that failed, until its next one; never NULL, "" nothing. */
WATTLE_API const char *wattle_cap_error(void);
/* What is to be known although the last call of this thread succeeded: somebody else had changed the limit, and theirs stays; the
 * device rounded; a limit that a dead program left behind was put back. One line; never NULL, "" nothing. */
WATTLE_API const char *wattle_cap_notice(void);

/* Flags. Others are -EINVAL. */
#define WATTLE_CAP_KEEP 1u    /* set: no lease; it stays like that of `wattle cap set`, until reset */
#define WATTLE_CAP_CLOCKS 2u  /* an upper bound of the graphics clock, in MHz; NVIDIA's GPUs */
#define WATTLE_CAP_DEFAULT 4u /* reset: to what the device comes up with */

struct wattle_cap_device {
	size_t size;                    /* sizeof(struct wattle_cap_device) of the caller (get), of the library (list) */
	struct wattle_cap_device *next; /* of list; NULL: the last */
	char device[48];                /* "gpu-0", "package-0" */
	char name[96];                  /* for people: "NVIDIA H100 80GB HBM3" */
	char id[96];                    /* the same after a reboot: a UUID, "pci-0000:43:00.0", "package-0" */
	double current_w;               /* the limit in force; NaN unknown, as all that follow */
	double default_w;               /* what the device comes up with */
	double min_w, max_w;            /* what it takes; where it states no minimum, wattle's own guard */
	double enforced_w;              /* after all limiters, where the device tells */
	int settable;                   /* 1: this program may set it, as far as can be told without doing it */
	char why[160], remedy[200];     /* if not: why, and the command that mends it; "" */
	char lease[160];                /* who has a lease on it, in words: "train.py, pid 4242, user alice"; "" nobody */
	double min_mhz, max_mhz;        /* bounds of the clock that WATTLE_CAP_CLOCKS would take */
	int clocks_settable;            /* as settable */
};

/* All devices that have a limit: GPUs by number, then packages. A GPU that sleeps is left asleep, its figures
 * unknown; get wakes it. A machine without any is no error: *ret is NULL then, and
 * wattle_cap_notice says why there are none. *ret is the caller's, to be released with wattle_cap_list_free. */
WATTLE_API int wattle_cap_list(struct wattle_cap_device **ret);
WATTLE_API void wattle_cap_list_free(struct wattle_cap_device *list); /* NULL allowed */
/* One device; `ret->size` is set by the caller. -EINVAL: it names several. */
WATTLE_API int wattle_cap_get(const char *device, struct wattle_cap_device *ret);
/* Limits it to `value`, any number of times; what comes back in the end is what was there before the first. flags: 0, or KEEP and
 * CLOCKS. The limit is in force when it returns. */
WATTLE_API int wattle_cap_set(const char *device, double value, unsigned flags);
/* Ends this process's lease: what was there before comes back. Where it has none, a limit that stays (KEEP, `wattle cap set`) goes
 * back to what was there before wattle's first change. With DEFAULT what the device comes up with is set then (-ENODATA: it does
 * not say). Nothing to put back is no error. device NULL: all leases of this process. */
WATTLE_API int wattle_cap_reset(const char *device, unsigned flags);

/* The search for the limit that saves most. In the calling thread it calls step(data) again and again (one unit of the
 * program's work: a batch, an iteration), under limits that it sets in random order, the highest one again and again
 * against drift, and measures energy and time per step from the counters of the limited devices. What was there before,
 * a limit of this process's own included, is back when it returns, and if the program dies meanwhile. step must return (no
 * longjmp, no exception, no thread cancellation). Counters are read by a thread that lives as long as the call. */
#define WATTLE_CAP_NO_MORE 4096 /* what step returns if there is no more work: the search concludes with what it has */

enum wattle_cap_goal {
	WATTLE_CAP_ED2P = 0,    /* least E * T^2 of a step, J s^2 */
	WATTLE_CAP_EDP = 1,     /* least E * T, J s */
	WATTLE_CAP_ENERGY = 2,  /* least E, J */
	WATTLE_CAP_SLOWDOWN = 3 /* least E of those at most slowdown_percent slower than the highest limit */
};

struct wattle_cap_progress {
	size_t size;         /* of the library's */
	double done;         /* 0 to 1 */
	double seconds_left; /* at most, settling included as far as can be told */
	double limit;        /* in force, W or MHz */
	uint64_t steps;      /* so far, all of them */
};

struct wattle_cap_tune_options {
	size_t size;               /* sizeof(struct wattle_cap_tune_options); members that an older program lacks have their defaults */
	int goal;                  /* enum wattle_cap_goal */
	double slowdown_percent;   /* of WATTLE_CAP_SLOWDOWN; 0 to 1000 */
	size_t n_limits;           /* 2 to 64; 0: 8, then more beside the best one */
	double from_percent;       /* of the default, or the device's minimum if that is higher, up to the default; 0: 30 */
	double seconds;            /* measured time a limit, at most; 0: 30 */
	double settle_s;           /* time under a new limit before anything is measured; 0: until the limit acts and power is steady */
	uint64_t seed;             /* of the order of limits and of the intervals: same seed and measurements, same answer */
	int clocks;                /* 1: search the bound of the clock, in MHz, instead of the power */
	int (*progress)(void *data, const struct wattle_cap_progress *progress); /* after each window; nonzero ends as step's does; NULL */
	void (*synchronize)(void *data); /* waits for work that step only started (CUDA); called where time is taken; NULL */
};

struct wattle_cap_interval {
	double value, low, high; /* 95 %; NaN unknown */
};

struct wattle_cap_limit {
	size_t size;                            /* of the library's */
	double limit;                           /* W or MHz */
	uint64_t windows;                       /* stretches that were measured under it */
	double steps, energy_j, time_s;         /* sums over them */
	struct wattle_cap_interval energy_per_step_j, time_per_step_s; /* drift taken off */
	struct wattle_cap_interval objective;   /* of a step, in the goal's unit */
	int allowed;                            /* 0: slower than WATTLE_CAP_SLOWDOWN allows */
	int added;                              /* 1: none of the n_limits candidates: looked at beside the best of them */
};

struct wattle_cap_tune_result {
	size_t size;                     /* sizeof(struct wattle_cap_tune_result), set by the caller */
	double chosen;                   /* W or MHz, inside the device's range; NaN with WATTLE_DISABLE=1 */
	double previous;                 /* what was in force before and is again; NaN unknown, or not the same on all devices */
	struct wattle_cap_interval saving_percent;   /* of energy per step, against the highest limit */
	struct wattle_cap_interval slowdown_percent; /* of time per step */
	struct wattle_cap_interval chosen_range;     /* where the optimum may lie as well, W or MHz */
	char objective[24];              /* "ed2p", "edp", "energy", "slowdown" */
	char objective_unit[16];
	char model[24];                  /* "exp+sigmoid", "convex", "spline", fitted to all limits; "none": the best one that was measured */
	double residual_percent, noise_percent, drift_percent; /* of the model, of the windows, of the highest limit meanwhile */
	char note[320];                  /* what is to be known of it, one line; "" nothing */
	size_t n_limits;
	struct wattle_cap_limit **limits; /* n_limits of them, descending */
	size_t n_parameters;
	double *parameters;              /* of the model: a b c d e f g of exp+sigmoid; a spline has none */
	size_t n_curve;
	double *curve_limit, *curve_objective; /* the model, for pictures */
	void *memory;                    /* of all these, released by wattle_cap_tune_result_finish */
};

/* options NULL: all defaults. Returns what step or progress returned if that was neither 0 nor WATTLE_CAP_NO_MORE.
 * -ENODATA: the work ended before there was anything to compare; -ECANCELED: somebody else changed the limit meanwhile, theirs
 * stays; -ERANGE: the device's range leaves no two limits; -ENOTSUP: its energy can't be measured; -EBADF: step returned in a forked
 * child; -ENOSYS: a static program that was linked without -lcminpack. On failure *ret is untouched, else its memory is to be
 * released with wattle_cap_tune_result_finish. */
WATTLE_API int wattle_cap_tune(const char *device, const struct wattle_cap_tune_options *options, int (*step)(void *data),
	void *data, struct wattle_cap_tune_result *ret);
WATTLE_API void wattle_cap_tune_result_finish(struct wattle_cap_tune_result *result);

/* ---- WATTLE_SPAN("name") { … } ----
 *
 * A block whose run is a span; break, return, goto and exceptions out of it end the span, and continue ends it too. A longjmp
 * out of it is mended at the end of an outer WATTLE_SPAN. */
#ifdef __cplusplus
}

namespace wattle
{
class span
{
	uint32_t depth;
	bool open;

	span(const span &); // declared only: there is no copy, before C++11 neither
	span &operator=(const span &);

      public:
	explicit span(const char *name) : depth(0), open(true)
	{
		(void)wattle_span_enter(name, &depth);
	}
	~span()
	{
		(void)wattle_span_leave(depth);
	}
	bool once() const
	{
		return open;
	}
	void done()
	{
		open = false;
	}
};
} // namespace wattle

#define WATTLE__SPAN(name, scope) for (::wattle::span scope(name); scope.once(); scope.done())
#else
struct wattle__scope {
	uint32_t depth;
	int once;
};
static inline struct wattle__scope wattle__scope_begin(const char *name)
{
	struct wattle__scope scope = {0, 1};
	(void)wattle_span_enter(name, &scope.depth);
	return scope;
}
static inline void wattle__scope_end(volatile struct wattle__scope *scope)
{
	(void)wattle_span_leave(scope->depth);
}
/* volatile, so that a setjmp inside does not worry compilers. */
#define WATTLE__SPAN(name, scope)                                                                                      \
	for (volatile struct wattle__scope scope __attribute__((cleanup(wattle__scope_end))) =                         \
			wattle__scope_begin(name);                                                                     \
		scope.once; scope.once = 0)
#endif
/* A name for each line, so that spans in spans shadow nothing. */
#define WATTLE__JOIN(a, b) a##b
#define WATTLE__NAME(a, b) WATTLE__JOIN(a, b)
#define WATTLE_SPAN(name) WATTLE__SPAN(name, WATTLE__NAME(wattle__span_, __LINE__))

#endif
