/* Formats journal entries as text, and parses text that may come from anyone. */
#include "cap/journal.h"

#include "base/buf.h"
#include "base/num.h"
#include "base/util.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char first_line[] = "wattle-cap-journal=1";
static const char last_key[] = "end=";
enum { END_DIGITS = 16 };

enum value_kind { TEXT, NUMBER, NATURAL };
static const struct key {
	const char *name;
	size_t offset, size;
	enum value_kind kind;
} keys[] = {
#define KEY(name, member, kind)                                                                                        \
	{                                                                                                              \
		name, offsetof(struct journal_entry, member), sizeof(((struct journal_entry *)NULL)->member), kind     \
	}
	KEY("device", device, TEXT),
	KEY("id", id, TEXT),
	KEY("boot_id", boot_id, TEXT),
	KEY("since_unix_s", since_unix_s, NUMBER),
	KEY("token", token, NUMBER),
	KEY("timed", timed, NATURAL),
	KEY("owner_pid", owner.pid, NATURAL),
	KEY("owner_start_ticks", owner.start_ticks, NATURAL),
	KEY("owner_uid", owner.uid, NATURAL),
	KEY("owner_name", owner.name, TEXT),
	KEY("keeper_pid", keeper.pid, NATURAL),
	KEY("keeper_start_ticks", keeper.start_ticks, NATURAL),
	KEY("keeper_pid_ns", keeper.pid_ns, NATURAL),
#undef KEY
};
static const struct setting_key {
	const char *prefix;
	size_t offset;
} settings[] = {
	{"previous.", offsetof(struct journal_entry, previous)},
	{"set.", offsetof(struct journal_entry, set)},
	{"next.", offsetof(struct journal_entry, next)},
};
static const char what_key[] = "what";
enum { ALL_KEYS = (1 << (ARRAY_SIZE(keys) + 1)) - 1 };

// FNV-1a: detects truncated or edited files, not forgery; untrusted users can't write here.
static uint64_t checksum(const char *text, size_t size)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < size; i++)
		sum = (sum ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return sum;
}

/* ---- formatting ---- */

