#include "sensor/gpu_roster.h"

#include "base/buf.h"
#include "base/num.h"
#include "base/util.h"

#include <ctype.h>
#include <errno.h>

enum { ENTRY_MAX = 128, NONE = -1, AMBIGUOUS = -2 };

/* Copies the next entry of a comma-separated list, blanks trimmed; returns false at the end. An entry too long for a UUID is
 * truncated, and then matches nothing. */
static bool next_entry(const char **cursor, char entry[ENTRY_MAX])
{
	if (*cursor == NULL)
		return false;
	const char *begin = *cursor;
	const char *end = begin + strcspn(begin, ",");
	*cursor = *end == ',' ? end + 1 : NULL;
	while (begin < end && isspace((unsigned char)*begin))
		begin++;
	while (end > begin && isspace((unsigned char)end[-1]))
		end--;
	size_t length = (size_t)(end - begin);
	if (length >= ENTRY_MAX)
		length = ENTRY_MAX - 1;
	memcpy(entry, begin, length);
	entry[length] = '\0';
	return true;
}

static void hide_all(bool *ret_selected, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ret_selected[i] = false;
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool has_mig_uuid(const struct gpu_candidate *candidate, const char *prefix)
{
	for (size_t i = 0; i < candidate->n_mig_uuids; i++) {
		if (starts_with(candidate->mig_uuids[i], prefix))
			return true;
	}
	return false;
}

/* Finds the GPU whose UUID, or a MIG instance UUID of which, begins with `prefix`. Two matching instances of one GPU are not
 * ambiguous: the GPU is what is measured. */
static int find_uuid(const char *prefix, const struct gpu_candidate *candidates, size_t n)
{
	int found = NONE;
	for (size_t i = 0; i < n; i++) {
		if (!starts_with(candidates[i].uuid, prefix) && !has_mig_uuid(&candidates[i], prefix))
			continue;
		if (found != NONE)
			return AMBIGUOUS;
		found = (int)i;
	}
	return found;
}

// "MIG-GPU-<uuid>/gi/ci", the format of drivers before R470, becomes the UUID of its GPU, "GPU-<uuid>". Other entries are
// unchanged.
static const char *without_old_mig(char *entry)
{
	if (!starts_with(entry, "MIG-GPU-"))
		return entry;
	entry[strcspn(entry, "/")] = '\0';
	return entry + strlen("MIG-");
}

static int find_index(uint64_t index, const struct gpu_candidate *candidates, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (candidates[i].index >= 0 && (uint64_t)candidates[i].index == index)
			return (int)i;
	}
	return NONE;
}

/* Reports an invalid entry and the valid ones: the existing GPUs, and why others can't be listed. If there is no GPU at all,
 * that reason is the whole message. */
static int list_error(const struct gpu_list *list, const char *entry, const char *what, struct wattle_error *reterr)
{
	bool explained = list->absent[0] != '\0';
	struct buf valid;
	if (list->n == 0 && explained)
		return error_set(reterr, -EINVAL, "--gpus %s: %s", list->text, list->absent);
	buf_init(&valid, 4096);
	for (size_t i = 0; i < list->n; i++) {
		const struct gpu_candidate *gpu = &list->candidates[i];
		buf_printf(&valid, "%s%d (%s)", i > 0 ? ", " : "", gpu->index,
			gpu->uuid[0] != '\0' ? gpu->uuid : "no UUID");
	}
	int r = error_set(reterr, -EINVAL, "--gpus %s: %s%s%s; valid are: %s%s%s", list->text, entry,
		entry[0] != '\0' ? " " : "", what,
		valid.data != NULL ? valid.data : "none, no GPU is visible on this machine", explained ? "; " : "",
		list->absent);
	buf_finish(&valid);
	return r;
}

static int find_listed(char *entry, const struct gpu_candidate *candidates, size_t n)
{
	uint64_t index;
	if (num_parse_u64(entry, &index) == 0)
		return find_index(index, candidates, n);
	return find_uuid(without_old_mig(entry), candidates, n);
}

int gpu_select_check_form(const char *list, struct wattle_error *reterr)
{
	const char *cursor = list;
	char entry[ENTRY_MAX];
	while (next_entry(&cursor, entry))
		if (entry[0] == '\0')
			return error_set(reterr, -EINVAL,
				"--gpus %s: empty entry; give UUIDs or indices, separated by commas",
				list);
	return 0;
}

void gpu_select_claimed(const char *list, const struct gpu_candidate *candidates, size_t n, bool *ret_selected)
{
	const char *cursor = list;
	char entry[ENTRY_MAX];
	hide_all(ret_selected, n);
	while (next_entry(&cursor, entry)) {
		int found = find_listed(entry, candidates, n);
		if (found >= 0)
			ret_selected[found] = true;
	}
}

int gpu_select_check(const struct gpu_list *list, struct wattle_error *reterr)
{
	const char *cursor = list->text;
	char entry[ENTRY_MAX], shown[ENTRY_MAX];
	while (next_entry(&cursor, entry)) {
		text_copy(shown, sizeof(shown), entry);
		int found = find_listed(entry, list->candidates, list->n);
		if (found == AMBIGUOUS)
			return list_error(list, shown, "matches several GPUs", reterr);
		if (found < 0)
			return list_error(list, shown, "matches no GPU of this machine", reterr);
	}
	return 0;
}

