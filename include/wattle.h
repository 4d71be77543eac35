/* wattle: time, CPU time and energy of the parts of a program.
 *
 * Link with -lwattle (pkg-config wattle). C99 and C++. Every call returns 0 or a negative code (-errno style, described by
 * wattle_strerror), never aborts the program and never prints. All calls may be made from any thread and continue to work
 * in a forked child.
 *
 *   spans     mark intervals of the program. They cost nanoseconds under a recorder (`wattle run`, a tracker), and one load and
 *             one branch without. WATTLE_SPANS=FILE-%p writes them to a file if there is no recorder.
 *   metrics   report the program's results: tokens, images, accuracy. Inside a span they give joules per token.
 *   tracker   records the calling process and its descendants, from start to stop, in a process of its own.
 *   meter     reads the machine's energy counters at start and at stop, in the calling thread.
 *   caps      set power limits of GPUs and CPU packages, restored when the program ends, and search for the best limit.
 *
 * WATTLE_DISABLE=1 makes every call a no-op that succeeds. In set-uid programs the environment is ignored. */
#ifndef WATTLE_H
#define WATTLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WATTLE_API __attribute__((visibility("default")))

/* Describes the code of any call in English; never NULL, static storage. */
WATTLE_API const char *wattle_strerror(int code);

/* ---- spans ----
 *
 * A span is a named interval of one thread. Spans of a thread nest: an end closes the span that began last. The name is
 * copied on first use (at most 1023 bytes; longer names are truncated), so it may be stored anywhere and change between
 * calls. The same name from different places is one code block. begin and end are safe in signal handlers, need no lock and
 * make no system call once a thread has its ring. If the recorder can't keep up, whole spans are dropped and counted, never
 * half of one; no call waits.
 *
 * Returns 0. -EINVAL: name is NULL. -ENOENT: no span is open in this thread. -EMSGSIZE: more than 1024 spans are open in this
 * thread (this one is not recorded, but its end is still expected). -ENOBUFS: the ring is full (likewise). Without a recorder
 * always 0. */
WATTLE_API int wattle_span_begin(const char *name);
WATTLE_API int wattle_span_end(void);

/* Variant for languages and code that may leave a span without its end (longjmp, exceptions). enter returns the depth of the
 * new span. leave ends it and every span that is still open inside it; those are recorded as ending at that time, and counted
 * as unwound. leave with a depth that is no longer open: -ENOENT. */
WATTLE_API int wattle_span_enter(const char *name, uint32_t *ret_depth);
WATTLE_API int wattle_span_leave(uint32_t depth);

/* A range may begin in one thread, end in another, and overlap others in any way. *ret_range identifies it within this
 * process. -ENOENT: no range with that number began here (a range that has already ended may not be detected). */
WATTLE_API int wattle_range_begin(const char *name, uint64_t *ret_range);
WATTLE_API int wattle_range_end(uint64_t range);

/* A point in time, stored as an event of the run. -EINVAL: name is NULL. */
WATTLE_API int wattle_mark(const char *name);

/* A number that the program reports: tokens, images, accuracy. It belongs to the open spans of this thread. Non-negative
 * integers count as units of work: their sum inside a block gives joules per unit. -EINVAL: name is NULL or the value is not
 * finite. */
WATTLE_API int wattle_metric(const char *name, double value);

/* Returns 1 if spans of this process are being recorded, else 0. If the recorder was killed, only new threads and processes
 * detect it: later spans of a thread with a ring are lost. */
WATTLE_API int wattle_is_recording(void);

/* ---- tracker ----
 *
 * new -> start -> stop -> report -> free. start launches the recorder (the program wattle) on the calling process and returns
 * when its first sample is taken. The program's own wait() and SIGCHLD do not see the recorder as a child. (If the program
 * inherits orphans, as PID 1 of a container or a subreaper does, the recorder becomes its child, and stop waits for it.) It
 * ends by itself when the program does, with a complete run file. It continues through an exec. Children that the program
 * starts afterwards count as its descendants. Of two trackers at once, and of a tracker inside `wattle run`, the one started
 * last receives the spans.
 *
 * In a forked child the tracker belongs to the parent: every call fails (-EBADF), and free only releases the child's memory.
 * Calls on one tracker from several threads are serialised. start and stop change the environment (WATTLE_RING), which is not
 * safe while other threads read it. With WATTLE_DISABLE=1 nothing is recorded and the report is `null`. */
