// Location and locking of the state file of `wattle serve`.
#include "serve/totals.h"

#include "base/cleanup.h"
#include "base/lock_file.h"
#include "base/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- machine and file names ---- */

// Tests and containers supply their own sensors; their state must not mix with this machine's.
static void find_boot(const struct wattle_env *env, char *out, size_t size)
{
	char boot[64] = "";
	struct stat st = {0};
	wattle_cleanup_close int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, boot, sizeof(boot) - 1) : 0;
	boot[length > 0 ? strcspn(boot, "\n") : 0] = '\0';
	bool is_made = getenv("WATTLE_SYSFS") != NULL && fstat(env->sysfs_fd, &st) == 0;
	snprintf(out, size, is_made ? "%s %llx:%llx" : "%s", boot, (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
}

static bool make_folders(const char *folder)
{
	char path[768];
	if (!text_copy(path, sizeof(path), folder))
		return false;
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return false;
		*slash = '/';
	}
	return mkdir(path, 0755) == 0 || errno == EEXIST;
}

// "127.0.0.1:9095" -> "127.0.0.1_9095". Long words keep their end, which distinguishes them.
static void put_word(struct buf *out, const char *word)
{
	enum { WORD_MAX = 80 };
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
	size_t length = strlen(word);
	for (const char *at = word + (length > WORD_MAX ? length - WORD_MAX : 0); *at != '\0'; at++)
		buf_char(out, strchr(plain, *at) != NULL ? *at : '_');
}

static bool put_name(struct state *state, const char *node, const char *key)
{
	struct buf name;
	buf_init(&name, sizeof(state->name) - 1);
	buf_str(&name, "serve-");
	put_word(&name, node);
	buf_char(&name, '-');
	put_word(&name, key);
	buf_str(&name, ".json");
	bool fits = name.failed == 0 && text_copy(state->name, sizeof(state->name), name.data);
	buf_finish(&name);
	return fits;
}

static void put_lock_name(char *out, size_t size, const char *name)
{
	snprintf(out, size, "%s.lock", name);
}

/* ---- taking over the file of an ended server ---- */

struct earlier_state {
	char name[sizeof(((struct state *)0)->name)]; // "": none
	struct timespec written;
	int lock_fd; // owned; -1: none
};

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

// Locks the file of that name; -1: another process holds the lock.
static int lock_of(const struct state *state, const char *name)
{
	char lock[sizeof(state->name) + 8];
	int fd;
	put_lock_name(lock, sizeof(lock), name);
	return lock_file_take(state->folder_fd, lock, &fd, NULL) == 0 ? fd : -1;
}

static void drop_lock_of(const struct state *state, const char *name, int fd)
{
	char lock[sizeof(state->name) + 8];
	put_lock_name(lock, sizeof(lock), name);
	if (fd >= 0)
		lock_file_drop(state->folder_fd, lock, fd);
}

static void consider(const struct state *state, const char *name, struct earlier_state *best)
{
	struct stat st;
	if (fstatat(state->folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		(best->name[0] != '\0' && !is_later(&st.st_mtim, &best->written)))
		return;
	int fd = lock_of(state, name);
	if (fd < 0)
		return;
	drop_lock_of(state, best->name, best->lock_fd);
	best->lock_fd = fd;
	best->written = st.st_mtim;
	text_copy(best->name, sizeof(best->name), name);
}

static bool is_state_name(const char *name, const char *prefix)
{
	static const char ending[] = ".json";
	size_t length = strlen(name);
	return strncmp(name, prefix, strlen(prefix)) == 0 && length > strlen(ending) &&
		strcmp(name + length - strlen(ending), ending) == 0 && length < sizeof(((struct state *)0)->name);
}

/* A server at a new address is a new scrape target, whose counters may start at any value. It continues from the last
 * ended server of this machine and takes over its file. Files of running servers are left alone. */
static void inherit(const struct state *state)
{
	struct earlier_state best = {.lock_fd = -1};
	wattle_cleanup_dir DIR *folder = fdopendir(openat(state->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (folder == NULL || faccessat(state->folder_fd, state->name, F_OK, 0) == 0)
		return;
	struct buf prefix;
	buf_init(&prefix, sizeof(state->name));
	buf_str(&prefix, "serve-");
	put_word(&prefix, state->node);
	buf_char(&prefix, '-');
	for (struct dirent *entry; prefix.failed == 0 && (entry = readdir(folder)) != NULL;)
		if (is_state_name(entry->d_name, prefix.data))
			consider(state, entry->d_name, &best);
	buf_finish(&prefix);
	if (best.name[0] == '\0')
		return;
	char temporary[sizeof(best.name) + 8];
	snprintf(temporary, sizeof(temporary), "%s.tmp", best.name);
	if (renameat(state->folder_fd, best.name, state->folder_fd, state->name) == 0)
		unlinkat(state->folder_fd, temporary, 0);
	drop_lock_of(state, best.name, best.lock_fd);
}

/* ---- opening ---- */

static int open_folder(struct state *state, struct wattle_error *reterr)
{
	if (make_folders(state->env->state_dir))
		state->folder_fd = open(state->env->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state->folder_fd < 0)
		return error_set(reterr, -errno,
			"%s: %s; counters start at 0 at each start; set WATTLE_STATE to another folder",
			state->env->state_dir, strerror(errno));
	return 0;
}

// A separate lock file, because the state file itself is replaced.
static int take_lock(struct state *state, struct wattle_error *reterr)
{
	char name[sizeof(state->name) + 8];
	struct wattle_error why = {0};
	put_lock_name(name, sizeof(name), state->name);
	int r = lock_file_take(state->folder_fd, name, &state->lock_fd, &why);
	if (r == -EBUSY)
		return error_set(reterr, r,
			"%s/%s is used by another wattle serve; this server's counters start at 0 (%s)",
			state->env->state_dir, state->name, why.text);
	if (r < 0)
		return error_set(reterr, r,
			"%s/%s; counters start at 0 at each start; set WATTLE_STATE to another folder",
			state->env->state_dir, why.text);
	return 0;
}

int state_open(struct state *state, const struct wattle_env *env, const char *node, const char *key,
	struct wattle_error *reterr)
{
	*state = (struct state){.env = env, .folder_fd = -1, .lock_fd = -1};
	buf_init(&state->text, STATE_CEILING);
	find_boot(env, state->boot, sizeof(state->boot));
	text_copy(state->node, sizeof(state->node), node);
	int r = put_name(state, node, key) ? open_folder(state, reterr)
					   : error_set(reterr, -ENAMETOOLONG, "no free name for a state file");
	if (r == 0)
		r = take_lock(state, reterr);
	if (r < 0)
		state_close(state);
	else
		inherit(state);
	return r;
}

void state_close(struct state *state)
{
	drop_lock_of(state, state->name, state->lock_fd);
	if (state->folder_fd >= 0)
		close(state->folder_fd);
	state->lock_fd = state->folder_fd = -1;
	buf_finish(&state->text);
}
