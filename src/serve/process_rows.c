#include "serve/totals.h"

#include "base/search.h"
#include "base/util.h"

enum {
	REST_S = 60,    // s without work after which a process needs no row
	RENAME_S = 60,  // s; a command that changes again sooner keeps its name, because each name is a new series
	RECENT_S = 60,  // averaging time of recent use, s
};

void process_rows_init(struct process_rows *table, size_t most, enum monitor_arguments arguments)
{
	*table = (struct process_rows){.bounds = {.most = most}, .arguments = arguments};
}

void process_rows_finish(struct process_rows *table)
{
	free(table->items);
	*table = (struct process_rows){0};
}

static void drop(struct process_rows *table, size_t i)
{
	table->items[i] = table->items[--table->n];
}

/* ---- use of a process ---- */

static bool works(const struct monitor_process *process)
{
	return process->power_w > 0 || process->cpu_cores > 0 || process->gpu_percent > 0 ||
		process->gpu_memory_bytes > 0;
}

static double use_of(const struct monitor_process *process)
{
	double use = isnan(process->power_w) ? process->cpu_cores : process->power_w;
	return use > 0 ? use : 0;
}

// Compares lifetime use: energy, or CPU time if no energy is measured.
static bool used_less(const struct monitor_process *left, const struct monitor_process *right)
{
	double l = isnan(left->energy_j) ? -1 : left->energy_j, r = isnan(right->energy_j) ? -1 : right->energy_j;
	return l != r ? l < r : left->cpu_ns < right->cpu_ns;
}

static struct process_row *least_used(struct process_rows *table, enum series_state state)
{
	struct process_row *least = NULL;
	for (size_t i = 0; i < table->n; i++)
		if (table->items[i].series.state == state &&
			(least == NULL || used_less(&table->items[i].now, &least->now)))
			least = &table->items[i];
	return least;
}

/* ---- rows ---- */

bool process_rows_is_taken(const struct process_rows *table, const struct process_row *but, pid_t pid,
	const char *command)
{
	for (size_t i = 0; i < table->n; i++) {
		const struct process_row *row = &table->items[i];
		if (row != but && row->now.pid == pid && strcmp(row->now.command, command) == 0)
			return true;
	}
	return false;
}

static struct process_row *add_row(struct process_rows *table, const struct monitor_process *process, int64_t t_ns)
{
	if (process_rows_is_taken(table, NULL, process->pid, process->command))
		return NULL;
	struct process_row *larger = array_reserve(table->items, table->n, &table->capacity, sizeof(*larger), 16);
	if (larger == NULL)
		return NULL;
	table->items = larger;
	struct process_row *row = &larger[table->n++];
	*row = (struct process_row){.now = *process, .series.recent = use_of(process), .worked_ns = t_ns};
	return row;
}

static void keep_name(const struct process_rows *table, struct process_row *row, struct monitor_process *seen,
	int64_t t_ns)
{
	if (row->series.state == SERIES_NONE || strcmp(row->now.command, seen->command) == 0)
		return;
	bool is_early = row->named_ns > 0 && t_ns - row->named_ns < RENAME_S * NS_PER_S;
	if (is_early || process_rows_is_taken(table, row, seen->pid, seen->command))
		text_copy(seen->command, sizeof(seen->command), row->now.command);
	else
		row->named_ns = t_ns;
}

static void refresh(const struct process_rows *table, struct process_row *row, const struct monitor_process *process,
	const struct monitor_sample *now)
{
	struct monitor_process seen = *process;
	double part = now->dt_s > 0 ? 1 - exp(-now->dt_s / RECENT_S) : 1;
	keep_name(table, row, &seen, now->t_ns);
	row->now = seen;
	row->series.recent += (use_of(process) - row->series.recent) * part;
	if (works(process) || row->worked_ns == 0)
		row->worked_ns = now->t_ns;
}

/* ---- sampling: live processes ---- */

struct process_list {                        // the live or the ended processes of a sample
	const struct monitor_process *items; // ascending by pid
	bool *has_row;                   // parallel to items
	size_t n;
};

static bool is_process_before(const void *item, const void *key)
{
	return ((const struct monitor_process *)item)->pid < *(const pid_t *)key;
}

static const struct monitor_process *find(const struct process_list *list, const struct monitor_process *wanted)
{
	size_t at = search_first(list->items, list->n, sizeof(*wanted), &wanted->pid, is_process_before);
	bool is_it = at < list->n && list->items[at].pid == wanted->pid &&
		list->items[at].start_ticks == wanted->start_ticks;
	return is_it ? &list->items[at] : NULL;
}

static void follow(struct process_rows *table, struct process_row *row, struct process_list *living,
	struct process_list *gone, const struct monitor_sample *now, uint64_t sample)
{
	const struct monitor_process *process = row->now.is_gone ? NULL : find(living, &row->now);
	bool was_shown_earlier = row->series.state == SERIES_LEAVING && row->series.left_sample == 0;
	if (process != NULL) {
		refresh(table, row, process, now);
		if (was_shown_earlier)
			row->series.state = SERIES_SHOWN;
		living->has_row[process - living->items] = row->series.state != SERIES_NONE;
		return;
	}
	if (row->now.is_gone && !was_shown_earlier)
		return;
	process = find(gone, &row->now);
	if (process != NULL) {
		refresh(table, row, process, now);
		gone->has_row[process - gone->items] = true;
	}
	row->now.is_gone = true;
	series_leave(&row->series, sample, now->t_ns);
}