typedef struct wattle_tracker wattle_tracker;

enum wattle_state { WATTLE_NEW = 0, WATTLE_STARTED = 1, WATTLE_STOPPED = 2 };

struct wattle_tracker_options {
	size_t size;               /* sizeof(struct wattle_tracker_options); members beyond it have their defaults */
	double interval_s;         /* sampling period, 0.001 to 3600; 0: 0.1 */
	const char *output;        /* run file, %p is the pid; NULL: a temporary one in $TMPDIR that free removes */
	int overwrite;             /* 1: replace an existing run file or tracking file */
	const char *tracking_file; /* also write gpu_tracker's tracking file, .csv or .sqlite; NULL: none */
	const char *ram_unit, *gpu_ram_unit,
		*time_unit;        /* units as for `wattle run`; NULL: gigabytes, gigabytes, hours */
	int64_t expected_cores;    /* 0: all cores of the machine */
	const char *gpus;          /* UUIDs or indices, comma separated; NULL: those visible to the program */
	const char *gpu_brand;     /* nvidia, amd, intel; NULL: any */
	const char *label;         /* stored with the run; NULL: none */
	int64_t pid;               /* process to track; 0: the calling one. Spans come from the calling process only */
	int keep_environment; /* 1: don't set WATTLE_RING, which directs spans of programs started later to the recorder */
	int quiet;                 /* 1: don't print the recorder's warnings on stderr */
	const char
		*program; /* path of the program wattle; NULL: the one installed with this library, else from $PATH */
	const char *const *arguments; /* further options of `wattle attach`, NULL-terminated; NULL: none */
	double stop_timeout_s;     /* maximum time that stop waits for the recorder before killing it (-EIO); 0: 600 */
};

/* options NULL: all defaults. Copies its arguments. -EINVAL: an option is invalid (unit, interval, file suffix, brand,
 * number, empty text, size, or a member set that this library does not know). -ENOMEM. The caller owns *ret and releases it
 * with wattle_tracker_free. */
WATTLE_API int wattle_tracker_new(const struct wattle_tracker_options *options, wattle_tracker **ret);
/* -EALREADY: already started. -EPERM: already stopped (a tracker records once). -ENOENT: the program wattle was not found.
 * -EEXIST: a file exists and may not be overwritten. -ESRCH: no such process. -ETIMEDOUT: not ready within a minute. -EIO and
 * others: the recorder refused. wattle_tracker_error has the reason. After a failure the state is unchanged. */
WATTLE_API int wattle_tracker_start(wattle_tracker *tracker);
/* Returns when the run file is complete. -EPERM: not started. -EIO: either the recorder died, and the run file has the data
 * recorded so far; or the program has closed the tracker's descriptor (closefrom), and the recording continues until the
 * program ends. The state is WATTLE_STOPPED in all these cases. */
WATTLE_API int wattle_tracker_stop(wattle_tracker *tracker);
WATTLE_API enum wattle_state wattle_tracker_state(const wattle_tracker *tracker);
/* Stores the report ("wattle-report/1") as JSON text in *ret, which the caller must free(). -EPERM: not stopped yet; -EIO. */
WATTLE_API int wattle_tracker_report_json(wattle_tracker *tracker, char **ret);
/* Path of the run file, borrowed until free; NULL before start. */
WATTLE_API const char *wattle_tracker_run_file(const wattle_tracker *tracker);
/* One line about the last failed call on this tracker, borrowed until the next call; "" if there was none. */
WATTLE_API const char *wattle_tracker_error(const wattle_tracker *tracker);
/* Stops the tracker if it is running. NULL allowed. */
WATTLE_API void wattle_tracker_free(wattle_tracker *tracker);

