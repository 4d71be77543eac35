#include "helper/policy.h"

#include "base/cleanup.h"
#include "base/num.h"
#include "base/suggest.h"
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

/* Parser of the policy file: one rule per line, words separated by blanks, "#" starts a comment. Any mistake is an
 * error with its line number: a skipped rule might be one that denies access. */

enum { WORDS_MAX = 8, LINE_SIZE = 512 };
static const int64_t PERIOD_MIN_NS = NS_PER_MS, PERIOD_MAX_NS = 3600 * NS_PER_S;
static const int64_t OTHERS_PERIOD_NS = 100 * NS_PER_MS;

struct line {
	const char *path;
	int number;
	char text[LINE_SIZE];       // buffer that words[] point into
	char *words[WORDS_MAX + 1]; // NULL-terminated
	size_t n;
	size_t at; // index of the next word
	struct wattle_error *reterr;
};

__attribute__((format(printf, 2, 3))) static int wrong(const struct line *line, const char *format, ...)
{
	char why[400];
	va_list args;
	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	return error_set(line->reterr, -EINVAL, "%.150s:%d: %s", line->path, line->number, why);
}

// " (did you mean 'WORD'?)" with the nearest of "a|b|c", or "". Returns out.
static const char *nearest(const char *word, const char *choices, char out[SUGGEST_WORD_MAX + 32])
{
	struct suggest suggest;
	suggest_begin(&suggest, word, strlen(word));
	suggest_offer_choices(&suggest, choices);
	return suggest_text(&suggest, "", out);
}

// The next word; NULL: end.
static const char *next_word(struct line *line)
{
	return line->at < line->n ? line->words[line->at++] : NULL;
}

/* ---- users and groups ---- */

static bool user_id(const char *name, uint32_t *ret_id)
{
	const struct passwd *user = getpwnam(name);
	if (user != NULL)
		*ret_id = user->pw_uid;
	return user != NULL;
}

static bool group_id(const char *name, uint32_t *ret_id)
{
	const struct group *group = getgrnam(name);
	if (group != NULL)
		*ret_id = group->gr_gid;
	return group != NULL;
}

/* Local accounts only: a directory (LDAP) may have a hundred thousand, which a search for the nearest name should not list. The first
 * field of both files is the name. */
static const char *nearest_account(const char *word, const char *file, char out[SUGGEST_WORD_MAX + 32])
{
	char row[1024], best[SUGGEST_WORD_MAX];
	struct suggest suggest;
	FILE *accounts = fopen(file, "re");
	suggest_begin(&suggest, word, strlen(word));
	while (accounts != NULL && fgets(row, sizeof(row), accounts) != NULL) {
		size_t length = strcspn(row, ":\n");
		if (length > sizeof(best))
			continue;
		suggest_offer(&suggest, row, length);
		if (suggest.best == row)
			suggest.best = memcpy(best, row, length);
	}
	if (accounts != NULL)
		fclose(accounts);
	return suggest_text(&suggest, "", out);
}

static int parse_who(struct line *line, struct policy_rule *rule)
{
	static const struct {
		const char *word;
		enum policy_who who;
		bool (*id_of)(const char *name, uint32_t *ret_id);
		const char *file;
	} kinds[] = {{"user", POLICY_USER, user_id, "/etc/passwd"}, {"group", POLICY_GROUP, group_id, "/etc/group"},
		{"others", POLICY_OTHERS, NULL, NULL}};
	char hint[SUGGEST_WORD_MAX + 32];
	const char *word = next_word(line);
	size_t i = 0;
	while (i < ARRAY_SIZE(kinds) && strcmp(kinds[i].word, word) != 0)
		i++;
	if (i == ARRAY_SIZE(kinds))
		return wrong(line, "a rule begins with `user NAME`, `group NAME` or `others`, not with '%.60s'%s", word,
			nearest(word, "user|group|others", hint));
	rule->who = kinds[i].who;
	if (kinds[i].id_of == NULL)
		return 0;
	const char *name = next_word(line);
	uint64_t id;
	if (name == NULL)
		return wrong(line, "a name or a number must follow `%s`", word);
	if (num_parse_u64(name, &id) == 0 && id < UINT32_MAX)
		rule->id = (uint32_t)id;
	else if (!kinds[i].id_of(name, &rule->id))
		return wrong(line, "unknown %s '%.60s' on this machine%s; create it, or give another name or a number",
			word, name, nearest_account(name, kinds[i].file, hint));
	return 0;
}

