#include "helper/policy.h"

#include "base/cleanup.h"
#include "base/num.h"
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
static const int64_t PERIOD_LEAST_NS = NS_PER_MS, PERIOD_MOST_NS = 3600 * NS_PER_S;
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
	return error_set(line->reterr, -EINVAL, "%.150s, line %d: %s", line->path, line->number, why);
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

static int parse_who(struct line *line, struct policy_rule *rule)
{
	static const struct {
		const char *word;
		enum policy_who who;
		bool (*id_of)(const char *name, uint32_t *ret_id);
	} kinds[] = {{"user", POLICY_USER, user_id}, {"group", POLICY_GROUP, group_id},
		{"others", POLICY_OTHERS, NULL}};
	const char *word = next_word(line);
	size_t i = 0;
	while (i < ARRAY_SIZE(kinds) && strcmp(kinds[i].word, word) != 0)
		i++;
	if (i == ARRAY_SIZE(kinds))
		return wrong(line, "a rule begins with `user NAME`, `group NAME` or `others`, not with '%.60s'", word);
	rule->who = kinds[i].who;
	if (kinds[i].id_of == NULL)
		return 0;
	const char *name = next_word(line);
	uint64_t id;
	if (name == NULL)
		return wrong(line, "`%s` wants a name or a number", word);
	if (num_parse_u64(name, &id) == 0 && id < UINT32_MAX)
		rule->id = (uint32_t)id;
	else if (!kinds[i].id_of(name, &rule->id))
		return wrong(line, "there is no %s '%.60s' on this machine", word, name);
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
	int64_t period_ns = rule->who == POLICY_OTHERS ? OTHERS_PERIOD_NS : PERIOD_LEAST_NS;
	const char *word = next_word(line);
	rule->subject = POLICY_READ;
	if (word != NULL) {
		const char *period = next_word(line);
		if (strcmp(word, "every") != 0 || period == NULL)
			return wrong(line, "after `read` comes nothing, or `every` and a time such as 100ms");
		if (num_parse_duration(period, &period_ns) < 0 || period_ns < PERIOD_LEAST_NS ||
			period_ns > PERIOD_MOST_NS)
			return wrong(line, "'%.60s' is no time from 1ms to 1h", period);
	}
	rule->class = class_of(policy, period_ns);
	return 0;
}

// "150..300", "150..", "..300"
static bool parse_range(const char *word, double *ret_least, double *ret_most)
{
	char least[32];
	const char *dots = strstr(word, "..");
	if (dots == NULL || (size_t)(dots - word) >= sizeof(least) || strlen(word) == 2)
		return false;
	memcpy(least, word, (size_t)(dots - word));
	least[dots - word] = '\0';
	if (least[0] != '\0' && (num_parse_double(least, ret_least) < 0 || *ret_least < 0))
		return false;
	if (dots[2] != '\0' && (num_parse_double(dots + 2, ret_most) < 0 || *ret_most < 0))
		return false;
	return *ret_least <= *ret_most;
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
	const char *word = next_word(line);
	if (word == NULL || !is_device_word(word))
		return wrong(line,
			"after `cap` comes a device: `gpu-0`, `package-0`, an id, `gpus`, `packages` or `any`");
	text_copy(rule->device, sizeof(rule->device), word);
	word = next_word(line);
	if (word != NULL && (strcmp(word, "power") == 0 || strcmp(word, "clocks") == 0)) {
		rule->kind = strcmp(word, "clocks") == 0 ? POLICY_CLOCKS : POLICY_POWER;
		word = next_word(line);
	}
	if (word != NULL && !parse_range(word, &rule->least, &rule->most))
		return wrong(line, "'%.60s' is no range such as 150..300 (%s)", word,
			rule->kind == POLICY_CLOCKS ? "MHz" : "W");
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
	return wrong(line, "who is followed by `read`, `cap` or `nothing`%s%.60s%s", word != NULL ? ", not by '" : "",
		word != NULL ? word : "", word != NULL ? "'" : "");
}

/* ---- lines ---- */

static int parse_rule(struct line *line, struct policy *policy)
{
	struct policy_rule rule = {0};
	if (policy->n == POLICY_RULES_MAX)
		return wrong(line, "there are more than %d rules", POLICY_RULES_MAX);
	int r = parse_who(line, &rule);
	if (r == 0)
		r = parse_what(line, policy, &rule);
	if (r == 0 && line->at < line->n)
		r = wrong(line, "'%.60s' is too much", line->words[line->at]);
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
			return wrong(line, "more than %d words", WORDS_MAX);
		line->words[line->n++] = word;
	}
	return 0;
}

static int parse_line(struct line *line, struct policy *policy)
{
	for (const char *at = line->text; *at != '\0' && *at != '#'; at++)
		if ((unsigned char)*at < ' ' && *at != '\t' && *at != '\r')
			return wrong(line, "has a character that is no text");
	int r = split(line);
	return r < 0 || line->n == 0 ? r : parse_rule(line, policy);
}

int policy_parse(const char *text, size_t size, const char *path, struct policy *ret_policy,
	struct wattle_error *reterr)
{
	struct policy policy = {.periods_ns = {PERIOD_LEAST_NS}, .n_periods = 1};
	struct line line = {.path = path, .reterr = reterr};
	for (const char *at = text, *end = text + size; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline != NULL ? newline : end) - at);
		line.number++;
		if (length >= sizeof(line.text))
			return wrong(&line, "is longer than %zu bytes", sizeof(line.text) - 1);
		if (memchr(at, '\0', length) != NULL)
			return wrong(&line, "has a character that is no text");
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

// Whoever may write the file can grant themselves everything that it can allow.
static int check_owner(int fd, const char *path, struct wattle_error *reterr)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return error_set(reterr, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(reterr, -EINVAL, "%s: is no file", path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return error_set(reterr, -EPERM,
			"%s: belongs to user %u, who could allow themselves anything; `chown "
			"root %s`",
			path, st.st_uid, path);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return error_set(reterr, -EPERM, "%s: others than its owner may write to it; `chmod go-w %s`", path,
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
		return error_set(reterr, -errno, "--policy %s: %s", path, strerror(errno));
	int r = check_owner(fd, path, reterr);
	if (r < 0)
		return r;
	wattle_cleanup_free char *text = malloc(POLICY_FILE_MAX + 1);
	if (text == NULL)
		return error_set(reterr, -ENOMEM, "no memory for %s", path);
	r = read_file(fd, text, POLICY_FILE_MAX + 1, &length);
	if (r < 0)
		return error_set(reterr, r, "%s: %s", path, r == -EFBIG ? "is longer than 64 KiB" : strerror(-r));
	return policy_parse(text, length, path, ret_policy, reterr);
}