/* ---- meter ----
 *
 * Energy of the whole machine (not of the program alone) between start and stop, from the counters directly: no process,
 * no thread, no file. A counter that updates every 100 ms gives little information about 10 ms; error_j has the
 * resulting error. Counters that may have wrapped more than once since the previous reading give NaN. During long
 * measurements, call wattle_meter_read from time to time: the counters of an Intel package can wrap within 131 s at 2
 * kW, those of AMD within 33 s, and after a longer pause several wraps can't be excluded. Counters that were reset,
 * can't be read, or do not change for seconds also give NaN. Devices that report power only are unknown. If no package
 * can be read, the load model's estimate is used (`estimated`). A meter may be used by one thread at a time. In a forked
 * child it continues independently. open takes milliseconds, with GPU drivers up to seconds. start takes as long as
 * reading the counters, 1 us each; stop computes the error, 3 us each. */
typedef struct wattle_meter wattle_meter;

struct wattle_meter_options {
	size_t size;           /* sizeof(struct wattle_meter_options) */
	const char *gpus;      /* as for the tracker; NULL: those visible to the program */
	const char *gpu_brand; /* as for the tracker */
};

struct wattle_reading {
	size_t size;     /* sizeof(struct wattle_reading), set by the caller: later versions may add members */
	double seconds;  /* between start and stop, CLOCK_MONOTONIC */
	double cpu_j; /* all packages; NaN: unknown, also if one of them can't be read; likewise for the next members */
	double dram_j;   /* all memory domains */
	double gpu_j;    /* all selected GPUs */
	double total_j;  /* sum of the outermost domains, which do not overlap: cpu + dram + gpu as far as known; NaN if a
	                    counter of one of them was reset or could not be read since start */
	double error_j;  /* half of a 95 % interval of total_j: the sensor's stated error, the counter's step, its update times
	                    and the power changes at both ends (docs/tracker.md) */
	int estimated;   /* 1: part of it is estimated by a model, not measured */
	double calibration_error_j; /* additional error of total_j from the gain of GPU power sensors: ± 10 % of each
	                               uncalibrated GPU's energy (half of a 95 % interval; docs/accuracy.md), added over GPUs;
	                               NaN: no GPU is measured */
};

/* options NULL: all defaults. -ENODEV: no readable device reports energy. -EINVAL: an option is invalid, or there is no GPU
 * of that name. -ENOENT, -ENOTDIR: WATTLE_SYSFS or WATTLE_PROCFS is not a folder. -ENOMEM. The caller owns *ret and releases
 * it with wattle_meter_close. */
WATTLE_API int wattle_meter_open(const struct wattle_meter_options *options, wattle_meter **ret);
/* Takes the readings with which later ones are compared. May be called again at any time to restart the measurement. */
WATTLE_API int wattle_meter_start(wattle_meter *meter);
/* Energy since start. The meter continues: a later read covers the longer interval. -EPERM: not started. */
WATTLE_API int wattle_meter_read(wattle_meter *meter, struct wattle_reading *ret);
/* The same, but the meter must be started again afterwards. */
WATTLE_API int wattle_meter_stop(wattle_meter *meter, struct wattle_reading *ret);

struct wattle_domain_reading {
	size_t size;     /* sizeof(struct wattle_domain_reading), set by the caller: later versions may add members */
	char domain[48]; /* "package-0", "gpu-1", as in reports; core-0 is inside package-0 */
	double energy_j; /* of this domain; NaN: unknown, also for the next members */
	double error_j;  /* half of a 95 % interval */
	double calibration_error_j; /* additional error from the gain of a GPU's power sensor; NaN: none is stated */
	int in_total;               /* 1: part of total_j */
	int estimated;              /* 1: estimated by a model, not measured */
};