/* ---- permissions ---- */

static size_t class_of(struct policy *policy, int64_t period_ns)
{
	size_t i = 0;
	while (i < policy->n_periods && policy->periods_ns[i] != period_ns)
		i++;
	if (i == policy->n_periods)
		policy->periods_ns[policy->n_periods++] = period_ns;
	return i;
}

static int parse_read(struct line *line, struct policy *policy, struct policy_rule *rule)
{
	int64_t period_ns = rule->who == POLICY_OTHERS ? OTHERS_PERIOD_NS : PERIOD_MIN_NS;
	const char *word = next_word(line);
	rule->subject = POLICY_READ;
	if (word != NULL) {
		const char *period = next_word(line);
		if (strcmp(word, "every") != 0 || period == NULL)
			return wrong(line,
				"unexpected '%.60s' after `read`; only `every TIME` may follow, such as `every 100ms`",
				word);
		if (num_parse_duration(period, &period_ns) < 0 || period_ns < PERIOD_MIN_NS ||
			period_ns > PERIOD_MAX_NS)
			return wrong(line,
				"'%.60s' is not a time from 1ms to 1h; write a number and a unit, such as 100ms",
				period);
	}
	rule->class = class_of(policy, period_ns);
	return 0;
}

// "150..300", "150..", "..300"
static bool parse_range(const char *word, double *ret_min, double *ret_max)
{
	char least[32];
	const char *dots = strstr(word, "..");
	if (dots == NULL || (size_t)(dots - word) >= sizeof(least) || strlen(word) == 2)
		return false;
	memcpy(least, word, (size_t)(dots - word));
	least[dots - word] = '\0';
	if (least[0] != '\0' && (num_parse_double(least, ret_min) < 0 || *ret_min < 0))
		return false;
	if (dots[2] != '\0' && (num_parse_double(dots + 2, ret_max) < 0 || *ret_max < 0))
		return false;
	return *ret_min <= *ret_max;
}

static bool is_device_word(const char *word)
{
	// A misspelt family would be taken for the id of a missing device, and silently allow or deny nothing.
	static const char *const families[] = {"any", "gpus", "packages"};
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (strcmp(word, families[i]) == 0)
			return true;
	return strchr(word, '-') != NULL && strlen(word) < sizeof(((struct policy_rule *)0)->device);
}

static int parse_cap(struct line *line, struct policy_rule *rule)
{
	rule->subject = POLICY_CAP;
	rule->kind = POLICY_POWER;
	rule->least = -(double)INFINITY;
	rule->most = (double)INFINITY;
	char hint[SUGGEST_WORD_MAX + 32] = "";
	const char *word = next_word(line);
	if (word == NULL || !is_device_word(word))
		return wrong(line,
			"a device (`gpu-0`, `package-0`, an id, `gpus`, `packages` or `any`) must follow `cap`, not '%.60s'%s",
			word != NULL ? word : "",
			word != NULL ? nearest(word, "gpus|packages|any|gpu-0|package-0", hint) : "");
	text_copy(rule->device, sizeof(rule->device), word);
	word = next_word(line);
	if (word != NULL && (strcmp(word, "power") == 0 || strcmp(word, "clocks") == 0)) {
		rule->kind = strcmp(word, "clocks") == 0 ? POLICY_CLOCKS : POLICY_POWER;
		word = next_word(line);
	}
	if (word != NULL && !parse_range(word, &rule->least, &rule->most))
		return wrong(line, "'%.60s' is not a range; write FROM..TO in %s, such as %s%s", word,
			rule->kind == POLICY_CLOCKS ? "MHz" : "W",
			rule->kind == POLICY_CLOCKS ? "600..1980" : "150..300", nearest(word, "power|clocks", hint));
	return 0;
}

static int parse_what(struct line *line, struct policy *policy, struct policy_rule *rule)
{
	const char *word = next_word(line);
	if (word != NULL && strcmp(word, "read") == 0)
		return parse_read(line, policy, rule);
	if (word != NULL && strcmp(word, "cap") == 0)
		return parse_cap(line, rule);
	if (word != NULL && strcmp(word, "nothing") == 0)
		return 0;
	char hint[SUGGEST_WORD_MAX + 32];
	return word == NULL ? wrong(line, "the rule ends too early; add `read`, `cap DEVICE` or `nothing`")
			    : wrong(line, "'%.60s' is not a permission; write `read`, `cap DEVICE` or `nothing`%s",
				      word, nearest(word, "read|cap|nothing", hint));
}

