#include "base/redact.h"

#include "base/util.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char mask[] = "***";

static void put(struct buf *out, const char *begin, const char *end)
{
	buf_add(out, begin, (size_t)(end - begin));
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_quote(char c)
{
	return c == '\'' || c == '"';
}

static const char *find_blank(const char *at, const char *end)
{
	while (at < end && !is_blank(*at))
		at++;
	return at;
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/* ---- programs with secrets in short options ---- */

struct redact_program {
	const char *name;
	bool is_prefix;       // matches a prefix: mysqldump, mysqladmin …
	const char *letters;  // letters of the options
	bool attached_only;   // "-pX"; a single "-p" makes the program prompt for it
	const char *names[2]; // long options with user:password
	size_t n_names;
	char after; // the secret starts after this character: user:password; 0: at once
};

static const struct redact_program programs[] = {
	{.name = "mysql", .is_prefix = true, .letters = "p", .attached_only = true},
	{.name = "mariadb", .is_prefix = true, .letters = "p", .attached_only = true},
	{.name = "7z", .is_prefix = true, .letters = "p", .attached_only = true},
	{.name = "rar", .letters = "p", .attached_only = true},
	{.name = "unrar", .letters = "p", .attached_only = true},
	{.name = "mongo", .is_prefix = true, .letters = "p"},
	{.name = "ldap", .is_prefix = true, .letters = "w"},
	{.name = "snmp", .is_prefix = true, .letters = "cAX"},
	{.name = "mosquitto_", .is_prefix = true, .letters = "P"},
	{.name = "curl", .letters = "uU", .names = {"user", "proxy-user"}, .n_names = 2, .after = ':'},
	{.name = "smbclient", .letters = "U", .names = {"user"}, .n_names = 1, .after = '%'},
	{.name = "sshpass", .letters = "p"},
	{.name = "redis-cli", .letters = "a"},
	{.name = "login", .letters = "p"}, // docker login, az login …
	{.name = "zip", .letters = "P"},
	{.name = "unzip", .letters = "P"},
	{.name = "sqlcmd", .letters = "P"},
	{.name = "bcp", .letters = "P"},
	{.name = "ipmitool", .letters = "P"},
	{.name = "cqlsh", .letters = "p"},
	{.name = "beeline", .letters = "p"},
};

static const struct redact_program *find_program(struct word_part word)
{
	const char *slash = memrchr(word.at, '/', word.n);
	struct word_part name = slash != NULL ? word_part(slash + 1, word.at + word.n) : word;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		size_t n = strlen(programs[i].name);
		if ((programs[i].is_prefix ? name.n >= n : name.n == n) && memcmp(programs[i].name, name.at, n) == 0)
			return &programs[i];
	}
	return NULL;
}

static void put_after(char after, struct word_part value, struct buf *out)
{
	const char *mark = after != 0 ? memchr(value.at, after, value.n) : value.at - 1;
	if (mark == NULL) { // a user without a password
		put(out, value.at, value.at + value.n);
		return;
	}
	put(out, value.at, mark + 1);
	buf_str(out, mask);
}

// Handles "-pX", "-p X", "-sSu user:X", "--user user:X", "--user=user:X". Returns false for any other word.
static bool program_option(struct redactor *redactor, struct word_part word, struct buf *out)
{
	const struct redact_program *program = redactor->program;
	if (program == NULL || word.n < 2 || word.at[0] != '-')
		return false;
	const char *end = word.at + word.n, *equals = memchr(word.at, '=', word.n);
	enum redact_next next = program->after != 0 ? REDACT_AFTER_COLON : REDACT_VALUE;
	if (word.at[1] == '-') {
		if (!redact_is_listed(program->names, program->n_names,
			    word_part(word.at + 2, equals != NULL ? equals : end)))
			return false;
		put(out, word.at, equals != NULL ? equals + 1 : end);
		if (equals != NULL)
			put_after(program->after, word_part(equals + 1, end), out);
		else
			redactor->next = next;
		return true;
	}
	if (word.n > 2 && strchr(program->letters, word.at[1]) != NULL) {
		put(out, word.at, word.at + 2);
		put_after(program->after, word_part(word.at + 2, end), out);
		return true;
	}
	if (program->attached_only || strchr(program->letters, end[-1]) == NULL)
		return false;
	for (const char *at = word.at + 1; at < end; at++)
		if (!isalpha((unsigned char)*at))
			return false;
	put(out, word.at, end);
	redactor->next = next;
	return true;
}

/* ---- within a word ---- */

// Finds the '@' that ends user and password of the URL whose authority starts at `at`; NULL: none.
static const char *end_of_userinfo(const char *at, const char *end, bool is_cut)
{
	const char *stop = at;
	while (stop < end && strchr("/?#'\"", *stop) == NULL)
		stop++;
	const char *sign = memrchr(at, '@', (size_t)(stop - at)), *colon = memchr(at, ':', (size_t)(stop - at));
	if (sign != NULL || colon == NULL)
		return sign;
	const char *digits = colon + 1;
	while (digits < stop && isdigit((unsigned char)*digits))
		digits++;
	if (digits == stop) // a port number
		return NULL;
	// A password with an unescaped '/', or one that is truncated.
	sign = memrchr(stop, '@', (size_t)(end - stop));
	return sign == NULL && is_cut && stop == end ? end : sign;
}

static bool ends_with_http(struct word_part text)
{
	static const char *const schemes[] = {"http", "https"};
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		size_t n = strlen(schemes[i]);
		if (text.n >= n && strncasecmp(text.at + text.n - n, schemes[i], n) == 0)
			return true;
	}
	return false;
}