/* Energy of one domain at the latest read or stop; reads no counter. index counts from 0. -ENOENT: no domain has this
 * index. -EPERM: not read since start. */
WATTLE_API int wattle_meter_domain(const wattle_meter *meter, size_t index, struct wattle_domain_reading *ret);
WATTLE_API void wattle_meter_close(wattle_meter *meter); /* NULL allowed */

/* ---- caps ----
 *
 * Limits of power (W), or of the clock of NVIDIA GPUs (MHz). A limit set here is a lease of the calling process: the previous
 * limit is restored at wattle_cap_reset, at exit, and within a second of any other death, kill -9 included. A guard process
 * does this; it is the program wattle, found as for trackers. If the guard is killed, the next call of these functions starts
 * another one. If the program is killed before that, the next start of wattle restores the limit. A forked child does not own
 * its parent's limits: it can't change them, and its end changes nothing. A device has at most one lease: while another
 * process has it, set, reset and tune fail. All threads share the leases of their process.
 *
 * device: "gpu-0", "package-1", the UUID of a GPU or a prefix of one, several of these separated by commas, or "gpus" for the
 * GPUs visible to the program. Several devices are set one after another; if one fails, those before it are restored. If the
 * program has no permission to set limits, the helper wattled sets them if its policy permits. Any call with a device may
 * return these codes:
 *
 *   -ENODEV   the device does not exist, has no settable limit, or was lost
 *   -EACCES   neither this program nor the helper has permission (-EPERM if the driver reported that)
 *   -EBUSY    another process has a lease on it, or a thread of this one is tuning it
 *   -ERANGE   outside the device's range; nothing was changed
 *   -ENOENT   the program wattle, required for leases, was not found; or WATTLE_SYSFS is not a folder
 *   -EINVAL   an argument is invalid
 *   -ESTALE   set: another program has changed the limit since this process set it; it stays, until reset and a new set
 *   -ENOMEM; -EIO, -EROFS, -ENOSPC and similar: the device, or the journal in WATTLE_STATE, failed
 *
 * wattle_cap_error has a sentence on what is wrong and what is valid. The first call opens the drivers, which may take
 * seconds; later calls take as long as the device. With WATTLE_DISABLE=1 the list is empty, all values are unknown, and set,
 * reset and tune do nothing and succeed; tune never calls its step function. */

/* One line about the last failed call of this thread, valid until its next call; never NULL, "" if there was none. */
WATTLE_API const char *wattle_cap_error(void);
/* Notice from the last successful call of this thread: another program had changed the limit, which stays; the device rounded
 * the value; a limit left by a dead program was restored. One line; never NULL, "" if there is none. */
WATTLE_API const char *wattle_cap_notice(void);

/* Flags. Any other bit gives -EINVAL. */
#define WATTLE_CAP_KEEP 1u    /* set: no lease; the limit stays until reset, as with `wattle cap set` */
#define WATTLE_CAP_CLOCKS 2u  /* an upper limit of the graphics clock, in MHz; NVIDIA GPUs */
#define WATTLE_CAP_DEFAULT 4u /* reset: to the device's default */

struct wattle_cap_device {
	size_t size; /* sizeof(struct wattle_cap_device) of the caller (get), or of the library (list) */
	struct wattle_cap_device *next; /* for list; NULL: last entry */
	char device[48];                /* "gpu-0", "package-0" */
	char name[96];                  /* label for display: "NVIDIA H100 80GB HBM3" */
	char id[96];                    /* stable across reboots: a UUID, "pci-0000:43:00.0", "package-0" */
	double current_w;               /* limit in force; NaN: unknown, also for the following members */
	double default_w;               /* the device's default */
	double min_w, max_w;            /* the device's range; if it reports no minimum, wattle's own lower limit */
	double enforced_w;              /* effective limit after all limiters, if reported */
	int settable;                   /* 1: this program may set it, as far as can be determined without trying */
	char why[160], remedy[200];     /* if not settable: reason, and command that helps; "" else */
	char lease[160];                /* holder of the lease: "train.py, pid 4242, user alice"; "" if there is none */
	double min_mhz, max_mhz;        /* clock range for WATTLE_CAP_CLOCKS */
	int clocks_settable;            /* as settable, for clocks */
};

