/* Uses of limits in a C program, one act for each run: cap_library.py compiles and runs it and checks its output:
 * lines of words, codes and figures. A device is the first argument after the act. */
#include <wattle.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *device;

static void say(const char *what, int code)
{
	printf("%s %d %s\n", what, code, code < 0 ? wattle_cap_error() : wattle_cap_notice());
	fflush(stdout);
}

static void show(void)
{
	struct wattle_cap_device found = {.size = sizeof(found)};
	int code = wattle_cap_get(device, &found);
	printf("limit %g %s\n", code == 0 ? found.current_w : (double)NAN, found.lease);
	fflush(stdout);
}

static void list(void)
{
	struct wattle_cap_device *all = NULL;
	say("list", wattle_cap_list(&all));
	for (const struct wattle_cap_device *at = all; at != NULL; at = at->next)
		printf("device %s %g %g %g %g %g %g\n", at->device, at->current_w, at->default_w, at->min_w, at->max_w,
			at->min_mhz, at->max_mhz);
	wattle_cap_list_free(all);
}

static void set(void)
{
	say("set", wattle_cap_set(device, 300, 0));
	say("again", wattle_cap_set(device, 200, 0));
	show();
	say("out of range", wattle_cap_set(device, 1, 0));
	say("unknown", wattle_cap_set("gpu-77", 200, 0));
	say("flags", wattle_cap_set(device, 200, 64));
	say("null", wattle_cap_set(NULL, 200, 0));
	show();
	say("reset", wattle_cap_reset(device, 0));
	show();
	say("nothing", wattle_cap_reset(device, 0));
	say("keep", wattle_cap_set(device, 250, WATTLE_CAP_KEEP));
	say("lease", wattle_cap_set(device, 150, 0));
	say("lease stays", wattle_cap_set(device, 160, WATTLE_CAP_KEEP));
	show();
	say("reset all", wattle_cap_reset(NULL, 0));
	show();
	say("default", wattle_cap_reset(device, WATTLE_CAP_DEFAULT));
	show();
}

// An older program's struct: unknown members are not written.
static void old(void)
{
	struct {
		size_t size;
		void *next;
		char device[48], after[8];
	} found = {.size = 64, .after = "intact"};
	say("get", wattle_cap_get(device, (struct wattle_cap_device *)(void *)&found));
	printf("%s %s %zu\n", found.device, found.after, found.size);
}

static void hold(void)
{
	say("set", wattle_cap_set(device, 200, 0));
	pause();
}

static void leave(void)
{
	say("set", wattle_cap_set(device, 200, 0));
	exit(3);
}

static void fork_away(void)
{
	say("set", wattle_cap_set(device, 200, 0));
	pid_t child = fork();
	if (child == 0) {
		say("child set", wattle_cap_set(device, 300, 0));
		say("child reset", wattle_cap_reset(device, 0));
		say("child reset all", wattle_cap_reset(NULL, 0));
		exit(0); // with the parent's exit handlers
	}
	waitpid(child, NULL, 0);
	show();
}

// The limit is a lease of this process; a program that replaces it by exec has no part in it.
static void replace(void)
{
	say("set", wattle_cap_set(device, 200, 0));
	execlp("sleep", "sleep", "60", (char *)NULL);
}

static int setting(void)
{
	return wattle_cap_set(device, 100 + rand() % 250, 0);
}

static void *set_often(void *failed)
{
	for (int i = 0; i < 25; i++)
		if (setting() != 0 || wattle_cap_set("gpu-88", 200, 0) != -ENODEV ||
			strstr(wattle_cap_error(), "gpu-88") == NULL)
			*(int *)failed = 1;
	return NULL;
}

