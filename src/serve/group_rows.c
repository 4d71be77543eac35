#include "serve/totals.h"

#include "base/fnv.h"
#include "base/util.h"

#include <pwd.h>

enum {
	SPARE = 4,         // `most` times this many absent groups are remembered, in case they return
	OWNER_SAMPLES = 3, // samples after which a job whose processes all belong to root counts as root's
	RECENT_S = 60      // time constant of recent use, s
};

void group_rows_init(struct group_rows *table, enum monitor_grouping grouping, size_t most)
{
	*table = (struct group_rows){.grouping = grouping, .bounds = {.most = most}};
}

void group_rows_finish(struct group_rows *table)
{
	free(table->items);
	*table = (struct group_rows){0};
}

/* ---- lookup ---- */

static struct group_row *find(struct group_rows *table, const char *name, uint32_t hash)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->items[i].hash == hash && strcmp(table->items[i].name, name) == 0)
			return &table->items[i];
	return NULL;
}

static void drop(struct group_rows *table, size_t i)
{
	table->items[i] = table->items[--table->n];
}

// Drops the absent group without a row that left first, to make room.
static void drop_oldest(struct group_rows *table)
{
	size_t oldest = table->n;
	for (size_t i = 0; i < table->n; i++) {
		const struct group_row *row = &table->items[i];
		if (row->is_here || row->series.state != SERIES_NONE)
			continue;
		if (oldest == table->n || row->last_sample < table->items[oldest].last_sample)
			oldest = i;
	}
	if (oldest < table->n)
		drop(table, oldest);
}

struct group_row *group_rows_add(struct group_rows *table, const char *name)
{
	const uint32_t hash = fnv_u32(FNV_START_U32, name, strlen(name));
	struct group_row *row = find(table, name, hash);
	if (row != NULL)
		return row;
	if (table->n >= table->bounds.most * SPARE)
		drop_oldest(table);
	struct group_row *larger = array_reserve(table->items, table->n, &table->capacity, sizeof(*larger), 16);
	if (larger == NULL)
		return NULL;
	table->items = larger;
	row = &larger[table->n++];
	*row = (struct group_row){.hash = hash};
	text_copy(row->name, sizeof(row->name), name);
	return row;
}

/* ---- job owners ---- */

// Sets the user once: a row with another user would be another series.
static void find_user(struct group_row *row, uid_t uid)
{
	struct passwd entry, *found = NULL;
	char text[4096];
	if (getpwuid_r(uid, &entry, text, sizeof(text), &found) == 0 && found != NULL)
		text_copy(row->user, sizeof(row->user), found->pw_name);
	else
		snprintf(row->user, sizeof(row->user), "%u", (unsigned int)uid);
}

static void take_user(const struct group_rows *table, struct group_row *row)
{
	if (table->grouping != MONITOR_JOBS || row->user[0] != '\0' || row->now.uid == (uid_t)-1)
		return;
	if (row->now.uid != 0 || row->n_samples >= OWNER_SAMPLES)
		find_user(row, row->now.uid);
}

bool group_row_is_shown(const struct group_rows *table, const struct group_row *row)
{
	if (row->series.state == SERIES_NONE)
		return false;
	// A job that ended before its user was known is exported without a user.
	return table->grouping != MONITOR_JOBS || row->user[0] != '\0' || row->n_samples >= OWNER_SAMPLES ||
		row->series.state == SERIES_LEAVING;
}

/* ---- row assignment ---- */

static struct group_row *strongest_without(struct group_rows *table)
{
	struct group_row *strongest = NULL;
	for (size_t i = 0; i < table->n; i++) {
		struct group_row *row = &table->items[i];
		bool is_candidate = row->is_here && row->series.state != SERIES_SHOWN;
		if (is_candidate && (strongest == NULL || row->series.recent > strongest->series.recent))
			strongest = row;
	}
	return strongest;
}

static void give_rows(struct group_rows *table, uint64_t sample, int64_t t_ns)
{
	struct group_row *row;
	while ((row = strongest_without(table)) != NULL && table->bounds.new_left >= 1 &&
		series_make_room(&table->bounds, SERIES_OF(table), row->series.recent, sample, t_ns)) {
		series_take_new(&table->bounds);
		row->series.state = SERIES_SHOWN;
	}
}

/* ---- sampling ---- */

