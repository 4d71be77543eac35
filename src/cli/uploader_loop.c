/* The main loop of the uploader process. */
#include "cli/measure.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/util.h"
#include "store/follow.h"
#include "store/output_file.h"
#include "store/postgres/pq.h"
#include "task/task.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Period while sending succeeds. Longer batches cost the server less: a transaction per second of a run takes 50 % more of its
 * CPU than a transaction per two seconds (docs/scale.md). */
static const int64_t period_ns = 2 * NS_PER_S;
// Errors that do not disappear by themselves (a missing right or store) are retried, too: an administrator may fix the cause.
static const int64_t no_progress_period_ns = 15 * NS_PER_S;

enum run_state { RUN_NOT_BEGUN, RUN_GOES_ON, RUN_IS_OVER };

struct loop {
	struct uploader_page *page;
	int line_fd; // -1: the recorder is gone
	enum run_state run;
	char path[OUTPUT_FILE_PATH_SIZE];
	struct send *send;           // owned
	int64_t next_ns, give_up_ns; // CLOCK_MONOTONIC; give_up_ns INT64_MAX: until the recorder decides
	int n_failed;
	bool is_finished; // the spool of a dead recorder has been merged
};

/* ---- resource use and messages ---- */

// Private memory of this process: the recorder counts shared memory already.
static int64_t own_bytes(void)
{
	char text[4096];
	wattle_cleanup_close int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	int64_t kb = 0;
	text[n > 0 ? n : 0] = '\0';
	static const char *const keys[] = {"\nPrivate_Clean:", "\nPrivate_Dirty:"};
	for (size_t i = 0; n > 0 && i < ARRAY_SIZE(keys); i++) {
		const char *line = strstr(text, keys[i]);
		kb += line != NULL ? strtoll(line + strlen(keys[i]), NULL, 10) : 0;
	}
	return kb * 1024;
}

static void report_cost(struct loop *loop)
{
	struct companion *companion = &loop->page->companion;
	companion->cpu_ns = loop->page->cpu_before_ns + clock_cpu_ns();
	int64_t bytes = own_bytes();
	companion->rss_bytes = bytes;
	if (bytes > companion->max_rss_bytes)
		companion->max_rss_bytes = bytes;
}

static void report_warning(struct uploader_page *page, const struct wattle_error *error)
{
	page->n_told++;
	text_copy(page->text, sizeof(page->text), error->text);
	page->n_told++;
}

/* ---- messages of the recorder ---- */

static void begin_end(struct loop *loop, const char *path, int64_t give_up_ns)
{
	if (path[0] != '\0' && strcmp(path, loop->path) != 0) { // the file was saved at another path
		send_free(loop->send);
		loop->send = NULL;
		text_copy(loop->path, sizeof(loop->path), path);
	}
	loop->run = RUN_IS_OVER;
	loop->give_up_ns = give_up_ns;
	loop->next_ns = 0; // send now, regardless of the planned time
	loop->n_failed = 0;
}

static void receive(struct loop *loop)
{
	char message[OUTPUT_FILE_PATH_SIZE + 1];
	ssize_t n = recv(loop->line_fd, message, sizeof(message) - 1, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) { // recorder killed: send what is stored; do not wait for a file that was never created
		close(loop->line_fd);
		loop->line_fd = -1;
		if (loop->run == RUN_NOT_BEGUN && access(loop->path, F_OK) != 0)
			_exit(0);
		if (loop->run != RUN_IS_OVER)
			begin_end(loop, "", clock_now_ns() + loop->page->wait_ns);
		return;
	}
	message[n] = '\0';
	if (message[0] == UPLOADER_COMMAND_END)
		begin_end(loop, message + 1, INT64_MAX);
	else if (loop->run == RUN_NOT_BEGUN)
		loop->run = RUN_GOES_ON;
}

static void wait_for_next(struct loop *loop)
{
	int64_t wait_ns = loop->next_ns - clock_now_ns();
	bool waits = loop->run == RUN_NOT_BEGUN;
	if (!waits && wait_ns < 0)
		wait_ns = 0;
	const struct timespec time = {.tv_sec = wait_ns / NS_PER_S, .tv_nsec = wait_ns % NS_PER_S};
	struct pollfd line = {.fd = loop->line_fd, .events = POLLIN}; // -1: poll ignores the descriptor and only waits
	if (ppoll(&line, 1, waits ? NULL : &time, NULL) > 0)
		receive(loop);
}

/* ---- sending ---- */

static int merge_leftover_spool(struct loop *loop, struct wattle_error *reterr)
{
	if (loop->is_finished)
		return 0;
	int r = spool_merge_run_file(loop->path, reterr);
	loop->is_finished = r == 0;
	return r;
}

static int send_some(struct loop *loop, struct wattle_error *reterr)
{
	if (loop->send == NULL)
		loop->send = send_new(loop->path, loop->page->url);
	if (loop->send == NULL)
		return error_set(reterr, -ENOMEM, "the uploader is out of memory");
	if (loop->run == RUN_GOES_ON)
		return send_batch(loop->send, true, reterr);
	int r = merge_leftover_spool(loop, reterr);
	if (r == 0)
		r = send_batch(loop->send, false, reterr);
	return r == 0 ? push_end(loop->send, loop->path, reterr) : r;
}

static void fail(struct loop *loop, int r, const struct wattle_error *error)
{
	bool may_pass = r == -EBUSY || pg_may_pass(r);
	report_warning(loop->page, error);
	loop->page->state = UPLOADER_WAITS;
	if (loop->run == RUN_IS_OVER && (!may_pass || clock_now_ns() >= loop->give_up_ns)) {
		loop->page->state = UPLOADER_GAVE_UP;
		_exit(1);
	}
	loop->next_ns = clock_now_ns() + (may_pass ? push_backoff_ns(++loop->n_failed) : no_progress_period_ns);
}

static void turn(struct loop *loop)
{
	struct wattle_error error = {0};
	int r = send_some(loop, &error);
	report_cost(loop);
	if (r < 0) {
		fail(loop, r, &error);
		return;
	}
	loop->n_failed = 0;
	loop->page->n_good++;
	loop->page->state = UPLOADER_SENDS;
	loop->next_ns = r == 1 ? 0 : clock_now_ns() + period_ns;
	if (r == 0 && loop->run == RUN_IS_OVER) {
		text_copy(loop->page->run_id, sizeof(loop->page->run_id), send_run_id(loop->send));
		text_copy(loop->page->where, sizeof(loop->page->where), send_where(loop->send));
		loop->page->state = UPLOADER_IS_DONE;
		_exit(0);
	}
}

void uploader_loop(struct uploader_page *page, int line_fd)
{
	struct wattle_error error = {0};
	struct loop loop = {.page = page, .line_fd = line_fd, .give_up_ns = INT64_MAX};
	text_copy(loop.path, sizeof(loop.path), page->path);
	loop.run = page->has_begun ? RUN_GOES_ON : RUN_NOT_BEGUN;
	page->n_told += page->n_told % 2; // the predecessor was killed while it wrote a message
	if (pg_library(&error) < 0) {
		report_warning(page, &error);
		page->state = UPLOADER_NO_LIBRARY;
		_exit(1);
	}
	page->state = UPLOADER_IS_READY;
	char word = 'r';
	if (send(line_fd, &word, 1, MSG_NOSIGNAL) != 1)
		_exit(1);
	report_cost(&loop);
	for (;;) {
		wait_for_next(&loop);
		if (loop.run != RUN_NOT_BEGUN && clock_now_ns() >= loop.next_ns)
			turn(&loop);
	}
}
