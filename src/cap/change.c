#include "cap/internal.h"

#include "base/num.h"
#include "base/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct cap_field *find(const struct cap_setting *setting, const char *name)
{
	for (size_t i = 0; i < setting->n; i++)
		if (strcmp(setting->fields[i].name, name) == 0)
			return &setting->fields[i];
	return NULL;
}

static bool is_exactly(const struct cap_setting *read, const struct cap_field *found)
{
	const struct cap_field *field = find(read, found->name);
	return field != NULL && field->value == found->value;
}

/* A value that was read back must match exactly: any other value, however close, was set by another program. A value
 * that was only planned may have been rounded by the device. */
static bool is_ours(const struct journal_entry *entry, const struct cap_device *device, const struct cap_field *found)
{
	const struct cap_field *next = find(&entry->next, found->name);
	return is_exactly(&entry->set, found) ||
		(next != NULL && cap_field_matches(device, found->name, next->value, found->value));
}

// Whether all registers hold the requested values, allowing for hardware rounding.
static bool holds(const struct cap_device *device, const struct cap_setting *asked, const struct cap_setting *found)
{
	for (size_t i = 0; i < asked->n; i++) {
		const struct cap_field *field = find(found, asked->fields[i].name);
		if (field == NULL || !cap_field_matches(device, field->name, asked->fields[i].value, field->value))
			return false;
	}
	return true;
}

bool change_is_same(const struct cap_setting *a, const struct cap_setting *b)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct cap_field *field = find(b, a->fields[i].name);
		if (field == NULL || field->value != a->fields[i].value)
			return false;
	}
	return true;
}

const char *change_amount(const struct cap_device *device, const struct cap_setting *setting, char out[AMOUNT_SIZE])
{
	double value = cap_value_of(device, setting);
	if (isnan(value)) {
		text_copy(out, AMOUNT_SIZE, device->what == CAP_CLOCKS ? "no clock limit" : "no limit");
		return out;
	}
	char number[24];
	num_format_double(number, sizeof(number), round(value * 1000) / 1000);
	snprintf(out, AMOUNT_SIZE, "%s %s", number, cap_kind_unit(device->what));
	return out;
}

bool change_is_foreign(const struct journal_entry *entry, const struct cap_device *device,
	const struct cap_setting *now)
{
	for (size_t i = 0; cap_reads_back(device) && i < now->n; i++) {
		const struct cap_field *found = &now->fields[i];
		if (!is_exactly(&entry->previous, found) && !is_ours(entry, device, found))
			return true;
	}
	return false;
}

/* ---- setting a limit ---- */

static int write_and_read(struct cap_device *device, const struct cap_setting *next, struct cap_setting *ret_found,
	struct wattle_error *reterr)
{
	int r = cap_write(device, next, reterr);
	if (r < 0)
		return r;
	if (!cap_reads_back(device)) {
		*ret_found = *next;
		return 0;
	}
	struct cap_setting found;
	r = cap_read(device, &found, reterr);
	if (r < 0)
		return r;
	if (!holds(device, next, &found)) {
		char asked[AMOUNT_SIZE], has[AMOUNT_SIZE];
		return error_set(reterr, -EIO, "%s accepted a limit of %s without error, but reads back %s",
			device->name, change_amount(device, next, asked), change_amount(device, &found, has));
	}
	*ret_found = found;
	return 0;
}

// Some registers may have been written before one was refused.
static int put_back(struct cap_device *device, const struct cap_setting *before, int code, struct wattle_error *reterr)
{
	struct wattle_error why = {0};
	struct cap_setting found;
	bool reads_back = cap_reads_back(device), is_refused = code == -EACCES || code == -EPERM;
	if (code == -ENODEV)
		return code;
	if (!reads_back && is_refused) // clocks are one register, so nothing was written
		return 0;
	if (reads_back && cap_read(device, &found, NULL) == 0 && change_is_same(before, &found))
		return 0;
	int r = cap_write(device, before, &why);
	if (r == 0 && reads_back) {
		r = cap_read(device, &found, &why);
		if (r == 0 && !holds(device, before, &found))
			r = error_set(&why, -EIO, "it has a different value");
	}
	if (r == 0 || reterr == NULL)
		return r;
	char first[sizeof(reterr->text)];
	text_copy(first, sizeof(first), reterr->text);
	error_set(reterr, code, "%.280s; the previous limit could not be restored: %.280s", first, why.text);
	return r;
}