// Program names may contain any character; control characters must not break the line.
static void print_text(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++)
		buf_char(out, (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

static uint64_t natural_of(const void *value, size_t size)
{
	if (size == sizeof(uint32_t))
		return *(const uint32_t *)value;
	if (size == sizeof(uint64_t))
		return *(const uint64_t *)value;
	return *(const bool *)value;
}

static void print_key(const struct journal_entry *entry, const struct key *key, struct buf *out)
{
	const void *value = (const char *)entry + key->offset;
	buf_printf(out, "%s=", key->name);
	if (key->kind == TEXT)
		print_text(out, value);
	else if (key->kind == NUMBER)
		buf_i64(out, *(const int64_t *)value);
	else
		buf_u64(out, natural_of(value, key->size));
	buf_char(out, '\n');
}

void journal_entry_print(const struct journal_entry *entry, struct buf *out)
{
	size_t start = out->size;
	buf_printf(out, "%s\n", first_line);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		print_key(entry, &keys[i], out);
	buf_printf(out, "%s=%s\n", what_key, cap_kind_name(entry->what));
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		const struct cap_setting *setting = (const void *)((const char *)entry + settings[i].offset);
		for (size_t f = 0; f < setting->n; f++)
			buf_printf(out, "%s%s=%lld\n", settings[i].prefix, setting->fields[f].name,
				(long long)setting->fields[f].value);
	}
	if (!out->failed)
		buf_printf(out, "%s%0*llx\n", last_key, END_DIGITS,
			(unsigned long long)checksum(out->data + start, out->size - start));
}

/* ---- parsing ---- */

static int parse_natural(void *out, size_t size, const char *text)
{
	uint64_t value;
	if (num_parse_u64(text, &value) < 0)
		return -EBADMSG;
	if (size == sizeof(uint64_t)) {
		memcpy(out, &value, size);
	} else if (size == sizeof(uint32_t)) {
		if (value > UINT32_MAX)
			return -EBADMSG;
		memcpy(out, &(uint32_t){(uint32_t)value}, size);
	} else {
		if (value > 1)
			return -EBADMSG;
		*(bool *)out = value != 0;
	}
	return 0;
}

static int parse_value(struct journal_entry *entry, const struct key *key, const char *text)
{
	void *out = (char *)entry + key->offset;
	if (key->kind == TEXT)
		return text_copy(out, key->size, text) ? 0 : -EBADMSG;
	if (key->kind == NUMBER)
		return num_parse_i64(text, out) < 0 ? -EBADMSG : 0;
	return parse_natural(out, key->size, text);
}

static int parse_what(struct journal_entry *entry, const char *text)
{
	for (enum cap_kind what = CAP_POWER; what <= CAP_CLOCKS; what++) {
		if (strcmp(text, cap_kind_name(what)) != 0)
			continue;
		entry->what = what;
		return 0;
	}
	return -EBADMSG;
}

static int parse_register(struct cap_setting *setting, const char *name, const char *text)
{
	struct cap_field field;
	if (setting->n == CAP_FIELDS_MAX || name[0] == '\0' || !text_copy(field.name, sizeof(field.name), name) ||
		num_parse_i64(text, &field.value) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < setting->n; i++)
		if (strcmp(setting->fields[i].name, name) == 0)
			return -EBADMSG;
	setting->fields[setting->n++] = field;
	return 0;
}

static int parse_line(struct journal_entry *entry, unsigned *seen, char *line)
{
	char *value = strchr(line, '=');
	if (value == NULL)
		return -EBADMSG;
	*value++ = '\0';
	for (const char *c = value; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return -EBADMSG;
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		size_t length = strlen(settings[i].prefix);
		if (strncmp(line, settings[i].prefix, length) == 0)
			return parse_register((void *)((char *)entry + settings[i].offset), line + length, value);
	}
	size_t i = 0;
	while (i < ARRAY_SIZE(keys) && strcmp(line, keys[i].name) != 0)
		i++;
	if ((i == ARRAY_SIZE(keys) && strcmp(line, what_key) != 0) || (*seen & 1u << i) != 0)
		return -EBADMSG;
	*seen |= 1u << i;
	return i < ARRAY_SIZE(keys) ? parse_value(entry, &keys[i], value) : parse_what(entry, value);
}

// Size of the text without its last line, if that line is the checksum of the rest; 0: it is not.
static size_t checked_size(const char *text, size_t size)
{
	size_t tail = strlen(last_key) + END_DIGITS + 1;
	char expected[sizeof(last_key) + END_DIGITS + 2];
	if (size <= tail)
		return 0;
	snprintf(expected, sizeof(expected), "%s%0*llx\n", last_key, END_DIGITS,
		(unsigned long long)checksum(text, size - tail));
	return memcmp(text + size - tail, expected, tail) == 0 ? size - tail : 0;
}

static bool is_whole(const struct journal_entry *entry, unsigned seen)
{
	return seen == ALL_KEYS && entry->id[0] != '\0' && entry->device[0] != '\0' && entry->previous.n > 0 &&
		entry->token >= 0 && entry->owner.pid >= 0 && entry->keeper.pid >= 0;
}

int journal_entry_parse(const char *text, size_t size, struct journal_entry *ret_entry, struct wattle_error *reterr)
{
	static_assert(ARRAY_SIZE(keys) < 31, "`seen` has a bit for each key");
	struct journal_entry entry = {0};
	char copy[JOURNAL_TEXT_MAX];
	unsigned seen = 0;
	if (size >= sizeof(copy))
		return error_set(reterr, -EBADMSG, "is longer than %d bytes", JOURNAL_TEXT_MAX - 1);
	size_t checked = checked_size(text, size);
	if (checked == 0)
		return error_set(reterr, -EBADMSG, "is truncated or was edited");
	memcpy(copy, text, checked);
	copy[checked] = '\0';
	if (strlen(copy) != checked)
		return error_set(reterr, -EBADMSG, "is not a text file");
	int number = 1;
	char *rest = copy;
	for (char *line; (line = strsep(&rest, "\n")) != NULL && rest != NULL; number++) {
		bool good = number == 1 ? strcmp(line, first_line) == 0 : parse_line(&entry, &seen, line) == 0;
		if (!good)
			return error_set(reterr, -EBADMSG, "has an unknown line %d for this version of wattle",
				number);
	}
	if (!is_whole(&entry, seen))
		return error_set(reterr, -EBADMSG, "is incomplete");
	*ret_entry = entry;
	return 0;
}