// At "://": redacts the password, or a long user without a password, which is a token (https://TOKEN@host). Returns the
// position to continue from.
static const char *put_userinfo(struct word_part before, const char *end, bool is_cut, struct buf *out)
{
	enum { TOKEN_LENGTH = 16 };
	const char *at = before.at + before.n + strlen("://");
	buf_str(out, "://");
	const char *sign = end_of_userinfo(at, end, is_cut);
	const char *colon = sign != NULL ? memchr(at, ':', (size_t)(sign - at)) : NULL;
	if (colon == NULL || colon + 1 == sign) {
		const char *user_end = colon != NULL ? colon : sign;
		if (user_end == NULL || user_end - at < TOKEN_LENGTH || !ends_with_http(before))
			return at;
		buf_str(out, mask);
		return user_end;
	}
	put(out, at, colon + 1);
	buf_str(out, mask);
	return sign;
}

struct cursor {
	const char *word, *end; // the complete word
	const char *token;      // start of the token
	const char *token_end;  // at a blank, or the end
};

static const char *name_before(const struct cursor *c, const char *at)
{
	while (at > c->token && is_name_char(at[-1]))
		at--;
	return at;
}

// Finds the end of the value at `at`, whose name starts at `name`. An opening quote there has already been copied.
static const char *end_of_value(const struct cursor *c, const char *name, const char *at)
{
	char before = name > c->word ? name[-1] : 0, quote = is_quote(at[-1]) ? at[-1] : is_quote(before) ? before : 0;
	if (quote != 0) {
		const char *close = memchr(at, quote, (size_t)(c->end - at));
		return close != NULL ? close : c->end;
	}
	if (before == 0) // the whole argument, whatever it contains
		return c->end;
	const char *stops = before == '?' || before == '&' ? "&#" : before == ';' ? ";" : before == ',' ? "," : "";
	while (at < c->token_end && strchr(stops, *at) == NULL)
		at++;
	return at;
}

// At '=': handles "name=value". Returns the position to continue from.
static const char *put_pair(const struct cursor *c, const char *at, struct buf *out)
{
	const char *name_end = at > c->token && is_quote(at[-1]) ? at - 1 : at, *name = name_before(c, name_end);
	const char *value = at + 1;
	enum redact_kind kind = redact_kind_of_option(word_part(name, name_end));
	if (kind != REDACT_KIND_PLAIN && value < c->end && is_quote(*value))
		value++;
	put(out, at, value);
	if (kind == REDACT_KIND_PLAIN || value > c->token_end)
		return value;
	const char *value_end = end_of_value(c, name, value);
	if (!redact_is_secret(kind, word_part(value, value_end)))
		return value;
	buf_str(out, mask);
	return value_end;
}

/* At '=': handles "name = 'value'", in code and settings. Without quotes only names that are certainly secret match: "TOKEN=
 * command" is shell syntax. Returns the position to continue from; NULL: no match. */