int change_apply(const struct journal *journal, enum journal_kind kind, struct journal_entry *entry,
	struct cap_device *device, const struct cap_setting *now, const struct cap_setting *next,
	struct cap_outcome *ret_outcome, struct wattle_error *reterr)
{
	struct cap_setting found;
	entry->next = *next;
	int r = journal_write(journal, kind, entry, reterr);
	if (r < 0) {
		entry->next.n = 0;
		return r;
	}
	r = write_and_read(device, next, &found, reterr);
	if (r < 0) {
		if (put_back(device, now, r, reterr) == 0)
			entry->next.n = 0;
		journal_write(journal, kind, entry, NULL);
		return r;
	}
	entry->set = found;
	entry->next.n = 0;
	journal_write(journal, kind, entry, NULL); // if this fails, the previous entry still holds the value as `next`
	*ret_outcome = (struct cap_outcome){
		.previous = cap_value_of(device, &entry->previous),
		.set = cap_value_of(device, &found),
		.foreign = (double)NAN,
		.was_rounded = !change_is_same(next, &found),
	};
	return 0;
}

/* ---- restoring ---- */

static void sort_registers(const struct journal_entry *entry, const struct cap_device *device,
	const struct cap_setting *now, struct cap_setting *ret_ours, bool *ret_foreign)
{
	*ret_ours = (struct cap_setting){0};
	*ret_foreign = false;
	for (size_t i = 0; i < entry->previous.n; i++) {
		const struct cap_field *before = &entry->previous.fields[i], *found = find(now, before->name);
		if (found == NULL || found->value == before->value)
			continue;
		if (is_ours(entry, device, found))
			ret_ours->fields[ret_ours->n++] = *before;
		else
			*ret_foreign = true;
	}
}

// Locked clocks can't be read back, so the limit counts as unchanged since it was set.
static int undo_without_reading(const struct journal_entry *entry, struct cap_device *device,
	struct wattle_error *reterr)
{
	if (entry->set.n == 0 && entry->next.n == 0)
		return 0;
	int r = cap_write(device, &entry->previous, reterr);
	return r < 0 ? r : (int)entry->previous.n;
}

// True if a register still has its exact value from before the write, even if that is within rounding.
static bool is_unchanged(const struct cap_setting *ours, const struct cap_setting *before,
	const struct cap_setting *after)
{
	for (size_t i = 0; i < ours->n; i++) {
		const struct cap_field *was = find(before, ours->fields[i].name);
		if (was != NULL && is_exactly(after, was))
			return true;
	}
	return false;
}

static int undo_and_read(const struct journal_entry *entry, struct cap_device *device, const struct cap_setting *ours,
	struct cap_setting *found, struct wattle_error *reterr)
{
	if (ours->n == 0)
		return 0;
	const struct cap_setting before = *found;
	int r = cap_write(device, ours, reterr);
	if (r == 0)
		r = cap_read(device, found, reterr);
	if (r < 0)
		return r;
	if (holds(device, ours, found) && !is_unchanged(ours, &before, found))
		return (int)ours->n;
	char asked[AMOUNT_SIZE], has[AMOUNT_SIZE];
	return error_set(reterr, -EIO, "%s: the limit was restored to %s, but the device reads back %s", device->name,
		change_amount(device, &entry->previous, asked), change_amount(device, found, has));
}

static void describe_foreign(const struct journal_entry *entry, const struct cap_device *device,
	const struct cap_setting *found, struct cap_outcome *outcome)
{
	char has[AMOUNT_SIZE], had[AMOUNT_SIZE];
	outcome->was_foreign = true;
	outcome->foreign = cap_value_of(device, found);
	snprintf(outcome->text, sizeof(outcome->text),
		"%s: another program changed the limit meanwhile; it is left at %s (previously %s)",
		device->name, change_amount(device, found, has), change_amount(device, &entry->previous, had));
}

int change_undo(const struct journal_entry *entry, struct cap_device *device, struct cap_outcome *ret_outcome,
	struct wattle_error *reterr)
{
	struct cap_outcome outcome = {.previous = cap_value_of(device, &entry->previous), .foreign = (double)NAN};
	struct cap_setting found = entry->previous, ours;
	bool is_foreign = false;
	int r;
	if (!cap_reads_back(device)) {
		r = undo_without_reading(entry, device, reterr);
	} else {
		r = cap_read(device, &found, reterr);
		if (r < 0)
			return r;
		sort_registers(entry, device, &found, &ours, &is_foreign);
		r = undo_and_read(entry, device, &ours, &found, reterr);
	}
	if (r < 0)
		return r;
	outcome.set = cap_value_of(device, &found);
	if (is_foreign)
		describe_foreign(entry, device, &found, &outcome);
	*ret_outcome = outcome;
	return r;
}
