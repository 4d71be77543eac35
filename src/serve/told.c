#include "serve/tally.h"

#include "base/fnv.h"
#include "base/util.h"

#include <pwd.h>

enum {
	SPARE = 4,       // so many times `most` are remembered that are not here any more, should they come back
	OWNER_LOOKS = 3, // a job whose processes are root's alone for so long is root's
	SWAP_PART = 10,  // at most so small a part of the rows changes hands in
	SWAP_S = 60,     // so long
	RECENT_S = 60    // what "of late" means
};
// Rows change hands only for who used so much more: each is a new series for whoever scrapes.
static const double swap_ratio = 2;

void told_init(struct told_table *table, enum now_grouping grouping, size_t most)
{
	*table = (struct told_table){.grouping = grouping, .most = most};
}

void told_finish(struct told_table *table)
{
	free(table->items);
	*table = (struct told_table){0};
}

/* ---- who is who ---- */

static struct told_row *find(struct told_table *table, const char *name, uint32_t hash)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->items[i].hash == hash && strcmp(table->items[i].name, name) == 0)
			return &table->items[i];
	return NULL;
}

static void drop(struct told_table *table, size_t i)
{
	table->items[i] = table->items[--table->n];
}

// Those that have no row and are not here are only remembered: the one that left first makes room.
static void drop_oldest(struct told_table *table)
{
	size_t oldest = table->n;
	for (size_t i = 0; i < table->n; i++) {
		const struct told_row *row = &table->items[i];
		if (row->is_here || row->state != TOLD_NOT)
			continue;
		if (oldest == table->n || row->last_look < table->items[oldest].last_look)
			oldest = i;
	}
	if (oldest < table->n)
		drop(table, oldest);
}

struct told_row *told_add(struct told_table *table, const char *name)
{
	const uint32_t hash = fnv_u32(FNV_START_U32, name, strlen(name));
	struct told_row *row = find(table, name, hash);
	if (row != NULL)
		return row;
	if (table->n >= table->most * SPARE)
		drop_oldest(table);
	struct told_row *larger = array_with_room(table->items, table->n, &table->room, sizeof(*larger), 16);
	if (larger == NULL)
		return NULL;
	table->items = larger;
	row = &larger[table->n++];
	*row = (struct told_row){.hash = hash};
	text_copy(row->name, sizeof(row->name), name);
	return row;
}

/* ---- whose a job is ---- */

// Once: a row whose user changed would be another series.
static void find_user(struct told_row *row, uid_t uid)
{
	struct passwd entry, *found = NULL;
	char text[4096];
	if (getpwuid_r(uid, &entry, text, sizeof(text), &found) == 0 && found != NULL)
		text_copy(row->user, sizeof(row->user), found->pw_name);
	else
		snprintf(row->user, sizeof(row->user), "%u", (unsigned int)uid);
}

static void take_user(const struct told_table *table, struct told_row *row)
{
	if (table->grouping != NOW_JOBS || row->user[0] != '\0' || row->now.uid == (uid_t)-1)
		return;
	if (row->now.uid != 0 || row->looks >= OWNER_LOOKS)
		find_user(row, row->now.uid);
}

bool told_has_row(const struct told_table *table, const struct told_row *row)
{
	if (row->state == TOLD_NOT)
		return false;
	// One that ended before that was known is told without.
	return table->grouping != NOW_JOBS || row->user[0] != '\0' || row->looks >= OWNER_LOOKS ||
		row->state == TOLD_LEAVING;
}

/* ---- who has a row ---- */

static size_t count(const struct told_table *table, enum told_state state)
{
	size_t n = 0;
	for (size_t i = 0; i < table->n; i++)
		n += table->items[i].state == state;
	return n;
}

static void end_row(struct told_row *row, uint64_t look, int64_t t_ns)
{
	row->state = TOLD_LEAVING;
	row->left_look = look;
	row->left_ns = t_ns;
}

static void give_rows(struct told_table *table)
{
	size_t n = count(table, TOLD_HERE);
	for (size_t i = 0; i < table->n && n < table->most; i++) {
		if (!table->items[i].is_here || table->items[i].state == TOLD_HERE || !ration_take(&table->ration))
			continue;
		table->items[i].state = TOLD_HERE;
		n++;
	}
}

static bool swap_one(struct told_table *table, uint64_t look, int64_t t_ns)
{
	struct told_row *weakest = NULL, *strongest = NULL;
	for (size_t i = 0; i < table->n; i++) {
		struct told_row *row = &table->items[i];
		if (!row->is_here)
			continue;
		if (row->state == TOLD_HERE && (weakest == NULL || row->recent_j < weakest->recent_j))
			weakest = row;
		if (row->state != TOLD_HERE && (strongest == NULL || row->recent_j > strongest->recent_j))
			strongest = row;
	}
	if (weakest == NULL || strongest == NULL || !(strongest->recent_j > swap_ratio * weakest->recent_j))
		return false;
	end_row(weakest, look, t_ns);
	strongest->state = TOLD_HERE;
	return true;
}