/* Lists all devices with a limit: GPUs by number, then packages. A sleeping GPU is not woken, and its figures are unknown;
 * get wakes it. A machine without such devices is no error: *ret is then NULL, and wattle_cap_notice has the reason. The
 * caller owns *ret and releases it with wattle_cap_list_free. */
WATTLE_API int wattle_cap_list(struct wattle_cap_device **ret);
WATTLE_API void wattle_cap_list_free(struct wattle_cap_device *list); /* NULL allowed */
/* Describes one device; the caller sets `ret->size`. -EINVAL: `device` names several. */
WATTLE_API int wattle_cap_get(const char *device, struct wattle_cap_device *ret);
/* Sets the limit to `value`. It may be called repeatedly; the limit before the first call is the one restored at the end.
 * flags: 0, or KEEP and CLOCKS. The limit is in force on return. */
WATTLE_API int wattle_cap_set(const char *device, double value, unsigned flags);
/* Ends this process's lease and restores the previous limit. Without a lease, a permanent limit (KEEP, `wattle cap set`) is
 * replaced by the limit before wattle's first change. With DEFAULT the device's default is set instead (-ENODATA: not
 * reported). Nothing to restore is no error. device NULL: all leases of this process. */
WATTLE_API int wattle_cap_reset(const char *device, unsigned flags);

/* Searches for the limit that saves most. In the calling thread it calls step(data) repeatedly (one unit of the program's
 * work: a batch, an iteration), under limits in random order. The highest limit is repeated to correct for drift. Energy and
 * time per step are measured with the counters of the limited devices. The previous limit, including one set by this process,
 * is restored on return, and if the program dies meanwhile. step must return (no longjmp, no exception, no thread
 * cancellation). A thread that exists for the duration of the call reads the counters. */
#define WATTLE_CAP_NO_MORE 4096 /* returned by step if there is no more work: the search ends with the results so far */

enum wattle_cap_goal {
	WATTLE_CAP_ED2P = 0,    /* minimise E * T^2 per step, J s^2 */
	WATTLE_CAP_EDP = 1,     /* minimise E * T, J s */
	WATTLE_CAP_ENERGY = 2,  /* minimise E, J */
	WATTLE_CAP_SLOWDOWN = 3 /* minimise E among limits at most slowdown_percent slower than the highest one */
};

struct wattle_cap_progress {
	size_t size;         /* size of the library's struct */
	double done;         /* 0 to 1 */
	double seconds_left; /* upper estimate, including settling times as far as known */
	double limit;        /* in force, W or MHz */
	uint64_t steps;      /* total so far */
};

struct wattle_cap_tune_options {
	size_t size;               /* sizeof(struct wattle_cap_tune_options); members beyond it have their defaults */
	int goal;                  /* enum wattle_cap_goal */
	double slowdown_percent;   /* for WATTLE_CAP_SLOWDOWN; 0 to 1000 */
	size_t n_limits;           /* 2 to 64; 0: 8, then more near the best one */
	double from_percent;       /* lowest limit, in percent of the default, or the device's minimum if that is higher; the
	                              highest is the default; 0: 30 */
	double seconds;            /* maximum measured time per limit; 0: 30 */
	double settle_s;           /* wait under a new limit before measuring; 0: until it acts and power is steady */
	uint64_t seed; /* for the order of limits and the intervals: same seed and measurements, same result */
	int clocks;                /* 1: search the clock limit, in MHz, instead of the power limit */
	int (*progress)(void *data, const struct wattle_cap_progress *progress); /* called after each window; a nonzero result
	                                                                            ends the search as step's does; NULL: none */
	void (*synchronize)(
		void *data); /* waits for work that step only started (CUDA); called before timing; NULL: none */
};

struct wattle_cap_interval {
	double value, low, high; /* 95 % interval; NaN: unknown */
};

