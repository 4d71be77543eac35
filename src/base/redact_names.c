#include "base/redact.h"

#include "base/util.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* ---- names ---- */

// Ends of names, without separators and case.
static const char *const strong[] = {"password", "passwd", "passphrase", "passcode", "secret", "secretkey", "secretid",
	"secretvalue", "apikey", "accesskey", "privatekey", "authkey", "authtoken", "accesstoken", "authorization",
	"bearer", "requirepass", "masterauth", "userpass", "dbpass", "rootpass"};
// The last word of a name.
static const char *const weak[] = {"key", "token", "auth", "pass", "pwd", "pw", "psk", "secrets", "credential",
	"credentials", "creds", "cookie", "sig", "signature", "jwt", "pat", "pin", "otp"};
// Words before a weak word that make it harmless: it counts, sorts, or names something.
static const char *const harmless[] = {"all", "band", "bos", "by", "cls", "col", "column", "count", "data", "dict",
	"end", "eos", "feature", "field", "first", "foreign", "group", "hash", "high", "hot", "image", "index", "input",
	"join", "json", "label", "last", "log", "low", "map", "mask", "max", "meta", "metric", "min", "multi", "n",
	"new", "next", "num", "order", "output", "pad", "partition", "per", "prev", "primary", "pub", "public", "query",
	"row", "sep", "shard", "single", "sort", "special", "start", "stop", "target", "text", "two", "unk"};

bool redact_is_listed(const char *const *list, size_t n, struct word_part word)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(list[i]) == word.n && strncasecmp(list[i], word.at, word.n) == 0)
			return true;
	return false;
}

// Last word of a name: after a separator, or from a capital that follows a small letter (apiKey).
static struct word_part last_word(struct word_part name)
{
	const char *end = name.at + name.n, *at = end;
	while (at > name.at && isalnum((unsigned char)at[-1])) {
		at--;
		if (at > name.at && isupper((unsigned char)at[0]) && islower((unsigned char)at[-1]))
			break;
	}
	return word_part(at, end);
}

static struct word_part word_before(struct word_part name, struct word_part word)
{
	const char *end = word.at;
	while (end > name.at && !isalnum((unsigned char)end[-1]))
		end--;
	return last_word(word_part(name.at, end));
}

static bool has_strong_end(struct word_part name)
{
	for (size_t i = 0; i < ARRAY_SIZE(strong); i++) {
		const char *at = name.at + name.n;
		size_t left = strlen(strong[i]);
		while (at > name.at && left > 0) {
			at--;
			if (!isalnum((unsigned char)*at))
				continue;
			if (tolower((unsigned char)*at) != strong[i][left - 1])
				break;
			left--;
		}
		if (left == 0)
			return true;
	}
	return false;
}

enum redact_kind redact_kind_of(struct word_part name)
{
	static const char aws[] = "AWS_";
	while (name.n > 0 && name.at[0] == '-') {
		name.at++;
		name.n--;
	}
	if ((name.n > strlen(aws) && strncmp(name.at, aws, strlen(aws)) == 0) || has_strong_end(name))
		return REDACT_KIND_STRONG;
	struct word_part word = last_word(name);
	if (!redact_is_listed(weak, ARRAY_SIZE(weak), word) ||
		redact_is_listed(harmless, ARRAY_SIZE(harmless), word_before(name, word)))
		return REDACT_KIND_PLAIN;
	return REDACT_KIND_WEAK;
}

// Handles "-Dkey=5", "-eTOKEN=…": a one-letter option followed by a name.
enum redact_kind redact_kind_of_option(struct word_part name)
{
	enum redact_kind kind = redact_kind_of(name);
	bool has_letter = name.n > 2 && name.at[0] == '-' && name.at[1] != '-';
	return kind == REDACT_KIND_PLAIN && has_letter ? redact_kind_of(word_part(name.at + 2, name.at + name.n))
						       : kind;
}

/* ---- values ---- */

static bool ends_as_file(struct word_part value)
{
	static const char *const endings[] = {"pem", "key", "crt", "cer", "der", "p8", "p12", "pfx", "pub", "ppk",
		"sig", "asc", "gpg", "jks", "json", "yaml", "yml", "toml", "txt", "ini", "conf"};
	const char *dot = memrchr(value.at, '.', value.n);
	return dot != NULL && dot > value.at &&
		redact_is_listed(endings, ARRAY_SIZE(endings), word_part(dot + 1, value.at + value.n));
}

// Whether the value is a path, unless it could be base64, which also has '/' but usually contains '+' or '=' as well.
bool redact_is_path(struct word_part value)
{
	static const char *const beginnings[] = {"/", "./", "../", "~", "file:", "@/"};
	if (memchr(value.at, '+', value.n) != NULL || memchr(value.at, '=', value.n) != NULL)
		return false;
	if (ends_as_file(value))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
		if (value.n >= strlen(beginnings[i]) && strncmp(value.at, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

static bool is_switch_value(struct word_part value)
{
	static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "none", "null", "auto"};
	return (value.n == 1 && isdigit((unsigned char)value.at[0])) ||
		redact_is_listed(words, ARRAY_SIZE(words), value);
}

bool redact_is_secret(enum redact_kind kind, struct word_part value)
{
	return value.n > 0 &&
		(kind == REDACT_KIND_STRONG ||
			(kind == REDACT_KIND_WEAK && !redact_is_path(value) && !is_switch_value(value)));
}

// "--host", "-h", "-port": the preceding option has no value. Any other word may be a secret that starts with a dash.
bool redact_is_option(struct word_part word)
{
	const char *at = word.at, *end = word.at + word.n;
	if (word.n < 2 || *at != '-')
		return false;
	if (word.n == 2)
		return true;
	at += at[1] == '-' ? 2 : 1;
	while (at < end && (islower((unsigned char)*at) || *at == '-' || *at == '_'))
		at++;
	return at == end || *at == '=';
}