/* ---- lines ---- */

static int parse_rule(struct line *line, struct policy *policy)
{
	struct policy_rule rule = {.line = line->number};
	if (policy->n == POLICY_RULES_MAX)
		return wrong(line, "there are more than %d rules; use groups instead of users, or remove some",
			POLICY_RULES_MAX);
	int r = parse_who(line, &rule);
	if (r == 0)
		r = parse_what(line, policy, &rule);
	if (r == 0 && line->at < line->n)
		r = wrong(line, "unexpected word '%.60s' at the end of the rule; remove it", line->words[line->at]);
	if (r == 0)
		policy->rules[policy->n++] = rule;
	return r;
}

static int split(struct line *line)
{
	char *rest = line->text, *word;
	line->text[strcspn(line->text, "#")] = '\0';
	line->n = line->at = 0;
	while ((word = strsep(&rest, " \t\r")) != NULL) {
		if (word[0] == '\0')
			continue;
		if (line->n == WORDS_MAX)
			return wrong(line, "more than %d words; write one rule per line", WORDS_MAX);
		line->words[line->n++] = word;
	}
	return 0;
}

static int parse_line(struct line *line, struct policy *policy)
{
	for (const char *at = line->text; *at != '\0' && *at != '#'; at++)
		if ((unsigned char)*at < ' ' && *at != '\t' && *at != '\r')
			return wrong(line, "contains a character that is not text; save the file as plain text");
	int r = split(line);
	return r < 0 || line->n == 0 ? r : parse_rule(line, policy);
}

int policy_parse(const char *text, size_t size, const char *path, struct policy *ret_policy,
	struct wattle_error *reterr)
{
	struct policy policy = {.periods_ns = {PERIOD_MIN_NS}, .n_periods = 1};
	struct line line = {.path = path, .reterr = reterr};
	for (const char *at = text, *end = text + size; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline != NULL ? newline : end) - at);
		line.number++;
		if (length >= sizeof(line.text))
			return wrong(&line, "the line is longer than %zu bytes; write one rule per line",
				sizeof(line.text) - 1);
		if (memchr(at, '\0', length) != NULL)
			return wrong(&line, "contains a character that is not text; save the file as plain text");
		memcpy(line.text, at, length);
		line.text[length] = '\0';
		int r = parse_line(&line, &policy);
		if (r < 0)
			return r;
		at += length + 1;
	}
	*ret_policy = policy;
	return 0;
}

// Users who may write the file can grant themselves every permission.
static int check_owner(int fd, const char *path, struct wattle_error *reterr)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return error_set(reterr, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(reterr, -EINVAL, "%s: not a file; give the path of a policy file", path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return error_set(reterr, -EPERM,
			"%s: owned by user %u, who could grant themselves any right; run: chown root %s",
			path, st.st_uid, path);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return error_set(reterr, -EPERM, "%s: writable by users other than its owner; run: chmod go-w %s", path,
			path);
	return 0;
}

static int read_file(int fd, char *text, size_t size, size_t *ret_length)
{
	size_t length = 0;
	for (;;) {
		ssize_t n = read(fd, text + length, size - length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		length += (size_t)n;
		if (length == size)
			return -EFBIG;
	}
	*ret_length = length;
	return 0;
}

int policy_load(const char *path, struct policy *ret_policy, struct wattle_error *reterr)
{
	size_t length = 0;
	wattle_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return error_set(reterr, -errno, "cannot read policy %s: %s", path, strerror(errno));
	int r = check_owner(fd, path, reterr);
	if (r < 0)
		return r;
	wattle_cleanup_free char *text = malloc(POLICY_FILE_MAX + 1);
	if (text == NULL)
		return error_set(reterr, -ENOMEM, "no memory for %s", path);
	r = read_file(fd, text, POLICY_FILE_MAX + 1, &length);
	if (r < 0)
		return error_set(reterr, r, "%s: %s", path, r == -EFBIG ? "larger than 64 KiB" : strerror(-r));
	return policy_parse(text, length, path, ret_policy, reterr);
}