static double use_of(const struct monitor_sample *now, const struct monitor_group *group)
{
	double use_j = 0;
	bool is_metered = false;
	for (int r = 0; r < MONITOR_RESOURCES; r++) {
		use_j += group->added_j[r];
		is_metered = is_metered || now->exists[r];
	}
	return is_metered ? use_j : group->added_cpu_s;
}

static void add_group(struct group_rows *table, const struct monitor_sample *now, uint64_t sample)
{
	const struct monitor_group *groups = now->groups[table->grouping];
	double fade = now->dt_s > 0 ? exp(-now->dt_s / RECENT_S) : 1;
	for (size_t i = 0; i < table->n; i++)
		table->items[i].series.recent *= fade;
	for (size_t i = 0; i < now->n_groups[table->grouping]; i++) {
		struct group_row *row = groups[i].processes > 0 ? group_rows_add(table, groups[i].name) : NULL;
		if (row == NULL)
			continue;
		row->is_here = true;
		row->last_sample = sample;
		row->n_samples++;
		row->now = groups[i];
		row->series.recent += use_of(now, &groups[i]);
		take_user(table, row);
	}
}

static void remove_group(struct group_rows *table, uint64_t sample, int64_t t_ns)
{
	for (size_t i = 0; i < table->n; i++) {
		struct group_row *row = &table->items[i];
		row->is_here = row->last_sample == sample;
		bool left_unseen = row->series.state == SERIES_LEAVING &&
			row->series.left_sample == 0; // before a restart
		if (!row->is_here && (row->series.state == SERIES_SHOWN || left_unseen))
			series_leave(&row->series, sample, t_ns);
	}
}

static void count_energy(struct group_rows *table, const struct monitor_sample *now)
{
	double inside_j[MONITOR_RESOURCES] = {0}, inside_cpu_s = 0;
	for (size_t i = 0; i < table->n; i++) {
		struct group_row *row = &table->items[i];
		if (!row->is_here)
			continue;
		bool is_told = row->series.state == SERIES_SHOWN;
		for (int r = 0; r < MONITOR_RESOURCES; r++) {
			*(is_told ? &row->energy_j[r] : &table->other_j[r]) += row->now.added_j[r];
			inside_j[r] += row->now.added_j[r];
		}
		*(is_told ? &row->cpu_s : &table->other_cpu_s) += row->now.added_cpu_s;
		inside_cpu_s += row->now.added_cpu_s;
	}
	for (int r = 0; r < MONITOR_RESOURCES; r++) {
		const struct monitor_added *added = &now->added[r];
		table->rest_j[r] += fmax(added->total_j - added->idle_j - added->unattributed_j - inside_j[r], 0);
	}
	double busy_s = now->busy_cores * now->dt_s;
	table->rest_cpu_s += busy_s > inside_cpu_s ? busy_s - inside_cpu_s : 0; // false if busy_s is NaN
}

// Adds the leaving row that left first to "other". Needed when more groups have ended than rows may leave, because nobody
// scrapes.
static void fold(struct group_rows *table)
{
	struct group_row *first = NULL;
	for (size_t i = 0; i < table->n; i++)
		if (table->items[i].series.state == SERIES_LEAVING &&
			(first == NULL || table->items[i].series.left_sample < first->series.left_sample))
			first = &table->items[i];
	for (int r = 0; r < MONITOR_RESOURCES; r++)
		table->other_j[r] += first->energy_j[r];
	table->other_cpu_s += first->cpu_s;
	memset(first->energy_j, 0, sizeof(first->energy_j));
	first->cpu_s = 0;
	first->series.state = SERIES_NONE;
}

void group_rows_update(struct group_rows *table, const struct monitor_sample *now, uint64_t sample)
{
	if (table->bounds.most == 0)
		return;
	series_begin_sample(&table->bounds, now->t_ns);
	add_group(table, now, sample);
	remove_group(table, sample, now->t_ns);
	give_rows(table, sample, now->t_ns);
	for (size_t n = series_count(SERIES_OF(table), SERIES_LEAVING); n > table->bounds.most; n--)
		fold(table);
	count_energy(table, now);
}

void group_rows_drop_scraped(struct group_rows *table, const struct scraped *seen)
{
	for (size_t i = 0; i < table->n; i++) {
		struct group_row *row = &table->items[i];
		if (row->series.state == SERIES_LEAVING &&
			was_scraped(seen, row->series.left_sample, row->series.left_ns))
			row->series.state = SERIES_NONE;
	}
}