/* ---- sampling: row assignment ---- */

static int by_use(const void *left, const void *right)
{
	return monitor_compare_use(*(const struct monitor_process *const *)left,
		*(const struct monitor_process *const *)right);
}

static int by_used(const void *left, const void *right)
{
	const struct monitor_process *l = *(const struct monitor_process *const *)left,
				     *r = *(const struct monitor_process *const *)right;
	return used_less(l, r) - used_less(r, l);
}

static bool used_any(const struct monitor_process *process)
{
	return process->energy_j > 0 || process->cpu_ns > 0; // also false for a missing value
}

// Processes without a row that are worth one, sorted by `order`. NULL: no memory. The caller frees the array.
static const struct monitor_process **rank(const struct process_list *list,
	bool (*is_worth)(const struct monitor_process *), int (*order)(const void *, const void *), size_t *ret_n)
{
	const struct monitor_process **ranked = calloc_array(list->n, sizeof(*ranked));
	size_t n = 0;
	for (size_t i = 0; ranked != NULL && i < list->n; i++)
		if (!list->has_row[i] && is_worth(&list->items[i]))
			ranked[n++] = &list->items[i];
	if (n > 1)
		qsort(ranked, n, sizeof(*ranked), order);
	*ret_n = n;
	return ranked;
}

static void take_ended(struct process_rows *table, const struct process_list *gone, const struct monitor_sample *now,
	uint64_t sample)
{
	size_t n;
	const struct monitor_process **ranked = rank(gone, used_any, by_used, &n);
	for (size_t i = 0; i < n && i < table->bounds.most && series_take_new(&table->bounds); i++) {
		struct process_row *row = add_row(table, ranked[i], now->t_ns);
		if (row != NULL)
			series_leave(&row->series, sample, now->t_ns);
	}
	free(ranked);
}

static void drop_inactive(struct process_rows *table, uint64_t sample, int64_t t_ns)
{
	for (size_t i = 0; i < table->n; i++) {
		struct process_row *row = &table->items[i];
		if (row->series.state == SERIES_SHOWN && t_ns - row->worked_ns > REST_S * NS_PER_S)
			series_leave(&row->series, sample, t_ns);
	}
}

static struct process_row *remembered(struct process_rows *table, const struct monitor_process *process)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->items[i].series.state == SERIES_NONE && table->items[i].now.pid == process->pid &&
			table->items[i].now.start_ticks == process->start_ticks)
			return &table->items[i];
	return NULL;
}

// False: no new series left in this minute.
static bool give_row(struct process_rows *table, const struct monitor_process *process, int64_t t_ns)
{
	struct process_row *row = remembered(table, process);
	if (row != NULL && process_rows_is_taken(table, row, process->pid, process->command))
		return true;
	if (row == NULL && !series_take_new(&table->bounds))
		return false;
	if (row == NULL)
		row = add_row(table, process, t_ns);
	if (row != NULL)
		row->series.state = SERIES_SHOWN;
	return true;
}

static void give_rows(struct process_rows *table, const struct process_list *living, const struct monitor_sample *now,
	uint64_t sample)
{
	size_t n;
	const struct monitor_process **ranked = rank(living, works, by_use, &n);
	for (size_t i = 0;
		i < n && series_make_room(&table->bounds, SERIES_OF(table), use_of(ranked[i]), sample, now->t_ns); i++)
		if (!give_row(table, ranked[i], now->t_ns))
			break;
	free(ranked);
}

/* ---- sampling ---- */

// Drops surplus rows in that state, the least used first: rows not scraped in time, or remembered rows.
static void bound(struct process_rows *table, enum series_state state, size_t most)
{
	for (size_t n = series_count(SERIES_OF(table), state); n > most; n--)
		drop(table, (size_t)(least_used(table, state) - table->items));
}

void process_rows_update(struct process_rows *table, const struct monitor_sample *now, uint64_t sample)
{
	if (table->bounds.most == 0)
		return;
	bool *marks = calloc_array(now->n_processes + 1, sizeof(*marks));
	if (marks == NULL)
		return;
	size_t n_living = now->n_processes;
	while (n_living > 0 && now->processes[n_living - 1].is_gone)
		n_living--;
	struct process_list living = {now->processes, marks, n_living},
			    gone = {now->processes + n_living, marks + n_living, now->n_processes - n_living};
	series_begin_sample(&table->bounds, now->t_ns);
	for (size_t i = 0; i < table->n; i++)
		follow(table, &table->items[i], &living, &gone, now, sample);
	drop_inactive(table, sample, now->t_ns);
	give_rows(table, &living, now, sample);
	take_ended(table, &gone, now, sample);
	bound(table, SERIES_SHOWN, table->bounds.most);
	bound(table, SERIES_LEAVING, table->bounds.most);
	bound(table, SERIES_NONE, table->bounds.most * PROCESS_ROWS_REMEMBERED);
	free(marks);
}

void process_rows_drop_scraped(struct process_rows *table, const struct scraped *seen)
{
	for (size_t i = table->n; i-- > 0;) {
		struct process_row *row = &table->items[i];
		if (row->series.state != SERIES_LEAVING ||
			!was_scraped(seen, row->series.left_sample, row->series.left_ns))
			continue;
		row->series.state = SERIES_NONE;
		if (row->now.is_gone)
			drop(table, i);
	}
}
