#include "cli/sensors.h"

#include "base/buf.h"
#include "base/fields.h"
#include "base/fnv.h"
#include "base/util.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SCHEMA "wattle-idle/1"
enum { FILE_CEILING = 1 << 20, PATH_SIZE = 600 };
static const int64_t DAY_S = 86400;

bool idle_baseline_path(const struct wattle_env *env, char *ret_path, size_t size)
{
	int length = snprintf(ret_path, size, "%s/idle.json", env->state_dir);
	return length > 0 && (size_t)length < size;
}

/* ---- identity of the machine ---- */

/* systemd asks programs not to expose the machine id, but a hash of it and an application id. FNV-1a suffices: 64 of 128 random
 * bits remain, and finding another machine with the same hash has no use. */
void idle_baseline_host(char *ret_host, size_t size)
{
	char id[256] = "";
	FILE *file = fopen("/etc/machine-id", "re");
	if (file == NULL || fgets(id, sizeof(id), file) == NULL || id[0] == '\n')
		gethostname(id, sizeof(id) - 1);
	if (file != NULL)
		fclose(file);
	uint64_t value = fnv_u64(fnv_u64(FNV_START_U64, SCHEMA), id);
	snprintf(ret_host, size, "%016llx", (unsigned long long)value);
}

void idle_baseline_date(int64_t wall_ns, char *ret_date, size_t size)
{
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	struct tm utc;
	gmtime_r(&seconds, &utc);
	strftime(ret_date, size, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

// Whole days from the date to now; -1 if the date is not one that wattle wrote.
static int64_t age_days(const char *date, int64_t wall_ns)
{
	struct tm utc = {0};
	const char *end = strptime(date, "%Y-%m-%dT%H:%M:%SZ", &utc);
	if (end == NULL || *end != '\0')
		return -1;
	int64_t age_s = wall_ns / NS_PER_S - (int64_t)timegm(&utc);
	return age_s < -DAY_S ? -1 : age_s / DAY_S; // tolerates a wall clock that was set back a little
}

/* ---- the file ---- */

// clang-format off
#define E struct idle_entry
static const struct field entry_fields[] = {
	FIELD(E, domain, NULL, "name of the domain"),
	FIELD(E, source, NULL, "sensor that measured it"),
	FIELD(E, device, NULL, "name of the hardware", .known = true),
	FIELD(E, uuid, NULL, "UUID of a GPU"),
	FIELD(E, idle_w, "W", "idle power"),
	FIELD(E, error_w, "W", "half of the 95 % interval"),
	FIELD(E, seconds, "s", "duration of the measurement"),
	FIELD(E, temperature_c, "°C", "temperature during the measurement"),
	FIELD(E, date, NULL, "time of the measurement, RFC 3339"),
};
#undef E
static const struct object_type entry_type = OBJECT_TYPE("idle", "Idle power of a domain.", entry_fields);

#define B struct idle_baseline
static const struct field baseline_fields[] = {
	FIELD_SCHEMA(SCHEMA),
	FIELD(B, host, NULL, "hash of the machine's identity"),
	FIELD(B, date, NULL, "when the last calibration was, RFC 3339"),
	FIELD(B, temperature_c, "°C", "temperature during the measurement"),
	FIELD_ITEMS(B, "domains", entries, n, &entry_type, "idle power of each domain"),
};
#undef B
const struct object_type idle_baseline_type = OBJECT_TYPE("idle_baseline", "Idle power of a machine.", baseline_fields);
// clang-format on

/* ---- reading ---- */

static bool is_whole(const struct idle_entry *entry)
{
	return entry->domain[0] != '\0' && entry->source[0] != '\0' && entry->date[0] != '\0' && entry->idle_w > 0 &&
		entry->error_w >= 0;
}

static int read_all(const json_t *root, struct idle_baseline *baseline)
{
	const char *schema = json_string_value(json_object_get(root, "schema"));
	size_t n = 0;
	if (schema == NULL || strcmp(schema, SCHEMA) != 0)
		return -EINVAL;
	baseline->arena = arena_new();
	int r = baseline->arena != NULL ? fields_read(root, &idle_baseline_type, baseline, baseline->arena, NULL)
					: -ENOMEM;
	if (r == 0 && baseline->host[0] == '\0')
		r = -EINVAL;
	for (size_t i = 0; r == 0 && i < baseline->n && n < IDLE_BASELINE_MAX; i++)
		if (is_whole(&baseline->entries[i]))
			baseline->entries[n++] = baseline->entries[i];
	baseline->n = n;
	return r;
}

int idle_baseline_load(const struct wattle_env *env, struct idle_baseline *ret_baseline, struct wattle_error *reterr)
{
	char path[PATH_SIZE];
	json_error_t cause;
	*ret_baseline = (struct idle_baseline){0};
	if (!idle_baseline_path(env, path, sizeof(path)) || access(path, F_OK) != 0)
		return -ENOENT;
	json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &cause);
	int r = root != NULL ? read_all(root, ret_baseline) : -EINVAL;
	json_decref(root);
	if (r < 0)
		idle_baseline_finish(ret_baseline);
	if (r < 0)
		error_set(reterr, r, "%s does not contain idle power: remove it and calibrate again", path);
	return r;
}

void idle_baseline_finish(struct idle_baseline *baseline)
{
	arena_free(baseline->arena);
	*baseline = (struct idle_baseline){0};
}

/* ---- writing ---- */

static bool same_domain(const struct idle_entry *a, const struct idle_entry *b)
{
	return strcmp(a->domain, b->domain) == 0 && strcmp(a->source, b->source) == 0 &&
		strcmp(a->device, b->device) == 0 && strcmp(a->uuid, b->uuid) == 0;
}

static bool is_replaced(const struct idle_entry *old, const struct idle_entry *entries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (same_domain(old, &entries[i]))
			return true;
	return false;
}

// Writes the new entries, then the old ones that they do not replace.
static int merge(const struct idle_baseline *old, const struct idle_entry *entries, size_t n,
	struct idle_baseline *ret_baseline)
{
	struct idle_baseline merged = {.temperature_c = (double)NAN, .arena = arena_new()};
	*ret_baseline = merged;
	if (merged.arena == NULL || (merged.entries = arena_alloc(merged.arena, n + old->n, sizeof(*entries))) == NULL)
		return -ENOMEM;
	idle_baseline_host(merged.host, sizeof(merged.host));
	text_copy(merged.date, sizeof(merged.date), n > 0 ? entries[0].date : "");
	for (size_t i = 0; i < n; i++) {
		if (isnan(merged.temperature_c))
			merged.temperature_c = entries[i].temperature_c;
		merged.entries[merged.n++] = entries[i];
	}
	for (size_t i = 0; i < old->n; i++)
		if (!is_replaced(&old->entries[i], entries, n))
			merged.entries[merged.n++] = old->entries[i];
	*ret_baseline = merged;
	return 0;
}

static int write_file(const struct idle_baseline *baseline, const char *path)
{
	struct buf out;
	buf_init(&out, FILE_CEILING);
	document_json(&out, &idle_baseline_type, baseline, true);
	buf_char(&out, '\n');
	int r = out.failed != 0 ? out.failed : buf_write_file(&out, path);
	buf_finish(&out);
	return r;
}

// The state folder of a user is private (mode 0700 by the XDG base directory specification); root's is readable by all.
static int make_folders(const char *path)
{
	char part[PATH_SIZE];
	mode_t mode = geteuid() == 0 ? 0755 : 0700;
	if (!text_copy(part, sizeof(part), path))
		return -ENAMETOOLONG;
	for (char *at = part + 1; (at = strchr(at, '/')) != NULL; at++) {
		*at = '\0';
		if (mkdir(part, mode) != 0 && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	return mkdir(part, mode) == 0 || errno == EEXIST ? 0 : -errno;
}

int idle_baseline_folder(const struct wattle_env *env, struct wattle_error *reterr)
{
	int r = make_folders(env->state_dir);
	return r < 0 ? error_set(reterr, r, "%s: %s; set WATTLE_STATE to another folder", env->state_dir, strerror(-r))
		     : 0;
}

int idle_baseline_store(const struct wattle_env *env, const struct idle_entry *entries, size_t n,
	struct wattle_error *reterr)
{
	char path[PATH_SIZE], host[sizeof(((struct idle_baseline *)NULL)->host)];
	struct idle_baseline old, merged;
	if (!idle_baseline_path(env, path, sizeof(path)))
		return error_set(reterr, -ENAMETOOLONG, "%s: %s; set WATTLE_STATE to another folder", env->state_dir,
			strerror(ENAMETOOLONG));
	int r = idle_baseline_folder(env, reterr);
	if (r < 0)
		return r;
	idle_baseline_host(host, sizeof(host));
	if (idle_baseline_load(env, &old, NULL) < 0 || strcmp(old.host, host) != 0)
		idle_baseline_finish(&old);
	r = merge(&old, entries, n, &merged);
	if (r == 0)
		r = write_file(&merged, path);
	idle_baseline_finish(&merged);
	idle_baseline_finish(&old);
	return r < 0 ? error_set(reterr, r, "can't write %s: %s", path, strerror(-r)) : 0;
}

/* ---- lookup ---- */

static const struct idle_entry *find(const struct idle_baseline *baseline, const struct domain *domain,
	const char *source)
{
	for (size_t i = 0; i < baseline->n; i++) {
		const struct idle_entry *entry = &baseline->entries[i];
		if (strcmp(entry->domain, domain->name) == 0 && strcmp(entry->source, source) == 0 &&
			strcmp(entry->device, domain->device) == 0 && strcmp(entry->uuid, domain->uuid) == 0)
			return entry;
	}
	return NULL;
}

size_t idle_baseline_of(const struct wattle_env *env, const struct sensor_set *set, struct idle_power *ret_idle,
	char *ret_note, size_t size)
{
	struct idle_baseline baseline;
	struct wattle_error error = {0};
	char host[sizeof(baseline.host)];
	size_t given = 0;
	ret_note[0] = '\0';
	idle_baseline_host(host, sizeof(host));
	int r = idle_baseline_load(env, &baseline, &error);
	if (r < 0) {
		text_copy(ret_note, size, error.text); // a missing file needs no note
	} else if (strcmp(baseline.host, host) != 0) {
		snprintf(ret_note, size,
			"the stored idle power is another machine's and is not used; measure this machine's "
			"with `wattle sensors --calibrate-idle`");
		baseline.n = 0;
	}
	for (size_t i = 0; i < set->n_devices; i++) {
		const struct idle_entry *entry = find(&baseline, set->devices[i], set->sources[i]);
		int64_t days = entry != NULL ? age_days(entry->date, env_wall_ns(env)) : 0;
		if (entry == NULL)
			continue;
		if (days < 0 || days > IDLE_BASELINE_DAYS) {
			snprintf(ret_note, size,
				"the stored idle power of %s is not used: it was measured on %.10s, more "
				"than %d days ago; measure it again with `wattle sensors --calibrate-idle`",
				entry->domain, entry->date, IDLE_BASELINE_DAYS);
			continue;
		}
		ret_idle[i] = (struct idle_power){entry->idle_w, entry->error_w, entry->temperature_c};
		text_copy(ret_idle[i].date, sizeof(ret_idle[i].date), entry->date);
		given++;
	}
	idle_baseline_finish(&baseline);
	return given;
}