static const char *put_spaced_pair(const struct cursor *c, const char *at, struct buf *out)
{
	const char *name_end = at, *value = at + 1;
	while (name_end > c->word && is_blank(name_end[-1]))
		name_end--;
	while (value < c->end && is_blank(*value))
		value++;
	bool has_left = name_end != at;
	bool has_right = value != at + 1;
	if (value == c->end || (!has_left && !has_right))
		return NULL;
	const char *name = name_end;
	while (name > c->word && is_name_char(name[-1]))
		name--;
	enum redact_kind kind = redact_kind_of(word_part(name, name_end));
	char quote = is_quote(*value) ? *value : 0;
	if (quote == 0 && (kind != REDACT_KIND_STRONG || !has_left || !has_right))
		return NULL;
	value += quote != 0;
	const char *stop = quote != 0 ? memchr(value, quote, (size_t)(c->end - value)) : find_blank(value, c->end);
	stop = stop != NULL ? stop : c->end;
	while (quote == 0 && stop > value + 1 && strchr("'\";,)", stop[-1]) != NULL)
		stop--;
	if (!redact_is_secret(kind, word_part(value, stop)))
		return NULL;
	put(out, at, value);
	buf_str(out, mask);
	return stop;
}

// "-HName:": the name without the option.
static struct word_part behind_letter(struct word_part name)
{
	bool has_letter = name.n > 2 && name.at[0] == '-' && name.at[1] != '-';
	return has_letter ? word_part(name.at + 2, name.at + name.n) : name;
}

// "PRIVATE-TOKEN", "X-Api-Key"
static bool resembles_header(struct word_part name)
{
	struct word_part behind = behind_letter(name);
	return behind.n > 0 && isupper((unsigned char)behind.at[0]) && memchr(behind.at, '-', behind.n) != NULL;
}

static bool is_header(struct word_part name)
{
	static const char *const headers[] = {"cookie", "set-cookie"};
	return redact_is_listed(headers, ARRAY_SIZE(headers), behind_letter(name)) ||
		redact_kind_of_option(name) != REDACT_KIND_PLAIN;
}

// At ':': handles "Name: value" up to the quote or the end of the line, "name":"value", "pass:value". Returns the position to
// continue from.
static const char *put_field(const struct cursor *c, const char *at, struct buf *out)
{
	const char *name_end = at > c->token && is_quote(at[-1]) ? at - 1 : at, *name = name_before(c, name_end);
	struct word_part of = word_part(name, name_end);
	const char *value = at + 1;
	bool is_quoted = name_end < at, has_space = value < c->end && is_blank(*value);
	bool is_strict = redact_kind_of(of) == REDACT_KIND_WEAK && !is_quoted && !has_space && value < c->end;
	bool is_named = resembles_header(of) ? !redact_is_path(word_part(value, c->token_end))
					     : redact_is_listed((const char *const[]){"pass", "token"}, 2, of);
	if (name == name_end || !is_header(of) || (is_strict && !is_named)) {
		buf_char(out, ':');
		return at + 1;
	}
	while (value < c->end && is_blank(*value))
		value++;
	char open = name > c->word && is_quote(name[-1]) && !is_quoted ? name[-1] : 0;
	if (value < c->end && is_quote(*value))
		open = *value++;
	put(out, at, value);
	const char *stop = open != 0 ? memchr(value, open, (size_t)(c->end - value)) : NULL;
	if (stop == NULL)
		stop = is_quoted ? c->token_end : memchr(value, '\n', (size_t)(c->end - value));
	if (stop == NULL || stop < value)
		stop = c->end;
	if (stop > value)
		buf_str(out, mask);
	return stop;
}

// First words of options that take no value.
static const char *const switches[] = {"no", "ask", "prompt", "show", "hide", "without", "disable", "skip", "generate"};

static const char *put_token(struct redactor *redactor, const struct cursor *c, struct buf *out)
{
	const char *at = c->token, *spaced_end;
	struct word_part token = word_part(at, c->token_end);
	if (token.n > 0 && token.at[0] != '-') {
		const struct redact_program *program = find_program(token);
		redactor->program = program != NULL ? program : redactor->program;
	}
	if (program_option(redactor, token, out))
		return c->token_end;
	bool is_named = token.n > 2 && token.at[0] == '-' && memchr(token.at, '=', token.n) == NULL &&
		memchr(token.at, ':', token.n) == NULL;
	if (is_named) {
		enum redact_kind kind = redact_kind_of(token);
		const char *first = at + strspn(at, "-"), *first_end = first;
		while (first_end < c->token_end && isalnum((unsigned char)*first_end))
			first_end++;
		if (kind != REDACT_KIND_PLAIN &&
			!redact_is_listed(switches, ARRAY_SIZE(switches), word_part(first, first_end)))
			redactor->next = kind == REDACT_KIND_STRONG ? REDACT_VALUE : REDACT_WEAK_VALUE;
	} else if (token.n == 6 && strncasecmp(token.at, "bearer", 6) == 0) {
		redactor->next = REDACT_VALUE;
	}
	while (at < c->token_end) {
		if (c->token_end - at > 3 && memcmp(at, "://", 3) == 0)
			at = put_userinfo(word_part(c->token, at), c->token_end,
				redactor->is_cut && c->token_end == c->end, out);
		else if (*at == '=' && (spaced_end = put_spaced_pair(c, at, out)) != NULL)
			at = spaced_end;
		else if (*at == '=')
			at = put_pair(c, at, out);
		else if (*at == ':')
			at = put_field(c, at, out);
		else
			buf_char(out, *at++);
	}
	return at;
}