/* True if CUDA counts candidate a before b. CUDA_DEVICE_ORDER=PCI_BUS_ID is NVML's order. The default, FASTEST_FIRST, sorts
 * by "a simple heuristic" that NVIDIA does not publish. wattle uses cores times highest clock, and PCI order between equals.
 * The order is therefore exact for identical GPUs, the common case, and a guess for mixed models. */
static bool cuda_before(const struct gpu_candidate *a, const struct gpu_candidate *b, bool pci_order)
{
	if (!pci_order && a->speed != b->speed)
		return a->speed > b->speed;
	return a->index < b->index;
}

// Finds the GPU with this ordinal in CUDA's order.
static int find_ordinal(uint64_t ordinal, bool pci_order, const struct gpu_candidate *candidates, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!candidates[i].usable)
			continue;
		uint64_t before = 0;
		for (size_t k = 0; k < n; k++)
			before += k != i && candidates[k].usable &&
				cuda_before(&candidates[k], &candidates[i], pci_order);
		if (before == ordinal)
			return (int)i;
	}
	return NONE;
}

/* CUDA parses ordinals much like strtoul: "1x" is 1; "", "x", "-1" and Slurm's "NoDevFiles" are invalid. */
static int find_visible_ordinal(const char *entry, bool pci_order, const struct gpu_candidate *candidates, size_t n)
{
	const char *digits = entry + (entry[0] == '+');
	size_t length = strspn(digits, "0123456789");
	char number[ENTRY_MAX];
	uint64_t ordinal;
	memcpy(number, digits, length);
	number[length] = '\0';
	if (num_parse_u64(number, &ordinal) < 0)
		return NONE;
	return find_ordinal(ordinal, pci_order, candidates, n);
}

static int find_visible(char *entry, const char *form, bool pci_order, const struct gpu_candidate *candidates, size_t n)
{
	if (form == NULL)
		return find_visible_ordinal(entry, pci_order, candidates, n);
	if (!starts_with(entry, form))
		return NONE;
	int found = find_uuid(without_old_mig(entry), candidates, n);
	return found >= 0 && candidates[found].usable ? found : NONE;
}

// The first entry determines the form of all entries: GPU UUIDs, MIG instance UUIDs, or (NULL) ordinals.
static const char *visible_form(const char *visible)
{
	if (starts_with(visible, "GPU-"))
		return "GPU-";
	return starts_with(visible, "MIG-") ? "MIG-" : NULL;
}

// An entry that CUDA can't resolve hides itself and all later entries; a GPU named twice hides all.
void gpu_select_visible(const char *visible, const char *order, const struct gpu_candidate *candidates, size_t n,
	bool *ret_selected)
{
	bool pci_order = order != NULL && strcmp(order, "PCI_BUS_ID") == 0;
	for (size_t i = 0; i < n; i++)
		ret_selected[i] = visible == NULL;
	if (visible == NULL)
		return;
	const char *form = visible_form(visible);
	bool several_of_one = form != NULL && form[0] == 'M'; // two MIG instances may share a GPU
	const char *cursor = visible;
	char entry[ENTRY_MAX];
	while (next_entry(&cursor, entry)) {
		int found = find_visible(entry, form, pci_order, candidates, n);
		if (found < 0)
			return;
		if (ret_selected[found] && !several_of_one) {
			hide_all(ret_selected, n);
			return;
		}
		ret_selected[found] = true;
	}
}

enum { ROCM_GPUS_MAX = 256 };

// The GPUs visible to ROCm, in its numbering.
struct shown {
	int gpus[ROCM_GPUS_MAX];
	size_t n;
};

static bool shows(const struct shown *shown, int gpu)
{
	for (size_t i = 0; i < shown->n; i++)
		if (shown->gpus[i] == gpu)
			return true;
	return false;
}

static int find_rocm(const char *entry, const struct gpu_candidate *candidates, size_t n, const struct shown *before)
{
	uint64_t ordinal;
	if (num_parse_u64(entry, &ordinal) == 0)
		return ordinal < before->n ? before->gpus[ordinal] : NONE;
	int found = starts_with(entry, "GPU-") ? find_uuid(entry, candidates, n) : NONE;
	return found >= 0 && shows(before, found) ? found : NONE;
}

// The order of the list becomes the new order of the GPUs.
static void narrow(struct shown *shown, const char *visible, const struct gpu_candidate *candidates, size_t n)
{
	const struct shown before = *shown;
	const char *cursor = visible;
	char entry[ENTRY_MAX];
	shown->n = 0;
	while (next_entry(&cursor, entry)) {
		int found = find_rocm(entry, candidates, n, &before);
		if (found < 0)
			return;
		if (!shows(shown, found))
			shown->gpus[shown->n++] = found;
	}
}

void gpu_select_rocm(const char *const *visible, size_t n_visible, const struct gpu_candidate *candidates, size_t n,
	bool *ret_selected)
{
	struct shown shown = {0};
	for (size_t i = 0; i < n && shown.n < ROCM_GPUS_MAX; i++)
		if (candidates[i].usable)
			shown.gpus[shown.n++] = (int)i;
	for (size_t i = 0; i < n_visible; i++)
		if (visible[i] != NULL)
			narrow(&shown, visible[i], candidates, n);
	hide_all(ret_selected, n);
	for (size_t i = 0; i < shown.n; i++)
		ret_selected[shown.gpus[i]] = true;
}