static void swap_rows(struct told_table *table, uint64_t look, int64_t t_ns)
{
	if (t_ns - table->swapped_ns < SWAP_S * NS_PER_S)
		return;
	table->swapped_ns = t_ns;
	for (size_t i = 0; i < table->most / SWAP_PART + 1; i++)
		if (!swap_one(table, look, t_ns))
			return;
}

/* ---- a look ---- */

static double use_of(const struct now *now, const struct now_group *group)
{
	double use_j = 0;
	bool is_metered = false;
	for (int r = 0; r < NOW_RESOURCES; r++) {
		use_j += group->added_j[r];
		is_metered = is_metered || now->exists[r];
	}
	return is_metered ? use_j : group->added_cpu_s;
}

static void arrive(struct told_table *table, const struct now *now, uint64_t look)
{
	const struct now_group *groups = now->groups[table->grouping];
	double fade = now->dt_s > 0 ? exp(-now->dt_s / RECENT_S) : 1;
	for (size_t i = 0; i < table->n; i++)
		table->items[i].recent_j *= fade;
	for (size_t i = 0; i < now->n_groups[table->grouping]; i++) {
		struct told_row *row = groups[i].processes > 0 ? told_add(table, groups[i].name) : NULL;
		if (row == NULL)
			continue;
		row->is_here = true;
		row->last_look = look;
		row->looks++;
		row->now = groups[i];
		row->recent_j += use_of(now, &groups[i]);
		take_user(table, row);
	}
}

static void depart(struct told_table *table, uint64_t look, int64_t t_ns)
{
	for (size_t i = 0; i < table->n; i++) {
		struct told_row *row = &table->items[i];
		row->is_here = row->last_look == look;
		bool left_unseen = row->state == TOLD_LEAVING && row->left_look == 0; // in an earlier life of ours
		if (!row->is_here && (row->state == TOLD_HERE || left_unseen))
			end_row(row, look, t_ns);
	}
}

static void count_energy(struct told_table *table, const struct now *now)
{
	double inside_j[NOW_RESOURCES] = {0}, inside_cpu_s = 0;
	for (size_t i = 0; i < table->n; i++) {
		struct told_row *row = &table->items[i];
		if (!row->is_here)
			continue;
		bool is_told = row->state == TOLD_HERE;
		for (int r = 0; r < NOW_RESOURCES; r++) {
			*(is_told ? &row->energy_j[r] : &table->other_j[r]) += row->now.added_j[r];
			inside_j[r] += row->now.added_j[r];
		}
		*(is_told ? &row->cpu_s : &table->other_cpu_s) += row->now.added_cpu_s;
		inside_cpu_s += row->now.added_cpu_s;
	}
	for (int r = 0; r < NOW_RESOURCES; r++) {
		const struct now_added *added = &now->added[r];
		table->rest_j[r] += fmax(added->total_j - added->idle_j - added->unattributed_j - inside_j[r], 0);
	}
	double busy_s = now->busy_cores * now->dt_s;
	table->rest_cpu_s += busy_s > inside_cpu_s ? busy_s - inside_cpu_s : 0; // not if unknown
}

// Nobody scrapes, and more have ended than may be told: what the first of them used is "other".
static void fold(struct told_table *table)
{
	struct told_row *first = NULL;
	for (size_t i = 0; i < table->n; i++)
		if (table->items[i].state == TOLD_LEAVING &&
			(first == NULL || table->items[i].left_look < first->left_look))
			first = &table->items[i];
	for (int r = 0; r < NOW_RESOURCES; r++)
		table->other_j[r] += first->energy_j[r];
	table->other_cpu_s += first->cpu_s;
	memset(first->energy_j, 0, sizeof(first->energy_j));
	first->cpu_s = 0;
	first->state = TOLD_NOT;
}

void told_look(struct told_table *table, const struct now *now, uint64_t look)
{
	if (table->most == 0)
		return;
	ration_look(&table->ration, table->most, now->t_ns);
	arrive(table, now, look);
	depart(table, look, now->t_ns);
	give_rows(table);
	swap_rows(table, look, now->t_ns);
	for (size_t n = count(table, TOLD_LEAVING); n > table->most; n--)
		fold(table);
	count_energy(table, now);
}

void told_forget(struct told_table *table, const struct told_seen *seen)
{
	for (size_t i = 0; i < table->n; i++) {
		struct told_row *row = &table->items[i];
		if (row->state == TOLD_LEAVING && told_was_seen(seen, row->left_look, row->left_ns))
			row->state = TOLD_NOT;
	}
}