// Handles a value announced by the preceding option. Returns false if this word is not its value.
static bool put_next(struct redactor *redactor, struct word_part value, struct buf *out)
{
	enum redact_next next = redactor->next;
	redactor->next = REDACT_NOTHING;
	if (next == REDACT_NOTHING || redact_is_option(value))
		return false;
	if (next == REDACT_AFTER_COLON)
		put_after(redactor->program->after, value, out);
	else if (redact_is_secret(next == REDACT_VALUE ? REDACT_KIND_STRONG : REDACT_KIND_WEAK, value))
		buf_str(out, mask);
	else
		put(out, value.at, value.at + value.n);
	return true;
}

// Handles a word that contains words: a shell script, a header, a process title.
static void put_text(struct redactor *redactor, const char *word, const char *end, struct buf *out)
{
	const char *at = word;
	while (at < end) {
		if (is_blank(*at) || is_quote(*at) || strchr("({[`", *at) != NULL) {
			buf_char(out, *at++);
			continue;
		}
		struct cursor c = {word, end, at, find_blank(at, end)};
		const char *value_end = c.token_end;
		if (redactor->next != REDACT_NOTHING && at > word && is_quote(at[-1])) {
			const char *close = memchr(at, at[-1], (size_t)(end - at));
			value_end = close != NULL ? close : end;
		}
		while (value_end > at + 1 && strchr("'\";)", value_end[-1]) != NULL)
			value_end--;
		at = put_next(redactor, word_part(at, value_end), out) ? value_end : put_token(redactor, &c, out);
	}
}

void redact_word(struct redactor *redactor, const char *word, size_t length, struct buf *out)
{
	const char *end = word + length;
	if (put_next(redactor, word_part(word, end), out))
		return;
	if (find_blank(word, end) == end) {
		put_token(redactor, &(struct cursor){word, end, word, end}, out);
		return;
	}
	struct redactor within = {.program = redactor->program, .is_cut = redactor->is_cut};
	put_text(&within, word, end, out);
}

void redact_words(const char *words, size_t size, bool is_cut, struct buf *out)
{
	struct redactor redactor = {0};
	const char *end = words + size;
	for (const char *at = words; at < end;) {
		size_t length = strnlen(at, (size_t)(end - at));
		redactor.is_cut = is_cut && at + length == end;
		redact_word(&redactor, at, length, out);
		buf_char(out, '\0');
		at += length + 1;
	}
}

void redact_to_name(const char *words, size_t size, struct buf *out)
{
	const char *end = words + strnlen(words, size), *all_end = words + size;
	bool is_title = all_end - end <= 1;
	const char *name_end = is_title ? find_blank(words, end) : end;
	const char *slash = memrchr(words, '/', (size_t)(name_end - words));
	put(out, slash != NULL ? slash + 1 : words, name_end);
}

char **redact_argv(const char *const *argv, bool name_only)
{
	enum { WORDS_CEILING = 1 << 24 };
	struct buf words, shown;
	size_t n = 0;
	buf_init(&words, WORDS_CEILING);
	buf_init(&shown, WORDS_CEILING);
	for (; argv != NULL && argv[n] != NULL; n++)
		buf_add(&words, argv[n], strlen(argv[n]) + 1);
	if (name_only && n > 0) {
		redact_to_name(words.data, words.size, &shown);
		buf_char(&shown, '\0');
		n = 1;
	} else if (n > 0) {
		redact_words(words.data, words.size, false, &shown);
	}
	bool whole = words.failed == 0 && shown.failed == 0;
	char **block = whole ? malloc((n + 1) * sizeof(*block) + shown.size) : NULL;
	if (block != NULL) {
		char *at = (char *)(block + n + 1);
		if (shown.size > 0)
			memcpy(at, shown.data, shown.size);
		for (size_t i = 0; i < n; i++, at += strlen(at) + 1)
			block[i] = at;
		block[n] = NULL;
	}
	buf_finish(&words);
	buf_finish(&shown);
	return block;
}
