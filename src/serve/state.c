#include "serve/state.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char schema[] = "wattle-serve-state/1";
enum { FILE_CEILING = 1 << 24 };

/* ---- which machine, which file ---- */

// Tests and containers bring sensors of their own: theirs are not this machine's.
static void find_boot(const struct wattle_env *env, char *out, size_t size)
{
	char boot[64] = "";
	struct stat st = {0};
	wattle_cleanup_close int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, boot, sizeof(boot) - 1) : 0;
	boot[length > 0 ? strcspn(boot, "\n") : 0] = '\0';
	bool is_made = getenv("WATTLE_SYSFS") != NULL && fstat(env->sysfs_fd, &st) == 0;
	snprintf(out, size, is_made ? "%s %llx:%llx" : "%s", boot, (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
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

// "127.0.0.1:9095" -> "127.0.0.1_9095". What tells long ones apart is their end.
static void put_word(struct buf *out, const char *word)
{
	enum { WORD_MOST = 80 };
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
	size_t length = strlen(word);
	for (const char *at = word + (length > WORD_MOST ? length - WORD_MOST : 0); *at != '\0'; at++)
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

static int open_folder(struct state *state, struct wattle_error *reterr)
{
	if (make_folders(state->env->state_dir))
		state->folder_fd = open(state->env->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state->folder_fd < 0)
		return error_set(reterr, -errno,
			"%s: %s; counters begin at 0 at each start (WATTLE_STATE names another folder)", state->env->state_dir,
			strerror(errno));
	return 0;
}

// A lock of its own, because the file itself is replaced. The kernel frees it, however we end.
static int take_lock(struct state *state, struct wattle_error *reterr)
{
	char name[sizeof(state->name) + 8];
	snprintf(name, sizeof(name), "%s.lock", state->name);
	state->lock_fd = openat(state->folder_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (state->lock_fd < 0)
		return error_set(reterr, -errno,
			"%s/%s: %s; counters begin at 0 at each start (WATTLE_STATE names another folder)",
			state->env->state_dir, name, strerror(errno));
	if (flock(state->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return error_set(reterr, -errno, "%s/%s is kept by another wattle serve; this one's counters begin at 0",
			state->env->state_dir, state->name);
	return 0;
}

int state_open(struct state *state, const struct wattle_env *env, const char *node, const char *key, struct wattle_error *reterr)
{
	*state = (struct state){.env = env, .folder_fd = -1, .lock_fd = -1};
	buf_init(&state->text, FILE_CEILING);
	find_boot(env, state->boot, sizeof(state->boot));
	text_copy(state->node, sizeof(state->node), node);
	int r = put_name(state, node, key) ? open_folder(state, reterr) : error_set(reterr, -ENAMETOOLONG, "no name for a state file");
	if (r == 0)
		r = take_lock(state, reterr);
	if (r < 0)
		state_close(state);
	return r;
}

void state_close(struct state *state)
{
	if (state->lock_fd >= 0)
		close(state->lock_fd);
	if (state->folder_fd >= 0)
		close(state->folder_fd);
	state->lock_fd = state->folder_fd = -1;
	buf_finish(&state->text);
}

/* ---- writing ---- */

static void write_domain(struct jsonw *j, const struct now_kept *kept)
{
	jsonw_begin_object(j);
	jsonw_key_string(j, "domain", kept->name);
	jsonw_key_string(j, "uuid", kept->uuid);
	jsonw_key_string(j, "source", kept->source);
	jsonw_key_i64(j, "energy_uj", kept->energy_uj);
	jsonw_key_i64(j, "wraps", kept->wraps);
	jsonw_key_i64(j, "resets", kept->resets);
	jsonw_key_i64(j, "gaps", kept->gaps);
	if (kept->has_raw) {
		jsonw_key_i64(j, "raw_uj", (int64_t)kept->last_raw);
		jsonw_key_i64(j, "read_ns", kept->last_t_ns);
		jsonw_key_i64(j, "changed_ns", kept->last_change_ns);
		jsonw_key_double(j, "mean_power_w", kept->mean_power_w);
		jsonw_key_double(j, "mean_span_s", kept->mean_span_s);
	}
	jsonw_end_object(j);
}

static void make_text(struct state *state, const struct now_state *now, size_t n_domains, const struct tally *tally, bool is_last)
{
	struct jsonw j;
	buf_clear(&state->text);
	jsonw_init(&j, &state->text, false);
	jsonw_begin_object(&j);
	jsonw_key_string(&j, "schema", schema);
	jsonw_key_string(&j, "node", state->node);
	jsonw_key_string(&j, "boot", state->boot);
	jsonw_key_bool(&j, "ended_in_order", is_last);
	jsonw_key(&j, "domains");
	jsonw_begin_array(&j);
	for (size_t i = 0; i < n_domains; i++) {
		struct now_kept kept;
		now_keep(now, i, &kept);
		write_domain(&j, &kept);
	}
	jsonw_end_array(&j);
	tally_write(tally, &j);
	jsonw_end_object(&j);
	buf_char(&state->text, '\n');
}

// The file of before, or the new one: never half of it. On disk only where a power cut matters.
static int replace(const struct state *state, bool is_last)
{
	char temporary[sizeof(state->name) + 8];
	snprintf(temporary, sizeof(temporary), "%s.tmp", state->name);
	wattle_cleanup_close int fd = openat(state->folder_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	int r = state->text.failed != 0 ? state->text.failed : buf_write_fd(&state->text, fd);
	if (r == 0 && is_last && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(state->folder_fd, temporary, state->folder_fd, state->name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(state->folder_fd, temporary, 0);
	return r;
}

void state_write(struct state *state, const struct now_state *now, size_t n_domains, const struct tally *tally, uint64_t look,
	bool is_last)
{
	if (state->folder_fd < 0 || (state->written_look == look && !is_last))
		return;
	state->written_look = look;
	make_text(state, now, n_domains, tally, is_last);
	state->failed = replace(state, is_last);
	/* Who could not write it must not count on from an older one: that would be the little step back. */
	if (state->failed < 0)
		unlinkat(state->folder_fd, state->name, 0);
}

/* ---- reading ---- */

static bool take_text(const json_t *object, const char *key, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text != NULL && text_copy(out, size, text);
}

static int64_t take_count(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));
	return value > 0 ? value : 0;
}

static bool take_domain(const json_t *object, struct now_kept *ret_kept)
{
	struct now_kept kept = {
		.energy_uj = take_count(object, "energy_uj"),
		.wraps = (uint32_t)take_count(object, "wraps"),
		.resets = (uint32_t)take_count(object, "resets"),
		.gaps = (uint32_t)take_count(object, "gaps"),
		.has_raw = json_is_integer(json_object_get(object, "raw_uj")),
		.last_raw = (uint64_t)take_count(object, "raw_uj"),
		.last_t_ns = take_count(object, "read_ns"),
		.last_change_ns = take_count(object, "changed_ns"),
		.mean_power_w = json_number_value(json_object_get(object, "mean_power_w")),
		.mean_span_s = json_number_value(json_object_get(object, "mean_span_s")),
	};
	if (!take_text(object, "domain", kept.name, sizeof(kept.name)) ||
		!take_text(object, "uuid", kept.uuid, sizeof(kept.uuid)) ||
		!take_text(object, "source", kept.source, sizeof(kept.source)))
		return false;
	*ret_kept = kept;
	return true;
}

static bool is_text(const json_t *object, const char *key, const char *wanted)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text != NULL && strcmp(text, wanted) == 0;
}

// Of another boot only what was surely its last word.
static bool counts_on(const struct state *state, const json_t *object)
{
	if (!is_text(object, "schema", schema))
		return false;
	if (is_text(object, "boot", state->boot))
		return true;
	// Sensors that somebody brought are no later boot of this machine's.
	const char *boot = json_string_value(json_object_get(object, "boot"));
	bool is_made = boot == NULL || strchr(boot, ' ') != NULL || strchr(state->boot, ' ') != NULL;
	return !is_made && is_text(object, "node", state->node) && json_is_true(json_object_get(object, "ended_in_order"));
}

void state_read(struct state *state, struct state_read *ret_read)
{
	*ret_read = (struct state_read){0};
	char *text;
	size_t size, i;
	json_t *domain;
	if (state->folder_fd < 0 || file_read_all_in(state->folder_fd, state->name, FILE_CEILING, &text, &size) < 0)
		return;
	json_t *object = json_loadb(text, size, 0, NULL);
	free(text);
	if (!counts_on(state, object)) {
		json_decref(object);
		return;
	}
	ret_read->object = object;
	ret_read->same_boot = is_text(object, "boot", state->boot);
	json_array_foreach(json_object_get(object, "domains"), i, domain)
		if (ret_read->n_domains < STATE_DOMAINS_MAX &&
			take_domain(domain, &ret_read->domains[ret_read->n_domains]))
			ret_read->n_domains++;
}

void state_read_finish(struct state_read *read)
{
	json_decref(read->object);
	*read = (struct state_read){0};
}