struct wattle_cap_limit {
	size_t size;                            /* size of the library's struct */
	double limit;                           /* W or MHz */
	uint64_t windows;                       /* number of windows measured under it */
	double steps, energy_j, time_s;         /* sums over the windows */
	struct wattle_cap_interval energy_per_step_j, time_per_step_s; /* corrected for drift */
	struct wattle_cap_interval objective;   /* per step, in the goal's unit */
	int allowed;                            /* 0: slower than WATTLE_CAP_SLOWDOWN permits */
	int added; /* 1: not one of the n_limits candidates, but measured near their best */
};

struct wattle_cap_tune_result {
	size_t size;                     /* sizeof(struct wattle_cap_tune_result), set by the caller */
	double chosen;                   /* W or MHz, in the device's range; NaN with WATTLE_DISABLE=1 */
	double previous; /* limit before the search, restored after it; NaN: unknown or differs by device */
	struct wattle_cap_interval saving_percent;   /* energy per step, compared with the highest limit */
	struct wattle_cap_interval slowdown_percent; /* time per step, compared with the highest limit */
	struct wattle_cap_interval chosen_range;     /* range in which the optimum may also lie, W or MHz */
	char objective[24];              /* "ed2p", "edp", "energy", "slowdown" */
	char objective_unit[16];
	char model[24]; /* "exp+sigmoid", "convex", "spline": fitted to all limits; "none": best measured one */
	double residual_percent, noise_percent,
		drift_percent;           /* of the model; of the windows; of the highest limit over time */
	char note[320];                  /* remarks, one line; "" if there are none */
	size_t n_limits;
	struct wattle_cap_limit **limits; /* n_limits entries, descending */
	size_t n_parameters;
	double *parameters;              /* of the model: a b c d e f g of exp+sigmoid; a spline has none */
	size_t n_curve;
	double *curve_limit, *curve_objective; /* points of the model, for plots */
	void *memory;                    /* memory of all these, released by wattle_cap_tune_result_finish */
};

/* options NULL: all defaults. Returns the result of step or progress if that was neither 0 nor WATTLE_CAP_NO_MORE.
 * -ENODATA: the work ended before there was anything to compare. -ECANCELED: another program changed the limit during
 * the search; its limit stays. -ERANGE: the device's range does not allow two different limits. -ENOTSUP: its energy
 * can't be measured. -EBADF: step returned in a forked child. -ENOSYS: a static program linked without -lcminpack. On
 * failure *ret is unchanged; else release its memory with wattle_cap_tune_result_finish. */
WATTLE_API int wattle_cap_tune(const char *device, const struct wattle_cap_tune_options *options,
	int (*step)(void *data), void *data, struct wattle_cap_tune_result *ret);
WATTLE_API void wattle_cap_tune_result_finish(struct wattle_cap_tune_result *result);

/* ---- WATTLE_SPAN("name") { … } ----
 *
 * A block whose execution is a span. break, return, goto and exceptions out of it end the span, and continue ends it too.
 * After a longjmp out of it, the span ends with the next enclosing WATTLE_SPAN. */
#ifdef __cplusplus
}

namespace wattle
{
class span
{
	uint32_t depth;
	bool open;

	span(const span &); // declared only, so that there is no copy, also before C++11
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
/* volatile, so that a setjmp inside causes no compiler warning */
#define WATTLE__SPAN(name, scope)                                                                                      \
	for (volatile struct wattle__scope scope __attribute__((cleanup(wattle__scope_end))) =                         \
			wattle__scope_begin(name);                                                                     \
		scope.once; scope.once = 0)
#endif
/* A unique name per line, so that nested spans shadow nothing. */
#define WATTLE__JOIN(a, b) a##b
#define WATTLE__NAME(a, b) WATTLE__JOIN(a, b)
#define WATTLE_SPAN(name) WATTLE__SPAN(name, WATTLE__NAME(wattle__span_, __LINE__))

#endif