static void threads(void)
{
	pthread_t all[4];
	int failed[4] = {0};
	say("set", wattle_cap_set(device, 300, 0));
	for (int i = 0; i < 4; i++)
		pthread_create(&all[i], NULL, set_often, &failed[i]);
	for (int i = 0; i < 20; i++)
		if (fork() == 0) // while other threads are in calls
			_exit(wattle_cap_set(device, 120, 0) == -EBUSY ? 0 : 1);
	int bad = 0, status;
	while (wait(&status) > 0)
		bad += status != 0;
	for (int i = 0; i < 4; i++) {
		pthread_join(all[i], NULL);
		bad += failed[i];
	}
	say("threads", bad);
	say("reset", wattle_cap_reset(device, 0));
}

/* ---- tune ---- */

struct work {
	long steps, most, fails_at;
	double watts_per_s; // a card's own: power over speed
};

static int step(void *data)
{
	struct work *work = data;
	if (work->most > 0 && work->steps >= work->most)
		return WATTLE_CAP_NO_MORE;
	if (work->fails_at > 0 && work->steps >= work->fails_at)
		return -EXDEV;
	work->steps++;
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	return 0;
}

static int child_step(void *data)
{
	pid_t child = fork();
	if (child == 0)
		return step(data);
	waitpid(child, NULL, 0);
	return -EXDEV;
}

static int count_windows(void *data, const struct wattle_cap_progress *progress)
{
	(void)data;
	printf("progress %zu %g %g %g\n", progress->size, progress->done, progress->seconds_left, progress->limit);
	return 0;
}

static void tune_with(const char *name, int (*how)(void *), struct work work, struct wattle_cap_tune_options options)
{
	struct wattle_cap_tune_result result = {.size = sizeof(result)};
	options.size = sizeof(options);
	if (options.seconds == 0)
		options.seconds = 0.3;
	if (options.settle_s == 0)
		options.settle_s = 0.01;
	pid_t self = getpid();
	int code = wattle_cap_tune(device, &options, how, &work, &result);
	say(getpid() == self ? name : "child", code);
	if (getpid() != self)
		exit(0);
	if (code == 0)
		printf("result %s %g %g %zu %s\n", result.objective, result.chosen, result.previous, result.n_limits,
			result.model);
	for (size_t i = 0; i < result.n_limits; i++)
		printf("row %g %g %g %g\n", result.limits[i]->limit, result.limits[i]->steps,
			result.limits[i]->energy_j, result.limits[i]->time_s);
	wattle_cap_tune_result_finish(&result);
	wattle_cap_tune_result_finish(&result);
	fflush(stdout);
}

static void tune(void)
{
	struct work none = {0}, few = {.most = 3}, fails = {.fails_at = 40};
	// All limits do the same work in the same time: the lowest uses least.
	tune_with("energy", step, none,
		(struct wattle_cap_tune_options){.goal = WATTLE_CAP_ENERGY, .n_limits = 4, .progress = count_windows});
	show();
	tune_with("fails", step, fails, (struct wattle_cap_tune_options){0});
	tune_with("few", step, few, (struct wattle_cap_tune_options){0});
	tune_with("goal", step, none, (struct wattle_cap_tune_options){.goal = 9});
	tune_with("limits", step, none, (struct wattle_cap_tune_options){.n_limits = 1});
	tune_with("forks", child_step, none, (struct wattle_cap_tune_options){0});
	tune_with("clocks", step, none,
		(struct wattle_cap_tune_options){.goal = WATTLE_CAP_ENERGY, .n_limits = 3, .clocks = 1});
	show();
}

int main(int n, char **words)
{
	static const struct {
		const char *name;
		void (*act)(void);
	} acts[] = {{"list", list}, {"set", set}, {"old", old}, {"hold", hold}, {"leave", leave}, {"fork", fork_away},
		{"replace", replace}, {"threads", threads}, {"tune", tune}};
	device = n > 2 ? words[2] : "gpu-0";
	for (size_t i = 0; n > 1 && i < sizeof(acts) / sizeof(acts[0]); i++)
		if (strcmp(words[1], acts[i].name) == 0)
			acts[i].act();
	return 0;
}
